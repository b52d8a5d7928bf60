"""The one place where work for a table begins: in pieces, by whoever does them, each once."""

import json
import platform
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from cluster_env.core.json_text import parse_json
from tune_jobs.processes.pieces import Found, Piece, Spread
from tune_jobs.processes.spreading import here, spreading
from tune_jobs.terminal.files import append_whole, write_whole
from tune_jobs.terminal.progress import NoProgress, Progress


class Kept:
    """What was measured already, by fingerprint: plain data, a line of JSON each.

    Args:
        path: the file, read if it is there; by default nothing is kept.
    """

    def __init__(self, path: Path | None = None) -> None:
        # A task of Ray has a working directory of its own.
        self.path = None if path is None else path.absolute()
        self._known = dict(_read(path)) if path is not None else {}
        self._used: dict[str, Any] = {}

    def __contains__(self, key: str) -> bool:
        return key in self._known

    def __getitem__(self, key: str) -> Any:
        return self._used.setdefault(key, self._known[key])

    def note(self, key: str, found: Any) -> None:
        """Remembers what was found, and is in the file already."""
        self._known[key] = self._used[key] = found

    def add(self, key: str, found: Found) -> Found:
        """Keeps what was found, if it has a fingerprint; gives it as a later call reads it."""
        if self.path is None or not key:
            return found
        self.note(key, _append(self.path, key, found))
        return self._used[key]

    def settle(self) -> None:
        """Writes the file anew, with what was used alone, and not in the order in which it ended.

        Where there is nothing to keep, there is no file.
        """
        if self.path is None or not self._used:
            return
        lines = (_line(key, found) for key, found in self._used.items())
        write_whole(self.path, "".join(lines))


@dataclass(frozen=True)
class Work:
    """How tables are measured: by whom, and what is shown and kept of it.

    Attributes:
        spread: does the pieces of work.
        progress: makes a step for each.
        kept: has those that an earlier call did.
    """

    spread: Spread = here
    progress: Progress = field(default_factory=NoProgress)
    kept: Kept = field(default_factory=Kept)

    def measure(
        self,
        function: Callable[[Any, Piece], Found],
        shared: Any,
        pieces: Sequence[Piece],
        *,
        keys: Sequence[str] = (),
        unit: str = "evaluation",
        name: Callable[[Piece, Found], str] = lambda piece, found: str(piece),
    ) -> Iterator[Found]:
        """What comes of pieces of work, in their order, as soon as it is there.

        A call that was stopped goes on: what has a fingerprint is kept as soon as it is done, and
        is not done again.

        Args:
            function: a function of a module, of what all pieces share and a piece.
            shared: what all pieces share.
            pieces: what differs.
            keys: a fingerprint for each, of those whose result is plain data; empty for none.
            unit: what a piece is called.
            name: what is shown of a piece that is done.
        """
        keyed = list(zip(keys or [""] * len(pieces), pieces, strict=True))
        known = [key in self.kept for key, _ in keyed]
        todo = [one for one, there in zip(keyed, known, strict=True) if not there]
        done = len(pieces) - len(todo)
        self.progress.start(len(pieces), done, unit)
        common = function, shared, self.kept.path, platform.node()
        results = iter(self.spread(_do_and_keep, common, todo))
        for (key, piece), there in zip(keyed, known, strict=True):
            if there:
                yield self.kept[key]
                continue
            is_kept, found = next(results)
            if is_kept:
                self.kept.note(key, found)
            else:
                found = self.kept.add(key, found)
            done += 1
            self.progress.step(done, name(piece, found))
            yield found
        self.progress.close()


@contextmanager
def working(
    runners: int,
    progress: Progress | None = None,
    kept: Path | None = None,
    address: str | None = None,
) -> Iterator[Work]:
    """Work done by so many processes, for the time of a ``with`` block; see `spreading`.

    Args:
        runners: processes; 0: all is done in this one.
        progress: by default nothing is shown.
        kept: file of what is kept, see `Kept`.
        address: of a Ray cluster.
    """
    progress = progress or NoProgress()
    with spreading(runners, address, progress.say) as spread:
        work = Work(spread, progress, Kept(kept))
        yield work
    work.kept.settle()


def _do_and_keep(
    shared: tuple[Callable[[Any, Any], Any], Any, Path | None, str], piece: tuple[str, Any]
) -> tuple[bool, Any]:
    """A piece, perhaps in another process, and whether it is kept.

    It is so at once, whatever comes of those before it, unless the file is on another machine.
    """
    (function, common, path, machine), (key, own) = shared, piece
    found = function(common, own)
    if path is None or not key or platform.node() != machine:
        return False, found
    return True, _append(path, key, found)


def _append(path: Path, key: str, found: object) -> Any:
    """Adds a line to a file, and gives what it holds."""
    path.parent.mkdir(parents=True, exist_ok=True)
    line = _line(key, found)
    append_whole(path, line)
    return parse_json(line)["found"]


def _line(key: str, found: object) -> str:
    return f"{json.dumps({'key': key, 'found': found}, default=_plain)}\n"


def _plain(value: Any) -> Any:
    """A number or an array of numpy as Python has it."""
    if isinstance(value, np.generic | np.ndarray):
        return value.tolist()
    raise TypeError(f"{type(value).__name__} is no plain data")


def _read(path: Path) -> Iterator[tuple[str, Any]]:
    """What a file holds; a line that a full disk or a crash has cut off is none."""
    if not path.is_file():
        return
    for line in path.read_text(encoding="utf-8").splitlines():
        try:
            entry = parse_json(line)
            yield entry["key"], entry["found"]
        except (ValueError, KeyError, TypeError):
            continue
