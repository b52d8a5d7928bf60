"""The live table of a sweep: rewritten in place on a terminal, plain lines elsewhere."""

import math
import os
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal, TextIO

from tune_jobs.terminal.progress import LINE_EVERY_S, duration, is_terminal

_SHOWN = 6
_REFRESH_S = 0.5


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

    @property
    def over(self) -> bool:
        """Whether nothing more will come."""
        return self.status in ("finished", "stopped", "failed")


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
        self._interactive = is_terminal(self._stream) if interactive is None else interactive
        self._clock = clock
        self._lines: dict[int, TrialLine] = {}
        self._drawn = 0
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
        self._erase()
        self._write(f"{text}\n")
        if self._interactive:
            self._draw()

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
            self._erase()
            self._draw()
        else:
            best = self.best()
            rows = ", ".join(_row(line) for line in best)
            leaders = f"  best {self._metric} {rows}" if best else ""
            self._write(f"{self.headline()}{leaders}\n")

    def close(self) -> None:
        """Shows the last states; nothing is rewritten afterwards."""
        if self._interactive:
            self.refresh(now=True)
        self._drawn = 0

    def best(self) -> list[TrialLine]:
        """The trial with the best score of each task, of those that have one."""
        leaders: dict[str, TrialLine] = {}
        for line in self._ranked():
            leaders.setdefault(line.task, line)
        return list(leaders.values())

    def headline(self) -> str:
        """How many trials are where, and how long it may still take."""
        counts = {
            status: sum(line.status == status for line in self._lines.values())
            for status in ("finished", "stopped", "failed", "running")
        }
        over = sum(counts[status] for status in ("finished", "stopped", "failed"))
        parts = [f"{over}/{self._num_trials} trials over"]
        parts += [
            f"{count} {status}"
            for status, count in counts.items()
            if count and status != "finished"
        ]
        return ", ".join(parts) + self._eta()

    def _ranked(self) -> list[TrialLine]:
        scored = [line for line in self._lines.values() if not math.isnan(line.score)]
        return sorted(scored, key=lambda line: (self._sign * line.score, line.index))

    def _work_done(self) -> int:
        """Iterations done, or not needed any more."""
        return sum(line.total if line.over else line.done for line in self._lines.values())

    def _eta(self) -> str:
        """Time left at the present pace."""
        totals = [line.total for line in self._lines.values()]
        spent = self._clock() - self._begun
        done = self._work_done()
        new = done - (self._at_start or 0)
        if not totals or new <= 0 or spent <= 0:
            return ""
        left = self._num_trials * sum(totals) / len(totals) - done
        return f"  {duration(left * spent / new)} left" if left > 0 else ""

    def _draw(self) -> None:
        width = _width(self._stream)
        ranked = self._ranked()[:_SHOWN]
        shown = {line.index for line in ranked}
        running = [
            line
            for line in self._lines.values()
            if line.status == "running" and line.index not in shown
        ][: max(2, _SHOWN - len(ranked))]
        texts = [self.headline(), f"  trial  iteration   {self._metric:>12}  status    settings"]
        texts += [_table_row(line) for line in [*ranked, *running]]
        self._write("".join(f"{text[: width - 1]}\n" for text in texts))
        self._drawn = len(texts)

    def _erase(self) -> None:
        if self._drawn:
            self._write(f"\x1b[{self._drawn}A\x1b[J")
            self._drawn = 0

    def _write(self, text: str) -> None:
        self._stream.write(text)
        self._stream.flush()


def _row(line: TrialLine) -> str:
    return f"{line.score:.4g} of trial {line.index:03d} ({line.settings})"


def _table_row(line: TrialLine) -> str:
    score = "" if math.isnan(line.score) else f"{line.score:.4g}"
    progress = f"{line.done}/{line.total}"
    return f"  {line.index:03d}    {progress:>9}   {score:>12}  {line.status:<8}  {line.settings}"


def _width(stream: TextIO) -> int:
    try:
        return max(40, os.get_terminal_size(stream.fileno()).columns)
    except (OSError, ValueError):
        return 100
