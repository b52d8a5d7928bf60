"""Utility accrual (Vengerov): policies, rates, time-utility functions, and several servers.

50 experiments of 20,000 steps, or 20 of several servers with one queue (section 4.2), after 25,000
steps of learning on other arrivals; ``--jobsets`` makes it fewer experiments.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rllib_configs.config.schema import prepare
from rllib_configs.worlds.accrual.servers import (
    POLICIES,
    Outcome,
    Setting,
    experiment,
    pool_experiment,
    pool_of,
)
from tune_jobs.measuring.choices import choose_config
from tune_jobs.measuring.fingerprints import fingerprint
from tune_jobs.recipes.request import FigureRequest
from tune_jobs.tables.frames import Row

EXPERIMENTS = 50

RATES = (0.06, 0.08, 0.1, 0.12, 0.14, 0.16, 0.18, 0.2)

SHAPES = {"root": "concave: root", "linear": "linear", "square": "convex: square"}
"""Time-utility functions of figure 5."""

RULES = ("SSS", "SSL", "SLS", "SLL", "LSS", "LSL", "LLS", "LLL")

ORDERS = ("edf", "density", "dasa", "lbesa")

MACHINES, MACHINE_RATES, MACHINE_EXPERIMENTS = (1, 2, 4), (0.1, 0.2), 20
"""Numbers of servers with one queue, rates of arrivals for each of them, and experiments."""


Experiment = tuple[Setting] | tuple[Setting, Sequence[str], Sequence[str]]
"""What is measured: all policies and columns, or these."""


def setting_of(request: FigureRequest, **changes: Any) -> Setting:
    """That of the preset fuzzy-td, the paper's, with the changes that are asked for (``--set``).

    There are as many experiments as are asked for, at most 50.
    """
    config = prepare(
        choose_config(request.source or "fuzzy-td", request.overrides, request.task_options, [])
    )
    experiments = min(request.num_jobsets, EXPERIMENTS)
    return replace(Setting.of(config, experiments, request.seed), **changes)


def _cells(name: str, values: NDArray[np.float64], unit: float = 1.0) -> dict[str, float]:
    """Mean over experiments in some unit, and its standard error."""
    error = values.std(ddof=1) / np.sqrt(values.size) / unit if values.size > 1 else 0.0
    return {name: float(values.mean() / unit), f"{name}_error": float(error)}


def rows_of(setting: Setting, outcomes: Iterable[Outcome]) -> list[Row]:
    """A row for each policy and column: means over experiments and their standard errors."""
    rows: list[Row] = []
    aggressive: dict[str, NDArray[np.float64]] = {}  # by column
    for one in outcomes:
        if one.policy == "aggressive":
            aggressive[one.column] = one.productivity
        learned: dict[str, float] = {}
        if one.policy == "utility" and one.column in aggressive:  # on the same arrivals
            gain = (one.productivity - aggressive[one.column]) / 1000
            learned |= _cells("over_aggressive", gain)
        if one.parameters is not None:
            root = np.sqrt(one.productivity.size)
            for rule, values in zip(RULES, one.parameters.T, strict=True):
                learned[f"p_{rule}"] = float(values.mean())
                learned[f"p_{rule}_error"] = float(values.std() / root)
        rows.append(
            {
                "policy": one.policy,
                "column": one.column,
                "rate": setting.rate,
                "utility": setting.utility,
                "dropped": setting.world.drop_expired,
                "experiments": one.productivity.size,
                **_cells("productivity", one.productivity, 1000),
                **_cells("utilization", one.utilization),
                **learned,
            }
        )
    return rows


def collect_policies(request: FigureRequest) -> list[Row]:
    """The nine policies of figures 2 and 3, and orders of the literature.

    Twice: where jobs that are worth nothing stay in the queue, and where they are let go.
    """
    one = setting_of(request)
    settings = [replace(one, world=replace(one.world, drop_expired=end)) for end in (False, True)]
    experiments = [one for each in settings for one in ((each,), (each, ORDERS, ("both",)))]
    return _measured(request, experiments)


def collect_rates(request: FigureRequest) -> list[Row]:
    """Figure 4: policies that may do both, against the rate of arrivals (``--at``)."""
    settings = [setting_of(request, rate=rate) for rate in request.at or RATES]
    return _measured(request, [(one, tuple(POLICIES), ("both",)) for one in settings])


def collect_shapes(request: FigureRequest) -> list[Row]:
    """Figure 5: the nine policies under three time-utility functions."""
    settings = [setting_of(request, utility=shape) for shape in SHAPES]
    return _measured(request, [(one,) for one in settings])


def _measured(request: FigureRequest, experiments: Sequence[Experiment]) -> list[Row]:
    """The rows of experiments, each with servers that learn by themselves."""
    keys = [fingerprint("utility", *map(str, one)) for one in experiments]
    found = request.work.measure(
        _experiment, None, experiments, keys=keys, unit="experiment", name=_of_setting
    )
    return [row for rows in found for row in rows]


def _experiment(_: None, piece: Experiment) -> list[Row]:
    return rows_of(piece[0], experiment(*piece))


def _of_setting(piece: Experiment, rows: list[Row]) -> str:
    return f"{piece[0].rate:g} jobs a step"


def collect_machines(request: FigureRequest) -> list[Row]:
    """A row for each rate of a server (``--at``), number of servers, allocation and policy.

    Productivity is that of a server; gains are over policies on the same arrivals.
    """
    experiments = min(request.num_jobsets, MACHINE_EXPERIMENTS)
    pools = [
        (rate, machines, allocation)
        for rate in request.at or MACHINE_RATES
        for machines in MACHINES
        for allocation in (("machine", "job") if machines > 1 else ("machine",))
    ]
    shared = experiments, request.seed
    keys = [fingerprint("pool", *shared, *pool) for pool in pools]
    found = request.work.measure(_pool, shared, pools, keys=keys, unit="experiment")
    return [row for rows in found for row in rows]


def _pool(shared: tuple[int, int], piece: tuple[float, int, str]) -> list[Row]:
    """The rows of one rate, number of servers and allocation."""
    (experiments, seed), (rate, machines, allocation) = shared, piece
    each = Setting(rate=rate, experiments=experiments, seed=seed)
    outcomes = pool_experiment(pool_of(each, machines, allocation))
    values = {policy: earned / 1000 / machines for policy, earned in outcomes}
    return [
        {
            "policy": policy,
            "machines": machines,
            "allocation": allocation,
            "rate": rate,
            "experiments": experiments,
            **_cells("productivity", mine),
            **_cells("over_aggressive", mine - values["aggressive"]),
            **_cells("over_own", mine - values["own"]),
        }
        for policy, mine in values.items()
    ]
