"""The formulations of Cunha's thesis, chapter 4: when a policy is asked and what it is rewarded."""

from itertools import repeat

import gymnasium
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cluster_env.core.errors import InputError
from cluster_env.core.jobs import JobSet
from cluster_env.objectives import get_objective
from cluster_env.worlds.hpc import HPC
from tests.cluster_env.worlds.hpc.hpc_jobs import PROCESSORS, jobset_of, small_jobsets
from tests.cluster_env.worlds.stepping import play_to_the_end, step_one

BASE = {"reward": "base", "time_step": 1, "every_step": True}
SPARSE, REDUCED = {"reward": "sparse", "time_step": 1}, {"reward": "reduced", "time_step": 1}
OPTIONS = {"reward": "options", "time_step": 1, "reward_discount": 0.5}

ALONE = jobset_of([0], [3], [3], [8])
IN_TURN = jobset_of([0, 1], [4, 2], [4, 2], [8, 8])
SIDE_BY_SIDE = jobset_of([0, 0], [4, 2], [4, 2], [4, 4])


def rewards_of(options: dict, jobset: JobSet, actions) -> list[float]:
    """Rewards of an episode under the slowdown; an action of -1 waits."""
    world = HPC(PROCESSORS, queue=4, **options)
    simulator = world.simulator()
    simulator.load([jobset], get_objective("slowdown"))
    taken = iter(actions)
    found = [step_one(simulator, next(taken)) for _ in iter(lambda: simulator.active[0], False)]
    return found


def test_figure_4_4() -> None:
    """One job of three steps: -1 in the base MDP, 0 with sparse transitions."""
    assert rewards_of(BASE, ALONE, repeat(0)) == pytest.approx([0, -1 / 3, -1 / 3, -1 / 3])
    assert rewards_of(SPARSE, ALONE, repeat(0)) == [0]
    assert rewards_of(OPTIONS, ALONE, repeat(0)) == [0]  # it never waits (section 4.7.2)
    assert rewards_of({}, ALONE, repeat(0)) == [-1]


def test_equation_4_1() -> None:
    """Job 0 runs from 0 to 4, and job 1 waits from 1 and runs from 4 to 6."""
    expected = [0, -0.25, -0.75, -0.75, -0.75, 0, -0.5, -0.5]
    assert rewards_of(BASE, IN_TURN, repeat(0)) == pytest.approx(expected)


def test_equation_2_18() -> None:
    """Job 1 waits for three of the four seconds of the first option, at a half, a quarter, ..."""
    expected = [-0.5 * (0.5 + 0.25 + 0.125), 0]
    assert rewards_of(OPTIONS, IN_TURN, repeat(0)) == pytest.approx(expected)
    undiscounted = {**OPTIONS, "reward_discount": 1.0}
    assert rewards_of(undiscounted, IN_TURN, repeat(0)) == pytest.approx([-1.5, 0])


def test_only_a_step_without_a_start_counts_where_transitions_are_sparse() -> None:
    """Both jobs fit: the first starts, the policy waits twice, and the second starts at 2."""
    actions = [0, -1, -1, 0]
    assert rewards_of(SPARSE, SIDE_BY_SIDE, actions) == pytest.approx([0, -0.75, -0.75, 0])
    assert rewards_of(REDUCED, SIDE_BY_SIDE, actions) == pytest.approx([0, -0.5, -0.5, 0])
    until_event = {"reward": "options", "reward_discount": 1.0}
    assert rewards_of(until_event, SIDE_BY_SIDE, [0, -1, 0]) == pytest.approx([0, -2.0, 0])


@given(
    small_jobsets(),
    st.integers(0, 9),
    st.sampled_from(["slowdown", "bounded_slowdown"]),
    st.integers(1, 5),
)
@settings(max_examples=30)
def test_the_base_return_is_what_the_schedule_costs(
    jobset: JobSet, seed: int, objective: str, time_step: int
) -> None:
    simulator = HPC(PROCESSORS, queue=16, **{**BASE, "time_step": time_step}).simulator()
    simulator.load([jobset], get_objective(objective))
    rng = np.random.default_rng(seed)
    [total] = play_to_the_end(simulator, lambda _: rng.integers(-1, 6, 1).astype(np.int32))
    [cost] = get_objective(objective).cost_of_episodes(simulator.schedule())
    assert simulator.schedule().finished.all()
    assert total == pytest.approx(-cost, abs=1e-9)


def test_the_ids_are_those_formulations() -> None:
    for name in ("Base", "Sparse", "Reduced", "Options"):
        env = gymnasium.make(f"HPC{name}-v0", workload={"jobs": 4}).unwrapped
        assert env.world.reward == name.lower()
        assert env.world.every_step == (name == "Base")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"reward": "bsae"}, "did you mean 'base'"),
        ({"every_step": True}, "1 or more with every_step"),
        ({"time_step": -1}, "time_step must be 0"),
        ({"reward": "options", "reward_discount": 0.0}, "a discount must be above 0"),
    ],
)
def test_impossible_formulations_are_refused(options: dict, words: str) -> None:
    with pytest.raises(InputError, match=words):
        HPC(**options)
