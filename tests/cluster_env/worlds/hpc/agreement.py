"""How many jobs of a log start at the second at which other simulators start them.

python -m tests.cluster_env.worlds.hpc.agreement                  generated jobs, without a log
python -m tests.cluster_env.worlds.hpc.agreement --logs FOLDER    all NAME.swf.gz of a folder
python -m tests.cluster_env.worlds.hpc.agreement --logs FOLDER kth-sp2-1996 sdsc-sp2-1998
python -m tests.cluster_env.worlds.hpc.agreement --logs FOLDER --accasim PYTHON kth-sp2-1996

Each log is compared with EASY in plain Python (`tune_jobs.benchmarks.plain_easy`), which takes
minutes where thousands of jobs wait. It is also compared with pyss where the folder has pyss's
schedule of the same jobs: pyss-easy-NAME.swf, as pyss writes it, or pyss-easy-NAME.npz with its
fields 1 to 3 as arrays, job, submit and wait_easy. With PYTHON, an interpreter that has AccaSim
(`pip install accasim` in an environment of its own), each log is played there, too.

A line shows the other simulator's mean and longest wait, mean bounded slowdown, and CPU seconds.
"""

import argparse
import resource
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from time import process_time
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from cluster_env.core.jobs import JobSet
from cluster_env.workloads.swf import SwfFile, read_swf
from cluster_env.worlds.hpc import HPC
from cluster_env.worlds.hpc.rules import Rule
from cluster_env.worlds.hpc.workloads import LublinWorkload
from tests.cluster_env.worlds.hpc.hpc_jobs import jobset_of, played
from tune_jobs.benchmarks.plain_easy import LoopJob, plain_easy, starting

EASY = Rule("fcfs", "easy")
SKIP = Rule("fcfs", "skip")
PROCESSORS = 256
NUM_GENERATED = 5_000
T = TypeVar("T")


PASSES = ("instant", "event")
"""After what jobs may start: all that happens in a second, or each single event of it."""


class Agreement(NamedTuple):
    """How many of the jobs of a log start at the same second in two simulators.

    Waits (s) and the mean bounded slowdown are the other simulator's.
    """

    log: str
    other: str
    ours: str
    num_jobs: int
    num_equal: int
    mean_wait: float
    longest_wait: int
    slowdown: float
    cpu_s: float

    def __str__(self) -> str:
        share = self.num_equal / self.num_jobs
        return (
            f"{self.log:24} {self.other:10} {self.ours:8} {self.num_equal:9,} of "
            f"{self.num_jobs:9,} {share:9.4%}  wait {self.mean_wait:9,.0f} s, longest "
            f"{self.longest_wait / 86_400:6.2f} d, slowdown {self.slowdown:7.2f}, "
            f"{self.cpu_s:.3g} s"
        )


def agreement(
    log: str, other: str, ours: str, jobset: JobSet, starts: NDArray, others: NDArray, cpu_s: float
) -> Agreement:
    """Compares starts of ours with those of another simulator; int64 ``(num_jobs,)`` each."""
    wait, run = others - jobset.arrival, jobset.duration
    slowdown = np.maximum((wait + run) / np.maximum(run, 10), 1)
    return Agreement(
        log,
        other,
        ours,
        jobset.num_jobs,
        int((starts == others).sum()),
        float(wait.mean()),
        int(wait.max()),
        float(slowdown.mean()),
        cpu_s,
    )


def timed(play: Callable[[], T]) -> tuple[T, float]:
    """What a call returns, and its CPU seconds."""
    begin = process_time()
    return play(), process_time() - begin


def plain_easy_starts(jobset: JobSet, processors: int, pass_per_event: bool = False) -> list[int]:
    """Starts under FCFS with EASY in a plain event loop, with a pass at each instant or event."""
    columns = (jobset.arrival, jobset.duration, jobset.attributes["estimate"], jobset.demand[:, 0])
    jobs = [LoopJob(*row) for row in zip(*(column.tolist() for column in columns), strict=True)]
    (_easy_per_event if pass_per_event else plain_easy)(jobs, processors)
    return [job.start for job in jobs]


def _easy_per_event(jobs: list[LoopJob], processors: int) -> None:
    """As `plain_easy`, with a pass after each single event, as pyss has it.

    Of one second, jobs whose estimates are over finish at once, because any plan counts on what
    they leave; then each job that arrives is an event, and then each that finishes early, in the
    order of starts.
    """
    coming, waiting, running = list(reversed(jobs)), list[LoopJob](), list[LoopJob]()
    number = {id(job): k for k, job in enumerate(jobs)}
    while coming or running:
        times = [job.start + job.run for job in running]
        now = min([*times, coming[-1].arrival] if coming else times)
        early = [j for j in running if j.start + j.run == now < j.start + j.estimate]
        early.sort(key=lambda job: (job.start, number[id(job)]))
        left = [job for job in running if job.start + job.run > now or job in early]
        arrives = bool(coming) and coming[-1].arrival == now
        in_time, running = len(left) < len(running), left
        events: list[LoopJob | None] = [None] if in_time and not arrives else []
        while coming and coming[-1].arrival == now:
            events.append(coming.pop())
        for event in [*events, *early]:
            if event in early:
                running.remove(event)
            elif event is not None:
                waiting.append(event)
            for job in starting(now, waiting, running, processors):
                job.start = now
                running.append(job)
            waiting = [job for job in waiting if job.start < 0]


