"""What is compiled of the kernels is found by every copy of them, and by none that differs."""

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from cluster_env.core.kernel_cache import (
    COMPILED_PACKAGES,
    LockedCacheFile,
    cache_folder,
    kernels_hash,
)
from tests.waiting import run_python

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
ASK_TOGETHER = """
import os, sys, time
from pathlib import Path
from cluster_env.callee import times
from cluster_env.kernel import double

folder = Path(sys.argv[1])
(folder / f"{os.getpid()}.started").touch()
while len(list(folder.glob("*.started"))) < 3:
    time.sleep(0.01)
double(2)
print(*(sum(each.stats.cache_misses.values()) for each in (double, times)))
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
    for name in ("compiled.py", "kernel_cache.py", "parts.py"):
        (root / "cluster_env" / "core" / name).write_bytes((source / name).read_bytes())
    (root / "cluster_env" / "kernel.py").write_text(KERNEL)
    (root / "cluster_env" / "callee.py").write_text(CALLEE)
    return root


@pytest.fixture
def copies(tmp_path: Path) -> tuple[Path, Path]:
    return make_copy(tmp_path / "submitted"), make_copy(tmp_path / "installed")


def cache_of(copy: Path, folder: Path, value: int = 4) -> Path:
    """Where the copy's function is cached, in a process of its own.

    Args:
        copy: that is used.
        folder: given by the user.
        value: what the function has to return for 2.
    """
    # Without bytecode: a source that changes twice in a second would be taken for the old one.
    places = {"PYTHONPATH": str(copy), "NUMBA_CACHE_DIR": str(folder)}
    done = run_python("-B", "-P", "-c", ASK, **places)
    assert done.returncode == 0, done.stderr
    returned, _, place = done.stdout.strip().partition(" ")
    assert int(returned) == value
    return Path(place)


def compiled_files(folder: Path) -> dict[Path, int]:
    return {path: path.stat().st_mtime_ns for path in folder.rglob("*.nbc")}


def test_a_copy_with_the_same_kernels_takes_what_another_has_compiled(copies, tmp_path):
    submitted, installed = copies
    (submitted / "cluster_env" / "other.py").write_text("NO_KERNEL = True\n")
    place = cache_of(installed, tmp_path)
    compiled = compiled_files(place)
    assert [path.name for path in compiled if path.name.startswith("kernel.double-")]
    assert cache_of(submitted, tmp_path) == place
    assert compiled_files(place) == compiled
    assert not list(submitted.rglob("*.nb?"))
    assert not list(installed.rglob("*.nb?"))


def test_a_kernel_is_compiled_again_when_one_that_it_calls_has_changed(copies, tmp_path):
    copy, _ = copies
    place = cache_of(copy, tmp_path)
    (copy / "cluster_env" / "callee.py").write_text(CALLEE.replace("2 *", "3 *"))
    assert cache_of(copy, tmp_path, value=6) != place
    (copy / "cluster_env" / "callee.py").write_text(CALLEE)
    assert cache_of(copy, tmp_path) == place


def test_without_a_folder_of_its_own_the_cache_is_the_users(monkeypatch, tmp_path):
    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    assert cache_folder("a" * 64) == tmp_path / "cache" / "metasched" / f"kernels-{'a' * 20}"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert cache_folder("b" * 64).is_relative_to(tmp_path / ".cache")


def test_a_folder_that_cannot_be_written_keeps_nothing_and_stops_nothing(copies, tmp_path):
    copy, _ = copies
    (tmp_path / "file").write_text("no folder")
    cache_of(copy, tmp_path / "file")


def test_the_folders_that_were_used_last_are_kept(monkeypatch, tmp_path):
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    for number in range(30):
        folder = tmp_path / "metasched" / f"kernels-{number:02}"
        folder.mkdir(parents=True)
        os.utime(folder, (number, number))
    own = cache_folder("c" * 64)
    left = {path.name for path in own.parent.iterdir()}
    assert left == {own.name, *(f"kernels-{number:02}" for number in range(10, 30))}


def test_moving_a_line_from_one_file_to_the_next_changes_the_hash(copies):
    submitted, installed = copies
    for root, first, second in (
        (submitted, "#njit ab", "c#njit"),
        (installed, "#njit a", "bc#njit"),
    ):
        (root / "cluster_env" / "x.py").write_text(first)
        (root / "cluster_env" / "y.py").write_text(second)
    assert kernels_hash(submitted) != kernels_hash(installed)


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


def test_of_processes_that_need_a_kernel_at_once_one_compiles_it(copies, tmp_path):
    """Each waits for the others' start, and tells how often it had to compile."""
    copy, _ = copies
    ask = [sys.executable, "-B", "-P", "-c", ASK_TOGETHER, str(tmp_path)]
    places = {"PYTHONPATH": str(copy), "NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    processes = [
        subprocess.Popen(ask, env={**os.environ, **places}, stdout=subprocess.PIPE, text=True)
        for _ in range(3)
    ]
    counts = [process.communicate(timeout=300)[0].split() for process in processes]
    assert sorted(counts) == [["0", "0"], ["0", "0"], ["1", "1"]]


def test_our_kernels_are_kept_that_way():
    from cluster_env.worlds.deeprm.kernels import step

    assert isinstance(step._cache._cache_file, LockedCacheFile)
