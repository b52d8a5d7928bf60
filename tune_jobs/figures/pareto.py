"""Cost against a side metric: what a small bounded slowdown is bought with."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cluster_env.evaluation import get_metric
from tune_jobs.comparing.wording import spec_of_row
from tune_jobs.figures.comparison import COLUMNS, is_learned, look_of, read_rows
from tune_jobs.figures.places import Exhibit, Place, logs_of, written
from tune_jobs.figures.registry import FigureRequest
from tune_jobs.figures.style import INK, headline, new_figure, styled
from tune_jobs.terminal.tables import Cells, Row, number

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

SIDE_METRICS = ("utilization_to_end", "longest_wait")
"""What costs are drawn against, each in a column of panels."""

_HEIGHT, _WIDTH = 4.4, 11.0  # inches of a row of panels
_AROUND = ((1, 0), (-1, 0), (0, 1), (0, -1), (1, 1), (-1, 1), (1, -1), (-1, -1))
_DISTANCES = (6, 12, 20, 30)  # points
_DAY = 86_400.0
_TIMES = (
    *(10.0, 60.0, 600.0, 3600.0, 4 * 3600.0, 12 * 3600.0),
    *(days * _DAY for days in (1, 2, 3, 5, 7, 10, 14, 20, 30, 50, 100, 200, 365)),
)


def _places(request: FigureRequest) -> Iterator[Place]:
    if request.traces:
        for name, settings in logs_of(request):
            yield Place(f"{name}, RLScheduler's windows", "hpc-smoke", settings, "rlscheduler")
        return
    jobs = {"workload.jobs": 1024}
    yield Place("Lublin's jobs, load 100%", "hpc-smoke", {**jobs, "workload.load": 1.0})
    typed = {**jobs, "workload.load": 0.6, "workload.typed": "true"}
    yield Place("Lublin's jobs of two kinds, load 60%", "hpc-smoke", typed)


EXHIBIT = Exhibit("What a small slowdown costs", _places)


def collect(request: FigureRequest) -> list[Row]:
    """Every rule and the runs' policies at each place; see `Exhibit.collect`.

    Raises:
        InputError: if a log or a run cannot be used.
    """
    return EXHIBIT.collect(request)


def draw(table: Path) -> "Figure":
    """A row of panels for each place; a line joins those that no other beats in both respects.

    Raises:
        InputError: if the file does not hold such rows.
    """
    rows = read_rows(table, (*COLUMNS, *SIDE_METRICS, "place", "exhibit"))
    places: dict[str, list[Cells]] = {}
    for row in rows:
        places.setdefault(row["place"], []).append(row)
    metric = rows[0]["metric"]
    with styled():
        figure = new_figure(_HEIGHT * len(places) + 0.8, _WIDTH)
        panels = figure.subplots(len(places), len(SIDE_METRICS), squeeze=False)
        headline(
            figure,
            rows[0]["exhibit"],
            f"{get_metric(metric).label} against {' and '.join(map(_label, SIDE_METRICS))}; "
            "the line joins the policies that no other beats in both",
        )
        for line, (name, some) in zip(panels, places.items(), strict=True):
            for axes, side in zip(line, SIDE_METRICS, strict=True):
                _draw_panel(axes, some, metric, side)
            jobsets = int(number(some[0], "jobsets"))
            line[0].set_title(f"{name}: {jobsets:,} jobsets", fontsize=10)
            line[0].set_ylabel(get_metric(metric).label)
        figure.draw_without_rendering()  # so that the layout has settled
        for line, some in zip(panels, places.values(), strict=True):
            for axes, side in zip(line, SIDE_METRICS, strict=True):
                _name_points(axes, some, metric, side)
    return figure


def front(rows: Sequence[Cells], metric: str, side: str) -> list[Cells]:
    """Those that no other is as good as in both respects and better in one, by the side metric."""

    def ranks(row: Cells) -> tuple[float, float]:
        return (
            get_metric(side).rank(number(row, side)),
            get_metric(metric).rank(number(row, metric)),
        )

    kept: list[Cells] = []
    for row in sorted(rows, key=ranks):
        if not kept or ranks(row)[1] < ranks(kept[-1])[1]:
            kept.append(row)
    return kept


def _label(side: str) -> str:
    return "utilization to the last finish" if side == SIDE_METRICS[0] else get_metric(side).label


def _draw_panel(axes: "Axes", rows: list[Cells], metric: str, side: str) -> None:
    best = front(rows, metric, side)
    axes.plot(
        [number(row, side) for row in best],
        [number(row, metric) for row in best],
        color="#c8c8c8",
        linewidth=1.4,
        zorder=1,
    )
    for row in rows:
        color, marker = look_of(row["key"], rows)
        axes.plot(
            number(row, side),
            number(row, metric),
            marker=marker,
            color=color,
            markersize=8 if is_learned(row) else 5,
            linestyle="none",
            zorder=3 if is_learned(row) else 2,
        )
    axes.set_yscale("log")
    axes.margins(x=0.12, y=0.08)
    better = "right" if get_metric(side).higher_is_better else "left"
    axes.set_xlabel(f"{_label(side)} (better: {better} and down)")
    _plain_numbers(axes, side, rows)


def _plain_numbers(axes: "Axes", side: str, rows: Sequence[Cells]) -> None:
    from matplotlib.ticker import FixedLocator, FuncFormatter, LogLocator, NullLocator

    time = spec_of_row(rows[0]).presentation.time
    if side == "longest_wait":
        axes.set_xscale("log")
        low, high = axes.get_xlim()
        axes.xaxis.set_major_locator(FixedLocator([at for at in _TIMES if low <= at <= high]))
        axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(lambda x, _: written(side, x, time)))
    axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axes.yaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_major_formatter(FuncFormatter(lambda y, _: f"{y:g}"))


def _name_points(axes: "Axes", rows: list[Cells], metric: str, side: str) -> None:
    """Writes names beside points, where they hide neither points nor other names."""
    points = [axes.transData.transform((number(r, side), number(r, metric))) for r in rows]
    taken: list[Any] = []
    order = sorted(range(len(rows)), key=lambda k: (not is_learned(rows[k]), k))
    for k in order:
        taken.append(_place_name(axes, rows, k, points, taken, (metric, side)))


def _place_name(
    axes: "Axes",
    rows: list[Cells],
    k: int,
    points: Sequence[Any],
    taken: Sequence[Any],
    names: tuple[str, str],
) -> Any:
    """Writes the name of one point, and returns the box that it takes."""
    row, (metric, side) = rows[k], names
    learned = is_learned(row)
    best = None
    for distance in _DISTANCES:
        for right, up in _AROUND:
            note = axes.annotate(
                row["key"],
                (number(row, side), number(row, metric)),
                xytext=(distance * right, distance * up),
                textcoords="offset points",
                ha={1: "left", 0: "center", -1: "right"}[right],
                va={1: "bottom", 0: "center", -1: "top"}[up],
                fontsize=8.5 if learned else 7,
                fontweight="bold" if learned else "normal",
                color=look_of(row["key"], rows)[0] if learned else INK,
                arrowprops={"arrowstyle": "-", "color": "#c8c8c8", "linewidth": 0.5}
                if distance > _DISTANCES[0]
                else None,
            )
            note.set_in_layout(False)
            box = note.get_window_extent()
            hidden = sum(box.contains(*point) for j, point in enumerate(points) if j != k)
            outside = box.x0 < axes.bbox.x0 or box.x1 > axes.bbox.x1
            crowd = hidden + sum(box.overlaps(other) for other in taken) + 2 * outside
            if not crowd:
                if best is not None:
                    best[1].remove()
                return box
            if best is None or crowd < best[0]:
                if best is not None:
                    best[1].remove()
                best = (crowd, note, box)
            else:
                note.remove()
    assert best is not None
    return best[2]
