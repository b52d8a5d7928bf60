"""Every rule at several places side by side, each with side metrics: exhibits of Cunha (2022)."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from cluster_env.core.errors import InputError
from cluster_env.evaluation import get_metric
from cluster_env.evaluation.metrics import SIZES
from cluster_env.workloads.formats import read_log
from tune_jobs.comparing.choices import choose_comparison
from tune_jobs.comparing.comparison import compare
from tune_jobs.comparing.policy_specs import heuristic_spec, learned_specs
from tune_jobs.comparing.protocol import UNSEEN, EvaluationProtocol
from tune_jobs.comparing.table import COLUMNS as WRITTEN
from tune_jobs.comparing.table import TIMES, beside
from tune_jobs.comparing.trained_runs import find_runs, load_runs
from tune_jobs.comparing.wording import spec_of_row
from tune_jobs.figures.comparison import COLUMNS, is_learned, look_of, name_of, read_rows
from tune_jobs.figures.grid import draw_grid
from tune_jobs.figures.registry import FigureRequest
from tune_jobs.figures.style import INK, TABLE_DPI, headline, new_figure, styled
from tune_jobs.terminal.tables import Cells, Row, number

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_ROW_HEIGHT, _HEAD_HEIGHT = 0.2, 0.55
_MOST_PANELS = 4
_WIDTH = 10.5
_CELL_SHARE = 0.063  # of the width of the image, for a number beside the points


@dataclass(frozen=True)
class Place:
    """Where all policies are measured once.

    Attributes:
        name: what the figure calls it.
        preset: that `settings` change.
        settings: of the task, without ``task.``.
        named: see `EvaluationProtocol.named`.
        warmup: steps at both ends whose jobs do not count, unless somebody asks for others.
    """

    name: str
    preset: str
    settings: Mapping[str, object]
    named: str = ""
    warmup: int = 0

    def changes(self, request: FigureRequest) -> list[str]:
        """What differs from the preset, as ``KEY=VALUE``; what was asked for comes last."""
        return [
            *(f"task.{key}={value}" for key, value in self.settings.items()),
            *request.overrides,
        ]


@dataclass(frozen=True)
class Exhibit:
    """A figure or a table of the dissertation.

    Attributes:
        title: what the image shows.
        places: from what was asked for.
        metric: what decides who is best.
    """

    title: str
    places: Callable[[FigureRequest], Iterator[Place]]
    metric: str = "bounded_slowdown"

    def collect(self, request: FigureRequest, *, baselines_only: bool = False) -> list[Row]:
        """Evaluates every heuristic of the world, and the runs' policies, at each place.

        Args:
            request: what to show.
            baselines_only: whether heuristics that are no baselines of the world are left out.

        Returns:
            The rows of `tune_jobs.comparing.comparison.compare`, with the ``place`` and the
            ``exhibit`` in front.

        Raises:
            InputError: if a log or a run cannot be used.
        """
        runs = load_runs(find_runs(request.runs), request.decode)
        rows: list[Row] = []
        for place in self.places(request):
            config, warmup = choose_comparison(
                place.preset, place.changes(request), request.task_options, runs, None
            )
            protocol = EvaluationProtocol(
                config.task.build(config.name, request.seed),
                self.metric,
                num_jobsets=request.num_jobsets,
                num_episodes=request.num_episodes,
                warmup=request.warmup or place.warmup or warmup,
            )
            world_spec = protocol.task.spec
            rules = world_spec.baselines if baselines_only else world_spec.heuristics.names()
            specs = [heuristic_spec(name) for name in rules]
            specs += learned_specs(runs, request.decode)
            found = compare(
                protocol, specs, protocol.values(), request.progress, [place.named or UNSEEN]
            )
            rows += [{"exhibit": self.title, "place": place.name, **row} for row in found]
        return rows

    def draw(self, table: Path) -> "Figure":
        """Draws the CSV file of `collect`.

        Raises:
            InputError: if the file does not hold it.
        """
        return draw(table)


def draw(table: Path) -> "Figure":
    """A panel for each place: policies from best to worst, with side metrics written beside.

    More than a handful of places become columns of one table (`draw_grid`).

    Raises:
        InputError: if the file does not hold such rows.
    """
    rows = read_rows(table, (*COLUMNS, "place", "exhibit"))
    places: dict[str, list[Cells]] = {}
    for row in rows:
        places.setdefault(row["place"], []).append(row)
    metric = get_metric(rows[0]["metric"])
    if len(places) > _MOST_PANELS:
        return draw_grid(places, metric.name)
    heights = [_HEAD_HEIGHT + _ROW_HEIGHT * len(some) for some in places.values()]
    side = beside(rows[0])
    with styled():
        figure = new_figure(sum(heights) + 1.3, _WIDTH, TABLE_DPI)
        right = 1 - _CELL_SHARE * (len(side) + 1)
        figure.set_layout_engine("constrained", rect=(0, 0, right, 1))
        panels = figure.subplots(len(places), 1, squeeze=False, height_ratios=heights)[:, 0]
        headline(
            figure,
            rows[0]["exhibit"],
            f"{metric.label[0].upper()}{metric.label[1:]}, best first; bars: 95% intervals over "
            f"jobsets. {_explained(side)}",
        )
        for panel, (name, some) in zip(panels, places.items(), strict=True):
            _draw_place(panel, name, some, metric.name, side)
        panels[-1].set_xlabel(metric.label)
    return figure


def _explained(side: Sequence[str]) -> str:
    """What the columns beside the points are."""
    sizes = [WRITTEN[name][0] for name in side if name.rpartition("_")[2] in SIZES]
    by_size = f"; {', '.join(sizes)}: slowdown of jobs of that size" if sizes else ""
    return (
        "Beside it its price: util, to end: utilization while jobs arrive, and to the last finish; "
        f"wait, longest: mean wait, and mean of the longest{by_size}"
    )


def _head(metric: str) -> str:
    return WRITTEN[metric][0] if metric in WRITTEN else "slowdown"


def _draw_place(axes: "Axes", name: str, rows: list[Cells], metric: str, side: list[str]) -> None:
    order = sorted(rows, key=lambda row: get_metric(metric).rank(number(row, metric)))
    time = spec_of_row(rows[0]).presentation.time
    for line, row in enumerate(order):
        color, marker = look_of(row["key"], rows)
        value, low, high = (number(row, metric + end) for end in ("", "_low", "_high"))
        axes.hlines(line, low, high, color, linewidth=2)
        axes.plot(value, line, marker=marker, color=color, markersize=5, linestyle="none")
        cells = [written(one, number(row, one), time) for one in (metric, *side)]
        write_cells(axes, line, cells, bold=is_learned(row))
    write_cells(axes, -1, [_head(one) for one in (metric, *side)], bold=True)
    axes.set_yticks(range(len(order)), [name_of(row).replace("\n", " ") for row in order])
    axes.set_ylim(len(order) - 0.5, -0.6)
    axes.tick_params(axis="y", length=0, labelsize=9)
    axes.tick_params(axis="x", labelsize=9)
    axes.grid(visible=False, axis="y")
    values = [number(row, metric) for row in rows]
    if min(values) > 0 and max(values) > 20 * min(values):
        axes.set_xscale("log")
    jobsets = int(number(rows[0], "jobsets"))
    count = "1 jobset" if jobsets == 1 else f"{jobsets:,} jobsets"
    axes.set_title(f"{name}: {count}, {number(rows[0], 'num_jobs'):,.0f} jobs", pad=14, fontsize=10)


def write_cells(
    axes: "Axes",
    line: float,
    cells: Sequence[str],
    *,
    bold: bool,
    colors: Sequence[str] = (),
    share: float = _CELL_SHARE,
    size: float = 8.0,
) -> None:
    """Writes texts at the right end of an image, where its layout leaves room for them.

    Args:
        axes: the panel.
        line: where in it, by its own y axis.
        cells: the texts, each in a column.
        bold: whether they are.
        colors: of each; by default that of all text.
        share: of the width of the image that a column takes.
        size: of the letters, in points.
    """
    for place, text in enumerate(cells):
        note = axes.annotate(
            text,
            (0.995 - share * (len(cells) - 1 - place), line),
            xycoords=("figure fraction", "data"),
            ha="right",
            va="center",
            fontsize=size,
            fontweight="bold" if bold else "normal",
            color=colors[place] if colors else INK,
            annotation_clip=False,
        )
        note.set_in_layout(False)  # the layout leaves the right side free for them


def written(metric: str, value: float, time: Callable[[float], str] = str) -> str:
    """A mean in a cell.

    Args:
        metric: its name.
        value: the mean.
        time: writes times of the world.
    """
    if metric in TIMES:
        return time(value)
    if metric.startswith("utilization"):
        return WRITTEN[metric][1](value)
    return f"{value:,.0f}" if value >= 100 else f"{value:.2f}"


def logs_of(request: FigureRequest) -> Iterator[tuple[str, Mapping[str, object]]]:
    """Name and settings of each log that was named.

    Its machine is as large as ``--processors`` says, or the log, else as its largest job.
    """
    if not request.traces:
        raise InputError("this figure shows job logs: name each with --trace FILE")
    for path in request.traces:
        jobs = read_log(path)
        processors = jobs.processors or int(jobs.demand[:, 0].max())
        settings: dict[str, object] = {"workload.kind": "trace", "workload.path": path}
        if "processors" not in request.task_options:
            settings["world.processors"] = processors
        yield path.name.partition(".")[0], settings


def _published_windows(request: FigureRequest) -> Iterator[Place]:
    for name, settings in logs_of(request):
        yield Place(f"{name}, RLScheduler's windows", "hpc-smoke", settings, "rlscheduler")


def _logs_by_estimates(request: FigureRequest) -> Iterator[Place]:
    for name, settings in logs_of(request):
        for estimates in ("recorded", "gaussian:1", "tsafrir"):
            anywhere = {"workload.jobs": 1024, "workload.whole": "true"}  # as the dissertation cuts
            changed = {**settings, **anywhere, "workload.estimates": estimates}
            yield Place(f"{name}, estimates {estimates}", "hpc-smoke", changed)


def _generated_by_estimates(request: FigureRequest) -> Iterator[Place]:
    for processors in (128, 256, 1024, 16_384):
        for estimates in ("exact", "gaussian:1", "tsafrir"):
            settings = {"world.processors": processors, "workload.jobs": 256}
            yield Place(
                f"{processors:,} processors, estimates {estimates}",
                "hpc-smoke",
                {**settings, "workload.estimates": estimates},
            )


def _machines(request: FigureRequest) -> Iterator[Place]:
    for processors in (64, 128, 256, 1024, 16_384):
        settings = {"world.processors": processors, "workload.jobs": 256}
        yield Place(f"{processors:,} processors", "hpc-smoke", settings)


def _generated_by_noise(request: FigureRequest) -> Iterator[Place]:
    for noise in ("exact", "gaussian:0.5", "gaussian:1", "gaussian:1.5", "gaussian:2"):
        settings = {"world.processors": 128, "workload.jobs": 256, "workload.estimates": noise}
        yield Place(f"128 processors, estimates {noise}", "hpc-smoke", settings)


_SCENARIOS = {1: (10, 15), 2: (10, 48), 6: (64, 15), 8: (64, 33), 10: (64, 48)}
"""Processors and longest job of those scenarios of its table 5.3 whose jobs may be as large as the
machine; `BimodalWorkload` has no smaller ones."""

_ARRIVALS = 0.3  # jobs in a time step


def _scenarios(request: FigureRequest) -> Iterator[Place]:
    for number_, (processors, longest) in _SCENARIOS.items():
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
        name = f"Scenario {number_}: {processors} processors, jobs of up to {longest} steps"
        yield Place(name, "deeprm", settings)


TABLE_6 = Exhibit(
    "Bounded slowdown on RLScheduler's windows (Cunha, table 5.6)", _published_windows
)
TABLE_7 = replace(
    TABLE_6, title="Utilization on RLScheduler's windows (Cunha, table 5.7)", metric="utilization"
)
TABLE_9 = Exhibit(
    "Bounded slowdown of generated jobs, by estimates (Cunha, table 5.9)", _generated_by_estimates
)
TABLE_10 = Exhibit(
    "Bounded slowdown on job logs, by estimates (Cunha, table 5.10)", _logs_by_estimates
)
TABLE_11 = replace(
    TABLE_10,
    title="Utilization on job logs, by estimates (Cunha, table 5.11)",
    metric="utilization",
)
FIGURE_5 = Exhibit("Slowdown by scenario (Cunha, figure 5.5)", _scenarios, "slowdown")
FIGURE_8 = Exhibit("Policies on machines of other sizes (Cunha, figure 5.8)", _machines)
FIGURE_9 = Exhibit(
    "Bounded slowdown of generated jobs, by noise of estimates (Cunha, figure 5.9)",
    _generated_by_noise,
)
