"""Jobs whose load, arrival window and mix differ from jobset to jobset."""

from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from cluster_env.core.errors import InputError
from cluster_env.core.jobs import JobSet
from cluster_env.worlds.deeprm.bimodal import BimodalWorkload
from cluster_env.worlds.deeprm.cluster import Cluster

_LOW_LOAD = 1e-6  # for a workload whose highest load is asked for before its load is known


@dataclass(frozen=True)
class VariedWorkload:
    """A mixture of bimodal workloads, to train one policy for all of them.

    Each jobset draws a load, a window and a share of short jobs, independently of each other, and
    then its jobs from the `BimodalWorkload` that has them. What has no range stays as in `base`.
    The highest load that can be reached falls with the share of short jobs (from 279 % at 0.6 to
    114 % at 0.95 with DeepRM's durations and the released demands); a load above the highest of
    the mix that it is drawn with is replaced by that highest, a job in every step.

    Attributes:
        base: cluster, durations and all else that does not vary.
        loads: lowest and highest load, drawn uniformly; 0.7 is 70 %.
        windows: arrival windows to choose from, in time steps.
        window_weights: how often each of them is chosen, relative to the others; without weights
            they are chosen equally often.
        window_loads: highest load at each window, in place of the highest of `loads`; without any
            it is the same at all. Above 100 % the queue grows for as long as jobs arrive, so that
            a long window of that kind takes long to run and teaches little.
        small_shares: lowest and highest share of short jobs, drawn uniformly.

    Raises:
        InputError: if a range is empty or out of bounds, the lowest load is out of reach with one
            of the mixes, or the weights do not belong to the windows.
    """

    base: BimodalWorkload = field(default_factory=BimodalWorkload)
    loads: tuple[float, float] | None = None
    windows: tuple[int, ...] = ()
    window_weights: tuple[float, ...] = ()
    window_loads: tuple[float, ...] = ()
    small_shares: tuple[float, float] | None = None

    def __post_init__(self) -> None:
        for name, bounds in (("loads", self._loads), ("small shares", self._small_shares)):
            if bounds[0] > bounds[1]:
                raise InputError(
                    f"a range goes from the lower to the higher value, but {name} from "
                    f"{bounds[0]:g} to {bounds[1]:g} were given"
                )
        for name, values in (("weight", self.window_weights), ("load", self.window_loads)):
            if values and len(values) != len(self.windows):
                raise InputError(
                    f"each window needs a {name}, but {len(values)} {name}s were given for "
                    f"{len(self.windows)} windows"
                )
        if any(weight <= 0 for weight in self.window_weights):
            raise InputError(f"weights of windows must be above 0, not {self.window_weights}")
        lowest = self._loads[0]
        if any(highest < lowest for highest in self.window_loads):
            raise InputError(
                f"the highest load at a window cannot be below the lowest of all, {lowest:g}, but "
                f"{self.window_loads} were given"
            )
        for window in self._windows:
            for share in self._small_shares:
                reach = self._mix(_LOW_LOAD, window, share).max_load
                if not 0 < lowest <= reach:
                    raise InputError(
                        f"the lowest load, {lowest:g}, is out of reach: with a share of "
                        f"{share:g} short jobs there are loads above 0 and up to {reach:.3f}"
                    )

    @property
    def cluster(self) -> Cluster:
        """What the demands are shares of."""
        return self.base.cluster

    @property
    def load(self) -> float:
        """Load half-way between the lowest and the highest, with the middle mix of jobs."""
        return self._middle.load

    @property
    def arrival_rate(self) -> float:
        """Probability of an arrival in a time step, with the middle load and mix of jobs."""
        return self._middle.arrival_rate

    @property
    def longest_window(self) -> int:
        """The most time steps in which jobs of one jobset may arrive."""
        return max(self._windows)

    def sample(self, rng: np.random.Generator) -> JobSet:
        """Draws one jobset; the same generator state gives the same jobset."""
        return self.draw(rng).sample(rng)

    def draw(self, rng: np.random.Generator) -> BimodalWorkload:
        """Draws the workload of one jobset.

        It takes three numbers from the generator whatever varies, so that a range more or less
        leaves the other draws as they are.
        """
        of_load, of_window, of_share = rng.random(3)
        weights = np.asarray(self.window_weights or np.ones(len(self._windows)))
        steps = np.cumsum(weights / weights.sum())
        chosen = min(int(np.searchsorted(steps, of_window, side="right")), steps.size - 1)
        share = _between(self._small_shares, of_share)
        low, high = self._loads
        if self.window_loads:
            high = self.window_loads[chosen]
        return self._mix(_between((low, high), of_load), self._windows[chosen], share)

    @property
    def _loads(self) -> tuple[float, float]:
        return self.loads or (self.base.load, self.base.load)

    @property
    def _windows(self) -> tuple[int, ...]:
        return self.windows or (self.base.window,)

    @property
    def _small_shares(self) -> tuple[float, float]:
        return self.small_shares or (self.base.small_share, self.base.small_share)

    @cached_property
    def _middle(self) -> BimodalWorkload:
        share = _between(self._small_shares, 0.5)
        return self._mix(_between(self._loads, 0.5), self.base.window, share)

    def _mix(self, load: float, window: int, small_share: float) -> BimodalWorkload:
        """The workload that has these, as far as its load is in reach."""
        mix = replace(self.base, load=_LOW_LOAD, window=window, small_share=small_share)
        return replace(mix, load=min(load, mix.max_load))


def _between(bounds: tuple[float, float], place: float) -> float:
    """The value at a place from 0 (the lower bound) to 1 (the upper one)."""
    low, high = bounds
    return low + place * (high - low)
