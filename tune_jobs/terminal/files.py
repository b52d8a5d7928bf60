"""Files and folders that nobody ever finds half-written, and locks between processes."""

import errno
import fcntl
import hashlib
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def sync_folder(folder: Path) -> None:
    """Forces a folder's list of names to the disk."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def sync_tree(folder: Path) -> None:
    """Forces every file and folder below a folder, and itself, to the disk."""
    for parent, _, names in os.walk(folder, topdown=False):
        for name in names:
            handle = os.open(Path(parent, name), os.O_RDONLY)
            try:
                os.fsync(handle)
            finally:
                os.close(handle)
        sync_folder(Path(parent))


def digest(path: Path) -> str:
    """SHA-256 of a file; empty if it is not there."""
    if not path.is_file():
        return ""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def append_whole(path: Path, text: str) -> None:
    """Adds text to a file, all of it or nothing.

    Raises:
        OSError: if the disk does not take all of it; the file is what it was.
    """
    handle = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    try:
        size = os.fstat(handle).st_size
        data = text.encode()
        try:
            if os.write(handle, data) != len(data):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))
        except OSError:
            os.ftruncate(handle, size)
            raise
    finally:
        os.close(handle)


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Gives a path beside `path` to write to, which takes its place if nothing goes wrong.

    A crash at any moment leaves the old file or the new one.
    """
    aside = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        yield aside
        handle = os.open(aside, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
        aside.replace(path)
        sync_folder(path.parent)
    finally:
        aside.unlink(missing_ok=True)


def write_whole(path: Path, text: str) -> None:
    """Writes a text to a file, atomically."""
    with replacing(path) as aside:
        aside.write_text(text, encoding="utf-8")


def save_figure(figure: "Figure", path: Path) -> None:
    """Writes a figure, atomically; the folder is created if need be."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as aside:
        figure.savefig(aside, format="png", dpi=figure.dpi)


def try_writing(path: Path, *, folder: bool) -> None:
    """Tries whether a file can be written there, or files below it; leaves nothing behind.

    Args:
        path: may be there or not, as the folders above it.
        folder: whether it is a folder.

    Raises:
        OSError: if it cannot.
    """
    path.exists()  # says so where a name is too long, or a folder above must not be entered
    place = path if folder else path.absolute().parent
    while not place.is_dir():
        if place.exists():
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(place))
        place = place.absolute().parent
    with tempfile.TemporaryFile(dir=place):
        pass


def short_path(path: Path) -> Path:
    """The path as seen from here, where that is shorter."""
    return path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path


class FileLock:
    """A lock between processes that ends with the process that holds it.

    Args:
        path: File to lock; created when absent, left behind empty.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file: int | None = None

    def acquire(self, *, wait: bool) -> bool:
        """Takes the lock, or returns False if another holder has it and ``wait`` is False."""
        if self._file is not None:
            return True
        self._path.parent.mkdir(parents=True, exist_ok=True)
        file = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            fcntl.flock(file, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        except BlockingIOError:
            os.close(file)
            return False
        except BaseException:
            os.close(file)
            raise
        self._file = file
        return True

    def release(self) -> None:
        """Gives the lock back; nothing happens if it is not held."""
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def __enter__(self) -> Self:
        self.acquire(wait=True)
        return self

    def __exit__(self, *error: object) -> None:
        self.release()
