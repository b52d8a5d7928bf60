"""The typed experiment config: what a preset, a YAML file and ``--set`` may say."""

from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    SerializerFunctionWrapHandler,
    field_validator,
    model_serializer,
    model_validator,
)
from pydantic_core import PydanticCustomError

from cluster_env.core.cluster import Cluster
from cluster_env.core.errors import InputError
from cluster_env.core.seeding import Split
from cluster_env.objectives import Objective, get_objective, mixture
from cluster_env.simulators.rules import RULES, TimelineRules
from cluster_env.workloads import (
    BimodalWorkload,
    MeasuredWorkload,
    TraceWorkload,
    VariedWorkload,
)

Share = Annotated[float, Field(ge=0, le=1)]
Count = Annotated[int, Field(ge=1)]
WholeNumber = Annotated[int, Field(ge=0)]
Positive = Annotated[float, Field(gt=0)]


class Section(BaseModel):
    """A part of the config: typed, immutable, and strict about its keys."""

    model_config = ConfigDict(
        extra="forbid", frozen=True, use_attribute_docstrings=True, allow_inf_nan=False
    )


class ClusterSection(Section):
    """The cluster; see `cluster_env.core.cluster.Cluster`."""

    capacity: tuple[Count, ...] = (10, 10)
    """Units of each resource."""
    horizon: Count = 20
    """Time steps that the scheduler looks and books ahead."""
    num_slots: Count = 10
    """Waiting jobs that the policy sees."""
    backlog_view: WholeNumber = 60
    """Jobs beyond the slots that an observation can show."""

    def build(self) -> Cluster:
        """Builds what the section describes."""
        return Cluster(self.capacity, self.horizon, self.num_slots, self.backlog_view)


MADE_UP = ("load", "small_share", "small_duration", "large_duration", "demands", "vary")
"""Settings of the workload that mean nothing beside a trace."""


class VarySection(Section):
    """What differs from jobset to jobset; see `cluster_env.workloads.VariedWorkload`."""

    load: tuple[Positive, Positive] | None = None
    """Lowest and highest load, drawn uniformly; one that a mix of jobs cannot reach becomes the
    highest that it can."""
    window: tuple[Count, ...] = ()
    """Arrival windows to choose from, in time steps."""
    window_weights: tuple[Positive, ...] = ()
    """How often each window is chosen, relative to the others; by default all equally often."""
    small_share: tuple[Share, Share] | None = None
    """Lowest and highest share of short jobs, drawn uniformly."""

    @property
    def anything(self) -> bool:
        """Whether anything varies."""
        return self != VarySection()


class WorkloadSection(Section):
    """The jobs; see `cluster_env.workloads`, `BimodalWorkload` and `TraceWorkload`."""

    trace: Path | None = None
    """CSV file of your own jobs instead of made-up ones; load, shares, durations and demands are
    then not used. A relative path counts from where the config is made."""
    load: Positive = 0.7
    """Mean demand over capacity; 0.7 is 70 %."""
    window: Count = 50
    """Time steps in which jobs may arrive."""
    small_share: Share = 0.8
    """Probability that a job is short."""
    small_duration: tuple[Count, Count] = (1, 3)
    """Shortest and longest duration of a short job."""
    large_duration: tuple[Count, Count] = (10, 15)
    """Shortest and longest duration of a long job."""
    demands: Literal["released", "paper"] = "released"
    """Demands of the released code (loads up to 184 %) or of the paper's text (up to 92 %)."""
    vary: VarySection = VarySection()
    """Ranges for training and validation; comparisons use load, window and small_share above."""

    @field_validator("trace")
    @classmethod
    def _make_absolute(cls, path: Path | None) -> Path | None:
        """Lets a run be resumed from elsewhere."""
        return None if path is None else path.expanduser().absolute()

    @model_validator(mode="after")
    def _refuse_what_is_not_used(self) -> Self:
        given = [name for name in MADE_UP if name in self.model_fields_set]
        if self.trace is not None and given:
            raise PydanticCustomError(
                "trace_and_made_up_jobs",
                "a trace brings jobs of its own, so leave out {names}, or set trace to null",
                {"names": ", ".join(given)},
            )
        return self

    @model_serializer(mode="wrap")
    def _leave_out_what_is_not_used(self, write: SerializerFunctionWrapHandler) -> dict[str, Any]:
        unused = () if self.trace is None else MADE_UP
        return {name: value for name, value in write(self).items() if name not in unused}

    @property
    def trace_name(self) -> str:
        """Name of the trace's file; empty without one."""
        return "" if self.trace is None else self.trace.name

    def build(self, cluster: Cluster, first_step: int) -> MeasuredWorkload:
        """Builds what the section describes, on a cluster."""
        if self.trace is not None:
            return TraceWorkload(self.trace, cluster, self.window, first_step)
        options = self.model_dump(exclude={"trace", "vary"})
        point = BimodalWorkload(cluster=cluster, first_step=first_step, **options)
        if not self.vary.anything:
            return point
        vary = self.vary
        return VariedWorkload(point, vary.load, vary.window, vary.window_weights, vary.small_share)


