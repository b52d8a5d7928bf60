"""Faults in a step of this world are found, one by one."""

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from cluster_env.envs.checker import CheckError, Moment
from cluster_env.objectives import get_objective
from cluster_env.worlds.hpc import HPC
from tests.cluster_env.worlds.hpc.hpc_jobs import jobset_of
from tests.cluster_env.worlds.hpc.step_rule import check_step

WORLD = HPC(processors=8, queue=3)


def decision(action: int) -> tuple[Any, Moment, Moment]:
    """A machine with 2 of 8 processors in use, where one of two waiting jobs fits."""
    simulator = WORLD.simulator()
    simulator.load(
        [jobset_of([0, 1, 1], [9, 5, 5], [9, 5, 5], [2, 8, 6])], get_objective("slowdown")
    )
    core = SimpleNamespace(world=WORLD, simulator=simulator, schedule=simulator.schedule)
    simulator.step(np.zeros(1, np.int32), np.zeros(1, np.int32), np.empty(1))
    before = moment(core)
    simulator.step(np.zeros(1, np.int32), np.array([action], np.int32), np.empty(1))
    return core, before, moment(core)


def moment(core: Any) -> Moment:
    mask = WORLD.features(core.simulator.states).allowed[0].astype(np.int8)
    return Moment(mask, int(core.simulator.time[0]), core.simulator.schedule())


@pytest.mark.parametrize("action", [1, 3])
def test_a_step_by_the_rules_is_let_pass(action: int) -> None:
    core, before, after = decision(action)
    assert before.mask.tolist() == [0, 1, 0, 1]
    check_step(core, before, after, action, 0.0, "here")


def spoiled(fault: str, core: Any, before: Moment, after: Moment) -> tuple[Moment, Moment]:
    start = after.schedule.start.copy()
    if fault == "nothing starts":
        return before, replace(after, schedule=replace(after.schedule, start=before.schedule.start))
    if fault == "too early":
        start[2] -= 1
        return before, replace(after, schedule=replace(after.schedule, start=start))
    core.simulator.states[0, WORLD.layout.jobs_at - 1] += 1
    return before, after


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        ("nothing starts", "0 jobs start instead of 1 here"),
        ("too early", "does not start at the time of the decision here"),
        ("units", "the free units are not those of the schedule here"),
    ],
)
def test_a_step_that_breaks_a_rule_is_named(fault: str, words: str) -> None:
    core, before, after = decision(1)
    before, after = spoiled(fault, core, before, after)
    with pytest.raises(CheckError, match=words):
        check_step(core, before, after, 1, 0.0, "here")


def test_starting_where_the_policy_waits_is_named() -> None:
    core, before, after = decision(1)
    with pytest.raises(CheckError, match="1 jobs start instead of 0"):
        check_step(core, before, after, WORLD.queue, 0.0, "here")
