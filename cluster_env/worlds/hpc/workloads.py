"""Where jobs come from: logs of a site's own, generators, and sites that do not exist.

The last are what a policy for any machine is trained on. Nothing of any log is in them. What they
vary is what logs differ in: the machine's size, the law of sizes, how long jobs run, how they
arrive, how much work there is, and how good estimates are.
"""

import math
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cluster_env.core.errors import InputError
from cluster_env.core.jobs import JobSet
from cluster_env.core.registry import Registry
from cluster_env.core.seeding import Split
from cluster_env.core.spec import WorkloadSpec
from cluster_env.sites.description import Site
from cluster_env.sites.recorded_jobs import on_site
from cluster_env.workloads.estimates import get_estimates
from cluster_env.workloads.formats import READ_OPTIONS, read_log
from cluster_env.workloads.log import LogWorkload
from cluster_env.workloads.lublin import JobType, draw_jobs, pass_through_days, types_for
from cluster_env.workloads.recorded import RecordedJobs
from cluster_env.workloads.workload import Workload
from cluster_env.worlds.hpc.partition_jobs import jobs_of_partitions
from cluster_env.worlds.hpc.user_jobs import UsersWorkload
from cluster_env.worlds.hpc.world import HPC

_SAMPLE = 20_000  # jobs that the load of a generator is measured on

SMALLEST, USUAL, LARGEST = 64, 8_192, 163_840
"""Processors: four of five machines have `SMALLEST` to `USUAL`, the others up to `LARGEST`."""

LOAD = (0.5, 1.25)
_LONGEST_S = 7 * 86_400

Jobs = tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]  # arrival, run, size


@dataclass(frozen=True)
class LaterJobs:
    """Jobs that may arrive after an instant, in the order of their arrivals.

    The first one of a jobset is left out, so that the next one keeps its distance from it.
    """

    source: Workload

    def sample(self, rng: np.random.Generator) -> JobSet:
        """Draws them; the same generator state gives the same jobs."""
        return self.source.sample(rng).select(slice(1, None))


@dataclass(frozen=True)
class LublinWorkload:
    """Jobs after Lublin and Feitelson (2003), at a chosen load.

    Attributes:
        jobs: in a jobset.
        load: work that arrives over what the machine can do; times of arrival are stretched to
            have it on average. 0 leaves them as the model has them.
        typed: whether there are interactive and batch jobs, and not one kind of job.
        serial: share of jobs on one processor; below 0, the model's.
        u_first: share of the other jobs that are small; below 0, the model's.
        run_scale: what run times are multiplied by; 1 leaves them as the model has them.
        start_hour: time of day at which a jobset begins; below 0, any.
        estimates: ``exact``, ``gaussian:0.5`` (a normal error of half the run time; ``over`` and
            ``under`` on one side alone), ``uniform:5`` (up to five times the run time) or
            ``tsafrir`` (the few round times that people ask for).
        site: where it has several partitions, each has a stream of jobs
            (`cluster_env.worlds.hpc.partition_jobs`).
    """

    processors: int = 256
    jobs: int = 256
    load: float = 0.9
    typed: bool = False
    serial: float = -1.0
    u_first: float = -1.0
    run_scale: float = 1.0
    start_hour: float = -1.0
    estimates: str = "exact"
    site: Site | None = None

    def __post_init__(self) -> None:
        _check(self.jobs, self.load, self.estimates)
        if max(self.serial, self.u_first) > 1 or not 1e-3 <= self.run_scale <= 1e3:
            raise InputError(
                f"serial and u_first are shares, at most 1, and run_scale lies in 0.001..1000, but "
                f"{self.serial:g}, {self.u_first:g} and {self.run_scale:g} were given"
            )
        if self.processors < 4:
            raise InputError(
                f"this model needs a machine of 4 processors or more, not {self.processors}"
            )

    def after(self, jobs: int) -> LaterJobs:
        """So many jobs that may arrive after an instant, at any time of the day."""
        return LaterJobs(replace(self, jobs=jobs + 1, start_hour=-1.0))

    def sample(self, rng: np.random.Generator) -> JobSet:
        """Draws one jobset; the same generator state gives the same jobset."""
        if self.site is not None and len(self.site.partitions) > 1:
            return jobs_of_partitions(replace(self, site=None), self.site, rng)
        hour = self.start_hour if self.start_hour >= 0 else float(rng.integers(24))
        arrival, run, size, kind = draw_jobs(rng, self.jobs, self._types, hour)
        run = _scaled(run, self.run_scale)
        natural = _natural_load(self.processors, self._types, self.run_scale)
        factor = natural / self.load if self.load else 1.0
        return _jobset(rng, arrival, run, size, factor, self.estimates, kind)

    @property
    def _types(self) -> tuple[JobType, ...]:
        types = types_for(self.processors, self.typed)
        return tuple(_with_shares(kind, self.serial, self.u_first) for kind in types)


