"""Evolution strategies on RLlib: same numbers however they are spread, resumed or disturbed."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cluster_env.core.errors import InputError
from cluster_env.core.seeding import Split
from cluster_env.evaluation import evaluate
from cluster_env.worlds.hpc import HPC
from cluster_env.worlds.hpc.rules import Rule
from rllib_configs.algorithms.batched import module_weights
from rllib_configs.builders import build_algorithm, iteration_metrics
from rllib_configs.config.loading import load_config
from rllib_configs.config.schema import ExperimentConfig, prepare
from rllib_configs.networks.registry import network_of
from rllib_configs.policies import learned_policy, save_policy
from rllib_configs.policy_files import load_policy
from rllib_configs.runners.candidates import CANDIDATES, CandidateWork, judged_by_all, units_of
from rllib_configs.runners.searching import search_here, work_of
from rllib_configs.search_problem import (
    SearchProblem,
    adapted_experiment,
    joined,
    judge_of,
    reference_of,
    split_up,
)
from tests.rllib_configs.training import (
    assert_equal,
    assert_same_numbers,
    go_on_and_lose_a_runner,
    train,
)
from tests.tune_jobs.untrained_runs import UNLIMITED

SIZES = [
    *("training.jobsets=6", "training.jobsets_per_unit=2", "training.episodes_per_jobset=5"),
    *("training.validate_every=2", "training.validation_jobsets=4", "task.workload.jobs=40"),
    *("training.iterations=4", "resources.num_runners=0"),
]


def config_of(*overrides: str) -> ExperimentConfig:
    """Three units, five candidates, and limits."""
    return load_config("hpc-order", [*SIZES, *overrides])


@pytest.mark.usefixtures("local_ray")
class TestSpread:
    """What needs Ray."""

    def test_numbers_depend_neither_on_runners_nor_on_a_resume_nor_on_a_kill(
        self, tmp_path: Path
    ) -> None:
        """Four iterations in the driver alone, of which two runners repeat the second half."""
        weights, metrics = train(config_of(), 4, keep=tmp_path / "checkpoint")
        two = config_of("resources.num_runners=2")
        found, same = go_on_and_lose_a_runner(two, tmp_path / "checkpoint", 1)
        assert_equal(found, weights)
        assert_same_numbers(same, metrics[2:])

    def test_the_best_mean_is_kept_and_acts_when_loaded(self, tmp_path: Path) -> None:
        config = config_of("training.validate_every=1", *UNLIMITED)
        algorithm = build_algorithm(config)
        costs, kept = [], []
        for _ in range(4):
            found = iteration_metrics(algorithm.train())
            costs.append(found["train/validation_cost"])
            kept.append(_flat(config, module_weights(algorithm)))
            assert found["train/best_cost"] == min(costs)
        best = kept[int(np.argmin(costs))]
        assert all(np.array_equal(flat, best) for flat in kept[int(np.argmin(costs)) :])
        judged = _judge(config, best, Split.VALIDATION, 4)
        assert judged.mean() == pytest.approx(min(costs), abs=1e-12)

        save_policy(algorithm, config, tmp_path / "policy")
        trained = learned_policy(algorithm)
        algorithm.stop()
        loaded, _ = load_policy(tmp_path)
        task = config.task.build()
        jobsets = task.jobsets(Split.VALIDATION, range(2))
        starts = [evaluate(policy, jobsets, task.world).start for policy in (trained, loaded)]
        assert np.array_equal(*starts)


def _flat(config: ExperimentConfig, weights: dict) -> np.ndarray:
    shapes = network_of(config).shapes(config, config.task.world)
    return joined(weights, shapes)


def _judge(config: ExperimentConfig, flat: np.ndarray, split: Split, count: int) -> np.ndarray:
    work = CandidateWork(config)
    work.set_weights({CANDIDATES: flat[None]})
    parts = [work.play(unit)[0] for unit in units_of(split, 0, count, 1, 1)]
    return np.concatenate([part.per_unit[k][0, :, 0] for k, part in enumerate(parts)])


@pytest.mark.parametrize(("pooled", "cost"), [("true", np.log(2.0)), ("false", np.log(3.0) / 2)])
def test_settings_say_whether_costs_are_pooled(pooled: str, cost: float) -> None:
    judge = judge_of(config_of(f"training.pooled={pooled}", *UNLIMITED))
    assert judge.costs(np.log([[[1.0], [3.0]]])) == pytest.approx([cost])


def test_a_network_of_any_world_can_be_searched_for() -> None:
    """DeepRM's slots, without a family: what a candidate is judged by is ln of its slowdown."""
    changes = ["training.algorithm=evolution", "training.network=set_scorer"]
    config = load_config("deeprm-ppo", changes)
    work = CandidateWork(prepare(config))
    flat = np.zeros(sum(int(np.prod(shape)) for shape in work.shapes.values()), np.float32)
    work.set_weights({CANDIDATES: np.stack([flat, flat])})
    units = units_of(Split.TRAIN, 0, 2, 2, 2)
    parts = [work.play(unit)[0] for unit in units]
    judged = judged_by_all(units, parts[0] + parts[1])[:, :, 0]
    assert np.array_equal(judged[0], judged[1])
    assert (judged > 0).all()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ("task.objective=utilization", "the objective optimizes utilization already"),
        ("training.reference=saf:esay", "did you mean 'easy'"),
        ("training.family=any-sight", "did you mean 'any-site'"),
    ],
)
def test_what_cannot_be_searched_is_refused(change: str, words: str) -> None:
    with pytest.raises(InputError, match=words):
        prepare(config_of(change))


