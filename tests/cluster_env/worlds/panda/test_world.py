"""Nodes, consumers, workloads, metrics and commands of the world of elastic nodes."""

import csv
import pickle
from pathlib import Path

import numpy as np
import pytest

from cluster_env.core.errors import InputError
from cluster_env.core.jobs import JobSet
from cluster_env.core.spec import build_world
from cluster_env.envs import ClusterEnv, ClusterVectorEnv
from cluster_env.evaluation import get_metric
from cluster_env.objectives import get_objective
from cluster_env.worlds.panda import Panda
from cluster_env.worlds.panda.consumers import Consumers
from cluster_env.worlds.panda.nodes import Nodes
from cluster_env.worlds.panda.workloads import ClusteredWorkload, Supply
from tests.cluster_env.schedules import schedule_of
from tune_jobs import cli


def test_nodes_are_dealt_out_to_racks_and_racks_to_regions() -> None:
    nodes = Nodes(count=(3, 2), cores=(4, 2), speed=(1.0, 1.5), memory=(8, 8), core_type=(0, 1))
    assert nodes.type.tolist() == [0, 0, 0, 1, 1]
    assert nodes.rack.tolist() == [0, 1, 2, 3, 0]
    assert nodes.region.tolist() == [0, 0, 1, 1, 0]
    assert (nodes.work.tolist(), nodes.capacity) == ([4, 4, 4, 3, 3], 18)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"nodes": {"count": [1, 2]}}, "one number for each type"),
        ({"nodes": {"speed": [1.0, 1.3, 2.0]}}, "8 x 1.3 is 10.4"),
        ({"nodes": {"racks": 1}}, "no more regions than racks"),
        ({"nodes": {"count": [0, 6, 4]}}, "count must be 1"),
        ({"collision": "luck"}, "known are arrival, need"),
        ({"observed": 0}, "observed must be 1"),
        ({"reach": 0.0}, "reach must be above 0"),
        ({"rounds": 0}, "rounds must be 1 to 1,024, but 0 was given"),
    ],
)
def test_worlds_that_make_no_sense_are_refused(options: dict[str, object], said: str) -> None:
    with pytest.raises(InputError, match=said) as raised:
        build_world({"kind": "panda", **options})
    assert len(str(raised.value)) < 500


def test_consumers_that_could_never_run_are_refused() -> None:
    world = Panda(held=2)
    world.check(Consumers.with_supply([0], [1], [32], memory=[128]))
    with pytest.raises(InputError, match="consumer 1 asks for 33 cores"):
        world.check(Consumers.with_supply([0, 0], [1, 1], [32, 33]))
    with pytest.raises(InputError, match="and 129 GB"):
        world.check(Consumers.with_supply([0], [1], [1], memory=[129]))
    with pytest.raises(InputError, match="cores of type 1"):
        world.check(Consumers.with_supply([0], [1], [9], core_type=[1]))
    with pytest.raises(InputError, match="node 16 is to leave"):
        world.check(Consumers.with_supply([0], [1], [1], away=[(16, 0, 1, 2)]))
    with pytest.raises(InputError, match="2 resources"):
        world.check(JobSet.of([0], [1], [[1, 1]]))


@pytest.mark.parametrize(
    "away", [[(0, 5, 4, 9)], [(0, 0, 4, 4)], [(0, 0, 4, 9), (0, 8, 10, 12)], [(-1, 0, 1, 2)]]
)
def test_absences_that_cannot_be_are_refused(away: list[tuple[int, ...]]) -> None:
    with pytest.raises(InputError):
        Consumers.with_supply([0], [1], [1], away=away)


def test_consumers_travel_with_the_absences_of_nodes_which_nobody_can_write() -> None:
    jobset = Consumers.with_supply([0], [1], [1], away=[(0, 1, 2, 3)])
    for same in (jobset, pickle.loads(pickle.dumps(jobset))):
        assert same.away.tolist() == [[0, 1, 2, 3]]
        with pytest.raises(ValueError, match="read-only"):
            same.away[0, 0] = 5


def test_clustered_consumers_have_the_load_and_the_classes_that_are_asked_for() -> None:
    world = Panda()
    workload = ClusteredWorkload(world.nodes, load=0.6, window=4000, spread=0.2)
    jobset = workload.sample(np.random.default_rng(1))
    world.check(jobset)
    assert jobset.work[0] / (4000 * world.nodes.capacity) == pytest.approx(0.6, rel=0.1)
    assert set(jobset.job_class) == set(range(4))
    for kind, centre in enumerate(workload.centres):
        own = jobset.job_class == kind
        assert np.median(jobset.duration[own]) == pytest.approx(centre[2], rel=0.1)
        assert set(jobset.attributes["core_type"][own]) == {centre[3]}
    again = workload.sample(np.random.default_rng(1))
    assert (again.duration == jobset.duration).all()
    other = ClusteredWorkload(world.nodes, population=1)
    assert not np.array_equal(other.centres, workload.centres)


def test_jobsets_may_have_classes_of_their_own() -> None:
    own = ClusteredWorkload(load=0.7, window=400, own_classes=True)
    seen = set()
    for seed in (0, 1, 3):
        jobset = own.sample(np.random.default_rng(seed))
        again = own.sample(np.random.default_rng(seed))
        assert (jobset.demand == again.demand).all()
        work = float((jobset.demand[:, 0] * jobset.duration).sum())
        assert work / (own.nodes.capacity * 400) == pytest.approx(0.7, rel=0.25)
        medians = [np.median(jobset.duration[jobset.job_class == k]) for k in range(4)]
        seen.add(tuple(np.round(medians)))
        Panda().check(jobset)
    assert len(seen) == 3


