"""Where numba keeps what it has compiled, and when that still holds.

Numba keeps compiled functions in a folder that belongs to the path of the source. A submitted job
brings a copy of the source, unpacked in a folder of its own on every machine, so it would compile
everything again (some 40 s of a core). `InstalledCopyLocator` looks for an installed copy with the
same content and takes the compiled functions from beside that one. The others keep them where
numba would. All of them have what is compiled replaced when any file with kernels has changed,
because what a kernel calls is compiled into it.
"""

import fcntl
import hashlib
import itertools
import sys
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any

from numba.core.caching import (
    IndexDataCacheFile,
    InTreeCacheLocator,
    UserProvidedCacheLocator,
    UserWideCacheLocator,
)

COMPILED_PACKAGES = ("cluster_env", "rllib_configs")
"""The packages that hold compiled functions, which lie beside each other."""


class _Stamped:
    """Looks at all files with kernels; those of other packages are left to numba."""

    _py_file: str

    def get_source_stamp(self) -> Any:
        """What is compiled holds as long as this stays the same."""
        root = _root_of(Path(self._py_file))
        return super().get_source_stamp() if root is None else kernels_hash(root)  # type: ignore[misc]


class GivenFolderLocator(_Stamped, UserProvidedCacheLocator):  # type: ignore[misc]  # numba is untyped
    """Keeps compiled functions where NUMBA_CACHE_DIR says."""


class SourceFolderLocator(_Stamped, InTreeCacheLocator):  # type: ignore[misc]
    """Keeps compiled functions in ``__pycache__``."""


class UserFolderLocator(_Stamped, UserWideCacheLocator):  # type: ignore[misc]
    """Keeps compiled functions in the user's own folder, where the source's is not writable."""


class InstalledCopyLocator(_Stamped, InTreeCacheLocator):  # type: ignore[misc]
    """Keeps compiled functions in ``__pycache__`` of an installed copy with the same source.

    One different file in either package is enough for a cache of one's own.
    """

    def __init__(self, py_func: Callable[..., Any], py_file: str, folder: Path) -> None:
        super().__init__(py_func, py_file)
        self._cache_path = str(folder / "__pycache__")

    @classmethod
    def from_function(
        cls, py_func: Callable[..., Any], py_file: str
    ) -> "InstalledCopyLocator | None":
        """The locator of a function; None where another one has to serve.

        Args:
            py_func: what numba compiles.
            py_file: file that it stands in.
        """
        root = _root_of(Path(py_file))
        twin = None if root is None else installed_twin(root, search_places())
        if root is None or twin is None:
            return None
        locator = cls(py_func, py_file, twin / Path(py_file).absolute().parent.relative_to(root))
        try:
            locator.ensure_cache_path()
        except OSError:  # nothing can be written there
            return None
        return locator


class LockedCacheFile(IndexDataCacheFile):  # type: ignore[misc]  # numba is untyped
    """What is compiled of one function, when several processes compile at once.

    numba reads its index, writes it with one more name, and then writes the file of that name. Two
    processes that do so together choose the same name for different types, so that one of them may
    load the other's machine code. Here one saves after the other, and a name comes after its file.
    """

    def save(self, key: Any, data: Any) -> None:
        """Keeps what was compiled for some types.

        Args:
            key: the types and the processor.
            data: can be pickled.
        """
        with open(f"{self._index_path}.lock", "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)  # until it is closed
            known = self._load_index()
            names = (self._data_name(number) for number in itertools.count(1))
            name = known.get(key) or next(name for name in names if name not in known.values())
            self._save_data(name, data)
            self._save_index({**known, key: name})


def search_places() -> tuple[str, ...]:
    """Folders where Python finds modules, in order.

    Those of the search path, and then those that a finder alone knows: setuptools installs a
    checkout that is to be edited so, and names its packages one by one.
    """
    hooks = (getattr(finder, "find_spec", None) for finder in sys.meta_path)
    found = (hook(COMPILED_PACKAGES[0], None) for hook in hooks if hook is not None)
    origins = (spec.origin for spec in found if spec is not None and spec.origin)
    return (*sys.path, *(str(Path(origin).parent.parent) for origin in origins))


@lru_cache
def installed_twin(root: Path, places: tuple[str, ...]) -> Path | None:
    """Another folder whose packages have the same source.

    Args:
        root: folder that holds the packages in use.
        places: folders to look into, in order, see `search_places`.
    """
    for entry in places:
        other = Path(entry).absolute()
        if other == root or not all((other / name).is_dir() for name in COMPILED_PACKAGES):
            continue
        if source_hash(other) == source_hash(root):
            return other
    return None


@lru_cache
def source_hash(root: Path) -> str:
    """Hash of names and contents of all Python files of the compiled packages."""
    return _hash_of(root, b"")


@lru_cache
def kernels_hash(root: Path) -> str:
    """The same of the files that have kernels."""
    return _hash_of(root, b"njit")


def _hash_of(root: Path, word: bytes) -> str:
    """Hash of the files that hold a word."""
    digest = hashlib.sha256()
    for package in COMPILED_PACKAGES:
        for path in sorted((root / package).rglob("*.py")):
            content = path.read_bytes()
            if word in content:
                digest.update(f"{path.relative_to(root).as_posix()} {len(content)}\n".encode())
                digest.update(content)
    return digest.hexdigest()


def _root_of(path: Path) -> Path | None:
    """Folder that holds our packages, if the file is in one of them."""
    for parent in path.absolute().parents:
        if parent.name in COMPILED_PACKAGES and not (parent.parent / "__init__.py").exists():
            return parent.parent
    return None