@dataclass(frozen=True)
class LognormalWorkload:
    """Run times, sizes and gaps between arrivals with logarithms that are normal.

    Attributes:
        jobs: in a jobset.
        load: work that arrives over what the machine can do, on average; 0.9 is 90 %.
        median_run: seconds, at least 1.
        spread_run: standard deviation of ln(run time).
        median_size: share of the machine, above 0 and at most 1.
        spread_size: standard deviation of ln(processors).
        burstiness: standard deviation of ln(gap); 0 for regular arrivals, 1 nearly for those of
            chance, 3 for bursts.
        correlation: of ln(run time) and ln(processors), -1 to 1.
        daily_cycle: how much more arrives by day than by night: 0 for no difference, 1 for the
            cycle of Lublin and Feitelson's model.
        start_hour: time of day at which a jobset begins, where there is a cycle; below 0, any.
        estimates: see `LublinWorkload`.
    """

    processors: int = 256
    jobs: int = 256
    load: float = 0.9
    median_run: float = 600.0
    spread_run: float = 2.0
    median_size: float = 0.03
    spread_size: float = 1.3
    burstiness: float = 1.5
    correlation: float = 0.2
    daily_cycle: float = 0.0
    start_hour: float = -1.0
    estimates: str = "exact"

    def __post_init__(self) -> None:
        _check(self.jobs, self.load, self.estimates)
        if not self.load:
            raise InputError("lognormal arrivals need a load above 0, but 0 was given")
        if self.median_run < 1 or not 0 < self.median_size <= 1 or abs(self.correlation) > 1:
            raise InputError(
                f"median_run must be 1 s or longer, median_size a share of the machine, and "
                f"correlation from -1 to 1, but {self.median_run:g}, {self.median_size:g} and "
                f"{self.correlation:g} were given"
            )
        if min(self.spread_run, self.spread_size, self.burstiness) < 0:
            raise InputError("spread_run, spread_size and burstiness must be 0 or larger")
        if not 0 <= self.daily_cycle <= 1:
            raise InputError(f"daily_cycle must be 0 to 1, but {self.daily_cycle:g} was given")

    def after(self, jobs: int) -> LaterJobs:
        """So many jobs that may arrive after an instant, at any time of the day."""
        return LaterJobs(replace(self, jobs=jobs + 1, start_hour=-1.0))

    def sample(self, rng: np.random.Generator) -> JobSet:
        """Draws one jobset; the same generator state gives the same jobset."""
        run, size, gap = self._draw(rng, self.jobs)
        work = self._mean_work / self.processors
        gaps = np.exp(self.burstiness * gap - self.burstiness**2 / 2) * work / self.load
        if self.daily_cycle:
            hour = self.start_hour if self.start_hour >= 0 else float(rng.integers(24))
            arrival = pass_through_days(gaps, hour, self.daily_cycle)
        else:
            arrival = np.cumsum(gaps).astype(np.int64)
        return _jobset(rng, arrival, run, size, 1.0, self.estimates)

    @cached_property
    def _mean_work(self) -> float:
        run, size, _ = self._draw(np.random.default_rng(0), _SAMPLE)
        return float((run * size).mean())

    def _draw(self, rng: np.random.Generator, count: int) -> tuple[NDArray[Any], ...]:
        normal, other, gap = rng.standard_normal((3, count))
        of_size = self.correlation * normal + math.sqrt(1 - self.correlation**2) * other
        run = np.exp(math.log(self.median_run) + self.spread_run * normal)
        median = max(self.median_size * self.processors, 1.0)
        size = median * np.exp(self.spread_size * of_size)
        whole = np.clip(np.round(size), 1, self.processors).astype(np.int64)
        return np.clip(np.ceil(run), 1, 30 * 86_400).astype(np.int64), whole, gap


