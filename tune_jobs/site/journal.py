"""The record of what was seen and decided, a JSON line each tick, and deciding all of it anew."""

import json
import sys
from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

from cluster_env.core.errors import InputError
from cluster_env.core.snapshot import Adviser, Snapshot
from tune_jobs.site.deciding import Decision, Limits, decide

Write = Callable[[dict[str, Any]], None]


def open_journal(path: Path | None) -> Write:
    """Where lines go: to the end of a file, or to stdout; each is there before this returns.

    Raises:
        InputError: if the file cannot be written.
    """
    if path is None:
        out = sys.stdout
    else:
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            out = path.open("a", encoding="utf-8")
        except OSError as error:
            raise InputError(f"{path} cannot be written: {error.strerror}") from None

    def write(entry: dict[str, Any]) -> None:
        out.write(json.dumps(entry, separators=(",", ":"), allow_nan=False) + "\n")
        out.flush()

    return write


def tick_entry(
    tick: int, policy: str, limits: Limits, state: str, snapshot: Snapshot, decision: Decision
) -> dict[str, Any]:
    """The line of one tick."""
    return {
        "kind": "tick",
        "tick": tick,
        "policy": policy,
        "limits": asdict(limits),
        "state": state,
        "snapshot": snapshot.to_plain(),
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
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path} cannot be read as a journal: {error}") from None
    for number, line in enumerate(lines, start=1):
        try:
            entry = json.loads(line)
            if entry["kind"] != "tick":
                continue
            limits, state = Limits(**entry["limits"]), entry["state"]
            tick, recorded = entry["tick"], entry["decision"]
            given = entry["snapshot"]
        except (ValueError, KeyError, TypeError):
            raise InputError(f"line {number} of {path} is no line of a journal") from None
        decision = decide(Snapshot.from_plain(given), adviser, limits, state)
        again = json.loads(json.dumps(decision.to_plain()))
        yield tick, json.dumps(again) == json.dumps(recorded)
