"""Puts each listed fault into a copy of the program, and runs the test that should notice it.

    python -m tests.mutations.run [--only WORD] [--jobs N]

Exit status 1 if a fault survives, 2 if one could not be tried. Nothing is written to the
repository.
"""

import argparse
import multiprocessing
import os
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue
from time import perf_counter

import pytest

from tests.mutations.listed import REPOSITORY, Mutation, mutations

TIMEOUT_S = 400.0
PRELOADED = (
    *("click", "gymnasium", "hypothesis", "matplotlib.pyplot", "mlflow", "numba", "pandas"),
    *("pydantic", "pytest", "ray.rllib", "scipy.stats", "torch"),
)
STATES = {0: "survived", 1: "killed"}  # by pytest's exit status; any other tells nothing
_MADE = {"runs", "build", "dist"}  # by commands, at the root; tune_jobs has a package of that name


@dataclass(frozen=True)
class Outcome:
    """What a test said of a fault.

    Attributes:
        mutation: the fault.
        state: ``killed``, ``survived``, or ``untried`` where the test could not be run.
        seconds: that it took.
        output: of the test.
    """

    mutation: Mutation
    state: str
    seconds: float
    output: str


class Copies:
    """Copies of the working tree, one for each test that runs at a time."""

    def __init__(self, folder: Path, count: int) -> None:
        self._free: SimpleQueue[Path] = SimpleQueue()
        for number in range(count):
            # What numba has compiled comes along, and serves where no kernel is changed.
            shutil.copytree(REPOSITORY, folder / str(number), ignore=_left_out)
            self._free.put(folder / str(number))

    @contextmanager
    def one(self) -> Iterator[Path]:
        """A copy that nobody else uses meanwhile."""
        copy = self._free.get()
        try:
            yield copy
        finally:
            self._free.put(copy)


def _left_out(folder: str, names: list[str]) -> set[str]:
    """What does not come along of a folder that is copied."""
    left_out = shutil.ignore_patterns(".*", "*.egg-info")(folder, names)
    return left_out | (_MADE if Path(folder) == REPOSITORY else set())


def run_tests(copy: Path, tests: Sequence[str], *, compiled: bool, fresh: bool) -> tuple[int, str]:
    """Runs tests of a copy; returns pytest's exit status, or -1 if they do not end, and its words.

    Args:
        copy: root of the copy.
        tests: as pytest names them.
        compiled: see `Mutation`.
        fresh: whether a kernel is changed, so that what is compiled goes to a folder of its own.
    """
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1", "CI": "1"}
    environment["PYTHONPATH"] = os.pathsep.join([str(copy), str(copy / "tune_jobs" / "api")])
    environment.pop("PYTEST_ADDOPTS", None)
    options = ["-q", "-x", "-p", "no:randomly", "-p", "no:cacheprovider"]
    if not compiled:
        environment["NUMBA_DISABLE_JIT"] = "1"
        options += ["-W", "ignore:overflow encountered:RuntimeWarning"]  # machine code wraps too
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "output"
        log.touch()
        if fresh:
            environment["NUMBA_CACHE_DIR"] = folder
        # Libraries are imported once, in a process that all others are forked from.
        context = multiprocessing.get_context("forkserver")
        context.set_forkserver_preload(list(PRELOADED))
        process = context.Process(
            target=_run_pytest, args=(copy, REPOSITORY, [*options, *tests], environment, log)
        )
        process.start()
        process.join(TIMEOUT_S)
        if process.is_alive():
            process.kill()
            process.join()
            return -1, f"did not end within {TIMEOUT_S:.0f} s"
        return process.exitcode or 0, log.read_text(errors="replace")


