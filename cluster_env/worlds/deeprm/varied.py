"""Mixtures of DeepRM's jobs: what differs from jobset to jobset."""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from cluster_env.core.errors import InputError

if TYPE_CHECKING:
    from cluster_env.worlds.deeprm.workloads import BimodalWorkload

LOWEST_LOAD = 0.001
"""With less, hardly a jobset holds a job, and there is nothing to measure."""


@dataclass(frozen=True)
class Ranges:
    """What differs from jobset to jobset; see `Mixture`.

    Attributes:
        load: lowest and highest load, drawn uniformly; one that a mix of jobs cannot reach becomes
            the highest that it can.
        window: arrival windows to choose from, in time steps.
        window_weights: how often each window is chosen, relative to the others; by default all
            equally often.
        window_loads: highest load at each window, in place of the highest of `load`: above 100 % a
            long window is only a longer queue.
        small_share: lowest and highest share of short jobs, drawn uniformly.
    """

    load: tuple[float, float] | None = None
    window: tuple[int, ...] = ()
    window_weights: tuple[float, ...] = ()
    window_loads: tuple[float, ...] = ()
    small_share: tuple[float, float] | None = None


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

    base: "BimodalWorkload"
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

    def draw(self, rng: np.random.Generator) -> "BimodalWorkload":
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

    def _mix(self, load: float, window: int, small_share: float) -> "BimodalWorkload":
        """The workload that has these, as far as its load is in reach."""
        mix = replace(self.base, load=LOWEST_LOAD, window=window, small_share=small_share)
        return replace(mix, load=min(load, mix.max_load))
