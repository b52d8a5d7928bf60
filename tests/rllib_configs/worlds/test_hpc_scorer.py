"""Scorers as policies: played and decision by decision."""

import numpy as np
import pytest

from cluster_env.core.errors import InputError
from cluster_env.core.policy import PlayedPolicy, choose
from cluster_env.core.seeding import Split
from cluster_env.evaluation import evaluate
from cluster_env.objectives import get_objective
from cluster_env.objectives.mixtures import weights_of
from cluster_env.worlds import get_spec
from cluster_env.worlds.hpc import HPC
from cluster_env.worlds.hpc.scorer import MODES, Scorer
from cluster_env.worlds.hpc.workloads import LARGE, LublinWorkload, any_site, capability_site
from rllib_configs.loading import load_config
from rllib_configs.networks.conditions import Wanted
from rllib_configs.networks.registry import network_of
from rllib_configs.policy_files import (
    LearnedPolicy,
    PlayedLearnedPolicy,
    policy_of,
    read_weights,
    starting_weights,
)
from rllib_configs.registries import prepare
from rllib_configs.runners.candidates import CANDIDATES, KEPT, CandidateWork, units_of
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
    sampler = ScorerSampler(Scorer.linear(mode, **WEIGHTS, constant=-4.0), WORLD)
    policy = PlayedLearnedPolicy("scorer", sampler, "argmax", bias)
    played = evaluate(policy, JOBSETS, WORLD).start
    simulator = WORLD.simulator()
    simulator.load(JOBSETS, get_objective("bounded_slowdown"))
    while (rows := np.flatnonzero(simulator.active).astype(np.int32)).size:
        actions = choose(policy, simulator, rows, np.zeros(rows.size))
        simulator.step(rows, actions, np.empty(3))
    assert np.array_equal(simulator.schedule().start, played)


def test_a_void_bias_makes_it_hold_more_or_nothing() -> None:
    config = load_config("hpc-hold", [])
    weights = start_weights(config)
    waits = {}
    for bias in (0.0, -100.0, 100.0):
        policy = policy_of(config, weights, "it", "argmax", WORLD)
        assert isinstance(policy, PlayedPolicy)
        changed = type(policy)(policy.name, policy.network, "argmax", bias, policy.make)
        schedule = evaluate(changed, JOBSETS, WORLD)
        waits[bias] = float((schedule.start - schedule.arrival).mean())
    assert waits[-100.0] < waits[0.0] < waits[100.0]


def test_one_set_of_weights_acts_on_any_machine() -> None:
    config = load_config("hpc-hold", [])
    policy = policy_of(config, start_weights(config), "it", "argmax")
    for seed in range(4):
        world, jobset = any_site(WORLD, 60, np.random.default_rng(seed))
        schedule = evaluate(policy.acting_in(world), [jobset], world)
        assert schedule.finished.all()
        assert (schedule.capacity == world.processors).all()


def test_a_search_begins_with_small_areas_first() -> None:
    weights = start_weights(load_config("hpc-hold", ["training.bilinear=true"]))
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


def test_jobs_of_capability_sites_are_wide_and_take_less_than_is_asked_for() -> None:
    """A few round estimates, of which run times are about half in the mean; some jobs fail soon."""
    accuracies, shares = [], []
    for seed in range(30):
        world, jobset = capability_site(HPC(gpus=4), 200, np.random.default_rng(seed))
        world.check(jobset)
        assert (world.gpus, LARGE[0] <= world.processors <= LARGE[1]) == (0, True)
        estimate = jobset.attributes["estimate"]
        assert (jobset.duration <= estimate).all()
        assert not (estimate % 300).any()
        assert estimate.max() <= 86_400
        accuracies.append(jobset.duration / estimate)
        shares.append(jobset.demand[:, 0] / world.processors)
        work = (jobset.duration * jobset.demand[:, 0].astype(float)).sum()
        assert 0.45 < work / world.processors / max(jobset.arrival[-1], 1) < 1.15
    means = np.array([one.mean() for one in accuracies])
    assert 0.4 < means.mean() < 0.6
    assert means.min() < 0.45
    assert 0.01 < (np.concatenate(accuracies) < 0.05).mean() < 0.1
    assert 0.03 < np.median(np.concatenate(shares)) < 0.12
    assert get_spec("hpc").training.families["capability"] is capability_site


TOLD = "training.conditioned_on=[bounded_slowdown, makespan, limit_wait]"


