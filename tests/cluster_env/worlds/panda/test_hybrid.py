"""A hybrid: the static scheduler decides at some clocks in place of who learns (section 5)."""

import numpy as np
import pytest

from cluster_env.core.errors import InputError
from cluster_env.core.spec import get_heuristic
from cluster_env.objectives import get_objective
from cluster_env.worlds.panda import Panda
from cluster_env.worlds.panda.consumers import Consumers
from cluster_env.worlds.panda.features import PAIR
from cluster_env.worlds.panda.simulator import PandaSimulator
from cluster_env.worlds.panda.workloads import ClusteredWorkload

JOBSET = ClusteredWorkload(window=25, load=1.2).sample(np.random.default_rng(0))


def played(world: Panda, seed: int, until: int = 10_000) -> tuple[PandaSimulator, float]:
    """An episode of agents that act at random up to a clock, and what they got in all."""
    simulator, rng, total = world.simulator(), np.random.default_rng(seed), 0.0
    simulator.load([JOBSET], get_objective("completion_time"))
    rows = np.flatnonzero(simulator.active).astype(np.int32)
    while rows.size and simulator.time[0] < until:
        bits = (rng.random((rows.size, world.num_actions)) < 0.2).astype(np.int32)
        rewards = np.empty(rows.size)
        simulator.step(rows, bits, rewards)
        total += float(rewards.sum())
        rows = np.flatnonzero(simulator.active).astype(np.int32)
    return simulator, total


def test_where_it_always_decides_it_does_so_whatever_agents_do() -> None:
    """They are charged for it all the same; and in place of a central scorer it does as much."""
    simulator, total = played(Panda(hybrid=1.0, rounds=3), seed=1)
    schedule = simulator.schedule()
    assert schedule.finished.all()
    assert total == -(schedule.finish - schedule.arrival).sum()
    for seed in (2, 3):
        other = played(Panda(hybrid=1.0), seed)[0].schedule()
        assert other.finish.tolist() == schedule.finish.tolist()
    simulator.reset()
    simulator.play(("scored", "arrival"), weights=np.ones(len(PAIR)))
    assert simulator.schedule().finish.tolist() == schedule.finish.tolist()
    assert played(Panda(), seed=1)[0].schedule().finish.tolist() != schedule.finish.tolist()


def test_what_it_decides_is_the_envy_free_allocation() -> None:
    """At one instant; the rule by itself decides when something happens, a hybrid at each step."""
    rng = np.random.default_rng(5)
    jobset = Consumers.with_supply(np.zeros(12), rng.integers(5, 30, 12), rng.integers(8, 30, 12))
    rule, steps = Panda().simulator(), Panda(hybrid=1.0).simulator()
    for simulator in (rule, steps):
        simulator.load([jobset], get_objective("completion_time"))
    get_heuristic("envy_free", Panda()).play(rule, np.zeros(12, np.uint64))
    rows = np.arange(12, dtype=np.int32)
    steps.step(rows, np.zeros((12, Panda().num_actions), np.int32), np.empty(12))
    began = [simulator.agents["start"] == 0 for simulator in (rule, steps)]
    assert began[0].tolist() == began[1].tolist()
    assert 0 < began[0].sum() < 12
    runs = []
    for simulator in (rule, steps):
        found, nodes, _ = simulator.runs()
        runs.append(
            {
                int(run["consumer"]): set(used[: run["held"]].tolist())
                for run, used in zip(found, nodes, strict=True)
                if run["begin"] == 0
            }
        )
    assert runs[0] == runs[1]


def test_actions_have_an_effect_at_all_other_clocks_and_at_no_other() -> None:
    world = Panda(hybrid=0.4)
    effects = set()
    for clock in range(10):
        simulator, _ = played(world, seed=2, until=clock)
        rows = np.flatnonzero(simulator.active).astype(np.int32)
        now, before = int(simulator.time[0]), simulator.agents["held"].sum()
        held = []
        for catches in (0, 1):
            other, _ = played(world, seed=2, until=clock)
            bits = np.full((rows.size, world.num_actions), catches, np.int32)
            bits[:, world.observed :] = 0
            bits[:, -1] = 1
            other.step(rows, bits, np.empty(rows.size))
            held.append(int(other.agents["held"].sum()))
        overruled = bool(world.overruled(np.array(now)))
        assert (held[0] == held[1]) == (overruled or before == world.nodes.num_nodes), clock
        effects.add(overruled)
    assert effects == {False, True}


def test_clocks_of_a_share_are_as_many_and_those_of_a_smaller_one_are_among_them() -> None:
    clocks = np.arange(1000)
    few, many = (Panda(hybrid=share).overruled(clocks) for share in (0.25, 0.6))
    assert few.sum() == pytest.approx(250, abs=2)
    assert many.sum() == pytest.approx(600, abs=2)
    assert not (few & ~many).any()
    assert not Panda().overruled(clocks).any()


def test_a_share_above_one_is_refused() -> None:
    with pytest.raises(InputError, match=r"hybrid must be 0 to 1, but 1\.5 was given"):
        Panda(hybrid=1.5)