class TaskSection(Section):
    """What is learned: jobs, cluster, rules and objective."""

    rules: Literal["paper", "released"] = "paper"
    """DeepRM's paper, or the rules of its released code."""
    objective: str | dict[str, WholeNumber | float] = "slowdown"
    """Name of an objective (`cluster_env.objectives`), or weights of several by name; a mixture is
    validated and compared by what an episode costs, minus its return."""
    max_time: Count = 1000
    """Clock at which an episode is truncated, in time steps."""
    cluster: ClusterSection = ClusterSection()
    workload: WorkloadSection = WorkloadSection()

    def build_rules(self) -> TimelineRules:
        """The rules by name."""
        return RULES.get(self.rules)

    def build_objective(self) -> Objective:
        """The objective by name, or the weighted sum of several."""
        if isinstance(self.objective, str):
            return get_objective(self.objective)
        return mixture(self.objective)

    def build_workload(self) -> MeasuredWorkload:
        """The workload; under the released code's rules nothing arrives at step 0.

        Raises:
            InputError: if it is impossible, its trace is missing or broken, or its jobs may
                arrive after `max_time`.
        """
        first_step = 1 if self.rules == "released" else 0
        workload = self.workload.build(self.cluster.build(), first_step)
        window = self.workload.window
        if isinstance(workload, VariedWorkload):
            window = workload.longest_window
        if self.max_time < window:
            raise InputError(
                f"task.max_time is {self.max_time}, but jobs may arrive for {window} steps; give "
                f"more than that, so that the last jobs can finish"
            )
        return workload

    def at_point(self) -> Self:
        """The task with jobs that do not vary: `load`, `window` and `small_share` as they are."""
        if not self.workload.vary.anything:
            return self
        workload = self.workload.model_copy(update={"vary": VarySection()})
        return self.model_copy(update={"workload": workload})

    def with_short_windows(self) -> Self:
        """The task with only the shortest of the windows that vary."""
        vary = self.workload.vary
        if not vary.window:
            return self
        only = vary.model_copy(update={"window": (min(vary.window),), "window_weights": ()})
        workload = self.workload.model_copy(update={"vary": only})
        return self.model_copy(update={"workload": workload})

    def build_part(self, split: Split) -> MeasuredWorkload:
        """The workload that the jobsets of a split come from, which knows its load."""
        workload = self.build_workload()
        return workload.part(split) if isinstance(workload, TraceWorkload) else workload


