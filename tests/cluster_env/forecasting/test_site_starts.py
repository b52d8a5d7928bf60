"""Start times at a site: nodes, partitions, limits, throttles and dependencies are those of it."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, note, settings
from hypothesis import strategies as st

from cluster_env.core.errors import InputError
from cluster_env.core.jobs import JobSet
from cluster_env.forecasting.checks import play_whole
from cluster_env.forecasting.moments import MachineMoment, moment_of
from cluster_env.forecasting.past import NEVER, SitePast
from cluster_env.forecasting.sequences import JobSequence, arrivals
from cluster_env.forecasting.starts import forecast
from cluster_env.sites.description import NodeGroup, Outage, Site
from cluster_env.sites.placements import Placements, known_at, without_failures
from cluster_env.worlds import get_heuristic
from cluster_env.worlds.hpc import HPC
from cluster_env.worlds.hpc.rules import Rule, RulePolicy
from tests.cluster_env.worlds.hpc.site.small_sites import jobs_of, sites

LATE = 10**8  # when the past is so long ago that nothing of it arrives again


def nothing_known(jobset: JobSet) -> SitePast:
    """A past of which only limits are known, so that users are believed."""
    none = jobset.select(np.zeros(0, np.int64))
    return SitePast(LATE, none, np.zeros(0, np.int64), np.zeros(0, np.int64))


@pytest.mark.parametrize("name", ["fcfs:strict", "fcfs:easy", "wfp3:skip", "sjf:conservative"])
@given(data=st.data())
@settings(max_examples=20, deadline=None)
def test_with_true_run_times_and_no_arrivals_it_is_the_start_itself(
    name: str, data: st.DataObject
) -> None:
    site = without_failures(data.draw(sites(more=True, limits=True, calendar=True)))
    known = tuple(replace(one, known_from=0) for one in site.calendar)
    site = replace(site, calendar=known)
    jobset = data.draw(jobs_of(site, follow=True))
    exact = {"estimate": jobset.duration, "think_s": np.full(jobset.num_jobs, -1)}
    jobset = replace(jobset, attributes={**jobset.attributes, **exact})
    world, policy = HPC(site=site), RulePolicy("", Rule(*name.split(":")))
    try:
        _, whole = play_whole(jobset, world, policy)
    except InputError:
        return  # a job for which the calendar or a failed predecessor leaves no time
    last = int(jobset.arrival[-1])
    for time in np.unique(np.concatenate([jobset.arrival, whole.finish])):
        moment, _ = moment_of(jobset, whole, int(time))
        if time < last or not moment.waiting.size:
            continue
        rng, past = np.random.default_rng(0), nothing_known(jobset)
        note(f"at {time}: {whole}, {dict(jobset.attributes)}")
        made = forecast(moment, past, world, policy, num_futures=2, rng=rng)
        assert (made.after == whole.start[moment.number[moment.waiting]] - time).all()


def test_arrays_one_by_one_and_exclusive_jobs_after_each_other() -> None:
    """Four nodes held by one job for 100 s more; by hand, since all run as long as they may."""
    groups = tuple(NodeGroup(f"n{k}", 1, 8, features=(f"on{k}",)) for k in (1, 2, 3, 4))
    world = HPC(site=Site(groups))
    array, pair = [1] * 4, [3] * 2
    columns = {
        "estimate": [200, *[60] * 7],
        "exclusive": [1, 0, 0, 0, 0, 1, 1, 0],
        "nodes": [4, *array, *pair, 1],
        "array": [-1, *[7] * 4, -1, -1, -1],
        "throttle": [0, *array, 0, 0, 0],
        "features": [0] * 7 + [1],  # on n1
    }
    jobs = JobSet.of(
        [0, *[50] * 4, 60, 61, 62],
        columns["estimate"],
        [[units] for units in (4, *array, *pair, 1)],
        attributes={name: np.array(column) for name, column in columns.items()},
    )
    begun = np.array([0, *[-1] * 7])
    moment = MachineMoment(100, jobs, begun, Placements.of([dict.fromkeys(range(4), 1)]))
    for name in ("fcfs:easy", "fcfs:conservative"):
        policy, rng = get_heuristic(name, world), np.random.default_rng(0)
        made = forecast(moment, nothing_known(jobs), world, policy, num_futures=3, rng=rng)
        assert made.plan.tolist() == [100, 160, 220, 280, 100, 160, 100]
        assert (made.after == made.plan).all()


def test_who_is_there_may_start_at_once_unless_the_policy_has_decided() -> None:
    world = HPC(site=Site((NodeGroup("n", 2, 4),)))
    jobs = JobSet.of([0, 10], [50, 50], [[4], [4]])
    moment = MachineMoment(20, jobs, np.array([0, -1]), Placements.of([{0: 4}]))
    policy, rng = get_heuristic("fcfs:easy", world), np.random.default_rng(0)
    for decided, start in ((False, 0), (True, 30)):
        known = replace(moment, decided=decided)
        made = forecast(known, nothing_known(jobs), world, policy, num_futures=2, rng=rng)
        assert made.after.tolist() == [[start], [start]]


def test_failures_to_come_and_what_is_not_known_yet_are_not_foreseen() -> None:
    calendar = (
        Outage(40, 60, ("n1",), kind="failure"),
        Outage(120, 200, kind="failure"),
        Outage(120, 10_000, known_from=60),
        Outage(110, 190, ("n1",)),
    )
    site = Site((NodeGroup("n", 2, 4),), calendar=calendar)
    jobs = JobSet.of([0, 40], [150, 50], [[4], [4]], attributes={"submit": np.array([0, 40])})
    moment = MachineMoment(50, jobs, np.array([0, -1]), Placements.of([{1: 4}]))
    world = HPC(site=site)
    policy, rng = get_heuristic("fcfs:easy", world), np.random.default_rng(0)
    made = forecast(moment, nothing_known(jobs), world, policy, num_futures=2, rng=rng)
    # At 60 the failure that lasts is over, and n1 is free for 50 s until it is taken away.
    assert made.after.tolist() == [[10], [10]]
    assert known_at(site, 60).calendar[2] == calendar[2]


def test_jobs_that_come_again_are_other_jobs() -> None:
    """Of a week before, with a dependency, an array and a reservation, which is over."""
    week, time = 7 * 86_400, 15 * 86_400
    site = Site((NodeGroup("n", 1, 4),), calendar=(Outage(0, 100, kind="reservation"),))
    columns = {
        "job_id": [5, 6, 7, 8],
        "after": [-1, 5, -1, -1],
        "array": [3, 3, -1, 9],
        "throttle": [1, 1, 0, 1],
        "reservation": [-1, -1, 0, -1],
    }
    jobs = JobSet.of(
        np.array([0, 100, 200, week * 2 + 50]),
        [10] * 4,
        [[1]] * 4,
        attributes={name: np.array(column) for name, column in columns.items()},
    )
    run, end = np.full(4, 10), np.array([10, 110, 210, NEVER])
    past = SitePast(2 * week - 10, jobs.select(slice(3)), run[:3], end[:3])
    later = arrivals(past, 2 * week, np.random.default_rng(1))
    moment = MachineMoment(time, jobs.select([3]), np.array([-1]), Placements.of([]))
    made = JobSequence(moment, HPC(site=site)).jobset(run[:1], later).attributes
    numbers = made["job_id"][1:]
    assert len({*numbers.tolist(), 8}) == numbers.size + 1
    assert 7 not in {number % 10 for number in numbers.tolist()}
    follows = made["after"][1:] >= 0
    assert set(made["after"][1:][follows]) <= set(numbers)
    assert len(set(made["array"].tolist())) == 1 + len(set(later.stretch.tolist()))
