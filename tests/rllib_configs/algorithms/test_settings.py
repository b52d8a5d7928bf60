"""No setting of RLlib's is taken and ignored: each has an effect, or is refused in a sentence."""

import re
from pathlib import Path
from typing import Any

import pytest
import ray.rllib
from ray import tune
from ray.rllib.algorithms.algorithm_config import AlgorithmConfig
from ray.rllib.callbacks.callbacks import RLlibCallback

from cluster_env.core.errors import InputError
from meta.maml.algorithm import MAMLConfig
from rllib_configs.algorithms.config import (
    HEEDED,
    WRITTEN,
    BatchedConfig,
    algorithm_config,
    config_class,
)
from rllib_configs.algorithms.evolution import EvolutionConfig
from rllib_configs.algorithms.ppo import BatchedPPO, PPOConfig
from rllib_configs.algorithms.reinforce import ReinforceConfig
from rllib_configs.config.loading import load_config, preset_names
from rllib_configs.config.schema import prepare
from rllib_configs.worlds.accrual.fuzzy_td import FuzzyTDConfig

SETTINGS = sorted(vars(AlgorithmConfig()).keys() - {"algo_class", "_is_frozen"})
SET_BY_RLLIB = {"simple_optimizer", "in_evaluation"}
SOURCES = [
    Path(ray.rllib.__file__).parent / name
    for name in (
        *("algorithms/algorithm.py", "algorithms/utils.py", "env/env_runner_group.py"),
        "utils/actor_manager.py",
    )
]


def another(value: Any) -> Any:
    """A value that differs, of the same type where there is one."""
    if value is None:
        return 5
    if isinstance(value, bool):
        return not value
    if isinstance(value, int | float):
        return value / 2 if value == 1.0 else value + 1
    if isinstance(value, dict):
        return {**value, "more": 1}
    if isinstance(value, list | tuple):
        return [*value, "more"]
    return "another"


def test_a_setting_has_an_effect_or_is_refused() -> None:
    for name in SETTINGS:
        config = PPOConfig()
        value = another(getattr(config, name))
        if name.startswith("callbacks_on_"):
            value = print
        setattr(config, name, value)
        if name in WRITTEN:
            config.validate()
            *_, last = WRITTEN[name].split(".")
            assert config.experiment.to_dict() != PPOConfig().experiment.to_dict()
            assert re.search(rf"'{last}': {value}\b", str(config.experiment.to_dict()))
        elif name not in HEEDED and name not in SET_BY_RLLIB:
            with pytest.raises(InputError, match=name.removeprefix("callbacks_")):
                config.validate()


def test_what_rllib_is_to_heed_is_read_there() -> None:
    """The name stands where RLlib builds, evaluates and logs, and not only in its config."""
    sources = "".join(path.read_text() for path in SOURCES)
    for name in HEEDED.keys() - {"callbacks_on_episode_end"}:
        assert re.search(rf"\.{name}\b", sources), name


def test_settings_that_are_heeded_or_written_exist() -> None:
    assert HEEDED.keys() | WRITTEN.keys() <= set(SETTINGS)
    assert not HEEDED.keys() & WRITTEN.keys()


@pytest.mark.parametrize("name", preset_names())
def test_the_config_of_a_preset_says_what_the_preset_says_and_keeps_it(name: str) -> None:
    """Building it changes no number of a training."""
    experiment = prepare(load_config(name))
    config = algorithm_config(experiment)
    config.validate()
    assert config.experiment == experiment
    assert config.lr == experiment.training.lr
    assert config.gamma == experiment.training.gamma
    assert config.num_env_runners == experiment.resources.num_runners


@pytest.mark.parametrize(
    "kind", [PPOConfig, ReinforceConfig, EvolutionConfig, MAMLConfig, FuzzyTDConfig]
)
def test_an_algorithm_without_a_preset_named_has_one(kind: type[BatchedConfig]) -> None:
    config = kind()
    config.validate()
    assert config_class(config.algo_class) is kind
    assert config.experiment == prepare(load_config(kind.preset))


def test_settings_of_the_algorithm_and_the_task_go_where_they_belong() -> None:
    config = PPOConfig().environment("deeprm-smoke", env_config={"workload.load": 0.9})
    config.training(lr=0.5, num_epochs=2, clip=0.3).debugging(seed=7).validate()
    experiment = config.experiment
    assert experiment.task.workload.load == 0.9
    assert (experiment.training.lr, experiment.training.epochs) == (0.5, 2)
    assert (experiment.training.clip, experiment.seed) == (0.3, 7)
    smoke = load_config("deeprm-smoke", {"task.workload.load": 0.9})
    assert experiment.task == smoke.task


def test_a_task_may_be_given_as_data() -> None:
    config = PPOConfig().environment({"objective": "makespan"})
    config.validate()
    assert config.experiment.task.objective == "makespan"


def test_spaces_of_tune_wait_until_tune_has_chosen() -> None:
    config = MAMLConfig().training(lr=tune.grid_search([0.1, 0.2]), inner_steps=tune.choice([2, 3]))
    chosen = config.to_dict() | {"lr": 0.2, "changes": {"training.inner_steps": 3}}
    again = MAMLConfig().update_from_dict(chosen)
    again.validate()
    assert (again.experiment.training.lr, again.experiment.training.inner_steps) == (0.2, 3)


class StepCounter(RLlibCallback):
    def on_episode_step(self, **kwargs: Any) -> None: ...


class EndCounter(RLlibCallback):
    def on_episode_end(self, **kwargs: Any) -> None: ...


@pytest.mark.parametrize(
    ("make", "match"),
    [
        (lambda: PPOConfig().training(learning_rate=1), "training 'learning_rate'.*lr"),
        (lambda: PPOConfig().training(inner_steps=1), "inner_steps"),
        (lambda: PPOConfig().training(lr=-1), "training.lr.*greater than 0"),
        (lambda: PPOConfig().training(clip="wide"), "training.clip"),
        (lambda: PPOConfig().environment("CartPole-v1"), "CartPole-v1"),
        (lambda: PPOConfig().environment(env_config={"workload.lod": 1}), "lod"),
        (lambda: PPOConfig().env_runners(num_env_runners=64), "64 runners.*4 units"),
        (lambda: PPOConfig().learners(num_learners=1), "num_learners.*driver"),
        (lambda: PPOConfig().evaluation(evaluation_config={"lr": 1}), "explore alone.*lr"),
        (lambda: PPOConfig().callbacks(StepCounter), "on_episode_step"),
        (lambda: EvolutionConfig().callbacks(EndCounter), "on_episode_end"),
        (lambda: EvolutionConfig().training(num_epochs=4), "num_epochs"),
    ],
)
def test_what_cannot_be_is_refused_in_a_sentence(make: Any, match: str) -> None:
    with pytest.raises(InputError, match=match) as refused:
        make().validate()
    assert "\n" not in str(refused.value)


def test_callbacks_that_are_called_are_taken() -> None:
    for config in (PPOConfig(), ReinforceConfig()):
        config.callbacks(EndCounter, on_train_result=print).validate()
        assert len(config.callback("on_episode_end")) == 1


def test_an_algorithm_and_its_config_do_not_hold_each_other() -> None:
    """Ray looks into classes that are attributes of classes, and never came out of a circle."""
    assert PPOConfig not in vars(BatchedPPO).values()
