"""Sites that exist: windows of their logs at a bound on waits, beside sites that are drawn.

A policy that was trained on them has met their jobs. Whoever reports how good it is leaves a site
out of the training, and reports that site.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from pathlib import Path

import numpy as np

from cluster_env.core.errors import InputError
from cluster_env.core.jobs import JobSet
from cluster_env.core.registry import unknown
from cluster_env.core.seeding import Split
from cluster_env.workloads.formats import read_log
from cluster_env.workloads.windows import filling_time
from cluster_env.worlds.hpc.bounds import bound_of
from cluster_env.worlds.hpc.workloads import HPCLog, any_site
from cluster_env.worlds.hpc.world import HPC

_ENDINGS = (".swf.gz", ".swf")  # of logs in a folder; their headers may name the machine's size
_TRIES = 64
_FEWEST = 50  # jobs of a window, so that its mean does not hang on a few of them

Draw = Callable[[Split, HPC, int, np.random.Generator], tuple[HPC, JobSet]]


def real_sites(
    logs: Sequence[Path], leave_out: Sequence[str], generated: float, bound: float
) -> Draw:
    """The family *real sites*: windows of logs, all equally often, and drawn sites (`any_site`).

    A window has as many jobs on average as are asked for. A warm-up comes before it, at least a
    quarter as long, whose jobs do not count.

    Args:
        logs: files, or folders with files that end in .swf or .swf.gz.
        leave_out: names of sites that are not used: of their files, without the ending.
        generated: share of the jobsets that drawn sites have, 0 to 1.
        bound: the bound on waits of each site where the world has none, as a multiple of the
            longest wait under fcfs:easy in its log before the held-out jobs, or in the jobset of a
            drawn site; 0 for none.

    Raises:
        InputError: if there is no such log or site, a log cannot be read, or its header does not
            name the processors.
    """
    sites = [Site(path) for path in _files(logs)]
    names = [site.name for site in sites]
    for name in leave_out:
        if name not in names:
            raise unknown("site to leave out", name, names)
    used = [site for site in sites if site.name not in leave_out]
    if not used:
        raise InputError("training.sites.leave_out leaves no site to train on")
    for site in used:
        site.processors  # noqa: B018  # said now, and not when the first window is drawn

    def draw(
        split: Split, world: HPC, num_jobs: int, rng: np.random.Generator
    ) -> tuple[HPC, JobSet]:
        """A machine, and jobs of one of its splits."""
        if rng.random() < generated:
            drawn, jobset = any_site(world, num_jobs, rng)
            return _bounded(drawn, bound, jobset), jobset
        site = used[int(rng.integers(len(used)))]
        machine = replace(world, processors=site.processors, memory=0, gpus=0)
        return _bounded(machine, bound, site), site.window(split, num_jobs, rng)

    return draw


@dataclass(frozen=True)
class Site:
    """A site of which there is a log.

    Attributes:
        path: of the log.
    """

    path: Path

    @property
    def name(self) -> str:
        """Name of the file without its ending."""
        ending = next((one for one in _ENDINGS if self.path.name.endswith(one)), self.path.suffix)
        return self.path.name.removesuffix(ending)

    @cached_property
    def processors(self) -> int:
        """Of the machine, as the log's header has them.

        Raises:
            InputError: if the log cannot be read, or does not name them.
        """
        found = read_log(self.path).processors
        if not found:
            raise InputError(
                f"{self.path} does not record how many processors the machine has; add a line "
                f"like '; MaxProcs: 128' at its top"
            )
        return found

    def window(self, split: Split, num_jobs: int, rng: np.random.Generator) -> JobSet:
        """Jobs of a split that arrive in a stretch of time, and before them some to fill it."""
        part = _cut(self, num_jobs).part(split)
        jobset = part.sample(rng)
        for _ in range(_TRIES):
            if jobset.counted.sum() >= min(_FEWEST, num_jobs // 2):
                break
            jobset = part.sample(rng)
        return jobset


@lru_cache(maxsize=64)
def _cut(site: Site, num_jobs: int) -> HPCLog:
    """The log in windows of so many jobs on average."""
    log = HPCLog(site.path, capacity=(site.processors,))
    window = max(1, round(log.recorded.span * num_jobs / log.recorded.num_jobs))
    return replace(log, window=window, warmup=max(window // 4, filling_time(log.recorded)))


@lru_cache(maxsize=64)
def _bound_of_site(site: Site, factor: float) -> int:
    log = HPCLog(site.path, capacity=(site.processors,))
    return bound_of(factor, HPC(site.processors), log.before_held_out().recorded.jobset())


def _bounded(world: HPC, factor: float, jobs: Site | JobSet) -> HPC:
    """The machine with a bound on waits, unless it has one."""
    if world.max_wait or not factor:
        return world
    if isinstance(jobs, Site):
        return replace(world, max_wait=_bound_of_site(jobs, factor))
    return replace(world, max_wait=bound_of(factor, world, jobs))


def _files(paths: Sequence[Path]) -> list[Path]:
    """The logs that files and folders hold, in the order of their names."""
    if not paths:
        raise InputError(
            "the family real-sites needs job logs: set training.sites.logs to a folder or to files"
        )
    files: list[Path] = []
    for path in paths:
        inside = [path]
        if path.is_dir():
            inside = sorted(one for one in path.iterdir() if one.name.endswith(_ENDINGS))
            if not inside:
                raise InputError(f"there is no job log in {path}: no file *.swf or *.swf.gz")
        elif not path.is_file():
            raise InputError(f"there is no file or folder {path} of job logs")
        files += inside
    return files
