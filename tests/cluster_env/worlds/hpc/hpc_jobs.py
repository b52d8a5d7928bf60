"""Jobs for the tests of this world: recorded ones, and small ones for Hypothesis."""

from pathlib import Path

import numpy as np
from hypothesis import strategies as st
from numpy.typing import NDArray

from cluster_env.core.jobs import JobSet
from cluster_env.core.schedule import Schedule
from cluster_env.objectives import get_objective
from cluster_env.worlds.hpc import HPC
from cluster_env.worlds.hpc.rules import Rule

PROCESSORS = 8


def jobset_of(submit, run, estimate, demand, **attributes) -> JobSet:
    submit, demand = np.asarray(submit), np.asarray(demand)
    return JobSet.of(
        submit - submit[0],
        run,
        demand[:, None] if demand.ndim == 1 else demand,
        attributes={"estimate": np.asarray(estimate), "submit": submit, **attributes},
    )


def played(world: HPC, jobsets: list[JobSet], rule: Rule) -> Schedule:
    simulator = world.simulator()
    simulator.load(jobsets, get_objective("bounded_slowdown"))
    simulator.play(rule)
    return simulator.schedule()


def arrays(path: Path) -> dict[str, NDArray]:
    with np.load(path) as file:
        return {name: file[name] for name in file.files}


@st.composite
def small_jobsets(draw, exact: bool = False, corrected: bool = False) -> JobSet:
    """Up to 14 jobs that compete; estimates may be too short or too long, and corrected."""
    count = draw(st.integers(1, 14))

    def numbers(low, high):
        return np.array(draw(st.lists(st.integers(low, high), min_size=count, max_size=count)))

    run = numbers(1, 9)
    estimate = run if exact else np.maximum(1, run + numbers(-4, 6))
    names = ("order_estimate", "reserve_estimate") if corrected else ()
    attributes = {name: numbers(1, 12) for name in names}
    return jobset_of(np.cumsum(numbers(0, 4)), run, estimate, numbers(1, PROCESSORS), **attributes)
