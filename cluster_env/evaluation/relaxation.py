r"""A proven lower bound of the weighted completion time, without a solver.

Jobs start at whole time steps and the capacity of every step has a price. Without capacities, each
job takes the start that is cheapest for it at these prices, and what that costs all jobs, less
the price of the whole capacity, is at most the cost of any schedule, whatever the prices
(Lagrangian relaxation of the time-indexed model). The prices are improved by a deflected
subgradient method with Polyak's steps for a fixed number of iterations, so that the bound is the
same on every machine. The best prices give the bound of the linear program of that model (Sousa
and Wolsey, "A time indexed formulation of non-preemptive single machine scheduling problems",
Mathematical Programming 54, 1992); what is found stays somewhat below.

Two jobs that each ask for more than half of a resource can never run together, which fractions of
jobs could. So each resource enters a second time with a capacity of two halves, of which such a
job takes both, and one that asks for exactly a half takes one (a dual feasible function).
"""

import numpy as np
from numpy.typing import NDArray

from cluster_env.core.jobs import JobSet

ITERATIONS = 500

_DEFLECTION = 0.7  # how much of the last direction is kept
_PATIENCE = 20  # iterations without a better bound after which steps are halved
_BETTER = 1e-6


def relaxed_bound(
    jobset: JobSet,
    capacity: tuple[int, ...],
    weights: NDArray[np.int64],
    start: NDArray[np.int32],
    num_iterations: int = ITERATIONS,
) -> float:
    """A number that the weighted sum of completion times is at least, in every schedule.

    ``weights``, int64 ``(num_jobs,)``, are what each step from a job's arrival to its finish
    costs. The starts, int32 ``(num_jobs,)``, are of a schedule that is possible: the better it is,
    the better are the steps; the bound holds for any.
    """
    # Each resource enters twice: as it is, and as two halves.
    whole = np.asarray(capacity, np.float64)
    halves = np.where(
        2 * jobset.demand > whole, 2.0, np.where(2 * jobset.demand == whole, 1.0, 0.0)
    )
    demand = np.hstack([jobset.demand.astype(np.float64), halves])  # (num_jobs, num_limits)
    units = np.hstack([whole, np.full_like(whole, 2)])
    duration = jobset.duration.astype(np.int64)
    horizon = int((start + duration).max())
    cost, stop = _choices(jobset, weights, horizon)
    reached = float(weights @ (start + duration - jobset.arrival))  # by the schedule that is known
    jobs = np.arange(jobset.num_jobs)
    price = np.zeros((units.size, horizon))  # (num_limits, horizon), of the whole capacity
    direction = np.zeros_like(price)
    share = demand / units
    best, stride, waited = float(weights @ duration), 1.0, 0
    for _ in range(num_iterations):
        # At these prices each job takes its cheapest start: its cost, and rent while it runs. Sums
        # of prices from the beginning on give the rent of any stretch as a difference.
        paid = np.zeros((units.size, horizon + 1))
        np.cumsum(price, axis=1, out=paid[:, 1:])
        rent = share @ paid
        charged = cost + np.take_along_axis(rent, stop, axis=1) - rent
        choice = charged.argmin(axis=1)
        value = float(charged[jobs, choice].sum() - price.sum())
        # A better bound is kept; where none comes for long, steps are too large.
        waited += 1
        if value > best * (1 + _BETTER):
            best, waited = value, 0
        elif waited >= _PATIENCE:
            stride, waited = stride / 2, 0
        # Share of each capacity that these starts use at each step, above the whole of it.
        change = np.zeros((horizon + 1, units.size))
        np.add.at(change, choice, share)
        np.add.at(change, stop[jobs, choice], -share)
        over = np.cumsum(change[:-1], axis=0).T - 1.0
        # Prices rise where too much is used, and fall where capacity is left, but not below 0.
        direction = over + _DEFLECTION * direction
        direction[(price <= 0) & (direction < 0)] = 0.0
        length = float(np.sum(direction**2))
        # Costs are whole numbers: within 1 of a schedule's, the bound proves that it is the best.
        if length == 0.0 or reached - best < 1.0:
            break
        price = np.maximum(0.0, price + stride * max(reached - value, 1.0) / length * direction)
    return best


def _choices(
    jobset: JobSet, weights: NDArray[np.int64], horizon: int
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """What each start costs each job, and where the steps that it pays for stop.

    Both are ``(num_jobs, horizon + 1)``. The last start stands for itself and all later ones: it
    costs what it costs at the horizon, and what lies behind has no price. So the horizon makes the
    bound no less true.
    """
    start = np.arange(horizon + 1)
    duration = jobset.duration.astype(np.int64)[:, None]
    arrival = jobset.arrival[:, None]
    cost = np.where(
        start >= arrival, weights[:, None] * (start + duration - arrival).astype(float), np.inf
    )
    return cost, np.minimum(start + duration, horizon)
