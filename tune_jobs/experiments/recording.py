"""What made a result, beside it: commit, versions, commands, and digests of all files."""

import json
from collections.abc import Iterable, Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

from cluster_env.core.errors import InputError
from tune_jobs.experiments.commands import Command
from tune_jobs.experiments.tables import markdown_of
from tune_jobs.terminal.files import replacing
from tune_jobs.tracking.provenance import provenance

RECORD, PAGE = "results.json", "results.md"


class Record:
    """Which commands of an experiment are done, with what, and what they wrote.

    A command that evaluates or draws is done if it was given at this commit, on the same policies
    and the same files of the commands before it, and what it wrote is as it was.

    Args:
        out: folder of the experiment.
        about: what it is, in words.
        runs: folders of its runs.
    """

    def __init__(self, out: Path, about: str, runs: Sequence[Path]) -> None:
        self._out, self._about, self._runs = out, about, runs
        self._made = {
            name: text
            for name, text in sorted(provenance().items())
            if name == "command" or name.startswith(("git.", "version."))
        }
        known = _read(out / RECORD)
        self._known: dict[str, Any] = known.get("commands", {})
        self._commands: dict[str, Any] = {}
        self._before: dict[str, int] = {}

    def check_commit(self) -> None:
        """Makes sure that the commit holds all that results will be made with.

        Raises:
            InputError: if files differ from it.
        """
        if self._made.get("git.dirty") == "yes":
            raise InputError(
                f"files of metasched differ from the commit {self._made['git.commit'][:7]}, so "
                f"nobody could make these results again from it; commit them first, or give "
                f"--force, and the record says that they were changed"
            )

    def is_done(self, command: Command) -> bool:
        """Whether a command need not be given again; it is taken over then."""
        known = self._known.get(str(command))
        if known is None or known["given"] != self._given():
            return False
        if self._digests(known["files"]) != known["files"]:
            return False
        self._commands[str(command)] = known
        return True

    def begin(self) -> None:
        """Remembers what stands in the folder before a command."""
        self._before = self._times()

    def add(self, command: Command) -> None:
        """Takes down a command that has ended, with the files that it has written since `begin`."""
        now = self._times()
        written = [name for name, time in now.items() if self._before.get(name) != time]
        entry = {"given": self._given(), "files": self._digests(written)}
        self._commands[str(command)] = entry
        self._write()

    def close(self) -> Path:
        """Writes the page that shows all tables with the commands that made them; returns it."""
        self._write()
        parts = [f"# {self._about}", self._provenance()]
        for line, entry in self._commands.items():
            files = "".join(f"- `{name}` {text[:12]}\n" for name, text in entry["files"].items())
            parts.append(f"    {line}\n\n{files}".rstrip())
            tables = (self._out / name for name in entry["files"] if name.endswith(".csv"))
            parts += [text for path in tables if (text := markdown_of(path))]
        page = self._out / PAGE
        _replace(page, "\n\n".join(parts) + "\n")
        return page

    def _provenance(self) -> str:
        return "\n".join(f"- {name}: `{text}`" for name, text in self._made.items())

    def _given(self) -> str:
        """A digest of the commit, the policies, and what commands before have written."""
        told = sha256(self._made.get("git.commit", "").encode())
        for run in self._runs:
            told.update(run.name.encode())
            told.update("".join(map(digest, sorted((run / "policy").glob("*")))).encode())
        for entry in self._commands.values():
            told.update(repr(entry["files"]).encode())
        return told.hexdigest()

    def _times(self) -> dict[str, int]:
        """When each file below the folder was written, but for those of runs and of the record."""
        found = {}
        for path in sorted(self._out.rglob("*")):
            apart = path in (self._out / RECORD, self._out / PAGE)
            if path.is_file() and not apart and not any(run in path.parents for run in self._runs):
                found[path.relative_to(self._out).as_posix()] = path.stat().st_mtime_ns
        return found

    def _digests(self, names: Iterable[str]) -> dict[str, str]:
        return {name: text for name in names if (text := digest(self._out / name))}

    def _write(self) -> None:
        text = json.dumps({"made": self._made, "commands": self._commands}, indent=1)
        _replace(self._out / RECORD, text + "\n")


def digest(path: Path) -> str:
    """SHA-256 of a file; empty if it is not there."""
    return sha256(path.read_bytes()).hexdigest() if path.is_file() else ""


def _read(path: Path) -> Mapping[str, Any]:
    try:
        read: Mapping[str, Any] = json.loads(path.read_text())
    except (OSError, ValueError):
        return {}
    return read


def _replace(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as aside:
        aside.write_text(text)