@dataclass(frozen=True)
class BimodalWorkload:
    """Short and long jobs at random seconds, after Mao et al. (2016); Cunha (2022, section 5.2).

    At the first second of the window a job arrives, and at each other one with probability `rate`.
    A short job takes 1 second to a fifth of the longest, a long one two thirds of it or more; each
    asks for half of the largest size or more.

    Attributes:
        window: seconds in which jobs may arrive.
        rate: jobs in a second, above 0 and at most 1.
        large_share: share of jobs that are long.
        longest: seconds of the longest jobs, at least 5.
        largest: processors of the largest jobs; 0 for all of the machine.
        estimates: see `LublinWorkload`.
    """

    processors: int = 256
    window: int = 100
    rate: float = 0.3
    large_share: float = 0.2
    longest: int = 15
    largest: int = 0
    estimates: str = "exact"

    def __post_init__(self) -> None:
        get_estimates(self.estimates)
        if not 1 <= self.window <= 10**6 or not 5 <= self.longest <= 10**6:
            raise InputError(
                f"window must be 1 to 1,000,000 seconds and longest 5 to 1,000,000, but "
                f"{self.window:,} and {self.longest:,} were given"
            )
        if not 0 < self.rate <= 1 or not 0 <= self.large_share <= 1:
            raise InputError(
                f"rate must be above 0 and at most 1, and large_share a share, but {self.rate:g} "
                f"and {self.large_share:g} were given"
            )
        if not 0 <= self.largest <= self.processors:
            raise InputError(
                f"largest must be 0 to {self.processors:,}, the machine's processors, but "
                f"{self.largest:,} was given"
            )

    def after(self, jobs: int) -> LaterJobs:
        """About so many jobs that may arrive after an instant."""
        return LaterJobs(replace(self, window=math.ceil((jobs + 1) / self.rate)))

    def sample(self, rng: np.random.Generator) -> JobSet:
        """Draws one jobset; the same generator state gives the same jobset."""
        arrives = rng.random(self.window) < self.rate
        arrives[0] = True
        arrival = np.flatnonzero(arrives)
        large = rng.random(arrival.size) < self.large_share
        short = rng.integers(1, self.longest // 5, arrival.size, endpoint=True)
        long = rng.integers(-(-2 * self.longest // 3), self.longest, arrival.size, endpoint=True)
        most = self.largest or self.processors
        size = rng.integers(max(most // 2, 1), most, arrival.size, endpoint=True)
        return _jobset(rng, arrival, np.where(large, long, short), size, 1.0, self.estimates)


def _jobset(
    rng: np.random.Generator,
    arrival: NDArray[np.int64],
    run: NDArray[np.int64],
    size: NDArray[np.int64],
    factor: float,
    estimates: str,
    kind: NDArray[np.int64] | None = None,
) -> JobSet:
    """Drawn jobs as a jobset that begins with the first of them."""
    begun = ((arrival - arrival[0]) * factor).astype(np.int64)
    most = 2**31 - 1
    if begun[-1] >= most:
        raise InputError(
            f"{arrival.size:,} jobs at this load arrive over {begun[-1]:,} seconds, but {most:,} "
            f"are the most; take fewer jobs or a higher load"
        )
    estimate = get_estimates(estimates)(rng, run)
    return JobSet.of(
        begun,
        run,
        size[:, None],
        job_class=None if kind is None else kind,
        attributes={"estimate": estimate},
    )


def _with_shares(kind: JobType, serial: float, u_first: float) -> JobType:
    """A stream of jobs with other shares, where they are not below 0.

    As many of the jobs on several processors as before have a power of two of them.
    """
    if serial >= 0:
        powers = kind.power_of_two / (1 - kind.serial) * (1 - serial)
        kind = replace(kind, serial=serial, power_of_two=powers)
    return kind if u_first < 0 else replace(kind, u_first=u_first)


def _scaled(run: NDArray[np.int64], scale: float) -> NDArray[np.int64]:
    return run if scale == 1 else np.maximum(np.ceil(run * scale), 1).astype(np.int64)


@lru_cache
def _natural_load(processors: int, types: tuple[JobType, ...], run_scale: float) -> float:
    """Load of the model as it is, measured on many jobs."""
    rng = np.random.default_rng(0)
    arrival, run, size, _ = draw_jobs(rng, _SAMPLE, types)
    work = (_scaled(run, run_scale) * size).sum()
    return float(work) / processors / float(arrival[-1])


def _check(jobs: int, load: float, estimates: str) -> None:
    if jobs < 1:
        raise InputError(f"a jobset needs 1 job or more, but {jobs} was given")
    if not (0 <= load < float("inf")) or 0 < load < 1e-3:
        raise InputError(f"a load must be 0 or from 0.001 on, but {load:g} was given")
    get_estimates(estimates)


DROP, CAP = "drop", "cap"


@dataclass(frozen=True, kw_only=True)
class HPCLog(LogWorkload):
    """Jobs of a log as they are, of a machine with a capacity of each of some resources.

    See `LogWorkload` for what all logs have.

    Attributes:
        too_long: what becomes of jobs that ask for more time than the site lets them have:
            ``drop`` leaves them out, ``cap`` lets them run for the longest time.
    """

    capacity: tuple[int, ...] = field(default=(256,), kw_only=False)
    resources: tuple[str, ...] = field(default=("processors",), kw_only=False)
    site: Site | None = None
    too_long: str = DROP

    def __post_init__(self) -> None:
        if self.too_long not in (DROP, CAP):
            raise InputError(f"too_long must be {DROP} or {CAP}, but {self.too_long} was given")
        if self.too_long == CAP and self.site is None:
            raise InputError(
                f"too-long={CAP} is of a site's longest times, so describe it with --site FILE"
            )
        super().__post_init__()

    def after(self, jobs: int) -> LaterJobs:
        """Windows of so many jobs of the part for training: what may arrive after an instant."""
        windows = replace(self, jobs=jobs + 1, window=0, warmup=0, offset=-1, block=0)
        return LaterJobs(windows.part(Split.TRAIN))

    def fitting(self, read: RecordedJobs) -> RecordedJobs:
        """The jobs that fit the machine."""
        if self.site is not None:
            return on_site(read, self.site, cap=self.too_long == CAP)
        machine = f"the machine of {self.capacity[0]:,} processors"
        return read.that_fit(self.capacity, machine, self.resources)

    def load_of(self, recorded: RecordedJobs, span: int) -> float:
        """Mean demand for processors over what there is."""
        return float(recorded.load(self.capacity, span)[0])


WORKLOADS: Registry[WorkloadSpec] = Registry("workload")


def _processors(world: HPC) -> dict[str, Any]:
    if len(world.capacity) > 1:
        raise InputError(
            f"generated jobs ask for processors alone, but this machine counts "
            f"{' and '.join(world.resources)}; take jobs from a file"
        )
    return {"processors": world.processors}


WORKLOADS.register("lublin")(
    WorkloadSpec(LublinWorkload, lambda world: {**_processors(world), "site": world.site})
)
WORKLOADS.register("lognormal")(WorkloadSpec(LognormalWorkload, _processors))
WORKLOADS.register("bimodal")(WorkloadSpec(BimodalWorkload, _processors))
WORKLOADS.register("users")(WorkloadSpec(UsersWorkload, _processors))
WORKLOADS.register("trace")(
    WorkloadSpec(
        HPCLog,
        lambda world: {
            "capacity": world.capacity,
            "resources": world.resources,
            "site": world.site,
        },
        own=("jobs", "estimates"),  # how long windows are follows from the log, which has estimates
        read=lambda said: read_log(said["path"], **{name: said[name] for name in READ_OPTIONS}),
    )
)


def any_site(world: HPC, num_jobs: int, rng: np.random.Generator) -> tuple[HPC, JobSet]:
    """Draws a machine and a sequence of its jobs.

    Half come from Lublin and Feitelson's model, with one or two kinds of jobs, another law of sizes
    and another scale of run times; half have logarithms that are normal, and arrivals from regular
    to bursty. Half of all have exact estimates. The load is that of the sequence itself, 50 to
    125 %. The machine has the other options of the world; of its resources only processors count.
    """
    # The machine, its jobs, and arrivals that bring the load that is drawn.
    usual = rng.random() < 0.8
    low, high = (SMALLEST, USUAL) if usual else (USUAL, LARGEST)
    processors = round(_between_logs(rng, low, high))
    draw = _like_lublin if rng.random() < 0.5 else _lognormal
    arrival, run, size = draw(rng, num_jobs, processors)
    begun = _at_load(arrival, run, size, processors, rng.uniform(*LOAD))
    estimate = get_estimates(_estimates(rng))(rng, run)
    jobset = JobSet.of(begun, run, size[:, None], attributes={"estimate": estimate})
    return replace(world, processors=processors, memory=0, gpus=0), jobset


def _at_load(
    arrival: NDArray[np.int64],
    run: NDArray[np.int64],
    size: NDArray[np.int64],
    processors: int,
    load: float,
) -> NDArray[np.int64]:
    """Arrivals from 0 on, closer or further apart, so that this much work arrives in a second."""
    span = max(float(arrival[-1] - arrival[0]), 1.0)
    natural = float((run * size).sum()) / processors / span
    return np.floor((arrival - arrival[0]) * (natural / load)).astype(np.int64)


def _like_lublin(rng: np.random.Generator, num_jobs: int, processors: int) -> Jobs:
    typed = rng.random() < 0.5
    scale = _between_logs(rng, 0.25, 4.0)
    types = tuple(_varied(rng, kind) for kind in types_for(processors, typed))
    arrival, run, size, _ = draw_jobs(rng, num_jobs, types, float(rng.integers(24)))
    return arrival, _whole(run * scale), size


def _varied(rng: np.random.Generator, kind: JobType) -> JobType:
    """The same stream of jobs with another law of sizes."""
    serial = rng.uniform(0.05, 0.5)
    return replace(
        kind,
        serial=serial,
        power_of_two=rng.uniform(0.3, 0.9) * (1 - serial),
        u_first=rng.uniform(0.5, 0.97),
    )


def _lognormal(rng: np.random.Generator, num_jobs: int, processors: int) -> Jobs:
    correlation = rng.uniform(-0.2, 0.6)
    normal, other, gap = rng.standard_normal((3, num_jobs))
    of_size = correlation * normal + math.sqrt(1 - correlation**2) * other
    run = _between_logs(rng, 60.0, 14_400.0) * np.exp(rng.uniform(0.8, 2.6) * normal)
    median = _between_logs(rng, 0.01, 0.15) * processors  # with less, nobody has to wait
    size = np.round(median * np.exp(rng.uniform(0.4, 2.0) * of_size))
    gaps = np.exp(rng.uniform(0.0, 2.5) * gap)
    gaps *= 1e6 / float(gaps.sum())  # of any length: the load makes it right
    depth = float(rng.integers(2))
    arrival = pass_through_days(gaps, float(rng.integers(24)), depth)
    return arrival, _whole(run), np.clip(size, 1, processors).astype(np.int64)


def _estimates(rng: np.random.Generator) -> str:
    """As `cluster_env.workloads.estimates` names them."""
    if rng.random() < 0.5:
        return "exact"
    kinds = ("tsafrir", "uniform:3", "uniform:20", "over:1", "gaussian:0.3")
    return kinds[int(rng.integers(len(kinds)))]


def _between_logs(rng: np.random.Generator, low: float, high: float) -> float:
    return math.exp(rng.uniform(math.log(low), math.log(high)))


def _whole(seconds: NDArray[np.floating[Any]]) -> NDArray[np.int64]:
    return np.clip(np.ceil(seconds), 1, _LONGEST_S).astype(np.int64)