def test_the_mix_drifts_around_the_same_mean() -> None:
    workload = ClusteredWorkload(classes=4, drift=1.0)
    mix = workload.mix(np.linspace(0, 1, 1001)[:-1])
    assert np.allclose(mix.sum(axis=1), 1)
    assert np.allclose(mix.mean(axis=0), 0.25)
    assert mix.min() == pytest.approx(0, abs=1e-12)
    assert np.allclose(ClusteredWorkload(classes=4).mix(np.array([0.0, 0.3])), 0.25)
    assert ClusteredWorkload(classes=1, drift=1.0).mix(np.array([0.2, 0.5])).tolist() == [[1], [1]]


def test_nodes_are_there_for_the_share_that_is_asked_for() -> None:
    supply = Supply(stays=90, away=30, announced=0.5, notice=5)
    away = supply.sample(np.random.default_rng(0), 20, 20_000)
    _, told, leaves, returns = away.T
    assert supply.share == 0.75
    assert (returns - leaves).sum() / (20 * 20_000) == pytest.approx(0.25, abs=0.02)
    assert (told < leaves).mean() == pytest.approx(0.5, abs=0.05)
    assert (leaves - told).max() == 5
    assert not Supply().sample(np.random.default_rng(0), 20, 20_000).size


@pytest.mark.parametrize(
    "options", [{"load": 0}, {"classes": 0}, {"longest": 2}, {"drift": 2}, {"picky": -1}]
)
def test_workloads_that_make_no_sense_are_refused(options: dict[str, float]) -> None:
    with pytest.raises(InputError, match=next(iter(options))):
        ClusteredWorkload(**options)


def test_metrics_of_departures_are_those_worked_by_hand() -> None:
    """Total times 4 and 8 in class 0, and 6 in class 1; departures at 4, 10 and 10."""
    jobset = JobSet.of([0, 2, 4], [4, 4, 6], [[1]] * 3, job_class=[0, 0, 1])
    schedule = schedule_of(jobset, [0, 6, 4], 10, [2])

    def value(name: str) -> float:
        return float(get_metric(name).values(schedule).mean())

    assert value("run_time") == pytest.approx((4 + 4 + 6) / 3)
    assert value("wait") == pytest.approx(4 / 3)
    assert value("flow_rate") == 0.3
    assert value("class_deviation") == pytest.approx(np.sqrt((4 + 4 + 0) / 3))
    assert value("jain_index") == pytest.approx((1 + 2 + 1) ** 2 / (3 * (1 + 4 + 1)))
    assert value("valid") == 1.0  # 8 <= 10 <= 18


def test_a_schedule_with_an_empty_system_for_long_is_not_valid() -> None:
    """Definition 4.1: the second leaves at 21, but both spent 2 steps in the system."""
    jobset = JobSet.of([0, 20], [1, 1], [[1]] * 2)
    schedule = schedule_of(jobset, [0, 20], 21, [2])
    assert get_metric("valid").values(schedule).tolist() == [0.0]
    cut = schedule_of(jobset, [-1, -1], 21, [2])
    assert get_metric("valid").values(cut).tolist() == [0.0]
    assert get_metric("flow_rate").values(cut).tolist() == [0.0]


def test_an_environment_of_one_agent_is_refused() -> None:
    with pytest.raises(InputError, match="several agents decide"):
        ClusterEnv(world="panda").reset(seed=0)
    with pytest.raises(InputError, match="several agents decide"):
        ClusterVectorEnv(2, world="panda").reset(seed=0)


def test_features_are_shares_and_say_what_is_allowed() -> None:
    world = Panda(observed=3, held=2)
    simulator = world.simulator()
    simulator.load(
        [ClusteredWorkload(load=2, window=30).sample(np.random.default_rng(0))],
        get_objective("slowdown"),
    )
    rng = np.random.default_rng(0)
    assert not simulator.active.all(), "some have not come yet, and their states are empty"
    assert all(np.isfinite(part).all() for part in world.features(simulator.states))
    for _ in range(60):
        rows = np.flatnonzero(simulator.active).astype(np.int32)
        items, context, allowed = world.features(simulator.states[rows])
        assert ((items >= 0) & (items <= 1)).all()
        assert ((context >= 0) & (context <= 1)).all()
        assert allowed[:, -1].all()
        for k, row in enumerate(rows):
            shown = (simulator.observed[row] >= 0).tolist()
            held = [place < simulator.held(row).size for place in range(2)]
            assert allowed[k].tolist() == [*shown, *held, True]
            assert items[k, :, 0].tolist() == allowed[k, :-1].tolist()
        if rows.size:
            actions = rng.integers(0, world.num_actions, rows.size)
            simulator.step(rows, actions, np.empty(rows.size))


def test_rules_are_compared_by_the_ordinary_command(tmp_path: Path) -> None:
    line = ["compare", "--config", "panda-elastic", "--policies", "best_fit,shortest_fit,random"]
    less = ["--set", "task.workload.window=60", "--jobsets", "5", "--out", str(tmp_path)]
    assert cli.run(cli.metasched, [*line, *less]) == 0
    with (tmp_path / "comparison.csv").open() as file:
        rows = list(csv.DictReader(file))
    best, shortest, chance = (float(row["completion_time"]) for row in rows)
    assert shortest < best < chance
    for row in rows:
        assert float(row["valid"]) == 1
        total = float(row["wait"]) + float(row["run_time"])
        assert total == pytest.approx(float(row["completion_time"]))
