"""The typed experiment config: what a preset, a YAML file and ``--set`` may say."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import Field, field_validator, model_validator
from pydantic_core import PydanticCustomError

from cluster_env.core.secrets import holds_secret
from rllib_configs.task_schema import (
    Count,
    Positive,
    Section,
    Share,
    TaskSection,
    WholeNumber,
)


class TrainingSection(Section):
    """How it is learned; the defaults are DeepRM's (section 4.1)."""

    algorithm: Literal["reinforce", "ppo", "maml"] = "reinforce"
    """The learning algorithm; maml learns on many tasks, see the section meta."""
    network: Literal["deeprm_mlp", "set_scorer"] = "deeprm_mlp"
    """DeepRM's network on the image, or a scorer of slots of any number, under a mask; maml
    takes set_scorer."""
    start: Path | None = None
    """Run whose weights this one begins with, of the same network; unset: drawn from the seed. A
    relative path counts from where the config is made."""
    iterations: Count = 1000
    """Parameter updates of a whole run."""
    jobsets: Count = 100
    """Jobsets of an iteration; with maml, of a stage of a task."""
    fresh_jobsets: bool = False
    """Whether each iteration draws new jobsets instead of repeating the same ones; maml always
    does."""
    window_curriculum: Share = 0.0
    """Share of the run, at its beginning, that keeps to the shortest of the windows that vary: to
    hold back long jobs pays soonest there, and is learned there."""
    episodes_per_jobset: Annotated[int, Field(ge=2)] = 20
    """Episodes of each jobset in an iteration, over which the baseline averages."""
    jobsets_per_unit: Count = 10
    """Jobsets that are simulated side by side; results depend on it in their last digits only.
    With maml those of a stage are."""
    gamma: Share = 1.0
    """Discount of a decision, with ppo of a time step."""
    lr: Positive = 1e-3
    """Learning rate of RMSProp, or of Adam."""
    rmsprop_decay: Share = 0.9
    """Decay of RMSProp's mean square."""
    rmsprop_eps: Positive = 1e-9
    """Added to the mean square under RMSProp's root."""
    hidden: Count = 20
    """Units of each hidden layer."""
    on_nan: Literal["stop", "skip"] = "stop"
    """What a gradient that is not finite leads to: the run stops and names the parameters, or the
    update is left out and counted as train/skipped_updates."""
    since_column: bool = False
    """Whether the image shows the time since the last arrival, as in the released code."""

    epochs: Count = 3
    """PPO: passes over the decisions of an iteration; maml: over its tasks."""
    minibatches: Count = 4
    """PPO: updates of a pass."""
    clip: Positive = 0.2
    """PPO and maml: how far the ratio of new to old probability counts."""
    entropy: Annotated[float, Field(ge=0)] = 0.02
    """PPO: bonus for entropy at the start; it falls to 0 in the course of the run. With maml it
    then follows meta.entropy_target."""
    equalize: Share = 0.0
    """PPO: share of an iteration's jobsets, those whose returns vary most, that are scaled down to
    the others; for loads and windows that differ."""
    critic: bool = False
    """PPO: whether the slot scorer learns a value of states too, which long windows need."""
    show_window: bool = False
    """Whether the slot scorer is told the length of the arrival window, for windows that differ."""
    skip_connection: bool = False
    """Whether a job's features also count directly in its score of the slot scorer, by weights that
    start at 0: what a few gradient steps can learn from few episodes."""
    lr_end_share: Share = 0.05
    """PPO and maml: share of the learning rate that is left at the end of the run."""

    gae_lambda: Share = 0.6
    """How far advantages trust rewards rather than the critic, of PPO with a critic and of RLlib's
    PPO."""

    @field_validator("start")
    @classmethod
    def _make_absolute(cls, path: Path | None) -> Path | None:
        """Lets a run be resumed from elsewhere."""
        return None if path is None else path.expanduser().absolute()

    @model_validator(mode="after")
    def _refuse_a_network_of_another_algorithm(self) -> Self:
        if self.algorithm == "maml" and self.network != "set_scorer":
            raise PydanticCustomError(
                "maml_and_network",
                "the algorithm maml needs the network set_scorer, but {network} was given",
                {"network": self.network},
            )
        if self.window_curriculum and not self.fresh_jobsets:
            raise PydanticCustomError(
                "window_curriculum",
                "window_curriculum changes the jobsets in the course of the run, so it needs "
                "fresh_jobsets, which is off",
            )
        if self.critic and (self.algorithm, self.network) != ("ppo", "set_scorer"):
            raise PydanticCustomError(
                "critic",
                "a critic goes with the algorithm ppo and the network set_scorer, but "
                "{algorithm} and {network} were given",
                {"algorithm": self.algorithm, "network": self.network},
            )
        return self