def test_what_a_scorer_is_told_adds_to_its_weights() -> None:
    config = load_config("hpc-hold", [TOLD, "training.limits.wait=0.4"])
    shapes = network_of(config).shapes(config, WORLD)
    rng = np.random.default_rng(1)
    weights = {name: rng.normal(size=shape).astype(np.float32) for name, shape in shapes.items()}
    plain = load_config("hpc-hold")

    def starts(policy: LearnedPolicy) -> np.ndarray:
        return evaluate(policy, JOBSETS, WORLD).start

    for objective, limits, told in (
        ("bounded_slowdown", {"wait": 0.25}, (1, 0, 0.75)),
        ("1 bounded_slowdown + 3 makespan", {}, (0.25, 0.75, 0)),
        ("makespan", None, (0, 1, 0.6)),  # the limit of the training
    ):
        wanted = Wanted(get_objective(objective), limits)
        found = starts(policy_of(config, weights, "told", "argmax", WORLD, wanted))
        folded = {
            name: weights[name]
            + np.array(told, np.float32) @ weights[name.replace("network.", "network.told_")]
            for name in ("network.job", "network.state")
        }
        assert np.array_equal(found, starts(policy_of(plain, folded, "plain", "argmax", WORLD)))


def test_a_search_that_tells_draws_objectives_and_limits_for_each_jobset() -> None:
    config = load_config("hpc-hold", [TOLD, "training.limits.wait=0.4", "task.workload.jobs=20"])
    source = SearchProblem(prepare(config))
    found, again = ([w for *_, w in source.draw(Split.TRAIN, range(40))] for _ in range(2))
    told = [(one.objective.name, one.limits) for one in found]
    assert told == [(one.objective.name, one.limits) for one in again]
    weights = [weights_of(wanted.objective.name) for wanted in found]
    assert all(set(one) <= {"bounded_slowdown", "makespan"} for one in weights)
    assert len({str(one) for one in weights}) > 8
    limits = [(wanted.limits or {}).get("wait") for wanted in found]
    assert 2 < limits.count(None) < 25
    assert all(limit is None or 0 <= limit <= 1 for limit in limits)
    work = CandidateWork(config)
    count = sum(int(np.prod(shape)) for shape in network_of(config).shapes(config, WORLD).values())
    work.set_weights({CANDIDATES: np.zeros((1, count), np.float32)})
    part, _ = work.play(units_of(Split.TRAIN, 0, 40, 40, 1)[0])
    kept = part.per_unit[0][0, :, 1] == KEPT
    assert kept.tolist() == [limit is None for limit in limits]


def test_the_preset_that_is_told_limits_plays_each_jobset_under_limits_of_its_own() -> None:
    config = prepare(load_config("hpc-limits", ["task.workload.jobs=20"]))
    work = CandidateWork(config)
    count = sum(int(np.prod(shape)) for shape in work.shapes.values())
    assert count == 84
    work.set_weights({CANDIDATES: np.zeros((1, count), np.float32)})
    part, _ = work.play(units_of(Split.TRAIN, 0, 12, 12, 1)[0])
    judged = part.per_unit[0][0]
    assert np.isfinite(judged[:, 0]).all()
    free = judged[:, 1:] == KEPT
    assert free.any(0).all()
    assert not free.all(0).any()


def test_limits_are_drawn_apart_or_as_one() -> None:
    """So that it is told of none at all, of tight ones, and of any mixture, often enough."""
    source = SearchProblem(prepare(load_config("hpc-limits", ["task.workload.jobs=20"])))
    drawn = [wanted.limits for *_, wanted in source.draw(Split.TRAIN, range(200))]
    none = [limits for limits in drawn if not limits]
    alike = [limits for limits in drawn if limits and len(set(limits.values())) == 1]
    assert 15 <= len(none) <= 45
    assert sum(len(limits or {}) == 3 for limits in alike) > 50
    assert len(none) + len(alike) < 150


def test_a_scorer_that_is_told_limits_begins_as_one_that_is_told_nothing() -> None:
    config = load_config("hpc-limits")
    begun = starting_weights(config, str(config.training.start), start_weights(config))
    source, _ = read_weights("hpc-hold")
    for name, value in source.items():
        assert np.array_equal(begun.pop(name), value)
    assert begun.keys() == {"network.told_job", "network.told_state"}
    assert not any(value.any() for value in begun.values())


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ([TOLD], r"set training.limits.wait"),
        ([TOLD, "training.limits.wait=0.1", "training.limits_hold=mean"], "hold on each"),
    ],
)
def test_limits_that_cannot_be_told_are_refused(changes: list[str], words: str) -> None:
    with pytest.raises(InputError, match=words):
        prepare(load_config("hpc-hold", changes))
