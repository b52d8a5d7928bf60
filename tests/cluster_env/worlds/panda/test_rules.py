"""Central rules on cases worked by hand, and what an envy-free allocation promises."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cluster_env.core.spec import get_heuristic
from cluster_env.evaluation import evaluate
from cluster_env.objectives import get_objective
from cluster_env.worlds.panda import Panda
from cluster_env.worlds.panda.consumers import Consumers
from cluster_env.worlds.panda.heuristics import HEURISTICS, weighted_policy
from cluster_env.worlds.panda.plans import BEST_FIT, FASTEST
from tests.cluster_env.worlds.panda.plain_cloud import FOUR


def placed(rule: str, jobset: Consumers, world: Panda | None = None) -> list[tuple[int, set[int]]]:
    """Start and nodes of each consumer."""
    schedule = evaluate(get_heuristic(rule, world or Panda(FOUR)), [jobset], world or Panda(FOUR))
    pieces = schedule.pieces
    return [
        (int(start), set(pieces.node[pieces.job == job].tolist()))
        for job, start in enumerate(schedule.start)
    ]


def test_best_fit_takes_the_node_with_the_least_to_spare() -> None:
    assert placed("best_fit", Consumers.with_supply([0], [8], [2])) == [(0, {2})]
    much = Consumers.with_supply([0], [8], [2], memory=[6])
    assert placed("best_fit", much) == [(0, {0})]
    wide = Consumers.with_supply([0], [8], [6])
    assert placed("best_fit", wide) == [(0, {0, 2})]  # the largest, then what is missing


def test_fits_keep_to_one_rack_if_they_can() -> None:
    one_rack = Consumers.with_supply([0], [8], [4], topology=[2])
    assert placed("fastest_fit", one_rack) == [(0, {0, 2})]
    assert placed("fastest_fit", Consumers.with_supply([0], [8], [4])) == [(0, {2, 3})]
    three = Consumers.with_supply([0], [8], [8], topology=[2])
    assert placed("best_fit", three) == [(0, {0, 1})]  # no rack has 8 cores


def test_shortest_first_and_first_come_first_served() -> None:
    jobset = Consumers.with_supply([0, 1, 1], [9, 9, 2], [12, 12, 12])
    assert [start for start, _ in placed("best_fit", jobset)] == [0, 9, 18]
    assert [start for start, _ in placed("shortest_fit", jobset)] == [0, 11, 9]


def test_the_bound_serves_first_what_costs_most_for_each_step() -> None:
    jobset = Consumers.with_supply([0, 1, 1], [9, 9, 2], [12, 12, 12], job_class=[0, 1, 0])
    for weights, starts in (("1, 1", [0, 11, 9]), ("0.1, 10", [0, 9, 18]), ("1, 0", [0, 11, 9])):
        policy = weighted_policy(get_objective(f"class_slowdown({weights})"))
        assert evaluate(policy, [jobset], Panda(FOUR)).start.tolist() == starts


def test_earliest_finish_waits_for_fast_nodes_if_that_pays() -> None:
    jobset = Consumers.with_supply([0, 0], [8, 20], [4, 4], core_type=[1, -1])
    assert placed("earliest_finish", jobset) == [(0, {2, 3}), (4, {2, 3})]
    assert placed("best_fit", jobset)[1] == (0, {0})
    short = Consumers.with_supply([0, 0], [8, 6], [4, 4], core_type=[1, -1])
    assert placed("earliest_finish", short)[1] == (0, {0})  # done at 6, not at 4 + 3


@pytest.mark.parametrize("rule", HEURISTICS.names())
def test_no_rule_starts_on_a_node_that_will_have_left(rule: str) -> None:
    away = [(2, 0, 3, 50), (3, 0, 3, 50), (1, 0, 9, 50)]
    jobset = Consumers.with_supply([0], [10], [2], away=away)
    assert placed(rule, jobset) == [(0, {0})]


@pytest.mark.parametrize(("rule", "order"), [("best_fit", BEST_FIT), ("fastest_fit", FASTEST)])
def test_an_agent_alone_picks_what_the_central_rule_gives_it(rule: str, order: int) -> None:
    world = Panda(FOUR)
    jobset = Consumers.with_supply([0], [8], [5], memory=[3])
    simulator = world.simulator()
    simulator.load([jobset], get_objective("slowdown"))
    rows = np.zeros(1, np.int32)
    simulator.step(rows, world.ruled(simulator.states, order), np.empty(1))
    (run,), nodes, _ = simulator.runs()
    (expected,) = placed(rule, jobset)
    assert (run["begin"], set(nodes[0, : run["held"]].tolist())) == expected


@given(
    cores=st.lists(st.integers(1, 24), min_size=2, max_size=6),
    memory=st.integers(0, 3),
    core_type=st.lists(st.sampled_from([-1, -1, 0, 1]), min_size=6, max_size=6),
)
def test_nobody_envies_more_than_one_node(
    cores: list[int], memory: int, core_type: list[int]
) -> None:
    """Of the consumers that start at once, in bundles of at most one node more than their own."""
    world, n = Panda(), len(cores)
    kinds = [kind if c <= 16 else -1 for kind, c in zip(core_type, cores, strict=False)]
    jobset = Consumers.with_supply(
        np.zeros(n), np.full(n, 9), cores, memory=memory * np.array(cores), core_type=kinds
    )
    given_at_once = [nodes for start, nodes in placed("envy_free", jobset, world) if start == 0]
    specs = [k for k, (start, _) in enumerate(placed("envy_free", jobset, world)) if start == 0]
    assert given_at_once
    nodes = world.nodes

    def worth(job: int, node: int) -> float:
        if kinds[job] not in (-1, nodes.column("core_type")[node]):
            return 0.0
        share = min(nodes.column("cores")[node] / cores[job], 1)
        if memory:
            wanted = memory * cores[job]
            share = (share + min(nodes.column("memory")[node] / wanted, 1)) / 2
        return float(nodes.column("speed")[node] * share)

    for job, own in zip(specs, given_at_once, strict=True):
        for other in given_at_once:
            if len(other) <= len(own) + 1:
                values = [worth(job, node) for node in other]
                mine = sum(worth(job, node) for node in own)
                assert mine >= sum(values) - max(values) - 1e-9
