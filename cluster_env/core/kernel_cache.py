"""Where compiled kernels are kept: in a folder that is named after the content of all of them.

numba keeps what it has compiled beside the source, and compiles again when that file has changed.
Ours call each other across files, and what a kernel calls is compiled into it. So the folder's name
is a hash of all files with kernels: any change leads to another folder, and any copy with the same
kernels, such as the one that a submitted job brings along, finds what was compiled before.
"""

import fcntl
import hashlib
import itertools
import os
import shutil
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import Any

from numba.core.caching import (
    CompileResultCacheImpl,
    FunctionCache,
    IndexDataCacheFile,
    UserWideCacheLocator,
)

COMPILED_PACKAGES = ("cluster_env", "rllib_configs")
"""The packages that hold kernels; they lie beside each other."""

_MOST_FOLDERS = 20  # of other versions, so that whoever edits kernels does not fill the disk


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
    """Hash of names and contents of all files with kernels."""
    digest = hashlib.sha256()
    for package in COMPILED_PACKAGES:
        for path in sorted((root / package).rglob("*.py")):
            content = path.read_bytes()
            if b"njit" in content:
                digest.update(f"{path.relative_to(root).as_posix()} {len(content)}\n".encode())
                digest.update(content)
    return digest.hexdigest()


def root_of(path: Path) -> Path | None:
    """The folder that holds our packages, if a file is in one of them."""
    for parent in path.absolute().parents:
        if parent.name in COMPILED_PACKAGES and not (parent.parent / "__init__.py").exists():
            return parent.parent
    return None
