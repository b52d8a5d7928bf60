"""Cunha (2022): every rule and learned policies, by job log and estimates."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np

from cluster_env.core.errors import InputError
from cluster_env.workloads.formats import read_log
from tune_jobs.recipes.request import FigureRequest
from tune_jobs.recipes.scenarios import Scenario, ScenarioTable, logs_of
from tune_jobs.tables.frames import Row


def _published_windows(request: FigureRequest) -> Iterator[Scenario]:
    for name, settings in logs_of(request):
        yield Scenario(f"{name}, RLScheduler's windows", "hpc-smoke", settings, "rlscheduler")


def _logs_by_estimates(request: FigureRequest) -> Iterator[Scenario]:
    for name, settings in logs_of(request):
        for estimates in ("recorded", "gaussian:1", "tsafrir"):
            anywhere = {"workload.jobs": 1024, "workload.whole": "true"}  # as the dissertation cuts
            changed = {**settings, **anywhere, "workload.estimates": estimates}
            yield Scenario(f"{name}, estimates {estimates}", "hpc-smoke", changed)


TABLE_6 = ScenarioTable(
    "Bounded slowdown on RLScheduler's windows (Cunha, table 5.6)", _published_windows
)


TABLE_7 = replace(
    TABLE_6, title="Utilization on RLScheduler's windows (Cunha, table 5.7)", metric="utilization"
)


TABLE_10 = ScenarioTable(
    "Bounded slowdown on job logs, by estimates (Cunha, table 5.10)", _logs_by_estimates
)


TABLE_11 = replace(
    TABLE_10,
    title="Utilization on job logs, by estimates (Cunha, table 5.11)",
    metric="utilization",
)


def collect_logs(request: FigureRequest) -> list[Row]:
    """Reads each log of ``--trace``, and counts what fits its machine.

    Raises:
        InputError: if there is none, one cannot be read, or an option of a world other than
            ``--processors`` is given.
    """
    if others := request.task_options.keys() - {"processors"}:
        raise InputError(f"this figure counts jobs as they are, so leave out --{min(others)}")
    rows: list[Row] = []
    for name, settings in logs_of(request):
        path = Path(str(settings["workload.path"]))
        machine = settings.get("world.processors", request.task_options.get("processors"))
        processors = int(str(machine))
        jobs = read_log(path).that_fit((processors,), f"the machine of {processors:,} processors")
        ratio = jobs.estimate / jobs.run
        rows.append(
            {
                "log": name,
                "processors": processors,
                "jobs": jobs.num_jobs,
                "span": jobs.span,
                "load": float(jobs.load((processors,))[0]),
                "median_run": float(np.median(jobs.run)),
                "longest_run": int(jobs.run.max()),
                "median_processors": float(np.median(jobs.demand[:, 0])),
                "estimate_over_run": float(np.median(ratio)),
                "exact_estimates": float((ratio == 1).mean()),
            }
        )
    return rows
