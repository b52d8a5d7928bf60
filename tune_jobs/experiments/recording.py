"""What made a result, beside it: commit, versions, processor, commands, digests of all files."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from pydantic import TypeAdapter

from cluster_env.core.errors import InputError
from tune_jobs.experiments.commands import Command
from tune_jobs.experiments.tables import markdown_of
from tune_jobs.runs.directory import RunDirectory
from tune_jobs.terminal.files import digest, replacing
from tune_jobs.tracking.places import ARTIFACT_FOLDER, STORE_FILE
from tune_jobs.tracking.provenance import MADE, provenance

RECORD, PAGE = "results.json", "results.md"
DIRTY = "git.dirty"


@dataclass(frozen=True)
class _Entry:
    """What is known of a command that has ended: a digest of all it rests on, and its files."""

    given: str
    files: dict[str, str]


_ENTRIES = TypeAdapter(dict[str, _Entry])


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
            if name == "command" or name.startswith(MADE)
        }
        self._known = _read(out / RECORD)
        self._commands: dict[str, _Entry] = {}
        self._before: dict[str, int] = {}

    def check_commit(self) -> None:
        """Makes sure that the commit holds all that results will be made with.

        Raises:
            InputError: if files differ from it.
        """
        if self._made.get(DIRTY) == "yes":
            raise InputError(
                f"files of metasched differ from the commit {self._made['git.commit'][:7]}, so "
                f"nobody could make these results again from it; commit them first, or give "
                f"--force, and the record says that they were changed"
            )

    def elsewhere(self) -> list[str]:
        """Names of the runs that are not known to be trained at this commit alone."""
        return [run.name for run in self._runs if _commits(run) != [_label(self._made)]]

    def is_done(self, command: Command) -> bool:
        """Whether a command need not be given again; it is taken over then.

        What was made with changed files is never done: nobody knows which they were.
        """
        known = self._known.get(str(command))
        if known is None or known.given != self._given() or self._made.get(DIRTY) == "yes":
            return False
        if self._digests(known.files) != known.files:
            return False
        self._commands[str(command)] = known
        return True

    def begin(self) -> None:
        """Remembers what stands in the folder before a command."""
        self._before = self._times()

    def add(self, command: Command) -> None:
        """Takes down a command that has ended, with the files that it has written since `begin`.

        One that found all that it writes has written what is there.
        """
        now = self._times()
        written = [name for name, time in now.items() if self._before.get(name) != time]
        if not written:
            folders = command.after("--out")
            written = [n for n in now if any(map((self._out / n).is_relative_to, folders))]
        self._commands[str(command)] = _Entry(self._given(), self._digests(written))
        self._write({**self._known, **self._commands})

    def close(self) -> Path:
        """Writes the page that shows all tables with the commands that made them; returns it."""
        self._write(self._commands)
        parts = [f"# {self._about}", self._provenance(), self._policies()]
        for line, entry in self._commands.items():
            files = "".join(f"- `{name}` {text[:12]}\n" for name, text in entry.files.items())
            parts.append(f"    {line}\n\n{files}".rstrip())
            tables = (self._out / name for name in entry.files if name.endswith(".csv"))
            parts += [text for path in tables if (text := markdown_of(path))]
        page = self._out / PAGE
        _replace(page, "\n\n".join(parts) + "\n")
        return page

    def _provenance(self) -> str:
        return "\n".join(f"- {name}: `{text}`" for name, text in self._made.items())

    def _policies(self) -> str:
        """The policies that commands used: where they were trained, and what they are."""
        lines = ["| Run | Trained at | Policy |", "| :-- | :-- | :-- |"]
        for run in self._runs:
            commits = ", ".join(_commits(run)) or "unknown"
            lines.append(f"| {run.name} | {commits} | {RunDirectory(run).policy_digest()[:12]} |")
        return "\n".join(lines) if self._runs else ""

    def _given(self) -> str:
        """A digest of what numbers depend on, the policies, and the files of commands before."""
        made = {name: text for name, text in self._made.items() if name != "command"}
        told = sha256(repr(made).encode())
        for run in self._runs:
            told.update(run.name.encode())
            told.update(RunDirectory(run).policy_digest().encode())
        for entry in self._commands.values():
            told.update(repr(entry.files).encode())
        return told.hexdigest()

    def _times(self) -> dict[str, int]:
        """When each file below the folder was written.

        Runs, the record itself, and what is tracked, to which every command adds, are left out.
        """
        found = {}
        stores = {path for run in self._runs for path in run.parent.glob(f"{STORE_FILE}*")}
        apart = {self._out / RECORD, self._out / PAGE, *stores}
        folders = {*self._runs, *(run.parent / ARTIFACT_FOLDER for run in self._runs)}
        for path in sorted(self._out.rglob("*")):
            if path.is_file() and path not in apart and folders.isdisjoint(path.parents):
                found[path.relative_to(self._out).as_posix()] = path.stat().st_mtime_ns
        return found

    def _digests(self, names: Iterable[str]) -> dict[str, str]:
        return {name: text for name in names if (text := digest(self._out / name))}

    def _write(self, entries: Mapping[str, _Entry]) -> None:
        commands = _ENTRIES.dump_python(dict(entries))
        kept = {"made": self._made, "commands": commands}
        _replace(self._out / RECORD, json.dumps(kept, indent=1) + "\n")


def _commits(run: Path) -> list[str]:
    """The commits that a run was trained at, in order; empty if nobody took them down."""
    return list(dict.fromkeys(_label(part.made) for part in RunDirectory(run).made()))


def _label(made: Mapping[str, str]) -> str:
    changed = " with changed files" if made.get(DIRTY) == "yes" else ""
    return f"{made.get('git.commit', 'unknown')[:7]}{changed}"


def _read(path: Path) -> dict[str, _Entry]:
    """What an earlier call took down; nothing if that cannot be read, so that all is made again."""
    try:
        return _ENTRIES.validate_python(json.loads(path.read_text())["commands"])
    except (OSError, ValueError, KeyError, TypeError):
        return {}


def _replace(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as aside:
        aside.write_text(text)
