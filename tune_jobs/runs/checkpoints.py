"""Checkpoints of a run: complete and checked, or not there."""

import json
import re
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from cluster_env.core.errors import InputError
from cluster_env.core.json_text import read_json
from tune_jobs.terminal.files import digest, sync_folder, sync_tree

MANIFEST = "manifest.json"
_FORMAT = 1
_NAME = re.compile(r"iteration_(\d{6,})")
_PART = ".part"


@dataclass(frozen=True)
class Checkpoint:
    """One complete checkpoint.

    Attributes:
        path: its folder, ``checkpoints/iteration_000025``.
        iteration: iterations that were done when it was written.
    """

    path: Path
    iteration: int

    def damage(self) -> str | None:
        """What is wrong with the files, in a few words; None if all are as they were written."""
        try:
            manifest = read_json(self.path / MANIFEST)
            files = [(str(name), int(size), str(sha)) for name, size, sha in manifest["files"]]
            if manifest["format"] != _FORMAT or manifest["iteration"] != self.iteration:
                return f"its {MANIFEST} belongs to something else"
        except FileNotFoundError:
            return f"it has no {MANIFEST}"
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            return f"its {MANIFEST} cannot be read"
        for name, size, sha in files:
            path = self.path / name
            if not path.resolve().is_relative_to(self.path.resolve()):
                return f"its {MANIFEST} names {name}, which lies elsewhere"
            if not path.is_file():
                return f"{name} is missing"
            if path.stat().st_size != size or digest(path) != sha:
                return f"{name} has changed since it was written"
        return None


class Checkpoints:
    """The checkpoints of one run.

    Args:
        folder: ``checkpoints`` of a run directory; created with the first checkpoint.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def all(self) -> list[Checkpoint]:
        """All checkpoints, damaged ones included, oldest first."""
        if not self.folder.is_dir():
            return []
        named = ((_NAME.fullmatch(path.name), path) for path in self.folder.iterdir())
        found = [Checkpoint(path, int(match[1])) for match, path in named if match]
        return sorted(found, key=lambda checkpoint: checkpoint.iteration)

    def newest(self) -> Checkpoint:
        """The newest checkpoint.

        Raises:
            InputError: if there is none, or it is damaged; the message offers the one before.
        """
        found = self.all()
        if not found:
            raise InputError(
                f"{self.folder.parent} has no checkpoint to resume from; start the run again"
            )
        self.check(found[-1])
        return found[-1]

    def check(self, checkpoint: Checkpoint) -> None:
        """Makes sure that a checkpoint is as it was written.

        Raises:
            InputError: if not; the message offers the newest good one before it.
        """
        damage = checkpoint.damage()
        if damage is None:
            return
        before = [older for older in self.all() if older.iteration < checkpoint.iteration]
        good = [older.path for older in before if older.damage() is None]
        offer = f"resume from the one before: {good[-1]}" if good else "there is none before it"
        raise InputError(f"the checkpoint {checkpoint.path} is damaged ({damage}); {offer}")

    def write(self, iteration: int, fill: Callable[[Path], None], keep: int) -> Checkpoint:
        """Writes a checkpoint aside, checks it in with one rename, and removes old ones.

        Args:
            iteration: iterations done.
            fill: writes the files into the empty folder that it is given.
            keep: newest checkpoints that stay.

        Raises:
            OSError: if the disk is full or gone; the checkpoints before are what they were.
        """
        self.remove_parts()
        path = self.folder / f"iteration_{iteration:06d}"
        part = self.folder / f".{path.name}{_PART}"
        part.mkdir(parents=True)
        try:
            fill(part)
            _write_manifest(part, iteration)
            sync_tree(part)
        except OSError:
            shutil.rmtree(part, ignore_errors=True)  # leaves room for others
            raise
        if path.exists():
            shutil.rmtree(path)
        part.rename(path)
        sync_folder(self.folder)
        for old in self.all()[:-keep]:
            shutil.rmtree(old.path, ignore_errors=True)
        return Checkpoint(path, iteration)

    def remove_after(self, iteration: int) -> None:
        """Removes the checkpoints of later iterations, which a resumed run will write anew."""
        for checkpoint in self.all():
            if checkpoint.iteration > iteration:
                shutil.rmtree(checkpoint.path)

    def remove_parts(self) -> None:
        """Removes what a crash left half-written."""
        for part in self.folder.glob(f".*{_PART}"):
            shutil.rmtree(part)


def as_checkpoint(path: Path) -> Checkpoint | None:
    """The checkpoint that a path names, None if the path is none of a run's checkpoints."""
    path = path.absolute()
    match = _NAME.fullmatch(path.name)
    if match is None or path.parent.name != "checkpoints" or not path.is_dir():
        return None
    return Checkpoint(path, int(match[1]))


def _write_manifest(folder: Path, iteration: int) -> None:
    paths = sorted(path for path in folder.rglob("*") if path.is_file())
    files = [
        (path.relative_to(folder).as_posix(), path.stat().st_size, digest(path)) for path in paths
    ]
    text = json.dumps({"format": _FORMAT, "iteration": iteration, "files": files}, indent=1)
    (folder / MANIFEST).write_text(text)
