"""Expert iteration: labels of units, same numbers however they are spread, and a better policy."""

from pathlib import Path

import numpy as np
import pytest
import torch
from ray.rllib.core.columns import Columns

from cluster_env.core.errors import InputError
from cluster_env.core.seeding import Split
from cluster_env.evaluation import evaluate
from rllib_configs.algorithms.batched import module_weights
from rllib_configs.algorithms.expert_iteration import Trial, better_by_errors, mean_costs
from rllib_configs.builders import build_algorithm, iteration_metrics
from rllib_configs.loading import load_config
from rllib_configs.networks.registry import network_of
from rllib_configs.policies import start_from
from rllib_configs.policy_files import policy_of, read_weights, write_policy
from rllib_configs.registries import prepare
from rllib_configs.runners.labels import Labels, LabelWork
from rllib_configs.runners.sampling import SampleUnit, iteration_units
from rllib_configs.schema import ExperimentConfig
from tests.rllib_configs.training import (
    assert_equal,
    assert_same_numbers,
    go_on_and_lose_a_runner,
    train,
)
from tests.rllib_configs.worlds.test_deeprm_set_scorer import cluster_of, states_for

SIZES = [
    *("task.workload.window=30", "training.jobsets=4", "training.jobsets_per_unit=1"),
    *("training.label_share=0.2", "training.futures=4", "training.reach=15"),
    *("training.validation_jobsets=6", "training.iterations=4", "training.memory=2"),
    *("training.fit_steps=40", "training.lr=0.03", "training.stay=0.01", "training.errors=1"),
    *("training.episodes_per_jobset=1", "resources.num_runners=0"),
    "training.validation_warmup=5",
]


def config_of(*overrides: str, preset: str = "deeprm-expert") -> ExperimentConfig:
    """Four units of short jobsets, and few futures."""
    return prepare(load_config(preset, [*SIZES, *overrides]))


def work_of(config: ExperimentConfig) -> LabelWork:
    work = LabelWork(config)
    work.set_weights(read_weights("deeprm-operation")[0])
    return work


@pytest.mark.usefixtures("local_ray")
class TestSpread:
    """What needs Ray."""

    def test_numbers_depend_neither_on_runners_nor_on_a_resume_nor_on_a_kill(
        self, tmp_path: Path
    ) -> None:
        """Four iterations in the driver alone, of which two runners repeat the second half."""
        weights, metrics = train(config_of(), 4, keep=tmp_path / "checkpoint")
        assert any(row["train/step"] > 0 for row in metrics[2:])
        two = config_of("resources.num_runners=2")
        found, same = go_on_and_lose_a_runner(two, tmp_path / "checkpoint", 1)
        assert_equal(found, weights)
        assert_same_numbers(same, metrics[2:])

    def test_a_bad_policy_gets_better(self, tmp_path: Path) -> None:
        """One that starts long jobs first, and would rather wait than start a short one."""
        config = config_of(
            *("task.workload.load=1.0", "task.workload.vary.load=null", "training.jobsets=6"),
            *("training.futures=8", "training.label_share=0.3", "training.stay=0.01"),
            *("training.fit_steps=100", "training.lr=0.05"),
        )
        start = network_of(config).model_config(config, config.task.world)["start"]
        bad = {"network.job": -start["network.job"], "network.void": start["network.void"]}
        write_policy(bad, config, tmp_path)
        algorithm = build_algorithm(config)
        start_from(algorithm, tmp_path)
        rows = [iteration_metrics(algorithm.train()) for _ in range(2)]
        found = module_weights(algorithm)
        algorithm.stop()
        for row in rows:
            assert row["train/validation_cost"] <= row["train/cost_before"]
        assert rows[0]["train/changed_share"] > 0.1
        assert rows[0]["train/loss"] < rows[0]["train/loss_before"]
        task = config.task.build()
        jobsets = task.jobsets(Split.HELD_OUT, range(20))
        before, after = (
            evaluate(policy_of(config, one, "one", "argmax"), jobsets, task.world).slowdown.mean()
            for one in (bad, found)
        )
        assert after < 0.9 * before


def test_labels_depend_neither_on_the_unit_nor_on_who_is_beside() -> None:
    config = config_of()
    work, units = work_of(config), iteration_units(config, 1)
    assert len(units) == config.training.num_units == 4
    apart = [work.play(unit)[0].per_unit[unit.index] for unit in units]
    assert sum(len(labels.states) for labels in apart) > 20
    together = SampleUnit(0, 1, tuple(jobset for unit in units for jobset in unit.jobsets))
    part, _ = work_of(config_of("training.jobsets_per_unit=4")).play(together)
    found = part.per_unit[0]

    def rows(labels: Labels) -> list[bytes]:
        return sorted(
            b"".join(np.ascontiguousarray(column[k]).tobytes() for column in labels)
            for k in range(len(labels.states))
        )

    assert rows(found) == sorted(row for labels in apart for row in rows(labels))


