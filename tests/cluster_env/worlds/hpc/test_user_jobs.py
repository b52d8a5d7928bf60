"""Users whose run times are hidden behind what they ask for."""

from dataclasses import replace

import numpy as np
import pytest

from cluster_env.core.errors import InputError
from cluster_env.core.seeding import Split
from cluster_env.objectives import get_objective
from cluster_env.sites.description import NodeGroup, Site
from cluster_env.workloads import sample_jobsets
from cluster_env.worlds.hpc import HPC
from cluster_env.worlds.hpc.rules import Rule
from cluster_env.worlds.hpc.user_jobs import LIMITS_S, UsersWorkload
from meta.tasks import TaskSplit, get_distribution

MANY = UsersWorkload(jobs=4000, load=0.8, habits=3)


def test_a_limit_tells_users_apart_and_run_times_are_their_habits() -> None:
    jobs = MANY.sample(np.random.default_rng(0))
    limit, user = jobs.attributes["estimate"], jobs.attributes["user"]
    assert {*np.unique(limit)} >= {*LIMITS_S}
    assert np.unique(np.stack([limit, user]), axis=1).shape[1] == MANY.users
    assert (jobs.duration <= limit).all()
    # The same habits are the same users, whatever jobs they have; other habits are other users.
    told = replace(MANY, told=True).sample(np.random.default_rng(1))
    believed = {
        who: told.attributes["order_estimate"][told.attributes["user"] == who][0]
        for who in range(MANY.users)
    }
    means = {who: jobs.duration[user == who].mean() for who in range(MANY.users)}
    assert means == pytest.approx(believed, rel=0.06)
    other = replace(MANY, habits=4).sample(np.random.default_rng(0))
    assert np.abs(np.log(other.duration.mean() / jobs.duration.mean())) > 0.1


def test_jobs_have_the_load_and_users_come_and_go() -> None:
    jobsets = sample_jobsets(MANY, 0, Split.TRAIN, range(6))
    loads = [one.work[0] / MANY.processors / one.window for one in jobsets]
    assert np.mean(loads) == pytest.approx(MANY.load, rel=0.1)
    user = jobsets[0].attributes["user"]
    busy = [np.bincount(part, minlength=MANY.users) / part.size for part in np.split(user, 4)]
    assert max(np.ptp(busy, axis=0)) > 0.2


def test_families_that_show_more_have_the_same_jobs() -> None:
    tasks = [
        TaskSplit(get_distribution(name), 1, Split.HELD_OUT).task(2)
        for name in ("users", "users-ended", "users-told", "users-seen")
    ]
    first, *others = (task.jobsets(Split.HELD_OUT, [0])[0] for task in tasks)
    for other in others:
        assert np.array_equal(first.duration, other.duration)
        assert np.array_equal(first.arrival, other.arrival)
    assert "order_estimate" in others[1].attributes
    assert tasks[1].world.run_times == "recent"
    assert tasks[3].world.num_classes == MANY.users


@pytest.mark.parametrize("at_site", [False, True])
def test_what_networks_see_tells_users_apart_where_there_are_classes(at_site: bool) -> None:
    site = Site(nodes=(NodeGroup(processors=64, count=4),)) if at_site else None
    (jobs,) = sample_jobsets(replace(MANY, jobs=60), 0, Split.TRAIN, [0])
    worlds = [HPC(num_classes=num, queue=8, site=site) for num in (1, MANY.users)]
    simulators = [world.simulator() for world in worlds]
    for simulator in simulators:
        simulator.load([jobs], get_objective("bounded_slowdown"))
    row, seen = np.zeros(1, np.int32), set[int]()
    while simulators[0].active[0]:
        plain, told = (
            world.features(one.states).items[0]
            for world, one in zip(worlds, simulators, strict=True)
        )
        others = plain.shape[1]
        assert np.array_equal(plain, told[:, :others])
        waiting = np.flatnonzero(plain[:, 0])
        schedule = simulators[0].schedule()
        users = jobs.job_class[schedule.job[schedule.start < 0]][: waiting.size]
        assert np.array_equal(told[waiting, others:], np.eye(MANY.users)[users])
        assert not told[waiting.size :].any()
        seen |= {*users.tolist()}
        action = simulators[0].choose(Rule("sjf", "easy"), row)
        for simulator in simulators:
            simulator.step(row, action, np.zeros(1))
    assert len(seen) == MANY.users


def test_a_class_that_the_machine_does_not_have_is_refused() -> None:
    jobs = MANY.sample(np.random.default_rng(0))
    HPC().check(jobs)
    with pytest.raises(InputError, match=r"class \d, but .* num_classes=3"):
        HPC(num_classes=3).check(jobs)
    with pytest.raises(InputError, match=r"1\.\.16"):
        HPC(num_classes=17)


@pytest.mark.parametrize(("name", "value"), [("users", 1), ("load", 0.0), ("habits", -1)])
def test_impossible_users_are_refused(name: str, value: float) -> None:
    with pytest.raises(InputError, match="users need"):
        replace(MANY, **{name: value})
