"""Decisions up to a state of a world with default options, under the first of its baselines."""

from functools import partial

import numpy as np

from cluster_env.envs import ClusterEnv
from cluster_env.worlds import get_heuristic, get_spec
from tune_jobs.recipes.request import FigureRequest
from tune_jobs.tables.frames import Row

_LOAD = 1.1  # so that jobs wait
_MOST_DECISIONS = 150


def collect(request: FigureRequest, kind: str) -> list[Row]:
    """Plays up to where most jobs wait and run, in the first decisions of an episode.

    Returns:
        A row for each job (arrival, duration, demands, estimate), then one for each decision.
    """
    (rows,) = request.work.measure(_rows, request.seed, [kind])
    return rows


def _rows(seed: int, kind: str) -> list[Row]:
    env = ClusterEnv(world=kind, workload={"load": _LOAD})
    env.reset(seed=seed)
    rule = get_heuristic(get_spec(kind).baselines[0], env.world)
    actions, busy = [], [0]
    for _ in range(_MOST_DECISIONS):
        actions.append(int(env.choose(rule)))
        _, _, terminated, truncated, info = env.step(actions[-1])
        if terminated or truncated:
            break
        schedule, now = env.schedule(), int(info["time"])
        waiting = int((schedule.start < 0).sum())
        runs = (schedule.start >= 0) & (schedule.start + schedule.duration > now)
        busy.append(waiting * int(runs.sum()))
    jobs = env.jobset
    assert jobs is not None
    estimates = jobs.attributes.get("estimate", jobs.duration)
    rows: list[Row] = [
        {
            "series": "job",
            "arrival": int(jobs.arrival[k]),
            "duration": int(jobs.duration[k]),
            "estimate": int(estimates[k]),
            "demand": " ".join(str(units) for units in jobs.demand[k]),
        }
        for k in range(jobs.num_jobs)
    ]
    shown = actions[: int(np.argmax(busy))]
    rows += [{"series": "decision", "action": action} for action in shown]
    return rows


collect_deeprm = partial(collect, kind="deeprm")
collect_hpc = partial(collect, kind="hpc")
