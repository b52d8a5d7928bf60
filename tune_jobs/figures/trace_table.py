"""The job logs that policies are measured on, a line each (Cunha, table 5.8)."""

from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from cluster_env.core.errors import InputError
from cluster_env.workloads.formats import read_log
from tune_jobs.figures.kit.frames import read_frame
from tune_jobs.figures.registry import FigureRequest
from tune_jobs.figures.scenarios import logs_of
from tune_jobs.figures.style import GRID, INK, headline, new_figure, styled
from tune_jobs.terminal.sheets import COUNT, RATIO, SECONDS, SHARE, shown
from tune_jobs.terminal.tables import Row

UNITS = {
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

_ROW = 0.34  # inches


def collect(request: FigureRequest) -> list[Row]:
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


def draw(table: Path) -> Figure:
    """Draws the CSV file of `collect`.

    Raises:
        InputError: if the file does not hold it.
    """
    rows = read_frame(table, ("log",), UNITS)
    with styled():
        figure = new_figure(1.3 + _ROW * (1 + len(rows)), 10.5)
        axes = figure.subplots()
        headline(
            figure,
            "Job logs (Cunha, table 5.8)",
            "Jobs that fit the machine; load: work that is submitted over what the machine can do "
            "in the span of the log. Estimates are medians over run times; if all are exact, "
            "the log may have none",
        )
        heads = ["log", *(name.replace("_", " ") for name in UNITS)]
        cells = [
            [row["log"], *(shown(row[name], unit) for name, unit in UNITS.items())]
            for _, row in rows.iterrows()
        ]
        axes.set_axis_off()
        axes.set_xlim(0, len(heads) - 0.4)
        axes.set_ylim(len(rows) + 0.5, -0.5)
        for line, texts in enumerate([heads, *cells]):
            axes.axhline(line + 0.5, color=GRID, linewidth=0.8)
            for column, text in enumerate(texts):
                axes.annotate(
                    text.replace(" ", "\n") if line == 0 else text,
                    (column + (0.5 if column else 0), line),
                    ha="right" if column else "left",
                    va="center",
                    fontsize=9,
                    fontweight="bold" if line == 0 else "normal",
                    color=INK,
                )
    return figure