@pytest.mark.parametrize(
    ("preset", "change", "setting"),
    [
        ("hpc-order", "task.workload.trace=example", "task.workload.trace"),
        ("hpc-partitions", "training.family=any-site", "task.world.site"),
    ],
)
def test_a_log_or_a_site_that_a_family_would_replace_is_refused(
    preset: str, change: str, setting: str
) -> None:
    with pytest.raises(InputError, match=f"nothing would be trained on {setting}"):
        prepare(load_config(preset, [change]))
    for unset in ("", "null", '""'):
        prepare(load_config(preset, [change, f"training.family={unset}"]))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (["training.multipliers.wait=2"], "wait has no limit; limits are none"),
        (["training.reference=saf"], "there are no limits"),
        (["training.multiplier_rate=0.1"], "but there are no limits"),
        (["training.limits.wait=1", "training.limits_hold=median"], "'each' or 'mean'"),
        (["training.limits.wait=-0.1"], "greater than or equal to 0"),
        (
            ["training.limits.utilization=1"],
            "limits: the limit of utilization .* below 1, .* but 1 was",
        ),
        (["training.limits.wait=1", "training.multipliers.wait=0"], "wait: .*greater than 0"),
        (["training.mode=gated"], "'skip' or 'easy'"),
    ],
)
def test_settings_that_contradict_each_other_are_refused(change: list[str], words: str) -> None:
    with pytest.raises(InputError, match=words) as error:
        config_of(*UNLIMITED, *change)
    assert len(str(error.value)) < 500


@pytest.mark.parametrize("family", ["any-site", "''"])
def test_limits_may_refer_to_a_rule_at_a_bound_on_waits(family: str) -> None:
    """The candidates have the same one, in a family, too."""
    waits = []
    for bound in (0, 1800):
        reference = ("training.reference=sjf:skip", f"task.world.max_wait={bound}")
        crowded = ("task.workload.jobs=200", "task.workload.load=1.2", f"training.family={family}")
        config = config_of(*reference, *crowded)
        drawn = next(iter(SearchProblem(prepare(config)).draw(Split.TRAIN, [0])))
        _, world, jobsets, _ = drawn
        rule: Any = reference_of(config, world)
        assert rule.rule == Rule("sjf", "skip")
        assert isinstance(world, HPC)
        assert world.max_wait == bound
        schedule = evaluate(rule, jobsets[:1], world)
        waits.append(int((schedule.start - schedule.arrival).max()))
    assert waits[0] != waits[1]


