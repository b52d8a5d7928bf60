"""Sequences of jobs of sites that do not exist: what a policy for any machine is trained on.

Nothing of any log is in them. What they vary is what logs differ in: the machine's size, the law of
sizes, how long jobs run, how they arrive, how much work there is, and how good estimates are.
"""

import math
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cluster_env.core.jobs import JobSet
from cluster_env.workloads.estimates import get_estimates
from cluster_env.workloads.lublin import JobType, draw_jobs, pass_through_days, types_for
from cluster_env.worlds.hpc.world import HPC

SMALLEST, USUAL, LARGEST = 64, 8_192, 163_840
"""Processors: four of five machines have `SMALLEST` to `USUAL`, the others up to `LARGEST`."""

LARGE = (1_024, 16_384)
"""Processors of machines that are shared by few wide jobs."""

_ASKED_S = np.array([5, 10, 15, 20, 30, 60, 120, 180, 240, 360, 480, 720, 1080, 1440]) * 60

LOAD = (0.5, 1.25)
_LIGHTER = (0.5, 1.1)
_LONGEST_S = 7 * 86_400

Jobs = tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]  # arrival, run, size


def any_site(world: HPC, num_jobs: int, rng: np.random.Generator) -> tuple[HPC, JobSet]:
    """Draws a machine and a sequence of its jobs.

    Half come from Lublin and Feitelson's model, with one or two kinds of jobs, another law of sizes
    and another scale of run times; half have logarithms that are normal, and arrivals from regular
    to bursty. Half of all have exact estimates. The load is that of the sequence itself, 50 to
    125 %.

    Args:
        world: whose other options the machine has; of its resources only processors count.
        num_jobs: of the sequence.
        rng: where all numbers come from.
    """
    usual = rng.random() < 0.8
    low, high = (SMALLEST, USUAL) if usual else (USUAL, LARGEST)
    processors = round(_between_logs(rng, low, high))
    draw = _like_lublin if rng.random() < 0.5 else _lognormal
    arrival, run, size = draw(rng, num_jobs, processors)
    begun = _at_load(arrival, run, size, processors, rng.uniform(*LOAD))
    estimate = get_estimates(_estimates(rng))(rng, run)
    jobset = JobSet.of(begun, run, size[:, None], attributes={"estimate": estimate})
    return replace(world, processors=processors, memory=0, gpus=0), jobset


def capability_site(world: HPC, num_jobs: int, rng: np.random.Generator) -> tuple[HPC, JobSet]:
    """Draws a machine of a few wide jobs, and a sequence of them.

    Run times, sizes and gaps have normal logarithms; most jobs take 20 minutes to some hours, and
    a hundredth to a third of the machine. Users leave room, up to four times what a job is to
    take, and ask for the next of a few round times, a day at most. Some jobs fail soon: they take
    a two-hundredth to a half of what was planned for, which nobody knows before. So run times are a
    third to two thirds of what is asked for, in the mean, and next to nothing for a few.

    Args:
        world: see `any_site`; so are the rest.
        num_jobs: of the sequence.
        rng: where all numbers come from.
    """
    processors = round(_between_logs(rng, *LARGE))
    correlation = rng.uniform(-0.2, 0.4)
    normal, other, gap = rng.standard_normal((3, num_jobs))
    of_size = correlation * normal + math.sqrt(1 - correlation**2) * other
    planned = _between_logs(rng, 1200.0, 7200.0) * np.exp(rng.uniform(0.8, 1.6) * normal)
    planned = np.minimum(planned, _ASKED_S[-1])
    wanted = planned * rng.uniform(1.0, rng.uniform(1.2, 4.0), num_jobs)
    estimate = _ASKED_S[np.minimum(np.searchsorted(_ASKED_S, wanted), _ASKED_S.size - 1)]
    fails = rng.random(num_jobs) < rng.uniform(0.02, 0.15)
    part = np.exp(rng.uniform(math.log(0.005), math.log(0.5), num_jobs))
    run = _whole(np.minimum(np.where(fails, planned * part, planned), estimate))
    median = _between_logs(rng, 0.03, 0.12) * processors
    size = np.round(median * np.exp(rng.uniform(0.4, 1.4) * of_size))
    whole = np.clip(size, 1, processors).astype(np.int64)
    gaps = np.exp(rng.uniform(0.0, 2.0) * gap)
    gaps *= 1e6 / float(gaps.sum())
    arrival = pass_through_days(gaps, float(rng.integers(24)), float(rng.integers(2)))
    begun = _at_load(arrival, run, whole, processors, rng.uniform(*_LIGHTER))
    jobset = JobSet.of(begun, run, whole[:, None], attributes={"estimate": estimate})
    return replace(world, processors=processors, memory=0, gpus=0), jobset


def _at_load(
    arrival: NDArray[np.int64],
    run: NDArray[np.int64],
    size: NDArray[np.int64],
    processors: int,
    load: float,
) -> NDArray[np.int64]:
    """Arrivals from 0 on, closer or further apart, so that this much work arrives in a second."""
    span = max(float(arrival[-1] - arrival[0]), 1.0)
    natural = float((run * size).sum()) / processors / span
    return np.floor((arrival - arrival[0]) * (natural / load)).astype(np.int64)


def _like_lublin(rng: np.random.Generator, num_jobs: int, processors: int) -> Jobs:
    typed = rng.random() < 0.5
    scale = _between_logs(rng, 0.25, 4.0)
    types = tuple(_varied(rng, kind) for kind in types_for(processors, typed))
    arrival, run, size, _ = draw_jobs(rng, num_jobs, types, float(rng.integers(24)))
    return arrival, _whole(run * scale), size


def _varied(rng: np.random.Generator, kind: JobType) -> JobType:
    """The same stream of jobs with another law of sizes."""
    serial = rng.uniform(0.05, 0.5)
    return replace(
        kind,
        serial=serial,
        power_of_two=rng.uniform(0.3, 0.9) * (1 - serial),
        u_first=rng.uniform(0.5, 0.97),
    )


def _lognormal(rng: np.random.Generator, num_jobs: int, processors: int) -> Jobs:
    correlation = rng.uniform(-0.2, 0.6)
    normal, other, gap = rng.standard_normal((3, num_jobs))
    of_size = correlation * normal + math.sqrt(1 - correlation**2) * other
    run = _between_logs(rng, 60.0, 14_400.0) * np.exp(rng.uniform(0.8, 2.6) * normal)
    median = _between_logs(rng, 0.01, 0.15) * processors  # with less, nobody has to wait
    size = np.round(median * np.exp(rng.uniform(0.4, 2.0) * of_size))
    gaps = np.exp(rng.uniform(0.0, 2.5) * gap)
    gaps *= 1e6 / float(gaps.sum())  # of any length: the load makes it right
    depth = float(rng.integers(2))
    arrival = pass_through_days(gaps, float(rng.integers(24)), depth)
    return arrival, _whole(run), np.clip(size, 1, processors).astype(np.int64)


def _estimates(rng: np.random.Generator) -> str:
    """As `cluster_env.workloads.estimates` names them."""
    if rng.random() < 0.5:
        return "exact"
    kinds = ("tsafrir", "uniform:3", "uniform:20", "over:1", "gaussian:0.3")
    return kinds[int(rng.integers(len(kinds)))]


def _between_logs(rng: np.random.Generator, low: float, high: float) -> float:
    return math.exp(rng.uniform(math.log(low), math.log(high)))


def _whole(seconds: NDArray[np.floating[Any]]) -> NDArray[np.int64]:
    return np.clip(np.ceil(seconds), 1, _LONGEST_S).astype(np.int64)
