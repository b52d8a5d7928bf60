"""Cunha (2022): every rule and learned policies, by machine, job log and estimates."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from matplotlib.transforms import Bbox

from cluster_env.core.errors import InputError
from cluster_env.workloads.formats import read_log
from tune_jobs.figures.registry import FigureRecipe, FigureRequest
from tune_jobs.figures.scenarios import Scenario, ScenarioFigure, logs_of
from tune_jobs.figures.style import GRID, headline, new_figure, styled
from tune_jobs.tables.columns import COUNT, RATIO, SECONDS, SHARE, shown
from tune_jobs.tables.frames import Row, read_frame


def _published_windows(request: FigureRequest) -> Iterator[Scenario]:
    for name, settings in logs_of(request):
        yield Scenario(f"{name}, RLScheduler's windows", "hpc-smoke", settings, "rlscheduler")


def _logs_by_estimates(request: FigureRequest) -> Iterator[Scenario]:
    for name, settings in logs_of(request):
        for estimates in ("recorded", "gaussian:1", "tsafrir"):
            anywhere = {"workload.jobs": 1024, "workload.whole": "true"}  # as the dissertation cuts
            changed = {**settings, **anywhere, "workload.estimates": estimates}
            yield Scenario(f"{name}, estimates {estimates}", "hpc-smoke", changed)


def _generated(
    name: str, processors: Iterable[int], estimates: Iterable[str] = ("",)
) -> Callable[[FigureRequest], list[Scenario]]:
    """256 of Lublin's jobs by machine and estimates; by default, estimates are the preset's."""
    scenarios = []
    for size, kind in product(processors, estimates):
        settings: dict[str, object] = {"world.processors": size, "workload.jobs": 256}
        settings |= {"workload.estimates": kind} if kind else {}
        scenarios.append(Scenario(name.format(size, kind), "hpc-smoke", settings))
    return lambda request: scenarios


_SCENARIOS = {1: (10, 15), 2: (10, 48), 6: (64, 15), 8: (64, 33), 10: (64, 48)}
"""Processors and longest job of those scenarios of its table 5.3 whose jobs may be as large as the
machine; `BimodalWorkload` has no smaller ones."""

_ARRIVALS = 0.3  # jobs in a time step


def _scenarios(request: FigureRequest) -> Iterator[Scenario]:
    for number, (processors, longest) in _SCENARIOS.items():
        small, large = (1, longest // 5), (round(longest * 2 / 3), longest)
        mean = 0.8 * sum(small) / 2 + 0.2 * sum(large) / 2
        settings: dict[str, object] = {
            "world.cluster.capacity": [processors],
            "world.cluster.horizon": 60,
            "workload.window": 100,
            "workload.small_duration": list(small),
            "workload.large_duration": list(large),
            "workload.load": round(_ARRIVALS * mean * 0.75, 3),  # jobs take half to all of it
        }
        name = f"Scenario {number}: {processors} processors, jobs of up to {longest} steps"
        yield Scenario(name, "deeprm", settings)


TABLE_6 = ScenarioFigure(
    "Bounded slowdown on RLScheduler's windows (Cunha, table 5.6)", _published_windows
)
TABLE_7 = replace(
    TABLE_6, title="Utilization on RLScheduler's windows (Cunha, table 5.7)", metric="utilization"
)
TABLE_9 = ScenarioFigure(
    "Bounded slowdown of generated jobs, by estimates (Cunha, table 5.9)",
    _generated(
        "{:,} processors, estimates {}",
        (128, 256, 1024, 16_384),
        ("exact", "gaussian:1", "tsafrir"),
    ),
)
TABLE_10 = ScenarioFigure(
    "Bounded slowdown on job logs, by estimates (Cunha, table 5.10)", _logs_by_estimates
)
TABLE_11 = replace(
    TABLE_10,
    title="Utilization on job logs, by estimates (Cunha, table 5.11)",
    metric="utilization",
)
FIGURE_5 = ScenarioFigure("Slowdown by scenario (Cunha, figure 5.5)", _scenarios, "slowdown")
FIGURE_8 = ScenarioFigure(
    "Policies on machines of other sizes (Cunha, figure 5.8)",
    _generated("{:,} processors", (64, 128, 256, 1024, 16_384)),
)
FIGURE_9 = ScenarioFigure(
    "Bounded slowdown of generated jobs, by noise of estimates (Cunha, figure 5.9)",
    _generated(
        "{} processors, estimates {}",
        (128,),
        ("exact", "gaussian:0.5", "gaussian:1", "gaussian:1.5", "gaussian:2"),
    ),
)

LOG_UNITS = {
    "processors": COUNT,
    "jobs": COUNT,
    "span": SECONDS,
    "load": SHARE,
    "median_run": SECONDS,
    "longest_run": SECONDS,
    "median_processors": COUNT,
    "estimate_over_run": RATIO,
    "exact_estimates": SHARE,
}
"""Columns behind the name of a log, and their units; `estimate_over_run` is a median."""

_LINE = 0.34  # inches


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


def draw_logs(table: Path) -> Figure:
    """Draws the CSV file of `collect`."""
    rows = read_frame(table, ("log",), LOG_UNITS)
    with styled():
        figure = new_figure(1.3 + _LINE * (1 + len(rows)), 10.5)
        axes = figure.subplots()
        headline(
            figure,
            "Job logs (Cunha, table 5.8)",
            "Jobs that fit the machine. load: submitted work relative to what the machine "
            "can do in the span of the log. Estimates are medians over run times; if all "
            "are exact, the log may have none",
        )
        axes.set_axis_off()
        drawn = axes.table(
            [
                [row["log"], *(shown(row[name], unit) for name, unit in LOG_UNITS.items())]
                for _, row in rows.iterrows()
            ],
            colLabels=["log", *(name.replace("_", "\n") for name in LOG_UNITS)],
            cellLoc="right",
            colLoc="right",
            edges="horizontal",
            bbox=Bbox.unit(),
        )
        drawn.auto_set_font_size(False)
        drawn.set_fontsize(9)
        for (line, column), cell in drawn.get_celld().items():
            cell.set_edgecolor(GRID)
            cell.get_text().set_fontweight("bold" if line == 0 else "normal")
            if column == 0:
                cell.get_text().set_horizontalalignment("left")
    return figure


TABLE_8 = FigureRecipe(collect_logs, draw_logs)
