"""How many jobs of a log start at the second at which other simulators start them.

python -m tests.cluster_env.worlds.hpc.agreement                  generated jobs, without a log
python -m tests.cluster_env.worlds.hpc.agreement --logs FOLDER    all NAME.swf.gz of a folder
python -m tests.cluster_env.worlds.hpc.agreement --logs FOLDER kth-sp2-1996 sdsc-sp2-1998

Each log is compared with EASY in plain Python (`tune_jobs.benchmarks.plain_easy`), which takes
minutes where thousands of jobs wait. It is also compared with pyss where the folder has pyss's
schedule of the same jobs: pyss-easy-NAME.swf, as pyss writes it, or pyss-easy-NAME.npz with its
fields 1 to 3 as arrays, job, submit and wait_easy.
"""

import argparse
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

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
PROCESSORS = 256
NUM_GENERATED = 5_000


PASSES = ("instant", "event")
"""After what jobs may start: all that happens in a second, or each single event of it."""


class Agreement(NamedTuple):
    """How many of the jobs of a log start at the same second in two simulators."""

    log: str
    other: str
    scheduling_pass: str
    num_jobs: int
    num_equal: int

    def __str__(self) -> str:
        share = self.num_equal / self.num_jobs
        return (
            f"{self.log:32} {self.other:12} {self.scheduling_pass:8} {self.num_equal:9,} of "
            f"{self.num_jobs:9,} {share:10.4%}"
        )


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
    num_equal = int((starts == np.array(plain_easy_starts(jobset, processors))).sum())
    return Agreement(log, "plain EASY", "instant", jobset.num_jobs, num_equal)


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
        num_equal = int((starts - jobset.arrival == wait).sum())
        yield Agreement(log, "pyss", scheduling_pass, jobset.num_jobs, num_equal)


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


def of_folder(folder: Path, names: list[str]) -> Iterator[Agreement]:
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


def main() -> None:
    """Prints a line for each comparison."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--logs", type=Path)
    options = parser.parse_args()
    found = of_folder(options.logs, options.names) if options.logs else generated()
    for agreement in found:
        print(agreement, flush=True)


if __name__ == "__main__":
    main()