class TrainingSection(Section):
    """How it is learned; the defaults are DeepRM's (section 4.1)."""

    algorithm: Literal["reinforce", "ppo", "rllib_ppo"] = "reinforce"
    """The learning algorithm; rllib_ppo is RLlib's own PPO with its own runners."""
    network: Literal["deeprm_mlp", "slot_scorer", "rllib_mlp"] = "deeprm_mlp"
    """DeepRM's network on the image, or a scorer of slots of any number, under a mask; rllib_ppo
    takes rllib_mlp, and nothing else does."""
    start: Path | None = None
    """Run whose weights this one begins with, of the same network; unset: drawn from the seed. A
    relative path counts from where the config is made."""
    iterations: Count = 1000
    """Parameter updates of a whole run."""
    jobsets: Count = 100
    """Jobsets of an iteration."""
    fresh_jobsets: bool = False
    """Whether each iteration draws new jobsets instead of repeating the same ones."""
    short_first: Share = 0.0
    """Share of the run, at its beginning, that keeps to the shortest of the windows that vary: to
    hold back long jobs pays soonest there, and is learned there."""
    episodes_per_jobset: Annotated[int, Field(ge=2)] = 20
    """Episodes of each jobset in an iteration, over which the baseline averages."""
    jobsets_per_unit: Count = 10
    """Jobsets that are simulated side by side; results depend on it in their last digits only."""
    gamma: Share = 1.0
    """Discount of a decision, with ppo of a time step."""
    lr: Positive = 1e-3
    """Learning rate of RMSProp."""
    rmsprop_decay: Share = 0.9
    """Decay of RMSProp's mean square."""
    rmsprop_eps: Positive = 1e-9
    """Added to the mean square under RMSProp's root."""
    hidden: Count = 20
    """Units of each hidden layer."""
    since_column: bool = False
    """Whether the image shows the time since the last arrival, as in the released code."""

    epochs: Count = 3
    """PPO: passes over the decisions of an iteration."""
    minibatches: Count = 4
    """PPO: updates of a pass."""
    clip: Positive = 0.2
    """PPO: how far the ratio of new to old probability counts."""
    entropy: Annotated[float, Field(ge=0)] = 0.02
    """PPO: bonus for entropy at the start; it falls to 0 in the course of the run."""
    tame: Share = 0.0
    """PPO: share of an iteration's jobsets, those whose returns vary most, that are scaled down to
    the others; for loads and windows that differ."""
    critic: bool = False
    """PPO: whether the slot scorer learns a value of states too, which long windows need."""
    lr_end_share: Share = 0.05
    """PPO: share of the learning rate that is left at the end of the run."""

    decisions: Count = 4000
    """RLlib's PPO: least number of decisions of an iteration, on new jobsets always; the settings
    of jobsets and episodes are not used."""
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
        if (self.algorithm == "rllib_ppo") != (self.network == "rllib_mlp"):
            raise PydanticCustomError(
                "algorithm_and_network",
                "the algorithm rllib_ppo and the network rllib_mlp go together, but {algorithm} "
                "and {network} were given; set both, or take the preset rllib-ppo",
                {"algorithm": self.algorithm, "network": self.network},
            )
        if self.short_first and not self.fresh_jobsets:
            raise PydanticCustomError(
                "short_first",
                "short_first changes the jobsets in the course of the run, so it needs "
                "fresh_jobsets, which is off",
            )
        if self.critic and (self.algorithm, self.network) != ("ppo", "slot_scorer"):
            raise PydanticCustomError(
                "critic",
                "a critic goes with the algorithm ppo and the network slot_scorer, but "
                "{algorithm} and {network} were given",
                {"algorithm": self.algorithm, "network": self.network},
            )
        return self


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
    resources: ResourcesSection = ResourcesSection()
    evaluation: EvaluationSection = EvaluationSection()
    checkpoint: CheckpointSection = CheckpointSection()
    tracking: TrackingSection = TrackingSection()

    def to_dict(self) -> dict[str, Any]:
        """The whole config as plain data, for YAML and for MLflow."""
        return self.model_dump(mode="json")
