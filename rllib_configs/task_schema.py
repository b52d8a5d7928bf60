"""The part of the config that says what is learned: jobs, cluster, rules and objective."""

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

from cluster_env.core.errors import InputError
from cluster_env.core.jobs import JobSet
from cluster_env.core.seeding import Split
from cluster_env.core.task import Task
from cluster_env.core.world import World
from cluster_env.objectives import Objective, get_objective, mixture
from cluster_env.workloads import MeasuredWorkload
from cluster_env.worlds.deeprm import DeepRM
from cluster_env.worlds.deeprm.cluster import Cluster
from cluster_env.worlds.deeprm.rules import RULES
from cluster_env.worlds.deeprm.trace import TraceWorkload
from cluster_env.worlds.deeprm.workloads import BimodalWorkload, Ranges

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
    """The cluster; see `cluster_env.worlds.deeprm.cluster.Cluster`."""

    capacity: tuple[Count, ...] = (10, 10)
    """Units of each resource."""
    horizon: Count = 20
    """Time steps that the scheduler looks and books ahead."""
    num_slots: Count = 10
    """Waiting jobs that the policy sees."""
    backlog_view: WholeNumber = 60
    """Jobs beyond the slots that an observation can show."""
    num_classes: Count = 1
    """Classes of jobs (queues, tenants) that the policy can tell apart."""

    def build(self) -> Cluster:
        """Builds what the section describes."""
        return Cluster(**self.model_dump())


MADE_UP = (
    *("load", "small_share", "small_duration", "large_duration", "demands"),
    *("class_shares", "dominant_shares", "burstiness", "vary"),
)
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
    window_loads: tuple[Positive, ...] = ()
    """Highest load at each window, in place of the highest of `load`: above 100 % a long window is
    only a longer queue."""
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
    class_shares: tuple[Share, ...] = ()
    """Probability of each class of jobs; by default all of the cluster's are equally likely."""
    dominant_shares: tuple[Share, ...] = ()
    """Probability of each resource of being a job's dominant one; by default equal."""
    burstiness: Annotated[float, Field(ge=0, lt=1)] = 0.0
    """From 0 (arrivals are independent) to below 1 (they come in bursts); the load stays."""
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
        vary = Ranges(**self.vary.model_dump())
        return BimodalWorkload(cluster=cluster, first_step=first_step, **options, vary=vary)


class TaskSection(Section):
    """What is learned: jobs, cluster, rules and objective."""

    rules: Literal["paper", "released"] = "paper"
    """DeepRM's paper, or the rules of its released code."""
    objective: str | dict[str, WholeNumber | float] = "slowdown"
    """Name of an objective (`cluster_env.objectives`), or weights of several by name; a mixture is
    validated and compared by what an episode costs, minus its return. Where jobs have classes,
    class_slowdown(0.1, 1, 10) is the slowdown with a weight for each class."""
    max_time: Count = 1000
    """Clock at which an episode is truncated, in time steps."""
    cluster: ClusterSection = ClusterSection()
    workload: WorkloadSection = WorkloadSection()

    def build_world(self) -> World:
        """What the jobs run in.

        Raises:
            InputError: if it is impossible.
        """
        return DeepRM(self.cluster.build(), self.rules, self.max_time)

    def build(self, name: str = "task", seed: int = 0) -> Task:
        """The task that the section describes.

        Args:
            name: what tables call it.
            seed: of its jobsets, at least 0.

        Raises:
            InputError: if it is impossible, or its trace is missing or broken.
        """
        return Task(self.build_world(), self.build_workload(), self.build_objective(), name, seed)

    def build_objective(self) -> Objective:
        """The objective by name, or the weighted sum of several.

        Raises:
            InputError: if it is unknown, its weights cannot be used, or a class of jobs has none.
        """
        if isinstance(self.objective, str):
            objective = get_objective(self.objective)
        else:
            objective = mixture(self.objective)
        num = self.cluster.num_classes
        one_of_each = JobSet.of([0] * num, [1] * num, [[1]] * num, 1, job_class=range(num))
        objective.job_cost(one_of_each)
        return objective

    def build_workload(self) -> MeasuredWorkload:
        """The workload; under the released code's rules nothing arrives at step 0.

        Raises:
            InputError: if it is impossible, its trace is missing or broken, or its jobs may
                arrive after `max_time`.
        """
        first_step = RULES.get(self.rules).first_arrival
        workload = self.workload.build(self.cluster.build(), first_step)
        window = self.workload.window
        if isinstance(workload, BimodalWorkload):
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
        shortest = min(vary.window)
        loads = vary.window_loads and (vary.window_loads[vary.window.index(shortest)],)
        only = vary.model_copy(
            update={"window": (shortest,), "window_weights": (), "window_loads": loads}
        )
        workload = self.workload.model_copy(update={"vary": only})
        return self.model_copy(update={"workload": workload})

    def build_part(self, split: Split) -> MeasuredWorkload:
        """The workload that the jobsets of a split come from, which knows its load."""
        workload = self.build_workload()
        return workload.part(split) if isinstance(workload, TraceWorkload) else workload
