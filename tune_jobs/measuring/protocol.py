"""What policies are compared on, and how."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from cluster_env.core.errors import InputError
from cluster_env.core.jobs import JobSet
from cluster_env.core.registry import unknown
from cluster_env.core.seeding import Split
from cluster_env.task import Task
from cluster_env.workloads import RecordedWorkload, num_disjoint
from tune_jobs.measuring.wording import jobs_of
from tune_jobs.tables.frames import Value

DEFAULT_JOBSETS = 1000

UNSEEN = "unseen"
"""The protocol that is usual: jobsets that nobody was trained or tuned on."""

NUM_TUNING_JOBSETS = 200
"""Validation jobsets that the number of a heuristic is tuned on, at each place of the axis."""


@dataclass(frozen=True)
class EvaluationProtocol:
    """What policies are compared on, and how: the same for all of them.

    Attributes:
        task: world and jobs; its seed is that of the jobsets and of the policies' random numbers.
        metric: name of the metric that decides who is best; by default the world's headline.
        num_jobsets: unseen jobsets, at each place of the axis.
        num_episodes: episodes of each jobset.
        warmup: steps at the beginning and at the end of the arrival window whose jobs do not count:
            what is measured is then a world in steady operation, and no longer how it fills and
            empties. Heuristics are tuned on the same.
        num_guard_jobsets: validation jobsets on which the guard decides between a learned policy
            and the best heuristic; with 0 nothing is guarded. See `tune_jobs.measuring.guarding`.
        all_before: whether numbers are tuned, and guards decide, on all jobs of a log before the
            held-out ones, and not only on those of its validation part.
        limits: by what share a guarded policy may be worse than the guard's reference, by metric;
            by default `WorldSpec.side_metrics` of the world.
        cap: whether a value that the task cannot have is replaced by the largest that it can;
            else it is an error.
        named: name of jobsets of the world that are compared on in place of unseen ones
            (`Tools.protocols`); empty for unseen ones.
        asked: the value of the axis that `at` was asked for; the task's own if unset.
    """

    task: Task
    metric: str = ""
    num_jobsets: int = DEFAULT_JOBSETS
    num_episodes: int = 1
    warmup: int = 0
    num_guard_jobsets: int = 0
    all_before: bool = False
    limits: Mapping[str, float] | None = None
    cap: bool = False
    named: str = ""
    asked: float | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "metric", self.metric or self.task.spec.headline)

    def on(self, names: Sequence[str]) -> "list[EvaluationProtocol]":
        """The protocol on each of these jobsets: `UNSEEN`, or named ones, which have no warm-up.

        Raises:
            InputError: if the world knows no jobsets of a name.
        """
        known = self.task.spec.tools.protocols
        for name in names:
            if name not in (UNSEEN, *known):
                raise unknown("protocol", name, (UNSEEN, *known))
        return [
            self if name == UNSEEN else replace(self, named=name, warmup=0)
            for name in dict.fromkeys(names)
        ]

    def values(self, asked: Sequence[float] = ()) -> list[float]:
        """Values of the axis to compare at: those asked for, else the task's, or what is measured.

        Raises:
            InputError: if values are asked for, but the task has no such setting.
        """
        if not asked:
            return [self.task.position]
        if not self.task.has_axis:
            shown = self.task.spec.presentation
            raise InputError(
                f"the {shown.axis.name if shown.axis else 'value'} of "
                f"{shown.words(self.task)} cannot be changed, because these jobs are fixed; "
                "leave out --at, or compare on synthetic jobs"
            )
        return list(asked)

    def at(self, value: float) -> "EvaluationProtocol":
        """The protocol at a place of the axis, with jobs that do not vary from jobset to jobset.

        Raises:
            InputError: if the task cannot have the value.
        """
        task = self.task.at(value, self.cap) if self.task.has_axis else self.task.at_point()
        return replace(self, task=task, asked=value)

    @property
    def value(self) -> float:
        """The value of the axis that was asked for, else the task's; NaN without an axis."""
        return self.task.position if self.asked is None else self.asked

    @property
    def side_metrics(self) -> Mapping[str, float]:
        """By what share a guarded policy may be worse than the guard's reference, by metric."""
        return self.task.spec.side_metrics if self.limits is None else self.limits

    def held_out(self) -> list[JobSet]:
        """The jobsets that results are means over, which nobody has seen unless they are named."""
        if self.named:
            return list(self.task.spec.tools.protocols[self.named].jobsets(self.task))
        return self.task.jobsets(Split.HELD_OUT, range(self.num_jobsets))

    def tuning_jobsets(self) -> list[JobSet]:
        """The validation jobsets that numbers are tuned on."""
        return self._decided_on.jobsets(Split.VALIDATION, range(NUM_TUNING_JOBSETS))

    def guard_jobsets(self) -> list[JobSet]:
        """Further validation jobsets, on which the guard decides."""
        last = NUM_TUNING_JOBSETS + self.num_guard_jobsets
        return self._decided_on.jobsets(Split.VALIDATION, range(NUM_TUNING_JOBSETS, last))

    @property
    def num_disjoint(self) -> int | None:
        """How many jobsets of a guard fit side by side into a log; none where all are drawn."""
        return num_disjoint(self._decided_on.workload, Split.VALIDATION)

    @property
    def num_disjoint_held_out(self) -> int | None:
        """Likewise of the held-out jobsets."""
        return num_disjoint(self.task.workload, Split.HELD_OUT)

    @property
    def _decided_on(self) -> Task:
        """The task, of a log if need be with all jobs before the held-out ones as its own."""
        workload = self.task.workload
        if not self.all_before or not isinstance(workload, RecordedWorkload):
            return self.task
        return replace(self.task, workload=workload.before_held_out())

    def columns(self) -> dict[str, Value]:
        """The head of a table's rows: on what their numbers rest."""
        axis = self.task.spec.presentation.axis
        place: dict[str, Value] = {}
        if axis is not None:
            place = {axis.name: self.value, f"{axis.name}_used": self.task.position}
        columns, jobs, num_jobsets = self.task.columns(), jobs_of(self.task), self.num_jobsets
        if self.named:
            jobsets, known = self.held_out(), self.task.spec.tools.protocols[self.named]
            columns, num_jobsets = {**columns, **known.columns(jobsets)}, len(jobsets)
            jobs = f"{self.task.spec.presentation.words(self.task)}, {known.about}"
        return {
            **place,
            **columns,
            "protocol": self.named or UNSEEN,
            "warmup": self.warmup,
            "metric": self.metric,
            "jobsets": num_jobsets,
            "episodes": self.num_episodes,
            "seed": self.task.seed,
            "world": self.task.world.kind,
            "jobs": jobs,
        }
