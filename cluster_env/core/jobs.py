"""Jobs, as a struct of arrays."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cluster_env.core.errors import InputError, shortened
from cluster_env.core.registry import unknown

LARGEST = 2**31 - 1
"""The largest time or demand of a job, and processors of a machine: columns are int32."""

_NO_CLASSES = np.empty(0, np.uint8)
_MOST_CLASSES = 256
_MOST_SHOWN_CLASSES = 16


def no_classes() -> NDArray[np.uint8]:
    """What stands for the classes of jobs until it is known how many jobs there are."""
    return _NO_CLASSES


def _whole(what: str, numbers: ArrayLike) -> NDArray[np.int64]:
    """Whole numbers as an array.

    Raises:
        InputError: if they are something else, or too large for int32.
    """
    try:
        given = np.asarray(numbers, np.float64)
    except (TypeError, ValueError, OverflowError):
        given = np.array([np.nan])
    if not (np.abs(given) <= LARGEST).all() or (given % 1).any():
        raise InputError(
            f"{what} is a whole number below 2^31, but {shortened(repr(numbers))} was given"
        )
    return given.astype(np.int64)


def classes_or_zeros(job_class: NDArray[np.uint8], num_jobs: int) -> NDArray[np.uint8]:
    """The classes, or if they were not given (`no_classes`), class 0 for each job."""
    return np.zeros(num_jobs, np.uint8) if job_class is _NO_CLASSES else job_class


class Attributes(Mapping[str, NDArray[Any]]):
    """Further columns of jobs by name, such as ``estimate`` or ``weight``; they cannot be changed.

    They hold finite numbers, one value or one row for each job.

    Raises:
        InputError: if a column has another number of jobs, or something else than finite numbers.
    """

    def __init__(self, columns: Mapping[str, ArrayLike], num_jobs: int) -> None:
        self._num_jobs = num_jobs
        self._columns: dict[str, NDArray[Any]] = {}
        for name, column in columns.items():
            array = np.asarray(column).view()
            if array.ndim not in (1, 2) or array.shape[0] != num_jobs:
                raise InputError(
                    f"the attribute '{name}' needs one value or one row for each of {num_jobs} "
                    f"jobs, but its shape is {array.shape}"
                )
            if array.dtype.kind not in "biuf" or not np.isfinite(array).all():
                raise InputError(
                    f"the attribute '{name}' needs finite numbers, but holds others, or something "
                    f"else of the type {array.dtype}; fill in what is not known"
                )
            array.flags.writeable = False
            self._columns[name] = array

    def __getitem__(self, name: str) -> NDArray[Any]:
        if name not in self._columns:
            raise unknown("attribute of jobs", name, self._columns)
        return self._columns[name]

    def get(self, name: str, default: Any = None) -> Any:
        """The column of that name, or the default."""
        return self._columns.get(name, default)

    def __contains__(self, name: object) -> bool:
        return name in self._columns

    def __iter__(self) -> Iterator[str]:
        return iter(self._columns)

    def __len__(self) -> int:
        return len(self._columns)

    def __reduce__(self) -> tuple[Any, ...]:
        return Attributes, (self._columns, self._num_jobs)  # views come back read-only, too

    def select(self, rows: slice | NDArray[Any]) -> "Attributes":
        """The same columns of some jobs, by a slice, indices or a mask."""
        chosen = {name: column[rows] for name, column in self._columns.items()}
        return Attributes(chosen, int(np.arange(self._num_jobs)[rows].size))


NO_ATTRIBUTES: Mapping[str, NDArray[Any]] = Attributes({}, 0)


@dataclass(frozen=True, eq=False)
class JobSet:
    """One fixed sequence of jobs; it exists without a clock, so that it can be replayed.

    Its arrays cannot be written, so that every policy meets the same jobs.

    Attributes:
        arrival: int32 ``(num_jobs,)``, time step of arrival, never decreasing.
        duration: int32 ``(num_jobs,)``, time steps of execution, at least 1.
        demand: int32 ``(num_jobs, num_resources)``, units of each resource that a job holds from
            its start to its finish; at least one of them positive.
        window: number of time steps in which jobs may arrive: arrivals lie in ``[0, window)``. If
            it is not given, or 0, it ends just after the last arrival, and has at least 1 step.
        job_class: uint8 ``(num_jobs,)``, the class of each job (a queue, a tenant); 0 if not given.
            A policy sees it where the cluster has more than one class.
        attributes: further columns by name, such as ``estimate`` or ``weight``, each with one value
            or one row for each job; see `Attributes`, which any mapping is turned into.
    """

    arrival: NDArray[np.int32]
    duration: NDArray[np.int32]
    demand: NDArray[np.int32]
    window: int = 0
    job_class: NDArray[np.uint8] = field(default_factory=no_classes)
    attributes: Mapping[str, NDArray[Any]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        given = classes_or_zeros(self.job_class, self.num_jobs)
        object.__setattr__(self, "job_class", given)
        object.__setattr__(self, "attributes", Attributes(self.attributes, self.num_jobs))
        for name in ("arrival", "duration", "demand", "job_class"):
            own = getattr(self, name).view()  # whoever made the array may still write it
            own.flags.writeable = False
            object.__setattr__(self, name, own)
        if not self.window:
            object.__setattr__(self, "window", int(self.arrival.max(initial=0)) + 1)
        if self.demand.ndim != 2 or self.demand.shape[1] == 0:
            raise InputError(
                "a jobset needs demands of shape (number of jobs, number of resources)"
            )
        if not self.arrival.shape == self.duration.shape == self.demand.shape[:1]:
            raise InputError(
                "a jobset needs one arrival, one duration and one row of demands per job"
            )
        if given.shape != self.arrival.shape or given.dtype != np.uint8:
            raise InputError(
                f"a jobset needs one class per job, of the type uint8, but {given.shape} of "
                f"{given.dtype} were given for {self.num_jobs} jobs"
            )
        if self.num_jobs == 0:
            return
        if np.any(np.diff(self.arrival) < 0) or self.arrival[0] < 0:
            raise InputError("jobs must be sorted by arrival, and arrivals must be 0 or later")
        if self.arrival[-1] >= self.window:
            raise InputError(
                f"a job arrives at step {self.arrival[-1]}, after the arrival window of "
                f"{self.window} steps"
            )
        if np.any(self.duration < 1):
            raise InputError("every job must last at least 1 time step")
        if np.any(self.demand < 0) or np.any(self.demand.max(axis=1) < 1):
            raise InputError(
                "every job must ask for at least 1 unit of a resource, and never for less than 0"
            )

    def __reduce__(self) -> tuple[Any, ...]:
        # Built anew: views come back read-only.
        return type(self), tuple(getattr(self, entry.name) for entry in fields(self))

    @classmethod
    def of(
        cls,
        arrival: ArrayLike,
        duration: ArrayLike,
        demand: ArrayLike,
        window: int | None = None,
        job_class: ArrayLike | None = None,
        attributes: Mapping[str, ArrayLike] = NO_ATTRIBUTES,
    ) -> "JobSet":
        """Builds a jobset from anything that numpy can read as whole numbers.

        Raises:
            InputError: if something else is given, or no such jobs can be.
        """
        classes = no_classes() if job_class is None else _whole("a class", job_class)
        if np.any((classes < 0) | (classes >= _MOST_CLASSES)):
            raise InputError(
                f"a class must lie in 0..{_MOST_CLASSES - 1}, but {classes.min()} to "
                f"{classes.max()} were given"
            )
        return cls(
            _whole("an arrival", arrival).astype(np.int32),
            _whole("a duration", duration).astype(np.int32),
            np.atleast_2d(_whole("a demand", demand).astype(np.int32)),
            int(window or 0),
            no_classes() if job_class is None else classes.astype(np.uint8),
            Attributes(attributes, np.asarray(arrival).size),
        )

    def select(self, rows: slice | NDArray[Any], *, window: int | None = None) -> "JobSet":
        """Some of the jobs, with all that is known of them; by default in the same window.

        The rows are a slice, indices in rising order, or a mask.
        """
        return JobSet(
            self.arrival[rows],
            self.duration[rows],
            self.demand[rows],
            self.window if window is None else window,
            self.job_class[rows],
            Attributes(self.attributes, self.num_jobs).select(rows),
        )

    @property
    def num_jobs(self) -> int:
        """Number of jobs."""
        return int(self.arrival.size)

    @property
    def counted(self) -> NDArray[np.bool_]:
        """Which jobs cost anything and are measured, bool ``(num_jobs,)``.

        All of them, but for those of a warm-up, which the attribute of this name marks with 0. The
        makespan and the use of the machine, which belong to no single job, count all.
        """
        marked = self.attributes.get("counted")
        return np.ones(self.num_jobs, np.bool_) if marked is None else np.asarray(marked) > 0

    def counting(self, warmup: int) -> "JobSet":
        """The same jobs, of which only those count that arrive in ``[warmup, window - warmup)``.

        Those that did not count before do not count now, see `counted`.
        """
        if not warmup:
            return self
        inside = (self.arrival >= warmup) & (self.arrival < self.window - warmup)
        counted = (inside & self.counted).astype(np.int8)
        attributes = Attributes({**self.attributes, "counted": counted}, self.num_jobs)
        return replace(self, attributes=attributes)

    @property
    def num_resources(self) -> int:
        """Number of resources that a job asks for."""
        return int(self.demand.shape[1])

    @property
    def work(self) -> NDArray[np.int64]:
        """Units times steps that the jobs hold, int64 ``(num_resources,)``."""
        held: NDArray[np.int64] = self.duration.astype(np.int64) @ self.demand.astype(np.int64)
        return held


def require_num_classes(num_classes: int) -> None:
    """Makes sure that a world can show so many classes.

    Raises:
        InputError: if they are not 1 to 16.
    """
    if not 1 <= num_classes <= _MOST_SHOWN_CLASSES:
        raise InputError(
            f"num_classes must lie in 1..{_MOST_SHOWN_CLASSES}, but {num_classes} was given"
        )


def require_classes(jobset: JobSet, num_classes: int) -> None:
    """Makes sure that a world that shows so many classes has those of all jobs.

    Raises:
        InputError: if a job is of another class.
    """
    if jobset.job_class.max(initial=0) >= num_classes:
        job = int(np.argmax(jobset.job_class >= num_classes))
        raise InputError(
            f"job {job} has class {jobset.job_class[job]}, but the cluster has num_classes="
            f"{num_classes}, so that classes lie in 0..{num_classes - 1}"
        )