def test_every_registered_metric_can_be_limited_and_null_takes_a_limit_out() -> None:
    limits = ["training.limits.completion_time=0.1", "training.limits.wait=0.2"]
    config = config_of(*UNLIMITED, *limits)
    assert config.training.limits == {"completion_time": 0.1, "wait": 0.2}
    assert config.to_dict()["training"]["limits"] == config.training.limits
    without = config_of(*UNLIMITED, *limits, "training.limits.wait=null")
    assert without.training.limits == {"completion_time": 0.1}
    with pytest.raises(InputError, match="limits: unknown metric 'waits': did you mean 'wait'"):
        config_of("training.limits.waits=0.1")


def test_a_scorer_needs_a_search_and_the_world_hpc() -> None:
    with pytest.raises(InputError, match="hpc_scorer has no gradient, which the algorithm ppo"):
        load_config("hpc-smoke", ["training.network=hpc_scorer"])
    config = load_config("deeprm", ["training.algorithm=evolution", "training.network=hpc_scorer"])
    with pytest.raises(InputError, match="the world hpc alone"):
        CandidateWork(config)


@pytest.mark.usefixtures("local_ray")
def test_a_search_in_one_process_finds_what_a_training_finds() -> None:
    config = config_of("training.iterations=3")
    weights, _ = train(config, 3)
    shapes = network_of(config).shapes(config, config.task.world)
    algorithm = build_algorithm(config)
    begin = module_weights(algorithm)
    algorithm.stop()
    found = search_here(config, {name: begin[name] for name in shapes})
    assert_equal({name: found[name] for name in shapes}, {name: weights[name] for name in shapes})


def test_windows_in_which_no_job_counts_are_alike_for_all_candidates(tmp_path: Path) -> None:
    """In between bursts nobody submits: some windows hold jobs of their warm-up alone."""
    submit = np.concatenate([100_000 * burst + np.arange(0, 1000, 10) for burst in range(10)])
    rows = [f"{second},500,900,{1 + k % 4}" for k, second in enumerate(submit.tolist())]
    log = tmp_path / "bursts.csv"
    log.write_text("\n".join(["arrival,duration,estimate,processors", *rows]))
    on_log = [
        *(f"task.workload.trace={log}", "task.world.processors=8", 'training.family=""'),
        *("task.workload.whole=false", "task.workload.window=3000", "task.workload.jobs=null"),
        *("task.workload.warmup=2000", "training.limits.wait=0"),
    ]
    sizes = [text for text in SIZES if "workload" not in text]
    config = prepare(load_config("hpc-order", [*sizes, *UNLIMITED, *on_log]))
    jobsets = config.task.build().jobsets(Split.TRAIN, range(40))
    empty = np.array([not one.counted.any() for one in jobsets])
    assert 0 < empty.sum() < 40
    work = CandidateWork(config)
    flat = np.zeros(sum(int(np.prod(shape)) for shape in work.shapes.values()), np.float32)
    work.set_weights({CANDIDATES: flat[None]})
    parts = [work.play(unit)[0] for unit in units_of(Split.TRAIN, 0, 40, 1, 1)]
    judged = np.concatenate([part.per_unit[k][0] for k, part in enumerate(parts)])
    assert np.isfinite(judged).all()
    assert (judged[empty] == [0.0, -1.0]).all()
    assert (judged[~empty, 0] > 0).any()


TASKS = "training.adaptation.tasks={workload.shift: [bursts, sizes]}"
ADAPTED = [
    *("training.jobsets=2", "training.jobsets_per_unit=1", "training.episodes_per_jobset=4"),
    *("training.validate_every=2", "training.validation_jobsets=2", "training.iterations=2"),
    *("task.workload.kind=shifted", "task.workload.jobs=8", "resources.num_runners=0"),
    *("training.adaptation.iterations=2", TASKS),
]