def _run_pytest(
    copy: Path, original: Path, arguments: list[str], environment: dict[str, str], log: Path
) -> None:
    """In a process of its own: forgets the program that it came from, and runs a copy's tests."""
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(copy)
    for stream in (1, 2):
        os.dup2(os.open(log, os.O_WRONLY | os.O_APPEND), stream)
    roots = {original, original / "tune_jobs" / "api"}
    elsewhere = [entry for entry in sys.path if entry and Path(entry) not in roots]
    sys.path[:] = [*environment["PYTHONPATH"].split(os.pathsep), *elsewhere]
    sys.dont_write_bytecode = True
    own = {path.name for path in copy.iterdir()} | {path.stem for path in copy.glob("*.py")}
    for name in [name for name in sys.modules if name.partition(".")[0] in {*own, "metasched"}]:
        del sys.modules[name]
    if "numba" in sys.modules:
        sys.modules["numba"].config.reload_config()
    sys.exit(pytest.main(arguments))


def attempt(mutation: Mutation, copies: Copies) -> Outcome:
    """Puts the fault into a copy, asks the test, and takes it out again."""
    started = perf_counter()
    with copies.one() as copy:
        file = copy / mutation.file
        text = file.read_text(encoding="utf-8")
        file.write_text(mutation.mutated(text), encoding="utf-8")
        try:
            status, output = run_tests(
                copy, [mutation.test], compiled=mutation.compiled, fresh="njit" in text
            )
        finally:
            file.write_text(text, encoding="utf-8")
    return Outcome(mutation, STATES.get(status, "untried"), perf_counter() - started, output)


def healthy(chosen: Sequence[Mutation], copies: Copies) -> bool:
    """Whether the tests pass where there is no fault; if not, they could not tell one."""
    for compiled in (True, False):
        tests = sorted({one.test for one in chosen if one.compiled is compiled})
        if not tests:
            continue
        with copies.one() as copy:
            status, output = run_tests(copy, tests, compiled=compiled, fresh=False)
        words = "compiled" if compiled else "as plain Python"
        if status:
            print(f"{output}\nThe tests must pass without a fault; kernels {words}.")
            return False
        print(f"{len(tests)} tests pass without a fault, kernels {words}.", flush=True)
    return True


def run(chosen: Sequence[Mutation], jobs: int) -> int:
    """Tries faults and prints a line for each; returns the exit status."""
    with tempfile.TemporaryDirectory(prefix="mutations-") as folder:
        copies = Copies(Path(folder), jobs)
        if not healthy(chosen, copies):
            return 2
        outcomes = []
        with ThreadPoolExecutor(jobs) as pool:
            for future in as_completed([pool.submit(attempt, one, copies) for one in chosen]):
                outcome = future.result()
                outcomes.append(outcome)
                progress = f"[{len(outcomes):3}/{len(chosen)}] {outcome.state:8}"
                where = f"{outcome.mutation.file}: {outcome.mutation.fault}"
                print(f"{progress} {outcome.seconds:6.1f} s  {where}", flush=True)
    for outcome in outcomes:
        if outcome.state == "untried":
            print(f"\n{outcome.mutation.fault}: {outcome.mutation.test}\n{outcome.output}")
    counts = Counter(outcome.state for outcome in outcomes)
    print(f"\n{counts['killed']} of {len(chosen)} faults were noticed", end="")
    print(f", {counts['survived']} survived, {counts['untried']} could not be tried.")
    for outcome in outcomes:
        if outcome.state == "survived":
            print(f"  survived: {outcome.mutation.fault}\n    {outcome.mutation.test}")
    return 1 if counts["survived"] else 2 if counts["untried"] else 0


def main() -> int:
    """Reads the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="", help="faults whose words or file hold this")
    parser.add_argument("--jobs", type=int, default=2, help="tests at a time (2)")
    given = parser.parse_args()
    chosen = [one for one in mutations() if given.only in f"{one.file} {one.fault} {one.test}"]
    if not chosen:
        parser.error(f"no fault of the list holds '{given.only}'")
    return run(chosen, max(1, min(given.jobs, len(chosen))))


if __name__ == "__main__":
    sys.exit(main())
