"""Heuristics: a hand-worked state, and the choices of the released code."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cluster_env.core.errors import InputError
from cluster_env.core.jobs import JobSet
from cluster_env.objectives import get_objective
from cluster_env.worlds import get_heuristic
from cluster_env.worlds.deeprm import DeepRM
from cluster_env.worlds.deeprm.cluster import Cluster
from cluster_env.worlds.deeprm.state import StateLayout
from tests.cluster_env.worlds.deeprm.golden_episodes import golden_episodes
from tests.cluster_env.worlds.stepping import step_one

CLUSTER = Cluster(capacity=(10, 10), horizon=20, num_slots=5)
VOID = 5


def loaded(jobs: list[tuple[int, int, int]]) -> Any:
    """A simulator with these (duration, demand, demand) in its slots."""
    duration, *demand = (list(column) for column in zip(*jobs, strict=True))
    jobset = JobSet.of([0] * len(jobs), duration, np.transpose(demand), window=100)
    simulator = DeepRM(CLUSTER).simulator()
    simulator.load([jobset], get_objective("slowdown"))
    return simulator


def state_of(jobs: list[tuple[int, int, int]], wait: int = 0) -> np.ndarray:
    """Its state after some steps."""
    simulator = loaded(jobs)
    for _ in range(wait):
        step_one(simulator, VOID)
    return simulator.states


def choice(name: str, state: np.ndarray, uniform: float = 0.0) -> int:
    return int(get_heuristic(name, DeepRM(CLUSTER)).act(state, np.array([uniform]))[0])


def test_choices_in_a_hand_worked_state() -> None:
    state = state_of([(12, 9, 2), (3, 5, 1), (3, 1, 6), (2, 2, 1)])
    assert choice("sjf", state) == 3
    assert choice("packer", state) == 0  # 110 against 60, 70 and 30
    assert choice("tetris:0", state) == 3
    assert choice("tetris:1", state) == 0
    assert choice("tetris:0.003", state) == 3  # .003 * 30 + .997 / 2 is the largest
    assert choice("tetris:0.5", state) == 0


def test_the_first_of_equal_jobs_is_taken() -> None:
    assert choice("sjf", state_of([(3, 1, 1), (2, 4, 1), (2, 9, 9)])) == 1


# Free units times demand, and duration, of two jobs whose scores at knob .01 are equal, or not, in
# the last bit of a double alone: .01 * 1 + .99 * (1/9) is below .01 * 3 + .99 * (1/11), although
# .01 * 1 + .99/9 is not.
@pytest.mark.parametrize(
    ("capacity", "demands", "durations", "chosen"),
    [
        ((1, 1, 1), [(1, 0, 0), (1, 1, 1)], (9, 11), 1),
        ((2, 2, 2), [(2, 2, 2), (2, 2, 1)], (11, 9), 0),
    ],
)
def test_ties_of_tetris_are_broken_as_in_the_released_code(
    capacity: tuple[int, ...],
    demands: list[tuple[int, ...]],
    durations: tuple[int, int],
    chosen: int,
) -> None:
    world = DeepRM(Cluster(capacity=capacity, horizon=20, num_slots=2))
    simulator = DeepRM(world.cluster).simulator()
    simulator.load(
        [JobSet.of([0, 0], list(durations), demands, window=10)], get_objective("slowdown")
    )
    policy = get_heuristic("tetris:0.01", world)
    assert policy.act(simulator.states, np.zeros(1)).tolist() == [chosen]


@pytest.mark.parametrize("knob", [0.0, 0.002, 0.01, 0.5, 1.0])
def test_tetris_rounds_its_score_as_the_released_code_does(knob: float) -> None:
    """All pairs of jobs of 1 to 15 steps that need 1 to 20 resources of one unit each."""
    world = DeepRM(Cluster(capacity=(1,) * 20, horizon=16, num_slots=2))
    layout = StateLayout(world.cluster)
    duration, need = (grid.ravel() for grid in np.meshgrid(range(1, 16), range(1, 21)))
    jobs = np.concatenate([duration[:, None], np.arange(20) < need[:, None]], axis=1)
    first, second = (grid.ravel() for grid in np.indices((duration.size, duration.size)))
    states = np.zeros((first.size, layout.size), np.uint8)
    layout.slots_of(states)[:] = np.stack([jobs[first], jobs[second]], axis=1)

    score = np.array(
        [knob * float(n) + (1 - knob) * (1 / float(d)) for n, d in zip(need, duration, strict=True)]
    )
    chosen = get_heuristic(f"tetris:{knob}", world).act(states, np.zeros(first.size))
    assert np.array_equal(chosen, score[second] > score[first])


def test_a_job_that_cannot_start_now_is_passed_over() -> None:
    simulator = loaded([(3, 9, 9), (1, 2, 1), (5, 1, 1)])
    step_one(simulator, 0)
    assert choice("sjf", simulator.states) == 2
    step_one(simulator, 2)
    assert choice("sjf", simulator.states) == VOID


def test_hold_rule_withholds_long_jobs_until_arrivals_pause() -> None:
    assert choice("hold:3", state_of([(6, 1, 1)], wait=2)) == VOID
    assert choice("hold:3", state_of([(6, 1, 1)], wait=3)) == 0
    assert choice("hold:3", state_of([(6, 1, 1), (5, 1, 1)])) == 1


def test_random_takes_every_action_equally_often() -> None:
    world = DeepRM(CLUSTER)
    policy = get_heuristic("random", world)
    uniforms = (np.arange(600) + 0.5) / 600
    actions = policy.act(np.zeros((600, world.layout.size), np.uint8), uniforms)
    assert np.bincount(actions).tolist() == [100] * 6


@pytest.mark.parametrize("name", ["sjff", "tetris:two", "tetris:1.5", "hold:-1", "hold:x", "sjf:3"])
def test_unknown_heuristics_and_numbers_are_refused(name: str) -> None:
    with pytest.raises(InputError):
        get_heuristic(name, DeepRM(CLUSTER))


@pytest.mark.golden
def test_choices_are_those_of_the_released_code(golden_deeprm: list[Path]) -> None:
    compared = 0
    for name, episode in golden_episodes(golden_deeprm):
        columns = {
            key.removeprefix("s_a_").replace("_", ":"): column
            for key, column in episode.arrays.items()
            if key.startswith("s_a_")
        }
        policies = {spec: get_heuristic(spec, DeepRM(episode.cluster)) for spec in columns}
        last = episode.arrays["actions"].size
        for k, states in episode.states():
            if k == last:  # the released environment has rewound itself by then
                continue
            for spec, policy in policies.items():
                assert policy.act(states, np.zeros(1))[0] == columns[spec][k], f"{name} {k} {spec}"
                compared += 1
    assert compared > 90_000
