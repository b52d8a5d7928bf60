"""The table of a sweep on screen: rewritten in place on a terminal, plain lines elsewhere."""

import math
import sys
import time
from collections import Counter
from collections.abc import Callable
from typing import Literal, TextIO

from rich.live import Live
from rich.markup import escape
from rich.table import Table

from tune_jobs.sweeps.folder import TrialRecord
from tune_jobs.terminal.live import live_display
from tune_jobs.terminal.progress import LINE_EVERY_S, duration, is_terminal

_SHOWN = 6
_REFRESH_S = 0.5
_OVER = ("finished", "stopped", "failed")


class ProgressTable:
    """Shows the best trials, by a metric, and those that run.

    It writes to the standard error unless another stream is given, in place if that is a terminal.
    The clock, in seconds, is for tests.
    """

    def __init__(
        self,
        num_trials: int,
        metric: str,
        mode: Literal["min", "max"],
        stream: TextIO | None = None,
        interactive: bool | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._num_trials = num_trials
        self._metric = metric
        self._sign = 1.0 if mode == "min" else -1.0
        self._stream = stream or sys.stderr
        self._interactive = is_terminal(self._stream) if interactive is None else interactive
        self._live: Live | None = None
        self._clock = clock
        self._trials: dict[int, TrialRecord] = {}
        self._begun = self._shown_at = clock()
        self._at_start: int | None = None

    def put(self, trial: TrialRecord) -> None:
        """Takes the newest state of a trial."""
        self._trials[trial.index] = trial

    def say(self, text: str) -> None:
        """Writes a line that stays."""
        if self._live is not None:
            self._live.console.print(text, markup=False, soft_wrap=True)
        else:
            print(text, file=self._stream, flush=True)

    def refresh(self, now: bool = False) -> None:
        """Shows the newest states, unless it did a moment ago."""
        if self._at_start is None:
            self._at_start = self._work_done()
            self._begun = self._clock()
        wait = _REFRESH_S if self._interactive else LINE_EVERY_S
        if not now and self._clock() - self._shown_at < wait:
            return
        self._shown_at = self._clock()
        if self._interactive:
            self._live = self._live or live_display(self._stream)
            self._live.update(self._table(), refresh=True)
            return
        best = ", ".join(
            f"{trial.score:.4g} of trial {trial.index:03d} ({trial.file.point.describe()})"
            for trial in self.best()
        )
        self.say(self.headline() + (f"  best {self._metric} {best}" if best else ""))

    def close(self) -> None:
        """Shows the last states; nothing is rewritten afterwards."""
        if self._live is not None:
            self.refresh(now=True)
            self._live.stop()

    def best(self) -> list[TrialRecord]:
        """The trial with the best score of each task, of those that have one."""
        leaders: dict[str, TrialRecord] = {}
        for trial in self._ranked():
            leaders.setdefault(trial.task, trial)
        return list(leaders.values())

    def headline(self) -> str:
        """How many trials are where, and how long it may still take."""
        counts: Counter[str] = Counter(trial.file.status for trial in self._trials.values())
        over = sum(counts[status] for status in _OVER)
        parts = [f"{over}/{self._num_trials} trials over"]
        shown = ("stopped", "failed", "running")
        parts += [f"{counts[status]} {status}" for status in shown if counts[status]]
        # Time left at the present pace.
        totals = [trial.config.training.iterations for trial in self._trials.values()]
        spent, done = self._clock() - self._begun, self._work_done()
        new = done - (self._at_start or 0)
        left = self._num_trials * sum(totals) / len(totals) - done if totals else 0.0
        pace = f"  {duration(left * spent / new)} left" if min(new, spent, left) > 0 else ""
        return ", ".join(parts) + pace

    def _ranked(self) -> list[TrialRecord]:
        scored = [trial for trial in self._trials.values() if not math.isnan(trial.score)]
        return sorted(scored, key=lambda trial: (self._sign * trial.score, trial.index))

    def _work_done(self) -> int:
        """Iterations done, or not needed any more."""
        return sum(
            trial.config.training.iterations if trial.file.status in _OVER else trial.done
            for trial in self._trials.values()
        )

    def _table(self) -> Table:
        ranked = self._ranked()[:_SHOWN]
        running = [
            trial
            for trial in self._trials.values()
            if trial.file.status == "running" and trial not in ranked
        ][: max(2, _SHOWN - len(ranked))]
        table = Table(title=self.headline(), title_justify="left", title_style="", box=None)
        for name in ("trial", "iteration", self._metric, "status", "settings"):
            right = name in ("iteration", self._metric)
            table.add_column(name, justify="right" if right else "left", no_wrap=True)
        for trial in [*ranked, *running]:
            table.add_row(
                f"{trial.index:03d}",
                f"{trial.done}/{trial.config.training.iterations}",
                "" if math.isnan(trial.score) else f"{trial.score:.4g}",
                trial.file.status,
                escape(trial.file.point.describe()),
            )
        return table