def with_plain_easy(log: str, jobset: JobSet, processors: int) -> Agreement:
    """Compares with EASY in plain Python."""
    starts = played(HPC(processors=processors), [jobset], EASY).start
    plain, cpu_s = timed(lambda: np.array(plain_easy_starts(jobset, processors)))
    return agreement(log, "plain EASY", "instant", jobset, starts, plain, cpu_s)


def with_accasim(log: str, jobset: JobSet, processors: int, python: str) -> Iterator[Agreement]:
    """Compares `EASY`, and `SKIP`, which keeps no reservation, with AccaSim's EASY backfilling.

    Jobs are killed at their estimates, and AccaSim's CPU seconds are those of its process.
    """
    run = np.minimum(jobset.duration, jobset.attributes["estimate"])
    columns = jobset.arrival, run, jobset.attributes["estimate"], jobset.demand[:, 0]
    killed = jobset_of(*columns)
    world = HPC(processors=processors)
    easy, cpu_s = timed(lambda: played(world, [killed], EASY).start)
    skip = played(world, [killed], SKIP).start
    yield agreement(log, "metasched", "instant", killed, easy, easy, cpu_s)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "log.swf"
        path.write_text(
            "\n".join(
                f"{k} {arrival} -1 {run} {size} -1 -1 {size} {estimate} -1 1 1 1 1 1 1 -1 -1"
                for k, (arrival, run, estimate, size) in enumerate(zip(*columns, strict=True), 1)
            )
            + "\n"
        )
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        ran = subprocess.run(
            [python, Path(__file__).with_name("accasim_starts.py"), path, str(processors)],
            stdout=subprocess.PIPE,
            text=True,
            check=True,
        )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu_s = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    others = np.array(ran.stdout.split(), np.int64)
    yield agreement(log, "AccaSim", "instant", killed, easy, others, cpu_s)
    yield agreement(log, "AccaSim", "skip", killed, skip, others, cpu_s)


def with_pyss(log: str, path: Path, schedule: Path) -> Iterator[Agreement]:
    """Compares with a schedule of pyss, which makes a pass after each single event."""
    file = read_swf(path)
    job, submit, wait = _scheduled(schedule)
    jobset = _as_pyss_reads(file.columns, job)
    if (jobset.arrival != submit - submit[0]).any():
        raise ValueError(f"{schedule} is not of the jobs of {path}")
    for scheduling_pass in PASSES:
        if scheduling_pass == "instant":
            starts = played(HPC(processors=_processors(file)), [jobset], EASY).start
        else:
            starts = np.array(plain_easy_starts(jobset, _processors(file), True))
        others = jobset.arrival + wait
        yield agreement(log, "pyss", scheduling_pass, jobset, starts, others, float("nan"))


def _scheduled(path: Path) -> tuple[NDArray, NDArray, NDArray]:
    """Numbers, submits and waits of jobs in a schedule of pyss, in the order of submits."""
    if path.suffix == ".npz":
        with np.load(path) as known:
            columns = [known[name] for name in ("job", "submit", "wait_easy")]
    else:
        columns = [read_swf(path).columns[name] for name in ("job", "submit", "wait")]
    order = np.lexsort(columns[:2])
    job, submit, wait = (column[order].astype(np.int64) for column in columns)
    return job, submit, wait


def _processors(file: SwfFile) -> int:
    if file.processors is None:
        raise ValueError(f"the header of {file.path} does not say how large the machine is")
    return file.processors


def _as_pyss_reads(columns: Mapping[str, NDArray], job: NDArray) -> JobSet:
    """Some jobs of a log, which ask for the requested processors and are killed at the estimate."""
    row_of = {number: row for row, number in enumerate(columns["job"].tolist())}
    rows = np.array([row_of[number] for number in job.tolist()])
    fields = ("submit", "run", "requested_time", "requested_processors")
    submit, run, estimate, size = (columns[name][rows].astype(np.int64) for name in fields)
    return jobset_of(submit, np.minimum(run, estimate), estimate, size)


def generated() -> Iterator[Agreement]:
    """Compares on generated jobs, whose estimates are exact, too long, or wrong both ways."""
    for estimates in ("exact", "tsafrir", "gaussian:0.5"):
        workload = LublinWorkload(jobs=NUM_GENERATED, estimates=estimates, processors=PROCESSORS)
        jobset = workload.sample(np.random.default_rng(0))
        yield with_plain_easy(f"generated, {estimates}", jobset, PROCESSORS)


def of_folder(folder: Path, names: list[str], accasim: str = "") -> Iterator[Agreement]:
    """Compares on logs of a folder, those that are named or all.

    Raises:
        FileNotFoundError: if there is no log.
    """
    logs = {path.name.removesuffix(".swf.gz"): path for path in sorted(folder.glob("*.swf.gz"))}
    missing = [name for name in names if name not in logs]
    if missing or not logs:
        raise FileNotFoundError(f"no {(missing or ['*'])[0]}.swf.gz in {folder}")
    for name in names or logs:
        file = read_swf(logs[name])
        processors = _processors(file)
        jobset = file.jobs().that_fit((processors,), "the machine").jobset()
        yield with_plain_easy(name, jobset, processors)
        for schedule in sorted(folder.glob(f"pyss-easy-{name}.*")):
            yield from with_pyss(name, logs[name], schedule)
        if accasim:
            yield from with_accasim(name, jobset, processors, accasim)


def main() -> None:
    """Prints a line for each comparison."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--logs", type=Path)
    parser.add_argument("--accasim", metavar="PYTHON", default="")
    options = parser.parse_args()
    found = of_folder(options.logs, options.names, options.accasim) if options.logs else generated()
    for agreement in found:
        print(agreement, flush=True)


if __name__ == "__main__":
    main()