def adapted_config(*overrides: str) -> ExperimentConfig:
    """Four candidates, each adapted by ten episodes to bursts and to small graphs."""
    return prepare(load_config("graphs", [*ADAPTED, *overrides]))


def played(config: ExperimentConfig, candidates: np.ndarray, jobset: int) -> np.ndarray:
    """Costs of candidates on a training jobset, ``(num_candidates,)``."""
    work = work_of(config)
    work.set_weights({CANDIDATES: candidates})
    units = units_of(Split.TRAIN, jobset, 1, 1, len(candidates))
    parts = [work.play(unit)[0] for unit in units]
    return judged_by_all(units, sum(parts[1:], parts[0]))[:, 0, 0]


class TestAdaptation:
    """Candidates whose cost counts after an inner search."""

    def test_a_candidate_costs_what_the_policy_costs_that_a_search_finds_from_it(self) -> None:
        """The search of `metasched train`, on the shift of the jobset, with its own jobsets."""
        config = adapted_config()
        candidates = np.random.default_rng(0).normal(size=(2, 11)).astype(np.float32)
        for jobset, shift in enumerate(("bursts", "sizes")):
            seed = adapted_experiment(config, jobset, (int(Split.TRAIN), jobset)).seed
            assert seed != config.seed
            search = ["training.jobsets=1", "training.episodes_per_jobset=5", f"seed={seed}"]
            own = [*ADAPTED[:-2], *search, f"task.workload.shift={shift}", "training.step_size=0.2"]
            inner = load_config("graphs", own)
            shapes = network_of(inner).shapes(inner, inner.task.world)
            found = [
                joined(search_here(inner, split_up(one, shapes)), shapes) for one in candidates
            ]
            outer = load_config("graphs", [*ADAPTED[:-2], f"task.workload.shift={shift}"])
            expected = played(outer, np.stack(found), jobset)
            assert np.array_equal(played(config, candidates, jobset), expected)
            assert not np.array_equal(played(outer, candidates, jobset), expected)

    def test_equal_candidates_cost_the_same_to_the_last_bit(self) -> None:
        """Inner searches of all candidates have the same noise and jobsets."""
        candidates = np.tile(np.linspace(-1, 1, 11, dtype=np.float32), (3, 1))
        costs = played(adapted_config(), candidates, 1)
        assert np.array_equal(costs, costs[[1, 2, 0]])

    @pytest.mark.usefixtures("local_ray")
    def test_numbers_depend_neither_on_runners_nor_on_units(self) -> None:
        weights, metrics = train(adapted_config(), 2)
        two = adapted_config("resources.num_runners=2", "training.jobsets_per_unit=2")
        found, same = train(two, 2)
        assert_equal(found, weights)
        assert_same_numbers(same, metrics)

    @pytest.mark.parametrize(
        ("change", "words"),
        [
            (["training.adaptation.iterations=-1"], "greater than or equal to 0"),
            (["training.adaptation.candidates=1"], "greater than or equal to 2"),
            (["training.adaptation.step_size=0"], "greater than 0"),
            (["training.adaptation.iterations=0"], "set training.adaptation.iterations to 1"),
            (["training.adaptation.tasks={workload.shift: []}"], "at least 1 item"),
            (
                ["training.adaptation.tasks={workload.shift: [sizes], workload.jobs: [8, 9]}"],
                "workload.shift has 1, workload.jobs has 2",
            ),
            (["training.adaptation.tasks={workload.shift: [burst]}"], "did you mean 'bursts'"),
            (
                ["training.adaptation.tasks={workload.shif: [bursts]}"],
                "did you mean 'workload.shift'",
            ),
            (["training.family=any-site"], "but training.family was given"),
            (
                ["training.limits.utilization=0.1", "training.multiplier_rate=0.1"],
                "but training.multiplier_rate was given",
            ),
        ],
    )
    def test_impossible_adaptations_are_refused(self, change: list[str], words: str) -> None:
        with pytest.raises(InputError, match=words):
            adapted_config(*change)
