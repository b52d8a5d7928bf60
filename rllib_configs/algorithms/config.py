"""RLlib's config of our algorithms: which of RLlib's settings have an effect, and what it is."""

import inspect
import logging
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any, ClassVar, Self

from ray.rllib.algorithms.algorithm import Algorithm
from ray.rllib.algorithms.algorithm_config import AlgorithmConfig
from ray.rllib.callbacks.callbacks import RLlibCallback
from ray.rllib.core.learner.torch.torch_learner import TorchLearner
from ray.rllib.core.rl_module.rl_module import RLModule, RLModuleSpec

from cluster_env.core.errors import InputError
from cluster_env.core.registry import imported, unknown
from rllib_configs.config.changes import change
from rllib_configs.config.loading import load_config, make_config
from rllib_configs.config.options import training_section
from rllib_configs.config.registries import ALGORITHMS, CHOICES
from rllib_configs.config.schema import ExperimentConfig, prepare
from rllib_configs.config.task_schema import TaskSection
from rllib_configs.networks.registry import network_of
from rllib_configs.runners.unit_runner import UnitEnvRunner
from rllib_configs.runners.units import UnitWork

WRITTEN = {
    "lr": "training.lr",
    "gamma": "training.gamma",
    "num_epochs": "training.epochs",
    "seed": "seed",
    "num_env_runners": "resources.num_runners",
}
"""RLlib's settings that set one of ours, by its key."""

HEEDED = {
    **dict.fromkeys(
        ("placement_strategy", "num_cpus_for_main_process", "custom_resources_for_main_process"),
        "Tune reserves resources of a trial by it.",
    ),
    **dict.fromkeys(
        (
            *("env_runner_cls", "num_cpus_per_env_runner", "custom_resources_per_env_runner"),
            *("max_num_env_runner_restarts", "max_requests_in_flight_per_env_runner"),
        ),
        "Ray starts and restarts env runners by it.",
    ),
    **dict.fromkeys(
        (
            *("callbacks_class", "callbacks_on_algorithm_init", "callbacks_on_train_result"),
            *("callbacks_on_evaluate_start", "callbacks_on_evaluate_end"),
            *("callbacks_on_checkpoint_loaded", "callbacks_on_env_runners_recreated"),
        ),
        "RLlib calls it.",
    ),
    "callbacks_on_episode_end": "Env runners call it: with episodes of sample(), and in training.",
    **dict.fromkeys(
        (
            *("evaluation_interval", "evaluation_duration", "evaluation_duration_unit"),
            *("evaluation_num_env_runners", "evaluation_sample_timeout_s"),
            *("evaluation_force_reset_envs_before_iteration", "custom_evaluation_function"),
            *("evaluation_unhealthy_workers_timeout_s", "evaluation_config"),
            "evaluation_error_after_n_consecutive_skips",
        ),
        "RLlib evaluates by it.",
    ),
    "log_level": "RLlib logs by it.",
}
"""RLlib's settings that RLlib, Tune or the env runners heed, and who does."""

_INSTEAD = {
    "env": "environment() takes a preset, a YAML file or a task",
    "env_config": "environment(env_config=...) takes settings of the task, as workload.load",
    "train_batch_size": "training.jobsets and training.episodes_per_jobset say how much is sampled",
    "minibatch_size": "training.minibatches says how many there are",
    "num_envs_per_env_runner": "training.jobsets_per_unit says what is simulated side by side",
    "explore": "training always samples; evaluation_config={'explore': False} is for evaluations",
    "num_learners": "the driver takes the steps, and env runners compute the gradients",
    "grad_clip": "gradients are not clipped",
    **dict.fromkeys(
        ("model", "_model_config", "_rl_module_spec"), "training.network chooses the network"
    ),
    **dict.fromkeys(
        (
            *("min_time_s_per_iteration", "min_train_timesteps_per_iteration"),
            "min_sample_timesteps_per_iteration",
        ),
        "an iteration is one training_step",
    ),
}
"""What to do instead of setting some that have no effect."""

_OURS = {"experiment", "changes"}
_OF_EVALUATION = {"explore"}
"""What an evaluation may say differently."""

_CALLED = {name.removeprefix("callbacks_") for name in HEEDED if name.startswith("callbacks_on_")}
_OF_TRAINING = set(inspect.signature(AlgorithmConfig.training).parameters) - {"self"}


# Loggers whose warnings say nothing that a user could act on: the new API stack is chosen on
# purpose, the deprecated calls are RLlib's own, and there is no GPU to watch.
_CHATTY = (
    "ray.rllib.algorithms.algorithm_config",
    "ray.tune.utils.util",
    "ray._common.deprecation",
)


