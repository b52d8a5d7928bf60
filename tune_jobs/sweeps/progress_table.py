"""The table of a sweep on screen: rewritten in place on a terminal, plain lines elsewhere."""

import math
import sys
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal, TextIO

from rich.live import Live
from rich.table import Table

from tune_jobs.terminal.progress import LINE_EVERY_S, duration, is_terminal, live_display

_SHOWN = 6
_REFRESH_S = 0.5
_OVER = ("finished", "stopped", "failed")


@dataclass(frozen=True)
class TrialLine:
    """One trial.

    Attributes:
        index: its number.
        status: what it is doing.
        done: iterations done.
        total: iterations of a trial that is not stopped.
        score: what it is ranked by; NaN before there is a score.
        settings: what is special about it.
        task: the part of them that makes a task of its own; scores are ranked within one.
    """

    index: int
    status: str
    done: int
    total: int
    score: float
    settings: str
    task: str = ""


class ProgressTable:
    """Shows the best trials and those that run.

    Args:
        num_trials: trials that there will be.
        metric: what they are ranked by.
        mode: whether a lower or a higher metric is better.
        stream: where to write, by default the standard error.
        interactive: whether to rewrite in place; by default if the stream is a terminal.
        clock: seconds, for tests.
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
        self._live: Live | None = None
        if is_terminal(self._stream) if interactive is None else interactive:
            self._live = live_display(self._stream)
        self._clock = clock
        self._lines: dict[int, TrialLine] = {}
        self._begun = self._shown_at = clock()
        self._at_start: int | None = None

    def put(self, line: TrialLine) -> None:
        """Takes the newest state of a trial; a score that is not known yet keeps the last one."""
        before = self._lines.get(line.index)
        if math.isnan(line.score) and before is not None:
            line = replace(line, score=before.score)
        self._lines[line.index] = line

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
        wait = LINE_EVERY_S if self._live is None else _REFRESH_S
        if not now and self._clock() - self._shown_at < wait:
            return
        self._shown_at = self._clock()
        if self._live is not None:
            self._live.update(self._table(), refresh=True)
            return
        best = ", ".join(
            f"{line.score:.4g} of trial {line.index:03d} ({line.settings})" for line in self.best()
        )
        self.say(self.headline() + (f"  best {self._metric} {best}" if best else ""))

    def close(self) -> None:
        """Shows the last states; nothing is rewritten afterwards."""
        if self._live is not None:
            self.refresh(now=True)
            self._live.stop()

    def best(self) -> list[TrialLine]:
        """The trial with the best score of each task, of those that have one."""
        leaders: dict[str, TrialLine] = {}
        for line in self._ranked():
            leaders.setdefault(line.task, line)
        return list(leaders.values())

    def headline(self) -> str:
        """How many trials are where, and how long it may still take."""
        counts = Counter(line.status for line in self._lines.values())
        over = sum(counts[status] for status in _OVER)
        parts = [f"{over}/{self._num_trials} trials over"]
        shown = ("stopped", "failed", "running")
        parts += [f"{counts[status]} {status}" for status in shown if counts[status]]
        # Time left at the present pace.
        totals = [line.total for line in self._lines.values()]
        spent, done = self._clock() - self._begun, self._work_done()
        new = done - (self._at_start or 0)
        left = self._num_trials * sum(totals) / len(totals) - done if totals else 0.0
        pace = f"  {duration(left * spent / new)} left" if min(new, spent, left) > 0 else ""
        return ", ".join(parts) + pace

    def _ranked(self) -> list[TrialLine]:
        scored = [line for line in self._lines.values() if not math.isnan(line.score)]
        return sorted(scored, key=lambda line: (self._sign * line.score, line.index))

    def _work_done(self) -> int:
        """Iterations done, or not needed any more."""
        return sum(
            line.total if line.status in _OVER else line.done for line in self._lines.values()
        )

    def _table(self) -> Table:
        ranked = self._ranked()[:_SHOWN]
        running = [
            line for line in self._lines.values() if line.status == "running" and line not in ranked
        ][: max(2, _SHOWN - len(ranked))]
        table = Table(title=self.headline(), title_justify="left", title_style="", box=None)
        for name in ("trial", "iteration", self._metric, "status", "settings"):
            right = name in ("iteration", self._metric)
            table.add_column(name, justify="right" if right else "left", no_wrap=True)
        for line in [*ranked, *running]:
            score = "" if math.isnan(line.score) else f"{line.score:.4g}"
            cells = f"{line.index:03d}", f"{line.done}/{line.total}", score, line.status
            table.add_row(*cells, line.settings.replace("[", r"\["))
        return table
