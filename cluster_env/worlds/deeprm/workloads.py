"""DeepRM's jobs: many short, some long, each with one dominant resource."""

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from cluster_env.core.errors import InputError
from cluster_env.core.jobs import JobSet
from cluster_env.worlds.deeprm.cluster import Cluster

Range = tuple[int, int]

LOWEST_LOAD = 0.001
"""With less, hardly a jobset holds a job, and there is nothing to measure."""

LONGEST_WINDOW = 1_000_000
PHASE_STEPS = 5
"""Time steps after which the phase of bursty arrivals is drawn anew, on average."""

_SUM_ERROR = 1e-6  # of shares, for those that were written down or have been rounded


@dataclass(frozen=True)
class Ranges:
    """What differs from jobset to jobset, so that one policy is trained for all of it.

    Each jobset draws a load, a window and a share of short jobs, independently of each other, and
    then its jobs from the `BimodalWorkload` that has them. What has no range stays as it is.
    The highest load that can be reached falls with the share of short jobs (from 279 % at 0.6 to
    114 % at 0.95 with DeepRM's durations and the released demands).

    Attributes:
        load: lowest and highest load, drawn uniformly for each jobset. A load that its mix of jobs
            cannot reach becomes the highest possible, a job in every step.
        window: arrival windows in time steps, of which each jobset draws one.
        window_weights: relative frequency of each arrival window; empty: all equally often.
        window_loads: highest load of each arrival window, instead of the highest of `load`. Above
            100 % a long window only makes the queue longer.
        small_share: lowest and highest share of short jobs, drawn uniformly for each jobset.
    """

    load: tuple[float, float] | None = None
    window: tuple[int, ...] = ()
    window_weights: tuple[float, ...] = ()
    window_loads: tuple[float, ...] = ()
    small_share: tuple[float, float] | None = None

    def check(self, base: "BimodalWorkload") -> None:
        """Makes sure that every mix of the ranges with what the base has is possible.

        Raises:
            InputError: if a range is empty or out of bounds, the lowest load is out of reach with
                one of the mixes, or the weights do not belong to the windows.
        """
        # What is drawn lies between two bounds, and what belongs to windows has one for each.
        loads, shares = self._loads(base), self._small_shares(base)
        for name, bounds in (("loads", loads), ("small shares", shares)):
            if bounds[0] > bounds[1]:
                raise InputError(
                    f"a range goes from the lower to the higher value, but {name} from "
                    f"{bounds[0]:g} to {bounds[1]:g} were given"
                )
        for name, values in (("weight", self.window_weights), ("load", self.window_loads)):
            if values and len(values) != len(self.window):
                raise InputError(
                    f"each window needs a {name}, but {len(values)} {name}s were given for "
                    f"{len(self.window)} windows"
                )
        if any(weight <= 0 for weight in self.window_weights):
            raise InputError(f"weights of windows must be above 0, not {self.window_weights}")
        if any(highest < loads[0] for highest in self.window_loads):
            raise InputError(
                "the highest load of a window cannot be below the lowest load, "
                f"{loads[0]:g}, but {self.window_loads} were given"
            )
        # Every mix of jobs reaches the lowest load, if those at both ends of the range do.
        for window in self.window or (base.window,):
            for share in shares:
                mix = replace(base, load=LOWEST_LOAD, window=window, small_share=share)
                if not LOWEST_LOAD <= loads[0] <= mix.max_load:
                    raise InputError(
                        f"the lowest load, {loads[0]:g}, is out of reach: with a share of "
                        f"{share:g} short jobs there are loads from {LOWEST_LOAD:g} up to "
                        f"{mix.max_load:.3f}"
                    )

    def draw(self, base: "BimodalWorkload", rng: np.random.Generator) -> "BimodalWorkload":
        """Draws the workload of one jobset; the base has all that does not differ.

        It takes three numbers from the generator whatever varies, so that a range more or less
        leaves the other draws as they are.
        """
        for_load, for_window, for_share = rng.random(3)
        windows = self.window or (base.window,)
        weights = np.asarray(self.window_weights or np.ones(len(windows)))
        steps = np.cumsum(weights / weights.sum())
        chosen = min(int(np.searchsorted(steps, for_window, side="right")), steps.size - 1)
        lowest, highest = self._loads(base)
        if self.window_loads:
            highest = self.window_loads[chosen]
        fewest, most = self._small_shares(base)
        share = fewest + for_share * (most - fewest)
        # The load comes last: how high it can be depends on all else.
        mix = replace(base, load=LOWEST_LOAD, window=windows[chosen], small_share=share)
        return replace(mix, load=min(lowest + for_load * (highest - lowest), mix.max_load))

    def _loads(self, base: "BimodalWorkload") -> tuple[float, float]:
        return self.load or (base.load, base.load)

    def _small_shares(self, base: "BimodalWorkload") -> tuple[float, float]:
        return self.small_share or (base.small_share, base.small_share)


