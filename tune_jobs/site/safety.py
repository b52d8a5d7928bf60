"""Two processes watch each other, so that no job stays held when one of them, or Slurm, fails."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Self

from cluster_env.core.durations import duration
from cluster_env.core.errors import Failure, InputError
from tune_jobs.site.commands import SQUEUE_TIMEOUT_S, TIMEOUT_S, SiteAway
from tune_jobs.site.ticks import Ticks
from tune_jobs.site.watchdog import PATIENCE_S, Watchdog, release_all

CALLS_IN_TICK = 9
"""More commands than a steerer ever calls in a tick, beside the squeue that lists all jobs."""


@dataclass(frozen=True)
class Timing:
    """How long a site may take.

    Attributes:
        limit_s: without a completed tick, after which the watchdog releases all held jobs.
        squeue_s: that the squeue may take that lists all jobs.
        command_s: that any other command may take.
    """

    limit_s: float
    squeue_s: float
    command_s: float

    @classmethod
    def of(cls, watchdog_s: float, tick_s: float) -> Self:
        """Times with which a tick is completed before the steerer lets go, if all is just in time.

        Args:
            watchdog_s: the limit.
            tick_s: from tick to tick.

        Raises:
            InputError: if the limit is too short for the others.
        """
        if watchdog_s <= tick_s:
            raise InputError("--watchdog must be longer than --tick (both in seconds)")
        squeue_s = min(SQUEUE_TIMEOUT_S, (watchdog_s - tick_s) / 4)
        left = watchdog_s - tick_s - 2 * squeue_s
        return cls(watchdog_s, squeue_s, min(TIMEOUT_S, left / CALLS_IN_TICK))

    @property
    def let_go_s(self) -> float:
        """Without a completed tick, after which the steerer lets go: one squeue before the limit.

        So it has still released all held jobs in time.
        """
        return self.limit_s - self.squeue_s


class Safety:
    """The steerer's side: why it must end, and what is released then. Use it in a ``with`` block.

    Args:
        timing: how long a site may take.
        partitions: whose jobs are released; all if none is named.
        announce: takes a sentence about what fails meanwhile.
    """

    def __init__(
        self, timing: Timing, partitions: Sequence[str], announce: Callable[[str], None]
    ) -> None:
        self._timing, self._partitions, self._announce = timing, partitions, announce
        self._watchdog: Watchdog | None = None
        self._ticks: Ticks | None = None

    def begin(self, cluster: str, ticks: Ticks) -> None:
        """Starts the watchdog of a cluster, and watches the progress of ticks.

        Raises:
            InputError: if there is another one.
        """
        limit_s, squeue_s = self._timing.limit_s, self._timing.squeue_s
        try:
            self._watchdog = Watchdog(limit_s, self._partitions, cluster, squeue_s)
        except RuntimeError as error:
            raise InputError(f"there is no watchdog, so nothing is steered: {error}") from None
        self._ticks = ticks

    def beat(self) -> None:
        """Tells the watchdog that a tick was completed."""
        if self._watchdog is not None:
            self._watchdog.beat()

    def reason_to_end(self) -> str:
        """Why steering must end; nothing if it may go on."""
        if self._watchdog is None or self._ticks is None:
            return ""
        if self._ticks.without_progress_s > self._timing.let_go_s:
            problem = self._ticks.problem or "all took too long"
            return f"no tick was completed for {duration(self._timing.let_go_s)} ({problem})"
        return "" if self._watchdog.watches else "the watchdog has ended or has taken over"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *error: object) -> None:
        """Has all held jobs released at the end of the steering.

        Raises:
            Failure: if the steering could not go on.
        """
        watchdog = self._watchdog
        if watchdog is None:
            return
        if kind is not None and issubclass(kind, Exception) and not issubclass(kind, Failure):
            watchdog.leave()  # an error of ours is no order to stop
            return
        reason = self.reason_to_end()
        if kind is not None or not reason:
            status = watchdog.stop(self._timing.limit_s)
            if status is None:
                self._announce(f"the watchdog, process {watchdog.pid}, keeps running")
            if kind is not None or not status:
                return
            reason = "the watchdog has failed"
        watchdog.leave()
        raise Failure(f"steering has ended: {reason}; {self._let_go(watchdog)}")

    def _let_go(self, watchdog: Watchdog) -> str:
        """Releases all that can be released; says what was done."""
        try:
            release_all(
                self._partitions,
                stay=False,
                patience_s=PATIENCE_S,
                squeue_timeout_s=self._timing.squeue_s,
                announce=self._announce,
            )
            done = "all held jobs are released"
        except SiteAway as error:
            done = f"not all held jobs could be released ({error})"
        if watchdog.is_alive:
            return f"{done}, and process {watchdog.pid} releases later ones until it is stopped"
        return f"{done}, and later ones stay held"