class BatchedConfig(AlgorithmConfig):
    """Config of a `UnitAlgorithm`: RLlib's, and the whole experiment beside it.

    >>> config = PPOConfig().environment("deeprm-ppo").training(lr=1e-3, entropy=0.01)
    >>> config.env_runners(num_env_runners=2).build_algo().train()

    ``training`` also takes the options of the algorithm and its network by name, such as
    ``inner_steps``. Each setting of RLlib's has an effect, see `WRITTEN` and `HEEDED`, or
    `validate` refuses it. Values may be spaces of Ray Tune's until then.

    Attributes:
        algorithm_class: what it configures; see `config_class`.
        default_learner: what takes the steps.
        preset: whose experiment it begins with.
        samples_episodes: whether training samples decision by decision, so that the callback
            ``on_episode_end`` can be called.
        experiment: all that a training depends on.
        changes: of the experiment, by keys such as ``training.clip``; `validate` makes them.
    """

    algorithm_class: ClassVar[type[Algorithm]]
    default_learner: ClassVar[type[TorchLearner]]
    preset: ClassVar[str] = "deeprm"
    samples_episodes: ClassVar[bool] = False

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "algorithm_class" in vars(cls):
            _CONFIGS[cls.algorithm_class] = cls

    def __init__(self, algo_class: type[Algorithm] | None = None) -> None:
        for name in _CHATTY:
            logging.getLogger(name).setLevel(logging.ERROR)
        super().__init__(algo_class=algo_class or self.algorithm_class)
        self.changes: dict[str, Any] = {}
        self.env_runner_cls = UnitEnvRunner
        self.max_requests_in_flight_per_env_runner = 8  # RLlib's 1 drops messages silently
        self.delay_between_env_runner_restarts_s = 1.0
        self.log_level = "ERROR"
        # Runners hold no state that would have to go round after each iteration.
        self.merge_env_runner_states = self.broadcast_env_runner_states = False
        # RLlib gets no seed unless it is asked to: each process would import PyTorch's compiler,
        # which takes two seconds, and our algorithms draw from streams of their own.
        self.take(_preset(self.preset))

    def take(self, experiment: ExperimentConfig) -> Self:
        """Takes an experiment, whose values RLlib's settings of the same meaning have from then."""
        self.experiment = experiment
        for name in WRITTEN.keys() - {"seed"}:
            value = _written(experiment, name)
            if value is not None:
                setattr(self, name, value)
        return self

    def environment(
        self,
        env: str | Path | TaskSection | Mapping[str, object] | None = None,
        *,
        env_config: Mapping[str, object] | None = None,
        **others: object,
    ) -> Self:
        """Chooses the task.

        Args:
            env: name of a preset or path of a YAML file, whose task counts; or a `TaskSection` or
                its plain data, of which what is left out has its default.
            env_config: settings of the task by their keys, such as ``workload.load``.
            others: see RLlib's config.

        Raises:
            InputError: if there is no such preset or file, or it is none; the settings are checked
                by `validate`.
        """
        if not isinstance(env, str | Path | TaskSection | Mapping | None):
            raise InputError(f"{_INSTEAD['env']}, but {env!r} was given")
        if not isinstance(env_config, Mapping | None):
            raise InputError(f"{_INSTEAD['env_config']}, but {env_config!r} was given")
        if env is not None:
            data = self.experiment.to_dict()
            given = load_config(env).task if isinstance(env, str | Path) else env
            data["task"] = given if isinstance(given, Mapping) else given.model_dump(mode="json")
            self.take(make_config(data))
        changes = {f"task.{key}": value for key, value in (env_config or {}).items()}
        self.changes = {**self.changes, **changes}
        super().environment(**others)
        return self

    def training(self, **settings: object) -> Self:
        """Says how it is learned: RLlib's settings, and those of the algorithm and its network.

        Raises:
            InputError: if there is no such setting; values are checked by `validate`.
        """
        own: dict[str, Any] = {name: settings.pop(name) for name in settings.keys() - _OF_TRAINING}
        training = self.experiment.training
        chosen = (own.get(one.kind, getattr(training, one.kind)) for one in CHOICES)
        names = training_section(*chosen).model_fields
        for name in own.keys() - names:
            raise unknown("setting of training", name, names)
        self.changes = {**self.changes, **{f"training.{name}": own[name] for name in own}}
        super().training(**settings)
        return self

    def validate(self) -> None:
        """Writes settings into the experiment, and refuses those without an effect.

        Raises:
            InputError: if a setting has no effect or cannot be used, or there are more runners
                than units of work.
        """
        if not self.in_evaluation:
            self._refuse_what_has_no_effect()
            self.take(self._changed())
            self.experiment.require_units()
        super().validate()

    def get_default_learner_class(self) -> type[TorchLearner]:
        """What takes the steps."""
        return self.default_learner

    def get_default_rl_module_spec(self) -> RLModuleSpec:
        """The experiment's network."""
        network = network_of(self.experiment)
        config = network.model_config(self.experiment, self.experiment.task.world)
        return RLModuleSpec(module_class=network.module(), model_config=config)

    def make_work(self, module: RLModule) -> UnitWork:
        """What runners do with units; to be said by whoever learns so.

        Args:
            module: the runner's own, to compute gradients with.
        """
        raise NotImplementedError

    def callback(self, name: str) -> list[Callable[..., object]]:
        """Callbacks of a name that somebody has set: functions, and methods that differ."""
        functions = getattr(self, f"callbacks_{name}", None) or []
        classes = self.callbacks_class
        classes = classes if isinstance(classes, list | tuple) else [classes]
        default = getattr(RLlibCallback, name)
        return [
            *(functions if isinstance(functions, list | tuple) else [functions]),
            *(getattr(one(), name) for one in classes if getattr(one, name) is not default),
        ]

    def _changed(self) -> ExperimentConfig:
        """The experiment as settings say, completed by its algorithm."""
        changes = dict(self.changes)
        for name, key in WRITTEN.items():
            value, before = getattr(self, name), _written(self.experiment, name)
            if before is not None and value not in (None, before):
                changes[key] = value
        if not changes:
            return prepare(self.experiment)
        data = self.experiment.to_dict()
        change(data, changes)
        return prepare(make_config(data))

    def _refuse_what_has_no_effect(self) -> None:
        """Raises `InputError` if a setting differs from its default that nobody heeds."""
        defaults = type(self)().get_state()
        known = {*WRITTEN, *HEEDED, *_OURS, "class", "simple_optimizer"}  # the last one RLlib sets
        known -= {name for name in WRITTEN if _written(self.experiment, name) is None}
        for name, value in self.get_state().items():
            if name in known or name.startswith("callbacks_"):  # those are looked at below
                continue
            if not _same(value, defaults.get(name)):
                instead = _INSTEAD.get(name)
                raise InputError(
                    f"RLlib's setting {name} has no effect on {self.experiment.training.algorithm} "
                    f"here, so leave it out{f': {instead}' if instead else ''}"
                )
        if (more := set(self.evaluation_config or {}) - _OF_EVALUATION) and isinstance(
            self.evaluation_config, Mapping
        ):
            raise InputError(
                f"an evaluation may differ in {', '.join(_OF_EVALUATION)} alone, but "
                f"evaluation_config sets {sorted(more)[0]}"
            )
        for name in dir(RLlibCallback):
            if name.startswith("on_") and self.callback(name) and not self._is_called(name):
                raise InputError(
                    f"nobody calls {name} here, so leave it out: env runners of "
                    f"{self.experiment.training.algorithm} simulate whole batches of episodes"
                )

    def _is_called(self, callback: str) -> bool:
        return callback in _CALLED and (callback != "on_episode_end" or self.samples_episodes)


_CONFIGS: dict[type[Algorithm], type[BatchedConfig]] = {}
# No attribute of the algorithm: Ray looks into classes that are attributes of classes, and would
# never come out of two that have each other.


def algorithm_config(config: ExperimentConfig) -> BatchedConfig:
    """RLlib's config of an experiment."""
    made: BatchedConfig = imported(ALGORITHMS.get(config.training.algorithm).config)()
    return made.take(config)


def config_class(algorithm: type[Algorithm]) -> type[BatchedConfig]:
    """The config that names an algorithm, or a class that it is derived from."""
    return next(_CONFIGS[one] for one in algorithm.__mro__ if one in _CONFIGS)


@cache
def _preset(name: str) -> ExperimentConfig:
    return load_config(name)


def _written(experiment: ExperimentConfig, name: str) -> Any:
    """The experiment's value of one of `WRITTEN`; None if it has none."""
    place: Any = experiment
    for part in WRITTEN[name].split("."):
        place = getattr(place, part, None)
    return place


def _same(one: Any, other: Any) -> bool:
    """Whether two values are; those that cannot be compared are where they are the same object."""
    try:
        return one is other or bool(one == other)
    except (TypeError, ValueError):
        return False
