"""The compiled supervisor against a plain one, its invariants, and cases worked by hand."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from cluster_env.core.errors import InputError
from cluster_env.core.invariants import check_schedule
from cluster_env.core.policy import choose
from cluster_env.core.spec import get_heuristic
from cluster_env.objectives import LateCost, Objective, get_objective
from cluster_env.worlds.panda import Panda
from cluster_env.worlds.panda.consumers import NEVER, Consumers
from cluster_env.worlds.panda.features import COLUMN, CONTEXT, ITEM
from cluster_env.worlds.panda.heuristics import HEURISTICS
from cluster_env.worlds.panda.plans import BEST_FIT
from cluster_env.worlds.panda.simulator import PandaSimulator
from cluster_env.worlds.panda.state import (
    DONE,
    HEADER,
    NODE_SEEN,
    NODES_AT,
    PLAN_SEEN,
    PLANS,
    RUNNING,
    WAITING,
)
from tests.cluster_env.schedules import assert_same_schedule
from tests.cluster_env.worlds.panda.plain_cloud import FOUR, Action, PlainCloud
from tests.cluster_env.worlds.stepping import choosing, play_to_the_end

STAGES = {WAITING: "waiting", RUNNING: "running", DONE: "done"}
COSTS = Objective(
    "costs",
    lambda jobset: 1.0 + np.arange(jobset.num_jobs),
    late_costs=(
        LateCost(
            lambda jobset: np.full(jobset.num_jobs, 0.5),
            lambda jobset: np.full(jobset.num_jobs, 3, np.int32),
        ),
    ),
    finish_gain=lambda jobset: np.full(jobset.num_jobs, 7.0),
)


@st.composite
def consumers(draw: st.DrawFn) -> Consumers:
    count = draw(st.integers(1, 6))

    def column(low: int, high: int) -> list[int]:
        return draw(st.lists(st.integers(low, high), min_size=count, max_size=count))

    away = []
    for node in range(4):
        clock = 0
        for _ in range(draw(st.integers(0, 2))):
            announced = clock + draw(st.integers(0, 6))
            leaves = announced + draw(st.sampled_from([0, 0, 2, 5]))
            returns = leaves + draw(st.integers(1, 6))
            away.append((node, announced, leaves, returns))
            clock = returns
    core_type = column(-1, 1)
    most = [4 if kind == 1 else 8 for kind in core_type]
    cores = [min(c, m) for c, m in zip(column(1, 8), most, strict=True)]
    return Consumers.with_supply(
        sorted(column(0, 8)),
        column(1, 7),
        cores,
        memory=[min(m, 2 * c) for m, c in zip(column(0, 16), cores, strict=True)],
        core_type=core_type,
        topology=column(0, 2),
        away=away,
        window=9,
    )


worlds = st.builds(
    Panda,
    nodes=st.sampled_from([FOUR, replace(FOUR, regions=2)]),
    collision=st.sampled_from(["arrival", "need"]),
    observed=st.sampled_from([2, 4]),
    held=st.just(4),
    patience=st.sampled_from([0, 3]),
    rounds=st.sampled_from([1, 3]),
    max_time=st.sampled_from([25, 60]),
)


def bits_of(
    world: Panda, simulator: PandaSimulator, rng: np.random.Generator, rows: NDArray[np.int32]
) -> tuple[NDArray[np.int8], NDArray[np.float32]]:
    """Random actions; nobody who is satisfied waits for long."""
    bits = (rng.random((rows.size, world.num_actions)) < 0.4).astype(np.int8)
    bits[:, world.observed : -1] &= (rng.random((rows.size, world.held)) < 0.3).astype(np.int8)
    return bits, rng.permuted(np.arange(bits[:, : world.observed].size)).reshape(
        rows.size, world.observed
    ).astype(np.float32)


def action_of(
    world: Panda, simulator: PandaSimulator, row: int, bits: Any, needs: Any, announce: bool = False
) -> Action:
    """The same action by nodes."""
    held = simulator.held(row).tolist()
    caught = {
        int(node): float(needs[k])
        for k, node in enumerate(simulator.observed[row])
        if bits[k] and node >= 0
    }
    released = [held[k] for k in range(len(held)) if bits[world.observed + k]]
    return Action(caught, released, bool(bits[-1]))


def check_nodes(simulator: PandaSimulator, plain: PlainCloud) -> None:
    """No node is held by two agents or after it has left, and each knows its holder."""
    held = [node for row in range(simulator.num_rows) for node in simulator.held(row)]
    assert len(set(held)) == len(held)
    assert set(held) <= plain.present
    for node, at in enumerate(simulator.nodes[0]):
        assert (at["holder"] >= 0) == (node in held)
        assert (at["away"] == 0) == (node in plain.present)
        if at["holder"] >= 0:
            assert node in simulator.held(int(at["holder"]))


@given(world=worlds, jobset=consumers(), seed=st.integers(0, 2**32 - 1))
def test_it_does_what_the_plain_one_does(world: Panda, jobset: Consumers, seed: int) -> None:
    rng = np.random.default_rng(seed)
    simulator, plain = world.simulator(), PlainCloud(world, jobset)
    simulator.load([jobset], COSTS)
    rewards, returns = np.zeros(simulator.num_rows), np.zeros(simulator.num_rows)
    while True:
        rows = np.flatnonzero(simulator.active).astype(np.int32)
        assert rows.tolist() == ([] if plain.over else plain.waiting)
        check_nodes(simulator, plain)
        for row, agent in enumerate(plain.agents):
            own = simulator.agents[row]
            assert STAGES.get(int(own["stage"]), "coming") == agent.stage
            assert sorted(simulator.held(row)) == sorted(agent.held)
            assert own["start"] == agent.start
            assert own["left"] == pytest.approx(agent.left if agent.stage != "done" else 0)
        if not rows.size:
            break
        assert (simulator.time == plain.time).all()
        free = set(plain.free)
        for row in rows:
            seen = [node for node in simulator.observed[row].tolist() if node >= 0]
            assert set(seen) <= free  # in particular, none that has left
            assert len(seen) == min(world.observed, sum(plain._suits(int(row), n) for n in free))
            assert simulator.states[row, HEADER.satisfied] == plain.satisfied(int(row))
        bits, needs = bits_of(world, simulator, rng, rows)
        actions = {
            int(row): action_of(world, simulator, int(row), bits[k], needs[k])
            for k, row in enumerate(rows)
        }
        simulator.step(rows, bits, rewards, needs)
        returns[rows] += rewards[: rows.size]
        plain.step(actions)
    schedule = simulator.schedule()
    capacity = world.nodes.work[:, None].astype(np.int32)
    check_schedule(schedule, [jobset], world.max_time - 1, capacity)
    expected = [plain.agents[job].finish for job in schedule.job]
    assert schedule.finish.tolist() == expected
    assert simulator.truncated.any() == (-1 in [agent.finish for agent in plain.agents])
    assert np.allclose(returns[schedule.job], -COSTS.cost_of_jobs(schedule), rtol=0, atol=1e-9)


@given(
    world=worlds, jobset=consumers(), rule=st.sampled_from(HEURISTICS.names()), seed=st.integers(0)
)
def test_whole_episodes_keep_the_rules(
    world: Panda, jobset: Consumers, rule: str, seed: int
) -> None:
    simulator = world.simulator()
    simulator.load([jobset], get_objective("slowdown"))
    key = np.full(simulator.num_rows, seed % 2**64, np.uint64)
    get_heuristic(rule, world).play(simulator, key)
    capacity = world.nodes.work[:, None].astype(np.int32)
    check_schedule(simulator.schedule(), [jobset], world.max_time - 1, capacity)
    runs, nodes, _ = simulator.runs()
    used = [
        (node, run["begin"], run["end"])
        for run, row in zip(runs, nodes, strict=True)
        for node in row[: run["held"]]
    ]
    for k, (node, begin, end) in enumerate(used):
        assert all(n != node or e <= begin or b >= end for n, b, e in used[:k])
        assert not any(n == node and b < end and begin < e for n, _, b, e in jobset.away)


@given(
    world=worlds,
    jobset=consumers(),
    rule=st.sampled_from([name for name in HEURISTICS.names() if name != "random"]),
    hybrid=st.sampled_from([0.0, 0.5]),
)
def test_a_rule_that_chooses_decision_by_decision_does_what_it_plays(
    world: Panda, jobset: Consumers, rule: str, hybrid: float
) -> None:
    """And agents are charged what its schedule costs, as if they had decided so."""
    world = replace(world, hybrid=hybrid)
    policy, simulator = get_heuristic(rule, world), world.simulator()
    simulator.load([jobset, jobset], COSTS)
    policy.play(simulator, np.zeros(simulator.num_rows, np.uint64))
    played = simulator.schedule()
    simulator.reset()
    total = play_to_the_end(simulator, choosing(policy, simulator)).sum()
    chosen = simulator.schedule()
    assert_same_schedule(chosen, played)
    assert total == pytest.approx(-COSTS.cost_of_jobs(chosen).sum(), abs=1e-9)


def test_what_no_action_can_say_is_refused() -> None:
    """A rule by what one agent sees, a draw without the key of its episode, and a rule for some."""
    world, rows, zeros = Panda(FOUR), np.arange(2, dtype=np.int32), np.zeros(2)
    simulator = world.simulator()
    simulator.load([Consumers.with_supply([0, 0], [5, 5], [4, 4])], COSTS)
    with pytest.raises(InputError, match="'best_fit' needs all nodes"):
        get_heuristic("best_fit", world).act(simulator.states, zeros)
    with pytest.raises(
        InputError, match="'random' draws random numbers from the keys of whole episodes"
    ):
        choose(get_heuristic("random", world), simulator, rows, zeros)
    mixed = choose(get_heuristic("best_fit", world), simulator, rows, zeros)
    mixed[1] = 0
    with pytest.raises(InputError, match="decides for all agents of all rows"):
        simulator.step(rows, mixed, zeros)


def test_columns_have_their_places_and_a_state_says_by_hand_what_they_are() -> None:
    for columns in (HEADER, PLAN_SEEN, NODE_SEEN, ITEM, CONTEXT, COLUMN):
        assert list(columns) == list(range(len(columns._fields)))
    jobset = Consumers.with_supply(
        *([0, 0], [12, 7], [6, 1]), memory=[10, 2], core_type=[-1, 1], topology=[2, 0]
    )
    world = Panda(FOUR, observed=4, held=2)
    simulator = play_one(world, jobset, {0: Action({2: 1.0}, wait=True)})
    state = simulator.states[0]
    header = dict(zip(HEADER._fields, state[: len(HEADER)].tolist(), strict=True))
    assert header == {
        **{"waited": 1, "left": 12, "cores": 6, "memory": 10, "core_type": 0, "topology": 2},
        **{"held_cores": 2, "held_memory": 4, "held_nodes": 1, "free_nodes": 3, "free_cores": 10},
        **{"waiting": 2, "waiting_cores": 7, "running": 0, "ahead": 0, "satisfied": 0},
        "free_work": 4 + 4 + 4,
    }
    size = len(NODE_SEEN)
    nodes = state[NODES_AT:].reshape(-1, size)[:, : NODE_SEEN.plans]
    assert simulator.observed[0, 0] == 0  # beside the held one
    assert nodes[0].tolist() == [1, 4, 8, 100, 1, 1, 0]
    assert nodes[4].tolist() == [1, 2, 4, 200, 1, 1, 0]
    plans = state[len(HEADER) : NODES_AT].reshape(len(PLANS), len(PLAN_SEEN))
    tight = dict(zip(PLAN_SEEN._fields, plans[0].tolist(), strict=True))
    assert tight == {"nodes": 2, "cores": 6, "work": 4 + 4, "steps": 12, "wanted": 100}


def play_one(world: Panda, jobset: Consumers, *steps: dict[int, Action]) -> PandaSimulator:
    """Plays actions that are given by nodes; who is not named does nothing."""
    simulator = world.simulator()
    simulator.load([jobset], get_objective("completion_time"))
    for actions in steps:
        rows = np.flatnonzero(simulator.active).astype(np.int32)
        bits = np.zeros((rows.size, world.num_actions), np.int8)
        needs = np.zeros((rows.size, world.observed), np.float32)
        for k, row in enumerate(rows):
            action = actions.get(int(row), Action())
            for place, node in enumerate(simulator.observed[row].tolist()):
                bits[k, place] = node in action.catch
                needs[k, place] = action.catch.get(node, 0.0)
            for place, node in enumerate(simulator.held(row).tolist()):
                bits[k, world.observed + place] = node in action.release
            bits[k, -1] = action.wait
        simulator.step(rows, bits, np.empty(rows.size), needs)
    return simulator


def test_the_first_arrival_gets_what_two_catch() -> None:
    jobset = Consumers.with_supply([0, 0], [5, 5], [4, 4])
    both = {0: Action({0: 1.0}), 1: Action({0: 9.0, 1: 1.0}, wait=True)}
    simulator = play_one(Panda(FOUR), jobset, both)
    assert simulator.agents["stage"].tolist() == [RUNNING, WAITING]
    assert [simulator.held(row).tolist() for row in (0, 1)] == [[0], [1]]


def test_by_need_the_larger_one_gets_it_and_equal_ones_by_arrival() -> None:
    jobset = Consumers.with_supply([0, 0, 0], [5, 5, 5], [4, 4, 4])
    actions = {
        0: Action({0: 1.0, 1: 2.0}, wait=True),
        1: Action({0: 9.0, 1: 2.0}, wait=True),
        2: Action({0: 3.0, 2: 0.0}, wait=True),
    }
    simulator = play_one(Panda(FOUR, collision="need"), jobset, actions)
    assert [simulator.held(row).tolist() for row in range(3)] == [[1], [0], [2]]


def test_a_released_node_is_free_for_the_next_catch_and_not_before() -> None:
    jobset = Consumers.with_supply([0, 0], [5, 5], [8, 4])
    take, swap = {0: Action({0: 1.0})}, {0: Action(release=[0]), 1: Action({0: 1.0})}
    first = play_one(Panda(FOUR), jobset, take, swap)
    assert [first.held(row).tolist() for row in (0, 1)] == [[], []]
    second = play_one(Panda(FOUR), jobset, take, swap, swap)
    assert second.held(1).tolist() == [0]
    assert second.agents["start"].tolist() == [-1, 2]


def test_who_is_satisfied_starts_unless_it_waits() -> None:
    jobset = Consumers.with_supply([0], [5], [4])
    wait = {0: Action({0: 1.0}, wait=True)}
    simulator = play_one(Panda(FOUR), jobset, wait, {0: Action(wait=True)}, {})
    assert simulator.agents[["start", "finish"]].tolist() == [(2, 7)]


@pytest.mark.parametrize(
    ("caught", "topology", "length"),
    [
        ((2,), 0, 6),  # 12 steps at speed 2
        ((2, 0), 0, 12),  # the slow one holds it up
        ((2, 3), 2, 8),  # 6 x 1.25, rounded up: two racks
        ((2, 3), 1, 6),  # in one region
    ],
)
def test_run_time_depends_on_the_nodes(caught: Any, topology: int, length: int) -> None:
    jobset = Consumers.with_supply([0], [12], [1], topology=[topology])
    action = {0: Action(dict.fromkeys(caught, 1.0))}
    simulator = play_one(Panda(FOUR), jobset, action)
    assert simulator.agents["finish"].tolist() == [length]


def test_a_consumer_that_loses_a_node_begins_anew() -> None:
    """It runs from 0, loses one of two nodes at 4, and runs again at 7 with another one."""
    away = [(0, 4, 4, NEVER), (2, 0, 0, NEVER), (3, 0, 0, 7)]
    jobset = Consumers.with_supply([0], [10], [5], away=away)
    world = Panda(FOUR)
    nothing = dict[int, Action]()
    simulator = play_one(
        *(world, jobset, {0: Action({0: 1.0, 1: 1.0})}, nothing, nothing, nothing),
        {0: Action({3: 1.0})},
    )
    schedule = simulator.schedule()
    assert schedule.finish.tolist() == [17]
    assert schedule.start.tolist() == [7]
    runs, _, _ = simulator.runs()
    assert runs[["begin", "end"]].tolist() == [(0, 4), (7, 17)]
    assert runs["counts"].tolist() == [0, 1]
    check_schedule(schedule, [jobset], world.max_time, FOUR.work[:, None])


def test_an_announced_departure_is_seen_and_a_sudden_one_is_not() -> None:
    away = [(0, 0, 6, NEVER), (1, 6, 6, NEVER)]
    jobset = Consumers.with_supply([0], [9], [8], away=away)
    simulator = play_one(Panda(FOUR), jobset, {})
    seen = simulator.observed[0].tolist()
    notice = simulator.states[0, NODES_AT + NODE_SEEN.notice :: len(NODE_SEEN)]
    assert notice[seen.index(0)] == 6  # 1 + the 5 steps from 1 to 6
    assert notice[seen.index(1)] == 0


def test_patience_takes_nodes_back() -> None:
    jobset = Consumers.with_supply([0, 0], [5, 5], [8, 8])
    grab = {0: Action({0: 1.0}), 1: Action({1: 1.0})}
    world = Panda(FOUR, patience=3)
    assert play_one(world, jobset, grab, {}).nodes["holder"][0].tolist() == [0, 1, -1, -1]
    assert play_one(world, jobset, grab, {}, {}).nodes["holder"][0].tolist() == [-1] * 4


def test_a_filter_with_a_short_reach_shows_the_nearest_type_alone() -> None:
    jobset = Consumers.with_supply([0, 0], [5, 5], [8, 2], memory=[16, 4])
    simulator = play_one(Panda(FOUR, reach=0.01), jobset)
    assert simulator.observed[:, :3].tolist() == [[0, 1, -1], [2, 3, -1]]


def test_episodes_side_by_side_and_under_way_are_as_they_are_alone() -> None:
    world = Panda(FOUR, observed=4, held=4)
    sets = [
        Consumers.with_supply([0, 1, 3], [4, 5, 6], [4, 8, 2], away=[(0, 2, 3, 5)]),
        Consumers.with_supply([0, 0], [3, 9], [2, 6]),
    ]
    many, later = world.simulator(), world.simulator()
    many.load(sets, get_objective("slowdown"), 2)
    rewards = np.empty(10)

    def go_on(simulator: PandaSimulator, steps: int) -> PandaSimulator:
        for _ in range(steps):
            rows = np.flatnonzero(simulator.active).astype(np.int32)
            if rows.size:
                simulator.step(rows, world.ruled(simulator.states[rows], BEST_FIT), rewards)
        return simulator

    go_on(many, 3)
    later.load(sets[::-1], get_objective("slowdown"), 2)
    later.take_over(many, np.arange(10, dtype=np.int32), np.r_[4:10, 0:4].astype(np.int32))
    done, moved = go_on(many, 60).schedule(), go_on(later, 60).schedule()
    assert done.finished.all()
    for episode, other in ((0, 2), (2, 0)):
        alone = world.simulator()
        alone.load([sets[episode // 2]], get_objective("slowdown"))
        finish = go_on(alone, 60).schedule().finish.tolist()
        assert done.finish[done.episode == episode].tolist() == finish
        assert moved.finish[moved.episode == other].tolist() == finish


def test_objectives_of_whole_episodes_are_refused() -> None:
    jobset = Consumers.with_supply([0], [1], [1])
    with pytest.raises(InputError, match="rewards whole episodes"):
        Panda().simulator().load([jobset], get_objective("makespan"))
