"""A copy of the program finds what an installed one has compiled, and only if nothing differs."""

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from cluster_env.core.kernel_cache import (
    COMPILED_PACKAGES,
    LockedCacheFile,
    installed_twin,
    source_hash,
)
from tests.waiting import PATIENCE_S

KERNEL = """
from cluster_env.core.compiled import njit
from cluster_env.callee import times

@njit(cache=True)
def double(x):
    return times(x)
"""
CALLEE = """
from cluster_env.core.compiled import njit

@njit(cache=True)
def times(x):
    return 2 * x
"""
FINDER = """
import importlib.util
import sys

class Finder:
    @staticmethod
    def find_spec(name, path=None, target=None):
        if name in ("cluster_env", "rllib_configs"):
            place = {root!r} + "/" + name + "/__init__.py"
            return importlib.util.spec_from_file_location(name, place)

sys.meta_path.append(Finder)
"""
ASK = "from cluster_env.kernel import double; print(double(2), double._cache.cache_path)"


def make_copy(root: Path) -> Path:
    """Both packages with one compiled function, and the locator itself."""
    source = Path(__file__).parents[2] / "cluster_env" / "core"
    for package in COMPILED_PACKAGES:
        (root / package).mkdir(parents=True)
        (root / package / "__init__.py").touch()
    (root / "cluster_env" / "core").mkdir()
    (root / "cluster_env" / "core" / "__init__.py").touch()
    for name in ("compiled.py", "kernel_cache.py"):
        (root / "cluster_env" / "core" / name).write_bytes((source / name).read_bytes())
    (root / "cluster_env" / "kernel.py").write_text(KERNEL)
    (root / "cluster_env" / "callee.py").write_text(CALLEE)
    return root


@pytest.fixture
def copies(tmp_path: Path) -> tuple[Path, Path]:
    return make_copy(tmp_path / "submitted"), make_copy(tmp_path / "installed")


def cache_of(copy: Path, *others: Path, value: int = 4, folder: Path | None = None) -> Path:
    """Where the copy's function is cached, in a process that finds the others behind it.

    Args:
        copy: that is used.
        others: folders behind it on the search path.
        value: what the function has to return for 2.
        folder: given by the user.
    """
    path = os.pathsep.join(map(str, (copy, *others)))
    environment = {**os.environ, "PYTHONPATH": path}
    environment.pop("NUMBA_CACHE_DIR", None)
    if folder is not None:
        environment["NUMBA_CACHE_DIR"] = str(folder)
    command = [sys.executable, "-P", "-c", ASK]
    done = subprocess.run(
        command,
        env=environment,
        cwd=copy,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=True,
    )
    found, _, place = done.stdout.strip().partition(" ")
    assert int(found) == value
    return Path(place)


def test_a_copy_shares_the_cache_of_the_installed_one(copies):
    submitted, installed = copies
    assert cache_of(submitted, installed) == installed / "cluster_env" / "__pycache__"
    assert list((installed / "cluster_env" / "__pycache__").glob("kernel.double-*.nbc"))
    assert not list(submitted.rglob("*.nbc"))


def test_a_copy_finds_an_installation_that_is_to_be_edited(copies, tmp_path):
    """setuptools' hook knows where the packages are, and the search path does not."""
    submitted, installed = copies
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "sitecustomize.py").write_text(FINDER.format(root=str(installed)))
    assert cache_of(submitted, tmp_path / "site") == installed / "cluster_env" / "__pycache__"
    (installed / "cluster_env" / "other.py").write_text("CHANGED = True\n")
    assert cache_of(submitted, tmp_path / "site") == submitted / "cluster_env" / "__pycache__"


@pytest.mark.parametrize("package", COMPILED_PACKAGES)
def test_a_copy_that_differs_anywhere_has_a_cache_of_its_own(copies, package):
    submitted, installed = copies
    (submitted / package / "other.py").write_text("CHANGED = True\n")
    assert installed_twin(submitted, (str(submitted), str(installed))) is None
    if package == COMPILED_PACKAGES[0]:
        assert cache_of(submitted, installed) == submitted / "cluster_env" / "__pycache__"


def test_an_installed_copy_is_its_own_and_needs_no_twin(copies):
    _, installed = copies
    assert installed_twin(installed, (str(installed),)) is None


def test_moving_a_line_from_one_file_to_the_next_changes_the_hash(copies):
    submitted, installed = copies
    for root, first, second in ((submitted, "ab", "c"), (installed, "a", "bc")):
        (root / "cluster_env" / "x.py").write_text(first)
        (root / "cluster_env" / "y.py").write_text(second)
    assert source_hash(submitted) != source_hash(installed)


@pytest.mark.parametrize("given", [False, True])
def test_a_kernel_is_compiled_again_when_one_that_it_calls_has_changed(copies, tmp_path, given):
    copy, _ = copies
    folder = tmp_path / "given" if given else None
    place = cache_of(copy, folder=folder)
    assert place.is_relative_to(folder or copy)
    (copy / "cluster_env" / "callee.py").write_text(CALLEE.replace("2 *", "3 *"))
    assert cache_of(copy, value=6, folder=folder) == place


def test_a_file_without_kernels_changes_nothing(copies):
    copy, _ = copies
    cache_of(copy)
    kept = {path: path.stat().st_mtime_ns for path in copy.rglob("*.nb?")}
    (copy / "cluster_env" / "other.py").write_text("CHANGED = True\n")
    cache_of(copy)
    assert kept == {path: path.stat().st_mtime_ns for path in copy.rglob("*.nb?")}


def test_processes_that_compile_at_once_keep_each_other_s_work(tmp_path, monkeypatch):
    first, second = (LockedCacheFile(str(tmp_path), "kernel", "stamp") for _ in range(2))
    other = threading.Thread(target=second.save, args=("float64", b"second"))
    plain = first._load_index

    def interrupted():
        found = plain()
        other.start()  # saves in between, if nothing keeps it
        other.join(0.2)
        return found

    monkeypatch.setattr(first, "_load_index", interrupted)
    first.save("float32", b"first")
    other.join()
    assert second.load("float32") == b"first"
    assert second.load("float64") == b"second"


def test_our_kernels_are_kept_that_way():
    from cluster_env.worlds.deeprm.kernels import step

    assert isinstance(step._cache._cache_file, LockedCacheFile)
