"""Scorers as policies: played and decision by decision."""

import numpy as np
import pytest

from cluster_env.core.policy import choose
from cluster_env.core.seeding import Split
from cluster_env.evaluation import evaluate
from cluster_env.objectives import get_objective
from cluster_env.objectives.mixtures import weights_of
from cluster_env.worlds import get_spec
from cluster_env.worlds.hpc import HPC
from cluster_env.worlds.hpc.scorer import MODES, Scorer
from cluster_env.worlds.hpc.workloads import LublinWorkload, any_site
from rllib_configs.config.loading import load_config
from rllib_configs.config.schema import prepare
from rllib_configs.networks.registry import network_of
from rllib_configs.policy_files import (
    LearnedPolicy,
    PlayedLearnedPolicy,
    policy_of,
)
from rllib_configs.search_problem import SearchProblem
from rllib_configs.worlds.hpc.scorer import START, ScorerSampler, start_weights

WORLD = HPC(processors=64, queue=64)
JOBSETS = [
    LublinWorkload(64, jobs=50, load=1.2, estimates="uniform:3").sample(np.random.default_rng(k))
    for k in range(3)
]
WEIGHTS = {"log_estimate": 3.0, "of_free": 0.5, "running_work": 0.7, "stretch": -1.0}


@pytest.mark.parametrize("mode", [mode for mode in MODES if "easy" not in mode])
def test_decisions_are_those_that_are_played(mode: str) -> None:
    """Where the whole queue is seen; with EASY a state knows another reservation."""
    scorer = Scorer.linear(mode, **WEIGHTS, constant=-4.0)
    sampler = ScorerSampler(scorer, WORLD)
    simulator = WORLD.simulator()
    simulator.load(JOBSETS, get_objective("bounded_slowdown"))
    sampler.play(simulator, 0.0)
    played = simulator.schedule().start
    simulator.reset()
    rows = np.arange(3, dtype=np.int32)
    while simulator.active.any():
        actions = sampler.logits(simulator.states).argmax(axis=1).astype(np.int32)
        simulator.step(rows, actions, np.empty(3))
    assert np.array_equal(simulator.schedule().start, played)


@pytest.mark.parametrize("bias", [0.0, 2.0])
@pytest.mark.parametrize("mode", MODES)
def test_a_trained_scorer_chooses_in_a_simulator_what_it_plays(mode: str, bias: float) -> None:
    """It never waits where it may start a job, whatever the void bias is."""
    sampler = ScorerSampler(Scorer.linear(mode, **WEIGHTS, constant=-4.0), WORLD)
    policy = PlayedLearnedPolicy("scorer", sampler, "argmax", bias)
    played = evaluate(policy, JOBSETS, WORLD).start
    simulator = WORLD.simulator()
    simulator.load(JOBSETS, get_objective("bounded_slowdown"))
    while (rows := np.flatnonzero(simulator.active).astype(np.int32)).size:
        actions = choose(policy, simulator, rows, np.zeros(rows.size))
        simulator.step(rows, actions, np.empty(3))
    assert np.array_equal(simulator.schedule().start, played)


def test_one_set_of_weights_acts_on_any_machine() -> None:
    config = load_config("hpc-order", [])
    policy = policy_of(config, start_weights(config), "it", "argmax")
    for seed in range(4):
        world, jobset = any_site(WORLD, 60, np.random.default_rng(seed))
        schedule = evaluate(policy.acting_in(world), [jobset], world)
        assert schedule.finished.all()
        assert (schedule.capacity == world.processors).all()


def test_a_search_begins_with_small_areas_first() -> None:
    weights = start_weights(load_config("hpc-order", ["training.bilinear=true"]))
    assert {name: part.size for name, part in weights.items()} == {
        "network.job": 10,
        "network.state": 11,
        "network.cross": 100,
    }
    assert weights["network.job"][0] == weights["network.job"][1] == START["log_estimate"]
    assert not weights["network.cross"].any()


def test_jobs_of_any_site_differ_and_keep_their_machine_busy() -> None:
    """Sizes over three orders of magnitude, exact estimates and others, loads of 50 to 125 %."""
    drawn = [any_site(HPC(kill_at_estimate=True), 200, np.random.default_rng(k)) for k in range(60)]
    sizes = np.array([world.processors for world, _ in drawn])
    exact = [(jobs.attributes["estimate"] == jobs.duration).all() for _, jobs in drawn]
    assert sizes.min() < 200
    assert sizes.max() > 50_000
    assert 15 <= sum(exact) <= 45
    for world, jobset in drawn:
        world.check(jobset)
        assert world.kill_at_estimate
        work = (jobset.duration * jobset.demand[:, 0].astype(float)).sum()
        assert 0.45 < work / world.processors / max(jobset.arrival[-1], 1) < 1.3
    again = any_site(HPC(), 200, np.random.default_rng(7))[1]
    assert np.array_equal(again.arrival, drawn[7][1].arrival)
    assert get_spec("hpc").training.families["any-site"] is any_site


TOLD = "training.conditioned_on=[bounded_slowdown, makespan]"


def test_what_a_scorer_is_told_adds_to_its_weights() -> None:
    config = load_config("hpc-order", [TOLD])
    shapes = network_of(config).shapes(config, WORLD)
    rng = np.random.default_rng(1)
    weights = {name: rng.normal(size=shape).astype(np.float32) for name, shape in shapes.items()}
    plain = load_config("hpc-order")

    def starts(policy: LearnedPolicy) -> np.ndarray:
        return evaluate(policy, JOBSETS, WORLD).start

    for name, told in (
        ("bounded_slowdown", (1, 0)),
        ("1 bounded_slowdown + 3 makespan", (0.25, 0.75)),
        ("makespan", (0, 1)),
    ):
        found = starts(policy_of(config, weights, "told", "argmax", WORLD, get_objective(name)))
        folded = {
            name: weights[name]
            + np.array(told, np.float32) @ weights[name.replace("network.", "network.told_")]
            for name in ("network.job", "network.state")
        }
        assert np.array_equal(found, starts(policy_of(plain, folded, "plain", "argmax", WORLD)))


def test_a_search_that_tells_draws_objectives_for_each_jobset() -> None:
    config = load_config("hpc-order", [TOLD, "task.workload.jobs=20"])
    source = SearchProblem(prepare(config))
    found, again = ([one for *_, one in source.draw(Split.TRAIN, range(40))] for _ in range(2))
    assert [one.name for one in found] == [one.name for one in again]
    weights = [weights_of(one.name) for one in found]
    assert all(set(one) <= {"bounded_slowdown", "makespan"} for one in weights)
    assert len({str(one) for one in weights}) > 8
