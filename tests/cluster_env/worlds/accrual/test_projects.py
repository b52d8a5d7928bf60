"""Projects of other priorities (section 6): worked by hand, and what holds for all jobs."""

from dataclasses import replace

import gymnasium
import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from cluster_env.core.errors import InputError
from cluster_env.core.jobs import JobSet
from cluster_env.core.schedule import Schedule
from cluster_env.core.spec import get_heuristic
from cluster_env.core.utility import final_utility
from cluster_env.envs.checker import check_cluster_env
from cluster_env.evaluation import evaluate
from cluster_env.objectives import UTILITY
from cluster_env.worlds.accrual import Accrual
from cluster_env.worlds.accrual.rules import Rule
from cluster_env.worlds.accrual.state import CANDIDATE, HEADER
from cluster_env.worlds.accrual.values import PAPER_RULEBASE
from cluster_env.worlds.accrual.workloads import PoissonWorkload
from tests.cluster_env.schedules import assert_same_schedule
from tests.cluster_env.worlds.accrual.accrual_jobs import (
    MOST_PROJECTS,
    jobs,
    small_jobsets,
    small_worlds,
)
from tests.cluster_env.worlds.accrual.step_rule import check_priorities, check_step
from tests.cluster_env.worlds.accrual.test_pool import learners
from tests.cluster_env.worlds.accrual.test_simulator import assert_learns_the_same, rules_of, used
from tests.cluster_env.worlds.stepping import step_one

TWO = Accrual(processors=10, projects=2)
NO_SECOND_THOUGHTS = ("none", "edf", "density", "aggressive:squeeze")
"""Rules that do nothing at an instant at which none of their jobs arrives or finishes."""


def played(world: Accrual, jobset: JobSet, rule: str = "none") -> Schedule:
    return evaluate(get_heuristic(rule, world), [jobset], world)


def test_a_job_preempts_one_of_a_lower_project_whatever_the_rule() -> None:
    """The second job is in time only if the first one, which keeps what it has done, stops for it.

    It runs from 2 to 6. The first one finishes at 12 instead of 8, at half its unit utility.
    """
    jobset = jobs([0, 2], [8, 8], [8, 4], project=[0, 1])
    for world in (TWO, replace(TWO, preempt=False, squeeze=False)):
        schedule = played(world, jobset)
        assert used(schedule, 0, 12) == [8, 8, 0, 0, 0, 0, *[8] * 6]
        assert schedule.start.tolist() == [0, 2]
        assert schedule.finish.tolist() == [12, 6]
        assert final_utility(schedule).tolist() == [32, 32]
    without = played(replace(TWO, projects=1), jobset)
    assert without.finish.tolist() == [8, 12]
    assert final_utility(without).tolist() == [64, 0]


def test_as_few_are_preempted_as_needed_those_of_the_lowest_remaining_utility_first() -> None:
    """At 1 the remaining utilities are 1/9, 1/3 and 1/5, and the fourth job's own is 1/50.

    It asks for 5: the first job makes room for 3, the third one for 4 more. The second one stays.
    """
    jobset = jobs([0, 0, 0, 1], [3, 3, 4, 5], [10, 4, 6, 50], project=[0, 0, 0, 1])
    schedule = played(TWO, jobset)
    assert used(schedule, 3, 51) == [0, *[5] * 50]
    assert used(schedule, 1, 4) == [3] * 4
    # At 4 the second one leaves 5 free: the third one fits best.
    assert used(schedule, 2, 9) == [4, 0, 0, 0, *[4] * 5]
    assert used(schedule, 0, 18) == [3, *[0] * 8, *[3] * 9]


def test_all_lower_projects_are_preempted_by_remaining_utility_alone() -> None:
    """At 1 the job of project 1 has 1/9, less than 1/2 of that of project 0, and goes first."""
    world = replace(TWO, projects=3)
    schedule = played(world, jobs([0, 0, 1], [5, 5, 5], [3, 10, 2], project=[0, 1, 2]))
    # Then it takes back what the lower one holds.
    assert used(schedule, 2, 3) == [0, 5, 5]
    assert used(schedule, 1, 10) == [5] * 10
    assert used(schedule, 0, 5) == [5, 0, 0, 5, 5]


def test_where_all_of_them_would_not_make_room_none_is_preempted() -> None:
    """8 of 10 are asked for, 6 held by the same project: the lower job goes on."""
    jobset = jobs([0, 0, 1], [6, 4, 8], [5, 5, 5], project=[1, 0, 1])
    schedule = played(TWO, jobset)
    assert schedule.start.tolist() == [0, 0, 5]
    assert schedule.finish.tolist() == [5, 5, 10]


@pytest.mark.parametrize("rule", ["aggressive", "rulebase", "edf"])
def test_no_job_preempts_one_of_a_higher_project(rule: str) -> None:
    """Though its remaining utility, 1, is higher than 1/29."""
    jobset = jobs([0, 1], [8, 8], [30, 1], project=[1, 0])
    assert used(played(TWO, jobset, rule), 0, 30) == [8] * 30
    within = played(TWO, replace(jobset, job_class=np.zeros(2, np.uint8)), "aggressive:preempt")
    assert used(within, 1, 2) == [0, 8]  # of its own project it does


def test_a_squeezed_job_gets_what_lower_projects_hold() -> None:
    """The third job starts on 6 processors, 4 of which the second one held, beside the first.

    By 5, when the first one finishes, it has done 24 of its 40 units. It gets the 4 processors that
    it misses, and not the second one, which goes on at 7.
    """
    jobset = jobs([0, 0, 1], [4, 4, 10], [5, 5, 4], project=[1, 0, 1])
    schedule = played(TWO, jobset, "aggressive:squeeze")
    assert used(schedule, 2, 7) == [0, 6, 6, 6, 6, 10, 6]
    assert used(schedule, 1, 11) == [4, *[0] * 6, 4, 4, 4, 4]
    assert schedule.finish.tolist() == [5, 11, 7]