@dataclass(frozen=True)
class BimodalWorkload:
    """Bernoulli arrivals of short and long jobs (DeepRM, section 4.1).

    In each time step of the window at most one job arrives. It is short with probability
    `small_share`; durations are uniform within their range. One resource, picked at random, is
    dominant. The paper's text draws its demand from a quarter to a half of the capacity and the
    others from a twentieth to a tenth, with which no arrival rate reaches a load above 92 %; the
    released code draws from a half to all of the capacity and from one unit to a fifth, which
    gives the loads of the paper's figures up to 184 %.

    Jobs may come in bursts. Time is then in one of two phases, busy or calm; in each step it is
    redrawn with probability 1 / `PHASE_STEPS`, and each time it is drawn it is busy with
    probability p, the `arrival_rate`. With the burstiness b a job arrives with probability
    p + b (1 - p) in a step of a busy phase, and p (1 - b) in one of a calm phase. As the first
    step's phase is drawn too, the probability of an arrival is p in every step, whatever b; and
    arrivals k steps apart have the correlation b² (1 - 1 / `PHASE_STEPS`)^k. Busy phases last
    `PHASE_STEPS` / (1 - p) steps on average and calm ones `PHASE_STEPS` / p, which is 10 steps
    each where p is a half.

    Of the settings behind `first_step`, what is left at its default draws no random number, and
    what is set leaves the other random numbers of a jobset as they are.

    Attributes:
        load: mean demand over capacity: arrival rate x mean duration x mean share of a resource
            that a job asks for; 0.7 is 70 %.
        window: number of time steps in which jobs may arrive.
        cluster: what the demands are shares of.
        small_share: probability that a job is short.
        small_duration: shortest and longest duration of a short job.
        large_duration: shortest and longest duration of a long job.
        demands: range of demands: ``released``, where the dominant resource gets half to all of the
            capacity, or ``paper``, a quarter to a half, where no load exceeds 92 %.
        first_step: first time step in which a job may arrive; 1 repeats the released code, where
            the first job of a sequence never arrives.
        class_shares: probability of each class of jobs; empty: all equally likely.
        dominant_shares: probability of each resource to be a job's dominant one; empty: all equally
            likely. `load` is the mean over resources, so one of them may be overloaded at a load
            below 1.
        burstiness: how much arrivals concentrate in busy phases, from 0 (independent arrivals) to
            below 1; their mean rate stays the same.
        vary: what differs from jobset to jobset, to train one policy for all of them; comparisons
            are made at the point that the other settings say.
    """

    load: float = 0.7
    window: int = 50
    cluster: Cluster = field(default_factory=Cluster)
    small_share: float = 0.8
    small_duration: Range = (1, 3)
    large_duration: Range = (10, 15)
    demands: Literal["released", "paper"] = "released"
    first_step: int = 0
    class_shares: tuple[float, ...] = ()
    dominant_shares: tuple[float, ...] = ()
    burstiness: float = 0.0
    vary: Ranges = field(default_factory=Ranges)

    def __post_init__(self) -> None:
        if self.window > LONGEST_WINDOW:
            raise InputError(f"window must lie in 1..{LONGEST_WINDOW}, but {self.window} was given")
        if self.window < 1 or not 0 <= self.first_step < self.window:
            raise InputError(
                f"the arrival window needs at least 1 step and first_step inside it, but window="
                f"{self.window} and first_step={self.first_step} were given"
            )
        if not 0 <= self.small_share <= 1:
            raise InputError(f"small_share must lie in 0..1, but {self.small_share} was given")
        for name in ("small_duration", "large_duration"):
            low, high = getattr(self, name)
            if not 1 <= low <= high <= self.cluster.horizon:
                raise InputError(
                    f"{name} must be a range within 1..{self.cluster.horizon} (the cluster's "
                    f"horizon), but ({low}, {high}) was given"
                )
        if self.demands not in ("released", "paper"):
            raise InputError(f"demands must be 'released' or 'paper', not '{self.demands}'")
        _check_shares("class_shares", self.class_shares, self.cluster.num_classes, "classes")
        _check_shares(
            "dominant_shares", self.dominant_shares, self.cluster.num_resources, "resources"
        )
        if not 0 <= self.burstiness < 1:
            raise InputError(
                f"burstiness must be at least 0 and below 1, but {self.burstiness} was given"
            )
        if self.vary != Ranges():
            self.vary.check(self.point())
        if not LOWEST_LOAD <= self.load <= self.max_load:
            raise InputError(
                f"load {self.load:g} is out of reach: with at most one job a step this workload "
                f"has loads from {LOWEST_LOAD:g} up to {self.max_load:.3f}"
            )

    @property
    def arrival_rate(self) -> float:
        """Probability of an arrival in a time step."""
        return self.load / self.max_load

    @cached_property
    def max_load(self) -> float:
        """Load when a job arrives in every step."""
        # The mean duration, and then the mean share of a resource.
        small, large = np.mean(self.small_duration), np.mean(self.large_duration)
        duration = self.small_share * small + (1 - self.small_share) * large
        dominant, other = self._demand_ranges
        capacity = np.asarray(self.cluster.capacity)
        # How often each resource is the dominant one of as many jobs as there are resources.
        leads = capacity.size * np.asarray(self.dominant_shares) if self.dominant_shares else 1
        share = (
            leads * dominant.mean(axis=0) + (capacity.size - leads) * other.mean(axis=0)
        ) / capacity.size
        return float(duration * np.mean(share / capacity))

    @cached_property
    def _demand_ranges(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Smallest and largest demand of a resource, when dominant and else, ``(2, resources)``."""
        capacity = np.asarray(self.cluster.capacity, np.int64)
        if self.demands == "released":
            dominant, other = (capacity // 2, capacity), (np.ones_like(capacity), capacity // 5)
        else:
            quarter, twentieth, tenth = (
                np.rint(share * capacity).astype(np.int64) for share in (0.25, 0.05, 0.1)
            )
            dominant, other = (quarter, capacity // 2), (twentieth, tenth)
        return np.maximum(np.stack(dominant), 1), np.maximum(np.stack(other), 1)

    def point(self) -> "BimodalWorkload":
        """The workload without what varies from jobset to jobset."""
        return replace(self, vary=Ranges()) if self.vary != Ranges() else self

    def with_short_windows(self) -> "BimodalWorkload":
        """The workload with only the shortest of the windows that vary."""
        vary = self.vary
        if not vary.window:
            return self
        shortest = min(vary.window)
        loads = vary.window_loads and (vary.window_loads[vary.window.index(shortest)],)
        only = replace(vary, window=(shortest,), window_weights=(), window_loads=loads)
        return replace(self, vary=only)

    @property
    def longest_window(self) -> int:
        """The most time steps in which jobs of one jobset may arrive."""
        return max(self.vary.window or (self.window,))

    def of_jobset(self, rng: np.random.Generator) -> "BimodalWorkload":
        """The workload that one jobset comes from, drawn as `sample` does before the jobs."""
        return self.vary.draw(self.point(), rng) if self.vary != Ranges() else self

    def after(self, steps: int) -> "BimodalWorkload":
        """The jobs that may arrive within so many steps after an instant, whatever is known then.

        The window varies no more, and ends after these steps; a job may come in each of them.
        """
        vary = replace(self.vary, window=(), window_weights=(), window_loads=())
        return replace(self, window=steps, first_step=0, vary=vary)

    def sample(self, rng: np.random.Generator) -> JobSet:
        """Draws one jobset; the same generator state gives the same jobset."""
        if self.vary != Ranges():
            return self.of_jobset(rng).sample(rng)
        # In each step a job of either kind, whether it arrives or not.
        window, num_resources = self.window, self.cluster.num_resources
        arriving = rng.random(window)
        short = rng.random(window) < self.small_share
        small = rng.integers(*self.small_duration, size=window, endpoint=True)
        large = rng.integers(*self.large_duration, size=window, endpoint=True)
        # One of its resources is dominant.
        leading = rng.integers(num_resources, size=window)
        large_demand, small_demand = self._demand_ranges
        size = (window, num_resources)
        dominant = rng.integers(large_demand[0], large_demand[1], size=size, endpoint=True)
        other = rng.integers(small_demand[0], small_demand.max(axis=0), size=size, endpoint=True)
        rate: float | NDArray[np.float64] = self.arrival_rate
        classes = np.zeros(window, np.int64)
        # Whatever DeepRM does not have comes last, and all of it whatever is set, so that no
        # setting moves another one's numbers.
        if self.cluster.num_classes > 1 or self.dominant_shares or self.burstiness > 0:
            for_leading, for_class, for_redraw, for_phase = rng.random((4, window))
            if self.dominant_shares:
                leading = _chosen(self.dominant_shares, for_leading)
            classes = _chosen(self.class_shares or (1.0,) * self.cluster.num_classes, for_class)
            rate = self._rates(for_redraw, for_phase)
        arrives = arriving < rate
        arrives[: self.first_step] = False
        demand = np.where(np.arange(num_resources) == leading[:, None], dominant, other)
        return JobSet.of(
            np.flatnonzero(arrives),
            np.where(short, small, large)[arrives],
            demand[arrives],
            window,
            classes[arrives],
        )

    def _rates(
        self, for_redraw: NDArray[np.float64], for_phase: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """Probability of an arrival in each step, float64 ``(window,)``, from uniform numbers."""
        redrawn = for_redraw < 1 / PHASE_STEPS
        redrawn[0] = True
        # The phase of a step is the one that was drawn last.
        latest = np.maximum.accumulate(np.where(redrawn, np.arange(redrawn.size), 0))
        busy = (for_phase < self.arrival_rate)[latest]
        p, b = self.arrival_rate, self.burstiness
        return np.where(busy, p + b * (1 - p), p - b * p)


def _chosen(shares: tuple[float, ...], places: NDArray[np.float64]) -> NDArray[np.int64]:
    """Choices with these relative shares, int64, from uniform numbers of the same shape."""
    steps = np.cumsum(shares)
    last = int(np.flatnonzero(shares)[-1])
    chosen: NDArray[np.int64] = np.searchsorted(steps, places * steps[-1], side="right")
    return np.minimum(chosen, last)


def _check_shares(name: str, shares: tuple[float, ...], count: int, parts: str) -> None:
    if not shares:
        return
    if len(shares) != count:
        raise InputError(
            f"{name} needs one share for each of the cluster's {count} {parts}, or none, but "
            f"{len(shares)} were given"
        )
    if not all(share >= 0 for share in shares) or abs(sum(shares) - 1) > _SUM_ERROR:
        raise InputError(f"{name} must be probabilities that sum to 1, but {shares} were given")
