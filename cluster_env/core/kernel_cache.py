"""Where compiled kernels are kept: in a folder that is named after the content of all of them.

numba keeps what it has compiled beside the source, and compiles again when that file has changed.
Ours call each other across files, and what a kernel calls is compiled into it. So the folder's name
is a hash of all files with kernels: any change leads to another folder, and any copy with the same
kernels, such as the one that a submitted job brings along, finds what was compiled before. Of
processes that need the same kernel at once, such as the runners of a training, one compiles it and
the others wait for it.
"""

import fcntl
import hashlib
import itertools
import os
import shutil
import time
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import IO, Any

from numba.core.caching import (
    CompileResultCacheImpl,
    FunctionCache,
    IndexDataCacheFile,
    UserWideCacheLocator,
)

COMPILED_PACKAGES = ("cluster_env", "rllib_configs")
"""The packages that hold kernels; they lie beside each other."""

_MOST_FOLDERS = 20  # of other versions, so that whoever edits kernels does not fill the disk
_MOST_WAITED_S = 600.0  # for a process that compiles; one that stands still holds up no others


class ContentLocator(UserWideCacheLocator):
    """Keeps kernels under NUMBA_CACHE_DIR, or in the user's cache folder, by their content."""

    def __init__(self, py_func: Any, py_file: str, root: Path) -> None:
        self._lineno = py_func.__code__.co_firstlineno
        self._hash = kernels_hash(root)
        folder = Path(py_file).absolute().parent.relative_to(root)
        self._cache_path = str(cache_folder(self._hash) / folder)

    @classmethod
    def from_function(cls, py_func: Any, py_file: str) -> "ContentLocator | None":
        """The locator of a kernel; None for one of another package, which is left to numba."""
        root = root_of(Path(py_file))
        return None if root is None else cls(py_func, py_file, root)

    def get_source_stamp(self) -> str:
        """What is compiled holds as long as this stays the same, which the folder's name says."""
        return self._hash

    def ensure_cache_path(self) -> None:
        """Makes the folder if it can; an image that is read-only brings it along."""
        with suppress(OSError):
            Path(self._cache_path).mkdir(parents=True, exist_ok=True)


class LockedCacheFile(IndexDataCacheFile):
    """What is compiled of one kernel, when several processes compile at once.

    numba reads its index, writes it with one more name, and then writes the file of that name. Two
    processes that do so together choose the same name for different types, so that one of them may
    load the other's machine code. Here one saves after the other, and a name comes after its file.
    """

    def save(self, key: Any, data: Any) -> None:
        """Keeps what was compiled for some types; where nothing can be written, nothing is kept."""
        with suppress(OSError), open(f"{self._index_path}.lock", "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)  # until it is closed
            known = self._load_index()
            names = (self._data_name(number) for number in itertools.count(1))
            name = known.get(key) or next(name for name in names if name not in known.values())
            self._save_data(name, data)
            self._save_index({**known, key: name})

    def _load_index(self) -> Any:
        """What is known; nothing where the folder cannot be read."""
        try:
            return super()._load_index()
        except OSError:
            return {}


class _KernelCacheImpl(CompileResultCacheImpl):
    _locator_classes = [ContentLocator, *CompileResultCacheImpl._locator_classes]  # noqa: RUF012


class KernelCache(FunctionCache):
    """numba's cache of one function, in our folder; other users of numba keep theirs."""

    _impl_class = _KernelCacheImpl

    def __init__(self, py_func: Any) -> None:
        super().__init__(py_func)
        self._cache_file = LockedCacheFile(
            cache_path=self._cache_path,
            filename_base=self._impl.filename_base,
            source_stamp=self._impl.locator.get_source_stamp(),
        )
        self._turn: IO[str] | None = None

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """What was compiled for some types, None if nothing was: then this process has its turn.

        Nobody waits for a process that waits for it: each waits for what its kernel calls.
        """
        found = super().load_overload(sig, target_context)
        if found is None and self._enabled and self._turn is None:
            self._turn = _turn_at(Path(f"{self._cache_file._index_path}.turn"))
            found = super().load_overload(sig, target_context)
            if found is not None:
                self._end_turn()
        return found

    def save_overload(self, sig: Any, data: Any) -> None:
        """Keeps what was compiled for some types, and lets the others go on."""
        super().save_overload(sig, data)
        self._end_turn()

    def _end_turn(self) -> None:
        if self._turn is not None:
            self._turn.close()
            self._turn = None


def _turn_at(path: Path) -> IO[str] | None:
    """A file that no other process has locked; None where there can be none, or after a long time.

    It is locked until it is closed, or until this process ends.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        turn = path.open("w")
    except OSError:
        return None
    until = time.monotonic() + _MOST_WAITED_S
    while True:
        try:
            fcntl.flock(turn, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as problem:
            if not isinstance(problem, BlockingIOError) or time.monotonic() > until:
                turn.close()
                return None
            time.sleep(0.05)
        else:
            return turn


def cache_folder(content: str) -> Path:
    """The folder of kernels with a hash; the first process that asks removes the oldest others."""
    given = os.environ.get("NUMBA_CACHE_DIR") or os.environ.get("XDG_CACHE_HOME")
    base = Path(given or os.path.expanduser("~/.cache"))
    folder = base / "metasched" / f"kernels-{content[:20]}"
    _tidy(folder)
    return folder


@lru_cache
def _tidy(folder: Path) -> None:
    """Marks a folder as used, and removes those that were not used for the longest time."""
    with suppress(OSError):  # it cannot be written, or another process was faster
        folder.mkdir(parents=True, exist_ok=True)
        os.utime(folder)
        others = [path for path in folder.parent.glob("kernels-*") if path != folder]
        for path in sorted(others, key=lambda path: -path.stat().st_mtime)[_MOST_FOLDERS:]:
            shutil.rmtree(path, ignore_errors=True)


@lru_cache
def kernels_hash(root: Path) -> str:
    """Hash of names and contents of all files with kernels, and of what compiles them."""
    digest = hashlib.sha256()
    for package in COMPILED_PACKAGES:
        for path in sorted((root / package).rglob("*.py")):
            content = path.read_bytes()
            if b"njit" in content or b"numba" in content:
                digest.update(f"{path.relative_to(root).as_posix()} {len(content)}\n".encode())
                digest.update(content)
    return digest.hexdigest()


def root_of(path: Path) -> Path | None:
    """The folder that holds our packages, if a file is in one of them."""
    for parent in path.absolute().parents:
        if parent.name in COMPILED_PACKAGES and not (parent.parent / "__init__.py").exists():
            return parent.parent
    return None
