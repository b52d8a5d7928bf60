"""Files that may be sent: those of a run directory, and no others.

A spool is a file like any other, and ``metasched sync`` sends what it names. So that a run
directory that somebody else has made cannot have the files of its reader sent to a server, what a
record names must lie in the run directory, links included.
"""

import hashlib
import os
import shutil
from pathlib import Path

from tune_jobs.tracking.spool import tracking_dir

OUTSIDE = "outside"


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
