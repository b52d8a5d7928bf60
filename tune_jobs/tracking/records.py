"""What a record may hold: flat values, and files of the run directory.

A spool is a file like any other, and ``metasched sync`` sends what it names. So that a run
directory that somebody else has made cannot have the files of its reader sent to a server, what a
record names must lie in the run directory, links included.
"""

import hashlib
import math
import os
import re
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from tune_jobs.tracking.spool import tracking_dir

MAX_NAME = 250  # characters, MLflow's limit
OUTSIDE = "outside"


def flatten(mapping: Mapping[Any, Any], separator: str) -> Iterator[tuple[str, Any]]:
    """Leaves of a nested mapping under names like ``training.lr``, in order."""
    for key, value in mapping.items():
        if isinstance(value, Mapping):
            for name, leaf in flatten(value, separator):
                yield f"{key}{separator}{name}", leaf
        else:
            yield str(key), value


def clean_name(name: str) -> str:
    """A name that MLflow accepts: letters, digits, ``_ - . / :`` and spaces, at most 250."""
    return re.sub(r"[^\w\-./ :]", "_", name)[:MAX_NAME]


def as_text(mapping: Mapping[Any, Any]) -> dict[str, str]:
    """Parameters or tags as flat text."""
    return {clean_name(name): str(value) for name, value in flatten(mapping, ".")}


def as_numbers(mapping: Mapping[Any, Any]) -> tuple[dict[str, float | str], list[str]]:
    """Metrics as flat JSON values, ``"nan"`` and ``"inf"`` as text.

    Returns:
        The metrics, and the names of those that are no numbers.
    """
    numbers: dict[str, float | str] = {}
    others: list[str] = []
    for name, value in flatten(mapping, "/"):
        try:
            number = float(value)
        except (TypeError, ValueError, OverflowError, RuntimeError):  # the last one is torch's
            others.append(name)
        else:
            numbers[clean_name(name)] = number if math.isfinite(number) else str(number)
    return numbers, others


def take_in(path: Path, run_dir: Path) -> Path:
    """Where a file or folder lies in a run directory, relative to it; copied there if need be.

    Args:
        path: absolute.
        run_dir: absolute.

    Raises:
        OSError: if it cannot be copied.
    """
    if path.is_relative_to(run_dir) and not (path.exists() and escapes(path, run_dir)):
        return path.relative_to(run_dir)
    parent = hashlib.sha256(os.fsencode(path.parent)).hexdigest()[:12]
    copy = tracking_dir(run_dir) / OUTSIDE / parent / path.name
    copy.parent.mkdir(parents=True, exist_ok=True)
    if path.is_dir():
        shutil.copytree(path, copy, dirs_exist_ok=True)
    else:
        shutil.copyfile(path, copy)
    return copy.relative_to(run_dir)


def escapes(path: Path, run_dir: Path) -> bool:
    """Whether a path, or anything below it, leads out of a run directory."""
    home = run_dir.resolve()
    if not path.resolve().is_relative_to(home):
        return True
    if not path.is_dir():
        return False
    links = (
        Path(parent, name)
        for parent, folders, files in os.walk(path)
        for name in (*folders, *files)
        if Path(parent, name).is_symlink()
    )
    return any(not link.resolve().is_relative_to(home) for link in links)
