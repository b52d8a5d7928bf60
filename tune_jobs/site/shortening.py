"""Lines of a record without what the line before has said already.

A queue of hundreds of jobs is nearly the same from tick to tick. So a line has the rows of jobs and
nodes that are new or different, and what has moved in the order; every `WHOLE_EVERY` lines, and the
first of a process, is whole.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from tune_jobs.site.sequences import moved, moves

WHOLE_EVERY = 100

Entry = dict[str, Any]
Rows = Mapping[str, Sequence[Any]]


class Shortener:
    """Leaves out what is as it was; `Restorer` puts it in again."""

    def __init__(self) -> None:
        self._lines, self._last = 0, Entry()

    def shorten(self, entry: Entry) -> Entry:
        """A shorter line for a tick, whose rows have names of their own."""
        last, self._last = self._last, entry
        whole = self._lines % WHOLE_EVERY == 0
        self._lines += 1
        if whole:
            return entry
        state = entry["snapshot"]
        short = {key: value for key, value in state.items() if key not in ("jobs", "nodes")}
        short["after"] = last["tick"]
        for name in ("jobs", "nodes"):
            short[name], short[f"{name}_gone"] = _changes(last["snapshot"][name], state[name])
        decision = entry["decision"]
        order = moves(last["decision"]["order"], decision["order"])
        return {**entry, "snapshot": short, "decision": {**decision, "order": order}}


class Restorer:
    """Makes whole lines of shorter ones, read in their order."""

    def __init__(self) -> None:
        self._last: Entry | None = None

    def restore(self, line: Entry) -> Entry:
        """The whole line.

        Raises:
            KeyError, TypeError, ValueError: if it is none.
            LookupError: if the line that it depends on is missing.
        """
        state, decision = line["snapshot"], line["decision"]
        if "after" not in state:
            self._last = line
            return line
        last = self._last
        if last is None or last["tick"] != state["after"]:
            raise LookupError(f"it needs tick {state['after']}, which does not stand before it")
        whole: Entry = {"time": state["time"], "unreadable": state["unreadable"]}
        for name in ("jobs", "nodes"):
            rows = _named(last["snapshot"][name])
            for gone in state[f"{name}_gone"]:
                del rows[gone]
            rows |= _named(state[name])
            whole[name] = [rows[key] for key in sorted(rows)]
        order = moved(last["decision"]["order"], decision["order"])
        self._last = {**line, "snapshot": whole, "decision": {**decision, "order": order}}
        return self._last


def _changes(before: Sequence[Any], now: Sequence[Any]) -> tuple[list[Any], list[str]]:
    """Rows that are new or different, and the names of those that are gone."""
    old, new = _named(before), _named(now)
    return [row for name, row in new.items() if old.get(name) != row], sorted(old.keys() - new)


def _named(rows: Sequence[Any]) -> dict[str, Any]:
    return {row[0]: row for row in rows}
