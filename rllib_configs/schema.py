"""The typed experiment config: what a preset, a YAML file and ``--set`` may say."""

from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from cluster_env.core.cluster import Cluster
from cluster_env.objectives import Objective, get_objective, mixture
from cluster_env.simulators.rules import RULES, TimelineRules
from cluster_env.workloads import BimodalWorkload

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


class WorkloadSection(Section):
    """The jobs; see `cluster_env.workloads.bimodal.BimodalWorkload`."""

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

    def build(self, cluster: Cluster, first_step: int) -> BimodalWorkload:
        """Builds what the section describes, on a cluster."""
        return BimodalWorkload(cluster=cluster, first_step=first_step, **self.model_dump())


class TaskSection(Section):
    """What is learned: jobs, cluster, rules and objective."""

    rules: Literal["paper", "released"] = "paper"
    """DeepRM's paper, or the rules of its released code."""
    objective: str | dict[str, WholeNumber | float] = "slowdown"
    """Name of an objective, or weights of several by name."""
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

    def build_workload(self) -> BimodalWorkload:
        """The workload; under the released code's rules nothing arrives at step 0."""
        first_step = 1 if self.rules == "released" else 0
        return self.workload.build(self.cluster.build(), first_step)


class TrainingSection(Section):
    """How it is learned; the defaults are DeepRM's (section 4.1)."""

    algorithm: Literal["reinforce"] = "reinforce"
    """The learning algorithm."""
    iterations: Count = 1000
    """Parameter updates of a whole run."""
    jobsets: Count = 100
    """Jobsets of an iteration."""
    fresh_jobsets: bool = False
    """Whether each iteration draws new jobsets instead of repeating the same ones."""
    episodes_per_jobset: Annotated[int, Field(ge=2)] = 20
    """Episodes of each jobset in an iteration, over which the baseline averages."""
    jobsets_per_unit: Count = 10
    """Jobsets that are simulated side by side; results depend on it in their last digits only."""
    gamma: Share = 1.0
    """Discount of a decision."""
    lr: Positive = 1e-3
    """Learning rate of RMSProp."""
    rmsprop_decay: Share = 0.9
    """Decay of RMSProp's mean square."""
    rmsprop_eps: Positive = 1e-9
    """Added to the mean square under RMSProp's root."""
    hidden: Count = 20
    """Units of the hidden layer."""
    since_column: bool = False
    """Whether the image shows the time since the last arrival, as in the released code."""


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