def test_actions_are_compared_with_the_jobs_that_the_jobset_may_bring() -> None:
    """Loads differ from jobset to jobset, and so do the loads of their futures."""
    config = config_of("task.workload.vary.load=[0.2,1.6]")
    work = work_of(config)
    units = iteration_units(config, 0)
    loads = [work._playing(unit).workloads[0].load for unit in units]
    assert len(set(loads)) == len(loads)
    jobsets = work.task.jobsets(Split.TRAIN, range(4))
    assert np.argmax(loads) == np.argmax([jobset.num_jobs for jobset in jobsets])


@pytest.mark.parametrize("num_classes", [1, 2])
def test_the_module_scores_as_the_sampler(num_classes: int) -> None:
    config = config_of(f"task.world.cluster.num_classes={num_classes}")
    world, states = config.task.world, states_for(cluster_of(num_classes))
    world = type(world)(cluster_of(num_classes), rules="released", max_time=100)
    network, weights = network_of(config), read_weights("deeprm-operation")[0]
    expected = network.sampler(config, weights, world).logits(states)
    model = network.model_config(config, world)
    module = network.module()(model_config={**model, "start": weights})
    with torch.no_grad():
        found = module.forward_train({Columns.OBS: torch.from_numpy(states)})
    found = found[Columns.ACTION_DIST_INPUTS].numpy()
    assert np.array_equal(found > -1e8, expected > -1e8)
    choice = (expected > -1e8).sum(axis=1) > 1
    assert choice.sum() > 20
    assert np.allclose(found[choice], expected[choice], atol=1e-4)


def test_a_validation_counts_the_jobs_of_the_middle() -> None:
    config = config_of("training.validation_warmup=10", "task.workload.window=40")
    weights, task = read_weights("deeprm-operation")[0], config.task.build()
    jobsets = task.jobsets(Split.VALIDATION, range(3, 8))
    policy = policy_of(config, weights, "one", "argmax")
    schedule = evaluate(policy, jobsets, task.world)
    middle = (schedule.arrival >= 10) & (schedule.arrival < 30)
    means = [schedule.slowdown[middle & (schedule.episode == k)].mean() for k in range(5)]
    assert mean_costs(Trial(config, 3, 5), weights) == pytest.approx(means)
    assert np.mean(means) != pytest.approx(schedule.slowdown.mean())


def test_weights_move_only_where_they_are_better_beyond_chance() -> None:
    present = np.array([5.0, 9, 7, 3, np.nan])
    luckier = present - [4, -2, -3, 2, 0]
    better = present - [0.5, 0.6, 0.4, 0.5, 0]
    best, costs = better_by_errors(np.array([present, luckier, better]))
    assert best == 2
    assert costs == pytest.approx([6, 5.75, 5.5])
    assert better_by_errors(np.array([present, luckier]))[0] == 0


def test_a_set_scorer_learns_in_the_world_hpc_too() -> None:
    sizes = [one for one in SIZES if "window" not in one]
    settings = ["training.algorithm=expert_iteration", "training.network=set_scorer"]
    config = prepare(load_config("hpc-smoke", [*settings, *sizes, "task.workload.jobs=30"]))
    shapes = network_of(config).shapes(config, config.task.world)
    rng = np.random.default_rng(0)
    work = LabelWork(config)
    work.set_weights({name: rng.normal(size=s).astype(np.float32) for name, s in shapes.items()})
    part, _ = work.play(iteration_units(config, 0)[0])
    labels = part.per_unit[0]
    assert len(labels.states) > 0
    assert np.abs(labels.gains).max() > 0


@pytest.mark.parametrize(
    ("overrides", "words"),
    [
        (["training.network=hpc_scorer"], "hpc_scorer cannot be fitted to given actions"),
        (["training.gamma=0.9"], "training.gamma must be 1, but 0.9"),
        (["training.episodes_per_jobset=2"], "episodes_per_jobset"),
        (["training.futures=1"], "futures"),
        (["training.validation_warmup=15"], "training.validation_warmup: .*"),
    ],
)
def test_settings_that_make_no_sense_are_refused(overrides: list[str], words: str) -> None:
    with pytest.raises(InputError, match=words):
        config_of(*overrides)


def test_a_world_without_futures_is_refused() -> None:
    settings = ["training.algorithm=expert_iteration", "training.network=set_scorer"]
    settings += ["training.episodes_per_jobset=1", "training.gamma=1"]
    with pytest.raises(InputError, match=r"need sampled futures, which .* in the world accrual"):
        prepare(load_config("accrual-smoke", settings))
