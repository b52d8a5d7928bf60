"""DeepRM's jobs: many short, some long, each with one dominant resource."""

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from cluster_env.core.errors import InputError
from cluster_env.core.jobs import JobSet
from cluster_env.worlds.deeprm.cluster import Cluster
from cluster_env.worlds.deeprm.varied import LOWEST_LOAD, Ranges

Range = tuple[int, int]

LONGEST_WINDOW = 1_000_000
PHASE_STEPS = 5
"""Time steps after which the phase of bursty arrivals is drawn anew, on average."""

_SUM_ERROR = 1e-6  # of shares, for those that were written down or have been rounded


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
        demands: ``released`` or ``paper``, see above.
        first_step: first time step in which a job may arrive; 1 repeats the released code, where
            the first job of a sequence never arrives.
        class_shares: probability of each of the cluster's classes, all equally likely if empty.
        dominant_shares: probability that a resource is the dominant one, of each resource, all
            equally likely if empty. `load` stays the mean over resources, so that one of them may
            be asked for more than the cluster has at a load below 1.
        burstiness: from 0, where arrivals are independent, to below 1, see above.
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
            self._mixture.check()
        if not LOWEST_LOAD <= self.load <= self.max_load:
            raise InputError(
                f"load {self.load:g} is out of reach: with at most one job a step this workload "
                f"has loads from {LOWEST_LOAD:g} up to {self.max_load:.3f}"
            )

    @classmethod
    def at_rate(cls, arrival_rate: float, **options: object) -> "BimodalWorkload":
        """The workload whose probability of an arrival in a step is given instead of its load."""
        reference = cls(load=LOWEST_LOAD, **options)  # type: ignore[arg-type]
        return cls(load=arrival_rate * reference.max_load, **options)  # type: ignore[arg-type]

    @property
    def arrival_rate(self) -> float:
        """Probability of an arrival in a time step."""
        return self.load / self.max_load

    @cached_property
    def max_load(self) -> float:
        """Load when a job arrives in every step."""
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
            dominant = (np.rint(0.25 * capacity).astype(np.int64), capacity // 2)
            other = (
                np.rint(0.05 * capacity).astype(np.int64),
                np.rint(0.1 * capacity).astype(np.int64),
            )
        return tuple(np.maximum(np.stack(bounds), 1) for bounds in (dominant, other))  # type: ignore[return-value]

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

    @cached_property
    def _mixture(self) -> "Mixture":
        return Mixture(self.point(), self.vary)

    def sample(self, rng: np.random.Generator) -> JobSet:
        """Draws one jobset; the same generator state gives the same jobset."""
        if self.vary != Ranges():
            return self._mixture.draw(rng).sample(rng)
        window, resources = self.window, self.cluster.num_resources
        arriving = rng.random(window)
        short = rng.random(window) < self.small_share
        small = rng.integers(*self.small_duration, size=window, endpoint=True)
        large = rng.integers(*self.large_duration, size=window, endpoint=True)
        leading = rng.integers(resources, size=window)
        (d_low, d_high), (o_low, o_high) = self._demand_ranges
        dominant = rng.integers(d_low, d_high, size=(window, resources), endpoint=True)
        other = rng.integers(
            o_low, np.maximum(o_low, o_high), size=(window, resources), endpoint=True
        )
        rate: float | NDArray[np.float64] = self.arrival_rate
        classes = np.zeros(window, np.int64)
        if self._varies:
            # Last, and all of it whatever is set, so that no setting moves another one's numbers.
            of_leading, of_class, of_redraw, of_phase = rng.random((4, window))
            if self.dominant_shares:
                leading = _chosen(self.dominant_shares, of_leading)
            classes = _chosen(self.class_shares or (1.0,) * self.cluster.num_classes, of_class)
            rate = self._rates(of_redraw, of_phase)
        arrives = arriving < rate
        arrives[: self.first_step] = False
        demand = np.where(np.arange(resources) == leading[:, None], dominant, other)
        return JobSet.of(
            np.flatnonzero(arrives),
            np.where(short, small, large)[arrives],
            demand[arrives],
            window,
            classes[arrives],
        )

    @property
    def _varies(self) -> bool:
        """Whether a jobset needs more random numbers than DeepRM's."""
        several = self.cluster.num_classes > 1
        return several or bool(self.dominant_shares) or self.burstiness > 0

    def _rates(
        self, of_redraw: NDArray[np.float64], of_phase: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """Probability of an arrival in each step, float64 ``(window,)``, from uniform numbers."""
        drawn = of_redraw < 1 / PHASE_STEPS
        drawn[0] = True
        latest = np.maximum.accumulate(np.where(drawn, np.arange(drawn.size), 0))
        busy = (of_phase < self.arrival_rate)[latest]
        p, b = self.arrival_rate, self.burstiness
        return np.where(busy, p + b * (1 - p), p - b * p)


@dataclass(frozen=True)
class Mixture:
    """Bimodal workloads, one of which is drawn for each jobset, to train one policy for all.

    Each jobset draws a load, a window and a share of short jobs, independently of each other, and
    then its jobs from the `BimodalWorkload` that has them. What has no range stays as in `base`.
    The highest load that can be reached falls with the share of short jobs (from 279 % at 0.6 to
    114 % at 0.95 with DeepRM's durations and the released demands); a load above the highest of
    the mix that it is drawn with is replaced by that highest, a job in every step.

    Attributes:
        base: cluster, durations and all else that does not vary.
        vary: what does.
    """

    base: BimodalWorkload
    vary: Ranges

    def check(self) -> None:
        """Makes sure that every mix of the ranges is possible.

        Raises:
            InputError: if a range is empty or out of bounds, the lowest load is out of reach with
                one of the mixes, or the weights do not belong to the windows.
        """
        vary = self.vary
        for name, bounds in (("loads", self._loads), ("small shares", self._small_shares)):
            if bounds[0] > bounds[1]:
                raise InputError(
                    f"a range goes from the lower to the higher value, but {name} from "
                    f"{bounds[0]:g} to {bounds[1]:g} were given"
                )
        for name, values in (("weight", vary.window_weights), ("load", vary.window_loads)):
            if values and len(values) != len(vary.window):
                raise InputError(
                    f"each window needs a {name}, but {len(values)} {name}s were given for "
                    f"{len(vary.window)} windows"
                )
        if any(weight <= 0 for weight in vary.window_weights):
            raise InputError(f"weights of windows must be above 0, not {vary.window_weights}")
        lowest = self._loads[0]
        if any(highest < lowest for highest in vary.window_loads):
            raise InputError(
                f"the highest load at a window cannot be below the lowest of all, {lowest:g}, but "
                f"{vary.window_loads} were given"
            )
        for window in self._windows:
            for share in self._small_shares:
                reach = self._mix(LOWEST_LOAD, window, share).max_load
                if not LOWEST_LOAD <= lowest <= reach:
                    raise InputError(
                        f"the lowest load, {lowest:g}, is out of reach: with a share of "
                        f"{share:g} short jobs there are loads from {LOWEST_LOAD:g} up to "
                        f"{reach:.3f}"
                    )

    def draw(self, rng: np.random.Generator) -> BimodalWorkload:
        """Draws the workload of one jobset.

        It takes three numbers from the generator whatever varies, so that a range more or less
        leaves the other draws as they are.
        """
        of_load, of_window, of_share = rng.random(3)
        weights = np.asarray(self.vary.window_weights or np.ones(len(self._windows)))
        steps = np.cumsum(weights / weights.sum())
        chosen = min(int(np.searchsorted(steps, of_window, side="right")), steps.size - 1)
        low, high = self._loads
        if self.vary.window_loads:
            high = self.vary.window_loads[chosen]
        fewest, most = self._small_shares
        share = fewest + of_share * (most - fewest)
        return self._mix(low + of_load * (high - low), self._windows[chosen], share)

    @property
    def _loads(self) -> tuple[float, float]:
        return self.vary.load or (self.base.load, self.base.load)

    @property
    def _windows(self) -> tuple[int, ...]:
        return self.vary.window or (self.base.window,)

    @property
    def _small_shares(self) -> tuple[float, float]:
        return self.vary.small_share or (self.base.small_share, self.base.small_share)

    def _mix(self, load: float, window: int, small_share: float) -> BimodalWorkload:
        """The workload that has these, as far as its load is in reach."""
        mix = replace(self.base, load=LOWEST_LOAD, window=window, small_share=small_share)
        return replace(mix, load=min(load, mix.max_load))


def _chosen(shares: tuple[float, ...], places: NDArray[np.float64]) -> NDArray[np.int64]:
    """Choices with these relative shares, int64, from uniform numbers of the same shape."""
    steps = np.cumsum(shares)
    last = int(np.flatnonzero(shares)[-1])
    chosen: NDArray[np.int64] = np.searchsorted(steps, places * steps[-1], side="right")
    return np.minimum(chosen, last)


def _check_shares(name: str, shares: tuple[float, ...], count: int, of: str) -> None:
    if not shares:
        return
    if len(shares) != count:
        raise InputError(
            f"{name} needs one share for each of the cluster's {count} {of}, or none, but "
            f"{len(shares)} were given"
        )
    if not all(share >= 0 for share in shares) or abs(sum(shares) - 1) > _SUM_ERROR:
        raise InputError(f"{name} must be probabilities that sum to 1, but {shares} were given")
