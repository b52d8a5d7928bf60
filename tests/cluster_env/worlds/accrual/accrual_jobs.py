"""Jobs for the tests of this world."""

from typing import Any

import numpy as np
from hypothesis import strategies as st

from cluster_env.core.jobs import JobSet
from cluster_env.worlds.accrual import Accrual
from cluster_env.worlds.accrual.orders import ALLOCATIONS
from cluster_env.worlds.accrual.workloads import read_utility

FUNCTIONS = ("linear", "square", "root", "0.5:1 1:0.75 3:0.25", "1:1 4:0 ^3")


MOST_PROJECTS = 3


def jobs(
    arrival: list[int],
    size: list[int],
    duration: list[int],
    utility: str = "linear",
    project: list[int] | None = None,
) -> JobSet:
    """Jobs that are written down."""
    functions = read_utility(utility).rows(len(arrival))
    demand = np.reshape(size, (-1, 1))
    columns = {"tuf": functions}
    return JobSet.of(arrival, duration, demand, job_class=project, attributes=columns)


@st.composite
def small_jobsets(draw: Any, processors: int = 6) -> JobSet:
    """Up to ten jobs, crowded enough that some have to wait."""
    count = draw(st.integers(1, 10))
    whole = st.integers
    arrival = sorted(draw(st.lists(whole(0, 15), min_size=count, max_size=count)))
    size = draw(st.lists(whole(1, processors), min_size=count, max_size=count))
    duration = draw(st.lists(whole(1, 7), min_size=count, max_size=count))
    project = draw(st.lists(whole(0, MOST_PROJECTS - 1), min_size=count, max_size=count))
    return jobs(arrival, size, duration, draw(st.sampled_from(FUNCTIONS)), project)


@st.composite
def small_worlds(draw: Any, processors: int = 6, machines: int = 1) -> Accrual:
    """All options of a small server, or of several with one queue, at most so many."""
    return Accrual(
        processors=processors,
        longest=7,
        preempt=draw(st.booleans()),
        squeeze=draw(st.booleans()),
        drop_expired=draw(st.booleans()),
        max_time=draw(st.sampled_from((12, 2**31 - 1))),
        machines=draw(st.integers(1, machines)),
        allocation=draw(st.sampled_from(ALLOCATIONS)),
        projects=draw(st.sampled_from((1, MOST_PROJECTS))),
    )
