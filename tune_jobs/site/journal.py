"""The record of what was seen and decided, a JSON line each tick, and deciding all of it anew."""

import json
import os
import sys
from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path

from cluster_env.core.errors import InputError
from rllib_configs.snapshot import Adviser, Snapshot
from tune_jobs.site.deciding import Decision, Limits, Past, decide
from tune_jobs.site.shortening import Entry, Restorer, Shortener

Write = Callable[[Entry], None]

TICK = "tick"
_BEGINS = b'{"kind":"tick"'
_LONGEST_LINE = 1 << 24


def open_journal(path: Path | None) -> Write:
    """Where lines go: to the end of a file, or to stdout; each is there before this returns.

    Lines of ticks are shortened. One that a process was writing when it was killed is cut off.

    Raises:
        InputError: if the file cannot be written.
    """
    if path is None:
        out = sys.stdout
    else:
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            _cut_unfinished(path)
            out = path.open("a", encoding="utf-8")
        except OSError as error:
            raise InputError(f"{path} cannot be written: {error.strerror}") from None
    shortener = Shortener()

    def write(entry: Entry) -> None:
        line = shortener.shorten(entry) if entry["kind"] == TICK else entry
        out.write(json.dumps(line, separators=(",", ":"), allow_nan=False) + "\n")
        out.flush()

    return write


def _cut_unfinished(path: Path) -> None:
    """Cuts off a line of a tick that has no end: nothing was done that it says."""
    if not path.is_file():
        return
    with path.open("rb+") as file:
        size = file.seek(0, os.SEEK_END)
        begin = file.seek(max(size - _LONGEST_LINE, 0))
        tail = file.read()
        last = tail.rfind(b"\n") + 1
        if tail[last:].startswith(_BEGINS):
            file.truncate(begin + last)


def tick_entry(
    tick: int,
    policy: str,
    limits: Limits,
    state: str,
    snapshot: Snapshot,
    past: Past,
    decision: Decision,
) -> Entry:
    """The line of one tick."""
    return {
        "kind": TICK,
        "tick": tick,
        "policy": policy,
        "limits": asdict(limits),
        "state": state,
        "snapshot": snapshot.to_plain(),
        "past": asdict(past),
        "decision": decision.to_plain(),
    }


def decided_anew(path: Path, adviser: Adviser) -> Iterator[tuple[int, bool]]:
    """Decides on each recorded state again.

    Args:
        path: a journal.
        adviser: the policy that made it.

    Yields:
        The number of the tick, and whether the decision is the same to the last bit.

    Raises:
        InputError: if the file is no journal.
    """
    for number, entry in enumerate(read_journal(path), start=1):
        if entry["kind"] != TICK:
            continue
        try:
            limits, state, tick = Limits(**entry["limits"]), entry["state"], entry["tick"]
            past = Past(tuple(entry["past"]["awaited"]), dict(entry["past"]["resting"]))
            recorded = entry["decision"]
        except (ValueError, KeyError, TypeError):
            raise InputError(_NO_LINE.format(number, path)) from None
        snapshot = Snapshot.from_plain(entry["snapshot"])
        decision = decide(snapshot, adviser, limits, state, past)
        again = json.loads(json.dumps(decision.to_plain()))
        yield tick, json.dumps(again) == json.dumps(recorded)


_NO_LINE = "line {} of {} is no line of a journal"


def read_journal(path: Path) -> Iterator[Entry]:
    """The lines of a journal, whole.

    Raises:
        InputError: if the file is no journal, or lines are missing from it.
    """
    try:
        lines = path.read_text(encoding="utf-8").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path} cannot be read as a journal: {error}") from None
    if not lines[-1] or lines[-1].startswith(_BEGINS.decode()):
        lines.pop()  # a line without an end was being written when a process was killed
    restorer = Restorer()
    for number, line in enumerate(lines, start=1):
        try:
            entry = json.loads(line)
            yield restorer.restore(entry) if entry["kind"] == TICK else entry
        except (ValueError, KeyError, TypeError, AttributeError):
            raise InputError(_NO_LINE.format(number, path)) from None
        except LookupError as error:
            raise InputError(f"line {number} of {path} is of no use: {error}") from None
