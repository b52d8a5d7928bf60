"""A lock for a cluster, in a place that depends on the account, and not on its environment.

It imports the standard library alone.
"""

import contextlib
import fcntl
import os
import pwd
import stat
from pathlib import Path

TEMPORARY = Path("/tmp")  # not of the environment
NUM_NAMES = 100


class Locked(RuntimeError):
    """The lock cannot be had; says why."""


def lock_cluster(cluster: str) -> Path:
    """Locks a cluster for as long as this process lives; returns the file, to be removed at last.

    Raises:
        Locked: if another process has it, or there is no place for it.
    """
    name = "".join(c if c.isalnum() or c in ".-" else "-" for c in cluster)
    try:
        files = [folder / f"steer-{name}.lock" for folder in _folders()]
        for file in files:
            _lock(file)
    except OSError as error:
        raise Locked(f"{error.filename} cannot be locked: {error.strerror}") from None
    return files[0]


def _folders() -> list[Path]:
    """The folder in the account's home; if it has none, all of ours in /tmp, or a new one.

    There others can take a name first, so there are several, and none that is another's counts.
    """
    home = Path(pwd.getpwuid(os.getuid()).pw_dir)
    if _is_ours(home) and os.access(home, os.W_OK):
        (home / ".metasched").mkdir(mode=0o700, exist_ok=True)
        return [home / ".metasched"]
    folders = [TEMPORARY / f"metasched-{os.getuid()}-{number}" for number in range(NUM_NAMES)]
    if ours := [folder for folder in folders if _is_ours(folder)]:
        return ours
    for folder in folders:
        with contextlib.suppress(FileExistsError):
            folder.mkdir(mode=0o700)
        if _is_ours(folder):
            return [folder]
    raise Locked(f"others have taken all names for a lock in {TEMPORARY}")


def _is_ours(folder: Path) -> bool:
    """Whether it is a folder, and no link, that nobody but this account can write."""
    try:
        state = folder.lstat()
    except OSError:
        return False
    return (
        stat.S_ISDIR(state.st_mode)
        and state.st_uid == os.getuid()
        and not state.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
    )


def _lock(path: Path) -> None:
    handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if os.fstat(handle).st_ino != path.stat().st_ino:  # its last owner has just removed it
            raise FileNotFoundError
    except (BlockingIOError, FileNotFoundError):
        holder = os.read(handle, 32).decode(errors="replace").strip()
        raise Locked(
            f"process {holder} steers these jobs or stands in for one that did ({path})"
        ) from None
    os.ftruncate(handle, 0)
    os.write(handle, str(os.getpid()).encode())
