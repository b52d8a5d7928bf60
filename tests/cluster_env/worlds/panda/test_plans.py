"""Plans that the supervisor proposes, decisions at one clock, and the central scorer of pairs."""

import numpy as np
import pytest

from cluster_env.core.errors import InputError
from cluster_env.objectives import get_objective
from cluster_env.worlds.panda import Panda
from cluster_env.worlds.panda.consumers import Consumers
from cluster_env.worlds.panda.features import PAIR, Proposals, proposals
from cluster_env.worlds.panda.simulator import PandaSimulator
from tests.cluster_env.worlds.panda.plain_cloud import FOUR

WORLD = Panda(FOUR, observed=4, held=4, collision="need", rounds=3)


def loaded(jobset: Consumers, world: Panda = WORLD) -> PandaSimulator:
    simulator = world.simulator()
    simulator.load([jobset], get_objective("completion_time"))
    return simulator


def proposed(simulator: PandaSimulator, row: int = 0) -> tuple[Proposals, list[set[int]]]:
    """What is proposed to an agent, and the nodes of each plan."""
    observed, held = simulator.world.observed, simulator.world.held
    found = proposals(simulator.states[row : row + 1], observed + held)
    shown = simulator.observed[row]
    members = found.members[0, :, :observed]
    return found, [set(shown[np.flatnonzero(plan)].tolist()) for plan in members]


def weights(**given: float) -> np.ndarray:
    return np.array([given.get(name, 0.0) for name in PAIR])


def test_plans_are_the_tightest_the_fastest_and_the_leanest_set() -> None:
    jobset = Consumers.with_supply([0], [12], [4])
    found, nodes = proposed(loaded(jobset))
    assert found.possible.all()
    assert nodes == [{2, 3}, {2, 3}, {0}]  # all of 4 cores; 8 x 6 = 4 x 12 in a run
    pair = dict(zip(PAIR, found.pairs[0, 1], strict=True))
    assert pair["slow"] == -1  # half the time
    assert pair["excess"] == 0
    assert pair["capacity"] == pytest.approx(np.log2(8 * 6 / 12 / 4))
    assert pair["nodes"] == 1
    assert pair["share"] == pytest.approx(8 / (8 + 16))
    wide, apart = Consumers.with_supply([0], [12], [5], topology=[2]), (0, 2)
    found, nodes = proposed(loaded(wide))
    assert nodes == [set(apart)] * 3  # in one rack
    assert found.pairs[0, 0, PAIR.index("slow")] == 0


def test_plans_complete_what_is_held_and_there_is_one_of_what_satisfies() -> None:
    simulator = loaded(Consumers.with_supply([0], [12], [6]))
    catch = np.zeros((1, WORLD.num_actions), np.int32)
    catch[0, simulator.observed[0].tolist().index(2)] = catch[0, -1] = 1
    row = np.zeros(1, np.int32)
    simulator.step(row, catch, np.empty(1))
    found, nodes = proposed(simulator)
    assert nodes[0] == {0}
    assert found.pairs[0, 0, PAIR.index("nodes")] == 1  # two nodes
    catch[:] = 0
    catch[0, simulator.observed[0].tolist().index(0)] = catch[0, -1] = 1
    simulator.step(row, catch, np.empty(1))
    found, nodes = proposed(simulator)
    assert nodes == [set(), set(), set()]
    assert found.possible.all()
    assert (found.pairs[0, :, PAIR.index("slow")] == 0).all()


def test_there_is_no_plan_where_too_little_is_seen() -> None:
    few = Panda(FOUR, observed=1, held=4)
    found, _ = proposed(loaded(Consumers.with_supply([0], [12], [7]), few))
    assert not found.possible.any()
    assert (found.pairs == 0).all()


def test_who_loses_a_node_may_ask_for_the_next_one_at_the_same_clock() -> None:
    simulator = loaded(Consumers.with_supply([0, 0], [5, 9], [4, 4], core_type=[0, 0]))
    rows = np.arange(2, dtype=np.int32)
    bits = np.zeros((2, WORLD.num_actions), np.int32)
    bits[:, simulator.observed[0].tolist().index(0)] = (1, 7)
    rewards = np.empty(2)
    simulator.step(rows, bits, rewards)
    assert simulator.time[0] == 0
    assert simulator.agents["start"].tolist() == [-1, 0]
    assert rewards.tolist() == [0, -9]
    bits = np.zeros((1, WORLD.num_actions), np.int32)
    bits[0, simulator.observed[0].tolist().index(1)] = 1
    simulator.step(rows[:1], bits, rewards)
    assert simulator.agents["start"].tolist() == [0, 0]
    assert rewards[0] == -5


def test_a_decision_without_an_effect_lets_time_pass_and_so_does_the_last_round() -> None:
    simulator = loaded(Consumers.with_supply([0], [5], [8]))
    row, rewards = np.zeros(1, np.int32), np.empty(1)
    nothing = np.zeros((1, WORLD.num_actions), np.int32)
    simulator.step(row, nothing, rewards)
    assert (simulator.time[0], rewards[0]) == (1, -1)
    clocks = []
    for _ in range(4):  # catches a node that is not enough, and lets it go
        swap = nothing.copy()
        held = simulator.agents["held"][0]
        swap[0, WORLD.observed if held else 0] = 1
        simulator.step(row, swap, rewards)
        clocks.append(int(simulator.time[0]))
    assert clocks == [1, 1, 2, 2]


def test_the_scorer_starts_the_pair_with_the_highest_score_first() -> None:
    jobset = Consumers.with_supply([0, 0, 0], [16, 4, 8], [8, 8, 8])
    simulator = loaded(jobset)
    simulator.play(("scored", "arrival"), weights=weights(left=-1.0, constant=9.0))
    assert simulator.schedule().start.tolist() == [12, 0, 4]
    simulator.reset()
    simulator.play(("scored", "arrival"), weights=weights(left=1.0, constant=9.0))
    assert simulator.schedule().start.tolist() == [0, 24, 16]


def test_the_scorer_works_out_anew_who_has_lost_a_plan() -> None:
    """All want the fast nodes; who comes second by that takes its turn by what is left."""
    jobset = Consumers.with_supply([0, 0, 0], [8, 8, 8], [4, 4, 4])
    simulator = loaded(jobset)
    simulator.play(("scored", "arrival"), weights=weights(slow=-1.0, waited=2.0, constant=9.0))
    schedule = simulator.schedule()
    assert sorted((schedule.finish - schedule.start).tolist()) == [4, 8, 8]
    assert schedule.start.tolist() == [0, 0, 0]


def test_the_scorer_holds_back_what_scores_no_more_than_nothing() -> None:
    """Until it has waited for 15 steps: log2(1 + 15) - 4 is 0, and above it at 16."""
    simulator = loaded(Consumers.with_supply([0], [5], [4]))
    simulator.play(("scored", "arrival"), weights=weights(waited=1.0))
    assert simulator.schedule().start.tolist() == [16]


@pytest.mark.parametrize("num_items", [7, 9])
def test_plans_are_not_read_from_states_of_another_world(num_items: int) -> None:
    states = loaded(Consumers.with_supply([0], [12], [4])).states
    with pytest.raises(InputError, match="states of this world have the shape"):
        proposals(states, num_items)