@pytest.mark.parametrize("rule", ["dasa", "lbesa"])
def test_a_plan_is_of_one_project_alone(rule: str) -> None:
    """The second and the third job can both be in time, by deadline, as if the others were not.

    With the work of the first or the fourth one before theirs, neither could.
    """
    world = replace(TWO, processors=1)
    jobset = jobs([0, 1, 1, 1], [1, 1, 1, 1], [30, 6, 5, 2], project=[0, 1, 1, 0])
    assert played(world, jobset, rule).start[1:3].tolist() == [6, 1]


def test_a_project_sees_what_lower_ones_hold_as_idle_and_no_job_of_theirs() -> None:
    """At 1 the first job holds 4 of 10 and the second one 6, and the third one asks for all.

    To its project neither the second nor the fourth one is there.
    """
    simulator = TWO.simulator()
    jobset = jobs([0, 0, 1, 1], [4, 6, 10, 7], [5, 5, 4, 4], project=[1, 0, 1, 0])
    simulator.load([jobset], UTILITY)
    step_one(simulator, TWO.candidates)  # at 0 there is nothing to decide
    seen = [1, 1_000_000, 4, 6, 1, 40, 1_000_000, 10, 20]
    assert simulator.states[0, : len(HEADER)].tolist() == seen
    assert simulator.states[0, len(HEADER) :].reshape(-1, len(CANDIDATE))[:, 0].sum() == 1


@given(small_worlds(machines=2), small_jobsets(), st.sampled_from(NO_SECOND_THOUGHTS))
def test_jobs_of_the_highest_project_run_as_if_they_were_alone(
    world: Accrual, jobset: JobSet, rule: str
) -> None:
    world = replace(world, projects=MOST_PROJECTS, squeeze=True)
    mine = jobset.job_class == MOST_PROJECTS - 1
    assume(mine.any() and not mine.all())
    among = played(world, jobset, rule)
    alone = played(replace(world, projects=1), jobset.select(mine), rule)
    ours = np.flatnonzero(among.job_class == MOST_PROJECTS - 1)
    assert among.start[ours].tolist() == alone.start.tolist()
    assert among.finish[ours].tolist() == alone.finish.tolist()
    until = int(alone.end[0])
    for k, job in enumerate(ours.tolist()):
        assert used(among, job, int(among.end[0]))[:until] == used(alone, k, until)


@given(small_worlds(machines=2), small_jobsets(), st.integers(0, MOST_PROJECTS - 1))
def test_one_project_is_none(world: Accrual, jobset: JobSet, project: int) -> None:
    jobset = replace(jobset, job_class=np.full(jobset.num_jobs, project, np.uint8))
    one, several = (replace(world, projects=count) for count in (1, MOST_PROJECTS))
    for rule in rules_of(world):
        assert_same_schedule(played(several, jobset, rule), played(one, jobset, rule))
    learned = []
    for each in (one, several):
        simulator, it = each.simulator(), learners(each.num_learners)
        simulator.load([jobset], UTILITY)
        simulator.play(Rule("best_fit", "value"), learners=it, learning=True)
        learned.append(it.p.reshape(each.machines, each.projects, -1))
    np.testing.assert_array_equal(learned[1][:, project], learned[0][:, 0])


def test_each_project_learns_from_what_it_and_higher_ones_earn() -> None:
    """As the plain server has it, on jobs of which each project has to decide on many."""
    workload = PoissonWorkload(processors=10, projects=2, window=400, rate=0.2, largest=10)
    jobset = workload.sample(np.random.default_rng(0))
    world = replace(TWO, candidates=64)  # the plain server has no limit
    assert_learns_the_same(world, jobset, list(PAPER_RULEBASE), 0.02)


@given(small_worlds(), small_jobsets(), st.sampled_from(("none", "aggressive", "rulebase")))
def test_no_job_waits_while_lower_projects_hold_what_it_needs(
    world: Accrual, jobset: JobSet, rule: str
) -> None:
    world = replace(world, projects=MOST_PROJECTS, drop_expired=False)
    check_priorities(played(world, jobset, rule), world)


def test_a_world_of_projects_is_an_environment_as_any() -> None:
    options = {"kind": "accrual", "projects": 2, "candidates": 4}
    env = gymnasium.make("Accrual-v0", world=options, workload={"rate": 0.4, "window": 60})
    check_cluster_env(env, step_rule=check_step)


def test_projects_move_no_other_number_of_a_jobset_and_have_their_shares() -> None:
    def sample(**options: object) -> JobSet:
        return PoissonWorkload(window=20_000, **options).sample(np.random.default_rng(0))

    plain, three = sample(), sample(projects=3)
    for name in ("arrival", "duration", "demand"):
        np.testing.assert_array_equal(getattr(plain, name), getattr(three, name))
    assert not plain.job_class.any()
    assert np.bincount(three.job_class) / three.num_jobs == pytest.approx([1 / 3] * 3, abs=0.04)


def test_projects_that_make_no_sense_are_refused() -> None:
    with pytest.raises(InputError, match="projects must be 1"):
        Accrual(projects=0)
    with pytest.raises(InputError, match="job 1 has class 2, but the world has projects=2"):
        TWO.check(jobs([0, 0], [1, 1], [1, 1], project=[1, 2]))
    replace(TWO, projects=1).check(jobs([0, 0], [1, 1], [1, 1], project=[1, 2]))
