"""The algorithm on RLlib: same numbers however it is spread, resumed or disturbed."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cluster_env.core.errors import InputError
from meta.maml.algorithm import update_plan
from meta.maml.module import split_weights
from meta.maml.runner import MetaWork, OuterStep, iteration_tasks
from meta.maml.stages import StageEpisodes, StageScore
from rllib_configs.algorithms.batched import module_weights
from rllib_configs.algorithms.config import algorithm_config
from rllib_configs.builders import build_algorithm, iteration_metrics
from rllib_configs.config.loading import change, make_config
from rllib_configs.config.schema import ExperimentConfig, prepare
from rllib_configs.policies import learned_policy, save_policy, start_from
from rllib_configs.policy_files import load_policy
from rllib_configs.runners.episodes import spaces_of
from rllib_configs.runners.rollout import Rollouts
from tests.meta.maml.tiny import CLUSTER
from tests.rllib_configs.dying import end_in_round
from tests.rllib_configs.training import Trained, assert_equal, assert_same_numbers, train
from tests.waiting import PATIENCE_S

TINY = "tests.meta.maml.tiny_tasks:TINY_TASKS"


def config_of(**changes: Any) -> ExperimentConfig:
    """Four tasks of two jobsets x three episodes; changes are ``section_key``."""
    data: dict[str, dict[str, Any]] = {
        "training": {
            "algorithm": "maml",
            "network": "set_scorer",
            "hidden": 8,
            "jobsets": 2,
            "episodes_per_jobset": 3,
            "epochs": 2,
            "iterations": 8,
            "family": TINY,
            "tasks": 4,
        },
        "resources": {"num_runners": 0},
    }
    for name, value in changes.items():
        section, _, key = name.partition("_")
        data[section][key] = value
    return prepare(make_config(data))


@contextmanager
def built(config: ExperimentConfig) -> Iterator[Any]:
    """The algorithm, which is stopped at the end of the block."""
    algorithm = build_algorithm(config)
    try:
        yield algorithm
    finally:
        algorithm.stop()


@pytest.fixture(scope="module")
def reference(local_ray: None) -> Trained:
    """Three iterations in the driver alone, the first of which is warm-up."""
    return train(config_of(training_warm_up=0.125), 3)


def test_an_iteration_learns_everything_and_logs_it(local_ray: None, reference: Trained) -> None:
    weights, metrics = reference
    with built(config_of(training_warm_up=0.125)) as algorithm:
        first = module_weights(algorithm)
    for name, value in first.items():
        if name.startswith("network."):
            assert not np.array_equal(weights[name], value), name
    # A bias that all slots share moves no probability: its gradient, and so its rate's, is 0.
    rates = {name for name in weights if name.startswith("rates.")}
    moved = {name for name in rates if weights[name] != first[name]}
    assert rates - moved <= {"rates.score_bias"}
    assert weights["entropy_coefficient"] != first["entropy_coefficient"]
    warm_up, *others = metrics
    assert warm_up["meta/gain"] == warm_up["meta/inner_norm"] == 0
    for row in others:
        assert row["meta/inner_norm"] > 0
        assert row["meta/gain"] == row["meta/return_after"] - row["meta/return_before"]
        assert 0 < row["train/entropy"] < np.log(4)
        assert row["train/gradient_norm"] > 0
        assert row["meta/collapsed"] == 0
        assert 0 < row["time/adapt_s"] < row["time/sample_s"] < row["time/iteration_s"]
    assert metrics[-1]["total/episodes"] == 4 * 6 * (1 + 2 + 2)


def work_of(config: ExperimentConfig) -> MetaWork:
    """What a runner does, at the first weights."""
    spec = algorithm_config(config).get_default_rl_module_spec()
    spec.observation_space, spec.action_space = spaces_of(config.task.world)
    module = spec.build()
    work = MetaWork(config, module)
    work.set_weights(
        {name: np.asarray(value, np.float32) for name, value in module.get_state().items()}
    )
    return work


def test_an_update_has_the_mean_gradient_of_its_tasks(local_ray: None) -> None:
    config = config_of(training_tasks=3, training_tasks_per_update=3, training_epochs=1)
    with built(config) as algorithm:
        work = work_of(config)
        work.set_weights(module_weights(algorithm))
        rows = [work.play(unit)[1] for unit in iteration_tasks(config, 0)]
        alone = [work.gradient(each, OuterStep(1)).gradient for each in rows]
        expected = np.mean(np.array(alone, np.float64), axis=0)
        metrics = iteration_metrics(algorithm.train())
        (found,) = [each.get() for each in algorithm.learner_group.foreach_learner(first_moments)]
    norm = np.sqrt(np.square(expected).sum())
    assert metrics["train/gradient_norm"] == pytest.approx(norm, rel=1e-6)
    # Adam's groups have the inner rates last, as the module has them.
    assert np.abs(10 * found - expected).max() < 1e-6 * np.abs(expected).max()


def first_moments(learner: Any) -> np.ndarray:
    """Those of Adam: after one update, a tenth of its gradient."""
    (optimizer,) = learner._optimizer_parameters
    return np.concatenate([state["exp_avg"].numpy().ravel() for state in optimizer.state.values()])


def test_a_task_without_a_choice_counts_in_the_mean_and_not_in_the_entropy() -> None:
    config = config_of()
    work = work_of(config)
    _, rows = work.play(iteration_tasks(config, 3)[0])
    whole = work.gradient(rows, OuterStep(1))
    half = work.gradient(rows, OuterStep(2))
    assert np.array_equal(2 * half.gradient, whole.gradient)
    *before, last = rows.stages
    nothing = work.gradient(
        replace(rows, stages=(*before, last.of_rows(np.arange(0)))), OuterStep(2)
    )
    both = half + nothing
    assert np.array_equal(both.gradient, half.gradient)
    assert both.sums == half.sums
    assert both.sums["tasks"] == 1


def test_checkpoint_keeps_the_state_of_the_collapse_detector(
    tmp_path: Path, local_ray: None
) -> None:
    config = config_of()
    with built(config) as first:
        first.train()
        first._detector.scale = 0.25
        first.save_to_path(tmp_path / "checkpoint")
        kept = first._detector
    with built(config) as second:
        second.restore_from_path(tmp_path / "checkpoint")
        found = second._detector
    assert (found.scale, found.seen, found.average) == (0.25, 1, kept.average)
    assert_equal(found.best, kept.best)


def test_runners_that_are_killed_cost_no_more_than_time(local_ray: None, tmp_path: Path) -> None:
    """One in sampling; it comes back, and is alone when the other is killed in an update.

    Compared with a run without runners that goes on from the first iteration's checkpoint.
    """
    config = config_of(training_order="second", resources_num_runners=2)
    with built(config) as algorithm:
        metrics = [iteration_metrics(algorithm.train())]
        algorithm.save_to_path(tmp_path)
        end_in_round(algorithm, 1)
        metrics.append(iteration_metrics(algorithm.train()))
        assert metrics[-1]["workers/healthy"] == 1
        deadline = time.monotonic() + PATIENCE_S
        while metrics[-1]["workers/healthy"] < 2 and time.monotonic() < deadline:
            metrics.append(iteration_metrics(algorithm.train()))
        assert metrics[-1]["workers/restarts"] == 1
        end_in_round(algorithm, 2, runner=2)
        metrics.append(iteration_metrics(algorithm.train()))
        assert metrics[-1]["workers/healthy"] == 1
        with built(config_of(training_order="second")) as resumed:
            resumed.restore_from_path(tmp_path)
            expected = [iteration_metrics(resumed.train()) for _ in metrics[1:]]
            assert_equal(module_weights(algorithm), module_weights(resumed))
            assert_same_numbers(metrics[1:], expected)


@pytest.mark.parametrize("changes", [{"training_order": "second"}, {"training_adapt": "head"}])
def test_variants_come_to_other_weights(changes: dict, local_ray: None, reference: Trained) -> None:
    weights, _ = train(config_of(training_warm_up=0.125, **changes), 2)
    other, _ = train(config_of(training_warm_up=0.125), 2)
    name = "network.job.weight"
    assert np.isfinite(weights[name]).all()
    assert not np.array_equal(weights[name], other[name])


def test_fixed_rates_stay(local_ray: None) -> None:
    weights, _ = train(config_of(training_learn_rates=False, training_inner_rate=2.5), 1)
    _, rates = split_weights(weights)
    assert {float(rate) for rate in rates.values()} == {float(np.float32(np.log(2.5)))}


def without_entropy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("meta.maml.collapse.LOW_ENTROPY", 10.0)  # all policies count as collapsed
    monkeypatch.setattr("meta.maml.collapse.PATIENCE", 3)


def with_exploding_costs(monkeypatch: pytest.MonkeyPatch) -> None:
    """From the third iteration on: its tasks cost thirty times as much."""
    plain, calls = StageEpisodes.sample, []

    def sample(*args: Any) -> tuple[Rollouts, StageScore]:
        calls.append(1)
        rollouts, score = plain(*args)
        return rollouts, replace(score, value=score.value * (1 if len(calls) <= 4 * 4 else 30))

    monkeypatch.setattr(StageEpisodes, "sample", sample)
    monkeypatch.setattr("meta.maml.collapse.LAST", 1)


@pytest.mark.parametrize(
    ("plant", "reason"),
    [(without_entropy, "left nothing to chance"), (with_exploding_costs, "the run diverged")],
)
def test_collapse_goes_back_to_the_best_weights(
    plant: Callable[[pytest.MonkeyPatch], None],
    reason: str,
    local_ray: None,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    plant(monkeypatch)
    with built(config_of()) as algorithm:
        first = module_weights(algorithm)
        rows = [iteration_metrics(algorithm.train()) for _ in range(3)]
        weights = module_weights(algorithm)
        scale = algorithm._detector.scale
    assert [row["meta/collapsed"] for row in rows] == [0, 0, 1]
    assert reason in caplog.text
    assert "lower training.lr" in caplog.text
    assert scale == 0.5
    coefficient = weights.pop("entropy_coefficient")
    assert coefficient != first.pop("entropy_coefficient")
    assert_equal(weights, first)


def test_gradient_that_is_not_finite_is_left_out(
    local_ray: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = MetaWork.gradient
    calls = []

    def broken(self: MetaWork, *args: Any) -> Any:
        calls.append(1)
        part = plain(self, *args)
        return replace(part, gradient=part.gradient * (np.nan if len(calls) == 3 else 1.0))

    monkeypatch.setattr(MetaWork, "gradient", broken)
    with built(config_of(training_on_nan="skip")) as algorithm:
        first = module_weights(algorithm)
        row = iteration_metrics(algorithm.train())
        weights = module_weights(algorithm)
    assert len(calls) == 2 * 4  # tasks of each update
    assert row["meta/collapsed"] == 1
    assert row["train/skipped_updates"] == 1
    assert_equal(weights, first | {"entropy_coefficient": weights["entropy_coefficient"]})


def test_saved_policy_is_a_plain_one(tmp_path: Path, local_ray: None) -> None:
    config = config_of()
    with built(config) as algorithm:
        algorithm.train()
        save_policy(algorithm, config, tmp_path / "policy")
        trained, weights = learned_policy(algorithm), module_weights(algorithm)
    loaded, found = load_policy(tmp_path)
    assert found == config
    states = np.zeros((1, *config.task.world.state_space.shape), np.uint8)
    assert np.array_equal(loaded.network.logits(states), trained.network.logits(states))

    # Another maml run takes over all of it, a ppo run the network alone, and the other way round.
    with built(config_of(training_lr=0.5)) as other:
        start_from(other, tmp_path)
        assert_equal(module_weights(other), weights)
    data = config.to_dict()
    change(data, {"training.algorithm": "ppo", "training.jobsets_per_unit": 2})
    with built(make_config(data)) as ppo:
        start_from(ppo, tmp_path)
        ppo.train()
        taken = module_weights(ppo)
        save_policy(ppo, make_config(data), tmp_path / "ppo")
    with built(config_of(training_inner_rate=3.0)) as third:
        start_from(third, tmp_path / "ppo")
        found_weights = module_weights(third)
    _, rates = split_weights(found_weights)
    assert {round(float(rate.exp()), 5) for rate in rates.values()} == {3.0}
    assert_equal({name: found_weights[name] for name in taken}, taken)


def test_tasks_never_repeat_and_every_pass_takes_each_once() -> None:
    config = config_of(training_warm_up=0.25, training_tasks=5)
    seen = [unit.task for iteration in range(4) for unit in iteration_tasks(config, iteration)]
    assert seen == list(range(20))
    assert [iteration_tasks(config, i)[0].base for i in range(4)] == [True, True, False, False]
    assert [iteration_tasks(config, i)[0].num_steps for i in range(4)] == [0, 0, 1, 1]
    plan = update_plan(config, 3)
    assert [len(update) for update in plan] == [2, 2, 1] * 2
    for epoch in (plan[:3], plan[3:]):
        assert sorted(i for update in epoch for i in update) == list(range(5))
    assert plan != update_plan(config, 2)
    # What one runner has mostly played is in different updates.
    assert all(sorted(task // 3 for task in update) in ([0, 1], [0]) for update in plan)
    for tasks, size in ((8, 2), (7, 3), (4, 3), (13, 4), (2, 5)):
        config = config_of(training_tasks=tasks, training_tasks_per_update=size, training_epochs=1)
        plan = update_plan(config, 0)
        assert sorted(i for update in plan for i in update) == list(range(tasks))
        assert len(plan) == -(-tasks // size)
        assert 1 <= min(map(len, plan)) <= max(map(len, plan)) <= size


def test_task_of_a_maml_run_is_the_base_of_its_family() -> None:
    config = config_of()
    assert config.task.world.cluster == CLUSTER
    assert prepare(config) == config
    world = replace(config.task.world, max_time=61)
    other = config.model_copy(update={"task": config.task.model_copy(update={"world": world})})
    with pytest.raises(InputError, match=r"training\.family"):
        prepare(other)
