"""Metrics of the departure process of consumers, after PANDA (section 4.1), for worlds that ask.

A consumer's total time is its completion time: wait and run. Jobs that did not finish count with
the time that they have spent so far, as in all metrics.
"""

import numpy as np
from numpy.typing import NDArray

from cluster_env.core.metric import Metric, makespan
from cluster_env.core.registry import Registry
from cluster_env.core.schedule import Schedule


def run_time(schedule: Schedule) -> NDArray[np.float64]:
    """Time from start to finish, or to the episode's end, float64 ``(num_jobs,)``; 0 unstarted."""
    end = schedule.end[schedule.episode]
    until = np.where(schedule.finished, schedule.finish, end)
    run = np.where(schedule.start >= 0, until - schedule.start, 0)
    return np.maximum(run, 0).astype(np.float64)


def flow_rate(schedule: Schedule) -> NDArray[np.float64]:
    """Jobs that finish in a unit of time, up to the last finish, float64 ``(num_episodes,)``."""
    done = np.bincount(schedule.episode[schedule.finished], minlength=schedule.num_episodes)
    return np.asarray(done / np.maximum(makespan(schedule), 1.0), np.float64)


def class_deviation(schedule: Schedule) -> NDArray[np.float64]:
    """Standard deviation of total times within a class, float64 ``(num_episodes,)``.

    It is the root of the mean, over jobs, of the variance within their classes: the paper's
    unfairness among jobs with similar demands, in units of time.
    """
    # One number for each class of each episode; there are at most 256 classes.
    group = schedule.episode.astype(np.int64) * 256 + schedule.job_class
    _, place, counts = np.unique(group, return_inverse=True, return_counts=True)
    total = schedule.completion.astype(np.float64)
    mean = np.bincount(place, total, minlength=counts.size) / np.maximum(counts, 1)
    squares = np.square(total - mean[place])
    jobs = np.bincount(schedule.episode, minlength=schedule.num_episodes)
    sums = np.bincount(schedule.episode, squares, minlength=schedule.num_episodes)
    return np.sqrt(sums / np.maximum(jobs, 1))


def jain_index(schedule: Schedule) -> NDArray[np.float64]:
    """Jain's index of slowdowns, from 1 / jobs to 1 for equal ones, float64 ``(num_episodes,)``.

    Jain, Chiu and Hawe, A quantitative measure of fairness (1984), equation 2.
    """
    sums, squares = (
        np.bincount(schedule.episode, schedule.slowdown**power, minlength=schedule.num_episodes)
        for power in (1, 2)
    )
    jobs = np.bincount(schedule.episode, minlength=schedule.num_episodes)
    index = np.ones(schedule.num_episodes)
    np.divide(np.square(sums), jobs * squares, out=index, where=squares > 0)
    return index


def valid(schedule: Schedule) -> NDArray[np.float64]:
    r"""1 for each episode whose schedule is valid after Definition 4.1, float64 ``(episodes,)``.

    With the n-th departure at :math:`D_n`, counted from the first arrival (the paper leaves open
    from when), and total times :math:`\delta_i` of those that have left, valid means
    :math:`\max_i \delta_i \le D_n \le \sum_i \delta_i` for the last n. The lower bound always
    holds; the upper one fails where the system stands empty for longer than jobs overlap. An
    episode from which nobody left is not valid.
    """
    is_valid = np.zeros(schedule.num_episodes)
    for episode in range(schedule.num_episodes):
        departed = (schedule.episode == episode) & schedule.finished
        if not departed.any():
            continue
        first = schedule.arrival[schedule.episode == episode].min()
        last = schedule.finish[departed].max() - first
        total = schedule.completion[departed]
        is_valid[episode] = total.max() <= last <= total.sum(dtype=np.int64)
    return is_valid


DEPARTURES: Registry[Metric] = Registry("metric")
"""Metrics for worlds that name them in `WorldSpec.metrics`."""

for _metric in (
    Metric("run_time", "mean run time", "job", run_time),
    Metric("flow_rate", "jobs that finish in a step", "episode", flow_rate, higher_is_better=True),
    Metric(
        "class_deviation", "deviation of total times within a class", "episode", class_deviation
    ),
    Metric("jain_index", "Jain's index of slowdowns", "episode", jain_index, higher_is_better=True),
    Metric("valid", "share of valid schedules", "episode", valid, higher_is_better=True),
):
    DEPARTURES.register(_metric.name)(_metric)
