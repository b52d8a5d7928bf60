"""Jobsets so small that all their schedules can be tried."""

from itertools import permutations

from hypothesis import strategies as st

from cluster_env.core.jobs import JobSet

CAPACITY = (3, 4)


@st.composite
def tiny_jobsets(draw: st.DrawFn, most: int = 5) -> JobSet:
    """One to `most` jobs on two resources, for a cluster of `CAPACITY`."""
    count = draw(st.integers(1, most))

    def numbers(low: int, high: int) -> list[int]:
        return draw(st.lists(st.integers(low, high), min_size=count, max_size=count))

    demand = list(zip(numbers(1, CAPACITY[0]), numbers(0, CAPACITY[1]), strict=True))
    return JobSet.of(sorted(numbers(0, 6)), numbers(1, 6), demand, window=7)


def best_cost(jobset: JobSet, capacity: tuple[int, ...], weights: list[float]) -> float:
    """Smallest weighted sum of completion times, by trying every order of jobs.

    Some optimal schedule comes from placing jobs in some order, each as early as those before it
    allow, because no cost falls when a job finishes later.
    """
    jobs = range(jobset.num_jobs)
    return min(_cost(jobset, capacity, weights, order) for order in permutations(jobs))


def _cost(
    jobset: JobSet, capacity: tuple[int, ...], weights: list[float], order: tuple[int, ...]
) -> float:
    arrival, duration = jobset.arrival.tolist(), jobset.duration.tolist()
    demand = jobset.demand.tolist()
    starts: dict[int, int] = {}

    def fits(job: int, start: int) -> bool:
        # The most is in use where the job or another one starts.
        for time in [start, *starts.values()]:
            if not start <= time < start + duration[job]:
                continue
            running = [k for k, s in starts.items() if s <= time < s + duration[k]]
            for resource, units in enumerate(capacity):
                if demand[job][resource] + sum(demand[k][resource] for k in running) > units:
                    return False
        return True

    for job in order:
        ends = [start + duration[k] for k, start in starts.items()]
        candidates = [arrival[job], *(end for end in ends if end > arrival[job])]
        starts[job] = min(start for start in candidates if fits(job, start))
    return sum(
        weights[job] * (start + duration[job] - arrival[job]) for job, start in starts.items()
    )
