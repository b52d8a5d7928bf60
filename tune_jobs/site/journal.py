"""The record of what was seen and decided, a JSON line each tick, and deciding all of it anew."""

import gzip
import json
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

from cluster_env.core.errors import InputError
from cluster_env.core.json_text import MOST_BYTES, parse_json
from cluster_env.workloads.files import open_bytes
from rllib_configs.snapshot import Adviser, Snapshot
from tune_jobs.site.deciding import Decision, Limits, Past, decide
from tune_jobs.terminal.files import replacing

Entry = dict[str, Any]
Write = Callable[[Entry], None]

TICK = "tick"
_BEGINS = b'{"kind":"tick"'
_LONGEST_LINE = 1 << 24
_NO_LINE = "line {} of {} is no line of a journal"


def open_journal(path: Path | None) -> Write:
    """Where lines go: to the end of a file, or to stdout; each is there before this returns.

    In a file whose name ends in ``.gz`` each line is compressed by itself, so that a crash leaves
    those before it whole. A line that a process was writing when it was killed is cut off.

    Raises:
        InputError: if the file cannot be written.
    """
    out, compressed = sys.stdout.buffer, False
    if path is not None:
        compressed = path.suffix == ".gz"
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            _cut_unfinished(path, compressed)
            out = path.open("ab")
        except OSError as error:
            raise InputError(f"{path} cannot be written: {error.strerror or error}") from None

    def write(entry: Entry) -> None:
        line = json.dumps(entry, separators=(",", ":"), allow_nan=False).encode() + b"\n"
        out.write(gzip.compress(line) if compressed else line)
        out.flush()

    return write


def _cut_unfinished(path: Path, compressed: bool) -> None:
    """Cuts off a line of a tick that has no end: nothing was done that it says."""
    if not path.is_file():
        return
    if compressed:
        lines = []
        try:
            with gzip.open(path) as whole:
                for line in whole:
                    lines.append(line)  # noqa: PERF402  Those before an error count.
        except EOFError:
            with replacing(path) as aside:
                aside.write_bytes(b"".join(map(gzip.compress, lines)))
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
            given, state, tick = dict(entry["limits"]), entry["state"], entry["tick"]
            longest_wait_s = given.pop("longest_wait_s", 0)  # until 0.3
            limits = Limits(**given)
            past = Past(tuple(entry["past"]["awaited"]), dict(entry["past"]["resting"]))
            recorded = entry["decision"]
        except (ValueError, KeyError, TypeError):
            raise InputError(_NO_LINE.format(number, path)) from None
        if longest_wait_s:
            raise InputError(
                f"line {number} of {path} was decided with a second bound on waits, as there "
                "was until version 0.3, so it cannot be repeated"
            )
        snapshot = Snapshot.from_plain(entry["snapshot"])
        decision = decide(snapshot, adviser, limits, state, past)
        again = json.loads(json.dumps(decision.to_plain()))
        yield tick, json.dumps(again) == json.dumps(recorded)


def read_journal(path: Path) -> Iterator[Entry]:
    """The lines of a journal.

    Raises:
        InputError: if the file is no journal, or one of before version 0.2.0, whose lines say
            only what has changed.
    """
    number = 0
    try:
        with open_bytes(path) as file, suppress(EOFError):  # the last line was being written
            lines = iter(lambda: file.readline(MOST_BYTES), b"")
            for number, line in enumerate(lines, start=1):
                if not line.endswith(b"\n") and line.startswith(_BEGINS):
                    return
                entry = parse_json(line)
                if entry["kind"] == TICK and "after" in entry["snapshot"]:
                    raise InputError(
                        f"line {number} of {path} holds only changes, as journals before "
                        "version 0.2.0 did; these are no longer read"
                    )
                yield entry
    except InputError:
        raise
    except (ValueError, KeyError, TypeError, AttributeError):
        raise InputError(_NO_LINE.format(number, path)) from None
    except OSError as error:
        raise InputError(f"{path} cannot be read as a journal: {error}") from None
