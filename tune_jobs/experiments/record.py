"""What made a result, beside it: commit, versions, processor, calls, digests of all files."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from pydantic import TypeAdapter

from cluster_env.core.errors import InputError
from cluster_env.core.json_text import read_json
from rllib_configs.config import extensions
from tune_jobs.experiments.calls import Call
from tune_jobs.experiments.tables import markdown_of
from tune_jobs.runs.directory import RunDirectory
from tune_jobs.terminal.files import digest, write_whole
from tune_jobs.tracking.places import ARTIFACT_FOLDER, STORE_FILE
from tune_jobs.tracking.provenance import MADE, provenance

RECORD, PAGE = "results.json", "results.md"
DIRTY = "git.dirty"


@dataclass(frozen=True)
class _Entry:
    """What is known of a call that has ended: a digest of all it rests on, and its files."""

    given: str
    files: dict[str, str]


_ENTRIES = TypeAdapter(dict[str, _Entry])


class ExperimentRecord:
    """Which calls of an experiment are done, with what, and what they wrote.

    A call that evaluates or draws is done if it was made at this commit, on the same policies, job
    logs and files of the calls before it, and what it wrote is as it was.

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
        try:
            kept = read_json(out / RECORD)["commands"]
            self._known = _ENTRIES.validate_python(kept)
        except (OSError, ValueError, KeyError, TypeError):
            self._known = {}  # nothing that can be read, so that all is made again
        self._calls: dict[str, _Entry] = {}
        self._before: dict[str, int] = {}

    def check_commit(self) -> None:
        """Makes sure that the commit holds all that results will be made with.

        Raises:
            InputError: if files differ from it.
        """
        if self._made.get(DIRTY) == "yes":
            raise InputError(
                f"files of metasched differ from the commit {self._made['git.commit'][:7]}, "
                "so these results could not be reproduced from it; commit them first, or "
                "give --force, which records that they were changed"
            )

    def elsewhere(self) -> list[str]:
        """Names of the runs that are not known to be trained at this commit alone."""
        return [run.name for run in self._runs if _commits(run) != [_label(self._made)]]

    def is_done(self, call: Call) -> bool:
        """Whether a call need not be made again; it is taken over then.

        What was made with changed files is never done: nobody knows which they were.
        """
        known = self._known.get(str(call))
        if known is None or known.given != self._given(call) or self._made.get(DIRTY) == "yes":
            return False
        if self._digests(known.files) != known.files:
            return False
        self._calls[str(call)] = known
        return True

    def begin(self, call: Call) -> None:
        """Remembers what stands where a call writes to, before it is made."""
        self._before = self._times(call)

    def add(self, call: Call) -> None:
        """Takes down a call that has ended, with the files that it has written since `begin`.

        One that found all that it writes has written what is there.
        """
        now = self._times(call)
        written = [name for name, time in now.items() if self._before.get(name) != time]
        self._calls[str(call)] = _Entry(self._given(call), self._digests(written or now))
        self._write({**self._known, **self._calls})

    def close(self) -> Path:
        """Writes the page that shows all tables with the calls that made them; returns it."""
        self._write(self._calls)
        made = "\n".join(f"- {name}: `{text}`" for name, text in self._made.items())
        parts = [f"# {self._about}", made, self._policies()]
        for line, entry in self._calls.items():
            files = "".join(f"- `{name}` {text[:12]}\n" for name, text in entry.files.items())
            parts.append(f"    {line}\n\n{files}".rstrip())
            tables = (self._out / name for name in entry.files if name.endswith(".csv"))
            parts += [text for path in tables if (text := markdown_of(path))]
        page = self._out / PAGE
        _replace(page, "\n\n".join(parts) + "\n")
        return page

    def _policies(self) -> str:
        """The policies that calls used: where they were trained, and what they are."""
        lines = ["| Run | Trained at | Policy |", "| :-- | :-- | :-- |"]
        for run in self._runs:
            commits = ", ".join(_commits(run)) or "unknown"
            lines.append(f"| {run.name} | {commits} | {RunDirectory(run).policy_digest()[:12]} |")
        return "\n".join(lines) if self._runs else ""

    def _given(self, call: Call) -> str:
        """A digest of what the numbers of a call depend on.

        That is how they are made, policies, logs, extensions, and the files of the calls before.
        """
        extensions.load_extensions()
        made = {name: text for name, text in self._made.items() if name != "command"}
        given = sha256(repr(made).encode())
        for one in extensions.found:
            given.update(repr([one.source, *map(digest, one.files())]).encode())
        for run in self._runs:
            given.update(run.name.encode())
            given.update(RunDirectory(run).policy_digest().encode())
        for entry in self._calls.values():
            given.update(repr(entry.files).encode())
        for path in map(Path, call.texts("trace")):
            inside = sorted(path.iterdir()) if path.is_dir() else [path]
            given.update(repr([(one.name, digest(one)) for one in inside]).encode())
        for name in filter(None, ",".join(call.texts("runs")).split(",")):
            given.update(RunDirectory(Path(name)).policy_digest().encode())
        return given.hexdigest()

    def _times(self, call: Call) -> dict[str, int]:
        """When each file where a call writes to was written.

        Runs, what is tracked, to which every call adds, and the record itself are left out.
        """
        apart = {self._out / RECORD, self._out / PAGE, *self._runs}
        for run in self._runs:
            apart |= {run.parent / ARTIFACT_FOLDER, *run.parent.glob(f"{STORE_FILE}*")}
        paths = [path for place in call.written for path in (place, *sorted(place.rglob("*")))]
        return {
            path.relative_to(self._out).as_posix(): path.stat().st_mtime_ns
            for path in paths
            if path.is_file()
            and path.is_relative_to(self._out)
            and apart.isdisjoint((path, *path.parents))
        }

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


def _replace(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, text)
