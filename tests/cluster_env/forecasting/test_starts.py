"""Start times: exact where nothing is uncertain, promised where waits are bounded."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cluster_env.core.errors import InputError
from cluster_env.core.jobs import JobSet
from cluster_env.evaluation.metrics import size_class_of
from cluster_env.forecasting.checks import PRIOR, Calibration, check_starts, play_whole
from cluster_env.forecasting.moments import MachineMoment, PlayedJobs, moment_of
from cluster_env.forecasting.past import NEVER, RunTimes, SitePast
from cluster_env.forecasting.starts import (
    LEVELS,
    Forecast,
    forecast,
    latest_starts,
)
from cluster_env.sites.description import NodeGroup, Site
from cluster_env.worlds import get_heuristic
from cluster_env.worlds.hpc import HPC
from cluster_env.worlds.hpc.rules import Rule, RulePolicy
from cluster_env.worlds.hpc.workloads import LublinWorkload
from tests.cluster_env.worlds.hpc.hpc_jobs import PROCESSORS, jobset_of, small_jobsets
from tests.cluster_env.worlds.hpc.test_reservations import patient_jobsets

WORLD = HPC(processors=PROCESSORS, kill_at_estimate=True)
EXACT = 2_000  # seconds before the small jobs in which jobs took what they asked for


def after_exact_past(jobset: JobSet) -> JobSet:
    """The same jobs, long after some that took exactly what they asked for."""
    past = np.arange(0, 400, 20)
    run = np.full(past.size, 20)
    return jobset_of(
        np.concatenate([past, EXACT + jobset.arrival]),
        np.concatenate([run, jobset.duration]),
        np.concatenate([run, jobset.attributes["estimate"]]),
        np.concatenate([np.ones(past.size, int), jobset.demand[:, 0]]),
    )


def moments(
    jobset: JobSet, world: HPC, rule: Rule
) -> list[tuple[MachineMoment, SitePast, np.ndarray]]:
    """Every event at which somebody waits, and for how long those still do."""
    _, whole = play_whole(jobset, world, RulePolicy("", rule))
    found = []
    for time in np.unique(np.concatenate([jobset.arrival, whole.finish])):
        moment, past = moment_of(jobset, whole, int(time))
        if moment.waiting.size:
            found.append((moment, past, whole.start[moment.number[moment.waiting]] - time))
    return found


@pytest.mark.parametrize("name", ["fcfs:strict", "fcfs:easy", "wfp3:easy", "lcfs:conservative"])
@given(jobset=small_jobsets(exact=True))
@settings(max_examples=10, deadline=None)
def test_with_exact_estimates_and_no_arrivals_it_is_the_start_itself(
    name: str, jobset: JobSet
) -> None:
    rule = Rule(*name.split(":"))
    last = EXACT + int(jobset.arrival[-1])
    for moment, past, after in moments(after_exact_past(jobset), WORLD, rule):
        if moment.time >= last:  # all have arrived, and a week before nothing did
            made = forecast(
                moment,
                replace(past, time=10**8),
                WORLD,
                RulePolicy("", rule),
                num_futures=3,
                rng=np.random.default_rng(0),
            )
            assert (made.after == after).all()
            assert (made.plan == after).all()


@given(jobset=patient_jobsets(), max_wait=st.integers(1, 9), order=st.sampled_from(["sjf", "lcfs"]))
@settings(max_examples=30, deadline=None)
def test_no_job_starts_after_what_the_bound_guarantees(
    jobset: JobSet, max_wait: int, order: str
) -> None:
    world, rule = replace(WORLD, max_wait=max_wait), Rule(order, "easy")
    longest = int(jobset.attributes["estimate"].max())
    for moment, past, after in moments(jobset, world, rule):
        latest = latest_starts(moment, world, longest)
        assert latest is not None
        assert (after <= latest).all()
        made = forecast(
            moment,
            past,
            world,
            RulePolicy("", rule),
            num_futures=4,
            rng=np.random.default_rng(0),
        )
        assert (made.after <= latest).all()


def test_nothing_is_guaranteed_where_the_assumptions_do_not_hold() -> None:
    jobs = jobset_of([0, 1], [9, 9], [9, 9], [8, 8])
    moment = MachineMoment(5, jobs, np.array([0, -1]))
    bounded = replace(WORLD, max_wait=2)
    # Overdue: when the machine is free; else others may start up to two seconds after arrival.
    assert latest_starts(moment, bounded, 20) == [4]
    assert latest_starts(moment, replace(WORLD, max_wait=7), 20) == [1 + 7 + 20 - 5]
    assert latest_starts(moment, WORLD, 20) is None
    assert (
        latest_starts(MachineMoment(10, jobs, np.array([0, -1])), bounded, 20) is None
    )  # outlived
    believed = {**jobs.attributes, "reserve_estimate": np.array([5, 5])}
    believing = MachineMoment(5, replace(jobs, attributes=believed), np.array([0, -1]))
    assert latest_starts(believing, bounded, 20) is None


def past_of(ratios: list[float], user: list[int]) -> SitePast:
    count = len(ratios)
    limit = np.full(count, 1000)
    jobs = jobset_of(np.arange(count), limit, limit, np.ones(count, int), user=np.array(user))
    run = np.rint(limit * np.array(ratios)).astype(int)
    return SitePast(10**6, jobs, run, np.arange(count) + run)


def drawn(past: SitePast, user: int, elapsed: int, kills: bool = True) -> np.ndarray:
    job = jobset_of([0], [1000], [1000], [1], user=np.array([user]))
    rng = np.random.default_rng(0)
    return RunTimes(past, kills).draw(job, np.array([elapsed]), 2000, rng)[:, 0]


def test_run_times_are_drawn_from_the_user_and_the_site_by_how_much_is_known() -> None:
    past = past_of([0.1] * 40 + [0.9] * 60, [0] * 40 + [1] * 60)
    # Of 8 jobs of the same kind 8/28 comes, of 20 of the user half of the rest, then of all.
    known = 8 / 28 + 20 / 28 / 2
    of_limit = 100 / 120
    others = (1 - known) * (0.4 * of_limit + 0.4 * (1 - of_limit))
    assert (drawn(past, 0, 0) == 100).mean() == pytest.approx(known + others, abs=0.03)
    assert (drawn(past, 7, 0) == 100).mean() == pytest.approx(0.4, abs=0.03)  # a new user
    # One that runs for longer than all of the user's is like the others.
    assert set(drawn(past, 0, 500)) == {900}
    assert (drawn(past, 0, 950) > 950).all()
    assert drawn(past, 0, 950).max() <= 1000
    assert drawn(past, 0, 1200, kills=False).min() > 1200


def test_without_any_past_the_user_is_believed() -> None:
    past = past_of([0.1], [0])
    assert set(drawn(replace(past, end=np.array([NEVER])), 0, 0)) == {1000}


def test_a_corrected_level_is_what_earlier_jobs_did_not_exceed() -> None:
    nothing, weeks = Calibration.none().levels, 10**6
    assert (nothing == np.array(LEVELS)[:, None]).all()
    # All jobs of the class come late: so do its levels, as much as they outweigh the prior.
    ranks, size = np.full(100 * PRIOR, 0.97), np.zeros(100 * PRIOR, np.int64)
    late = Calibration.of(ranks, size, weeks).levels
    assert late[:, 0] == pytest.approx(0.97, abs=0.02)
    assert late[:, 1:] == pytest.approx(nothing[:, 1:], abs=1e-5)
    made = Forecast(np.array([[0, 5], [10, 5], [20, 5]]), np.array([0, 0]))
    assert made.quantiles(np.array([[0.25, 0.25], [1.0, 1.0]])).tolist() == [[5, 5], [20, 5]]
    assert made.ranks(np.array([10, 5])).tolist() == [0.5, 0.5]
    assert made.ranks(np.array([-1, 6])).tolist() == [0, 1]


@pytest.mark.parametrize(("weeks", "low"), [(9, 0.0), (19, 0.026), (99, 0.0455), (999, 0.0496)])
def test_of_few_weeks_intervals_reach_further(weeks: int, low: float) -> None:
    """The next of n weeks counts as one more, half of it beyond each end: n + 1 for n weeks."""
    ranks = np.linspace(0, 1, 100_000)
    levels = Calibration.of(ranks, np.zeros(ranks.size, np.int64), weeks).levels[:, 0]
    assert levels[0] == pytest.approx(low, abs=3e-4)
    assert levels[0] == pytest.approx(max(0.05 * (weeks + 1) - 0.5, 0) / weeks, abs=3e-4)
    assert levels == pytest.approx(1 - levels[::-1], abs=1e-5)


def test_at_each_instant_only_the_past_is_used() -> None:
    """What is foreseen early is the same, whatever comes later."""
    jobset = LublinWorkload(processors=64, jobs=600, load=1.1, estimates="tsafrir").sample(
        np.random.default_rng(3)
    )
    world, policy = HPC(processors=64), get_heuristic("fcfs:easy", HPC(processors=64))
    whole = check_starts(jobset, world, policy, num_instants=40, num_futures=8)
    assert whole.job.size > 100
    assert (np.diff(whole.shown, axis=0) >= 0).all()
    assert (whole.size == size_class_of(jobset.demand, np.array([64]))[whole.job]).all()
    # The last jobs take longer than they did, up to their limits.
    changed = jobset.duration.copy()
    changed[400:] = np.maximum(jobset.attributes["estimate"][400:], changed[400:])
    other = check_starts(
        replace(jobset, duration=changed), world, policy, num_instants=40, num_futures=8
    )
    early = whole.share <= jobset.arrival[399] / jobset.arrival[-1]
    assert (whole.shown[:, early] == other.shown[:, : early.sum()]).all()
    assert not np.array_equal(whole.actual, other.actual)


def test_a_job_that_others_overtake_waits_as_long_as_they_come() -> None:
    """Later jobs go first for ever, and not only for a day after the usual way's answer."""
    time, size = np.arange(0, 3 * 86_400, 600), PROCESSORS // 2
    short = np.full(time.size, 1000)
    past = jobset_of(time, short, short, np.full(time.size, size))
    moment, known = moment_of(past, PlayedJobs(time, time + 1000), int(time[-1]))
    wide = jobset_of([0], [50_000], [50_000], [PROCESSORS])
    jobs = JobSet.of(
        np.append(moment.jobs.arrival, time[-1]),
        np.append(moment.jobs.duration, 50_000),
        np.vstack([moment.jobs.demand, wide.demand]),
        attributes={"estimate": np.append(moment.jobs.duration, 50_000)},
    )
    queue = MachineMoment(int(time[-1]), jobs, np.append(moment.start, -1))
    policy, rng = get_heuristic("sjf:skip", WORLD), np.random.default_rng(0)
    made = forecast(queue, known, WORLD, policy, num_futures=2, rng=rng)
    assert made.plan[-1] < 2000
    assert made.after[:, -1].min() > 27 * 86_400


def test_what_cannot_be_played_on_is_refused() -> None:
    jobs = jobset_of([0, 1], [9, 9], [9, 9], [8, 8])
    moment, past = MachineMoment(5, jobs, np.array([0, -1])), past_of([0.5], [0])

    class Network:
        name = "net"

        def act(self, states, uniforms):
            raise AssertionError

    def foreseen(policy, world=WORLD):
        return forecast(moment, past, world, policy, num_futures=2, rng=np.random.default_rng(0))

    with pytest.raises(InputError, match="net is neither"):
        foreseen(Network())
    with pytest.raises(InputError, match="more than the machine's"):
        foreseen(get_heuristic("fcfs", WORLD), HPC(processors=4))
    site = HPC(site=Site((NodeGroup("n", 2, 8),)))
    with pytest.raises(InputError, match="need the nodes of the jobs that run"):
        foreseen(get_heuristic("fcfs", site), site)
    nobody = MachineMoment(5, jobs.select([0]), np.array([0]))
    rng = np.random.default_rng(0)
    assert forecast(nobody, past, WORLD, get_heuristic("fcfs", WORLD), rng=rng).plan.size == 0