class MetaSection(Section):
    """How a policy learns to adapt; see `meta.maml`.

    Usual names: order first with surrogate ratio is first-order MAML, second with log_probability
    MAML as published, second with ratio near ProMP; adapt head is ANIL; no inner steps, joint
    training on all tasks.
    """

    family: str = "objectives"
    """Where tasks come from: name of a distribution over tasks, a YAML file that describes one, or
    module:attribute of one in Python. A relative path counts from where the config is made."""
    tasks: Count = 8
    """Tasks of an iteration. Of each, every stage samples training.jobsets x
    training.episodes_per_jobset episodes."""
    tasks_per_update: Count = 2
    """Tasks of an update; more make it less noisy, and an iteration has fewer of them."""
    inner_steps: WholeNumber = 1
    """Steps of adaptation before the stage that counts; 0 trains one policy for all tasks."""
    order: Literal["first", "second"] = "first"
    """Whether the outer gradient sees how the inner ones change with the parameters."""
    surrogate: Literal["ratio", "log_probability"] = "ratio"
    """What an inner step ascends, times the advantage: the ratio of new to old probability, or the
    logarithm of the new one."""
    inner_rate: Positive = 1.0
    """Length of an inner step, at the start if it is learned."""
    learn_rates: bool = True
    """Whether each block of parameters learns an inner rate of its own."""
    adapt: Literal["all", "head"] = "all"
    """What inner steps move: all parameters, or the layers after the pooling."""
    advantage_floor: Annotated[float, Field(ge=0)] = 0.03
    """Share of a task's mean return that its advantages are divided by, beside their spread."""
    relative_gains: bool = True
    """Whether outer steps weigh tasks by the share of their cost that can be saved, instead of all
    alike."""
    gradient_clip: Positive = 0.5
    """Largest norm of an inner gradient."""
    shrink: bool = True
    """Whether an inner step is shortened to what the gradients of its jobsets agree on, so that a
    policy that is good already does not follow noise; it needs at least 2 jobsets."""
    rates_lr: Positive = 20.0
    """Learning rate of the logarithms of the inner rates, in units of training.lr."""
    entropy_target: Annotated[float, Field(ge=0)] = 0.25
    """Mean entropy of adapted policies that the entropy bonus aims at, in nats of a decision that
    leaves a choice; a policy without any has nothing left to adapt."""
    warm_up: Share = 0.0
    """Share of the run, at its beginning, that learns the family's base task without inner steps;
    not needed with training.start."""

    @field_validator("family")
    @classmethod
    def _make_absolute(cls, family: str) -> str:
        """Lets a run be resumed from elsewhere."""
        return str(Path(family).absolute()) if family.endswith((".yaml", ".yml")) else family


class ResourcesSection(Section):
    """Where it runs."""

    num_runners: WholeNumber = 2
    """Sampling processes; 0 samples in the driver."""
    num_learners: Annotated[int, Field(ge=0, le=16)] = 0
    """Learner processes; 0 learns in the driver."""


class EvaluationSection(Section):
    """How progress is measured while training."""

    every: WholeNumber = 25
    """Iterations between two evaluations; 0 for none but the last."""
    jobsets: Count = 200
    """Validation jobsets, which training never sees."""


class CheckpointSection(Section):
    """What a run can be resumed from."""

    every: WholeNumber = 25
    """Iterations between two checkpoints; 0 for none but the last."""
    keep: Count = 2
    """Newest checkpoints that are kept."""


class TrackingSection(Section):
    """Where MLflow records the run."""

    enabled: bool = True
    """Whether runs are recorded in MLflow."""
    uri: str | None = None
    """MLflow's address; unset: MLFLOW_TRACKING_URI, else a local store beside the runs."""
    experiment: str = "metasched"
    """Name of the MLflow experiment."""
    model: Annotated[str, Field(pattern=r"^\w[\w .-]{0,199}$")] | None = None
    """Name in MLflow's registry under which the policy of a finished run becomes a new version;
    unset: it is a model of its run alone."""

    @field_validator("uri")
    @classmethod
    def _refuse_secrets(cls, uri: str | None) -> str | None:
        """Keeps them out of config.yaml."""
        if uri is not None and holds_secret(uri):
            raise PydanticCustomError(
                "secret",
                "an address must hold no password, because it is written to the run's folder; "
                "set MLFLOW_TRACKING_URI in the environment instead, or MLFLOW_TRACKING_USERNAME "
                "and MLFLOW_TRACKING_PASSWORD",
            )
        return uri


class ExperimentConfig(Section):
    """Everything that a training run depends on."""

    name: str = "deeprm"
    """Name of the run's kind; the first part of its folder's name."""
    seed: WholeNumber = 0
    """Seed of every random number of the run."""
    runs: Path = Path("runs")
    """Folder that holds the runs."""
    task: TaskSection = TaskSection()
    training: TrainingSection = TrainingSection()
    meta: MetaSection | None = None
    """Settings of the algorithm maml; null with any other."""
    resources: ResourcesSection = ResourcesSection()
    evaluation: EvaluationSection = EvaluationSection()
    checkpoint: CheckpointSection = CheckpointSection()
    tracking: TrackingSection = TrackingSection()

    @model_validator(mode="before")
    @classmethod
    def _give_maml_its_defaults(cls, data: Any) -> Any:
        """An algorithm maml without settings of its own has the default ones."""
        if isinstance(data, Mapping) and data.get("meta") is None:
            training = data.get("training", {})
            if isinstance(training, Mapping):
                algorithm = training.get("algorithm")
            else:
                algorithm = getattr(training, "algorithm", None)
            if algorithm == "maml":
                return {**data, "meta": {}}
        return data

    @model_validator(mode="after")
    def _refuse_meta_without_maml(self) -> Self:
        if self.meta is not None and self.training.algorithm != "maml":
            raise PydanticCustomError(
                "meta_without_maml",
                "the section meta belongs to the algorithm maml, but training.algorithm is "
                "{algorithm}; leave it out, or set the algorithm",
                {"algorithm": self.training.algorithm},
            )
        return self

    def to_dict(self) -> dict[str, Any]:
        """The whole config as plain data, for YAML and for MLflow."""
        return self.model_dump(mode="json")
