"""Policies over the best ordinary rule, sequence by sequence, each with side metrics.

A mean over a few sequences hangs on a handful of jobs; the ratio on the same sequence does not.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from cluster_env.core.jobs import JobSet
from cluster_env.core.seeding import Purpose, Split, generator
from cluster_env.core.task import Task
from cluster_env.core.world import World
from cluster_env.evaluation import Estimate, evaluate, get_metric
from cluster_env.evaluation.intervals import Pooled, jobset_interval, two_level_interval
from cluster_env.evaluation.metrics import episode_means
from cluster_env.worlds import get_heuristic
from tune_jobs.comparing.choices import choose_config
from tune_jobs.comparing.comparison import spec_cells
from tune_jobs.comparing.policy_specs import PolicySpec, heuristic_spec, learned_specs
from tune_jobs.comparing.protocol import EvaluationProtocol
from tune_jobs.comparing.trained_runs import find_runs, load_runs
from tune_jobs.comparing.wording import spec_of_row
from tune_jobs.figures.comparison import POLICY, is_learned, look_of, name_of, read_rows
from tune_jobs.figures.places import Place, logs_of, write_cells, written
from tune_jobs.figures.registry import FigureRequest
from tune_jobs.figures.style import TABLE_DPI, headline, new_figure, styled
from tune_jobs.terminal.tables import Cells, Row, number

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MOST_SEQUENCES = 200
SIDE_METRICS = ("utilization_to_end", "utilization", "wait", "longest_wait")
RESERVE = "reserve"
"""A rule that stands beside the baselines, but is none."""

_RATIO = ("ratio", "ratio_low", "ratio_high", "ratio_over", "better", "best_rule")
_COLUMNS = ("place", "exhibit", "metric", "jobsets", *POLICY, *_RATIO, *SIDE_METRICS)
_HEADS = ("ratio", "mean", "to end", "util", "wait", "longest")
_ROW_HEIGHT, _HEAD_HEIGHT, _WIDTH, _CELL_SHARE = 0.2, 0.55, 10.5, 0.065

Group = tuple[World, list[JobSet]]  # sequences that one machine runs


@dataclass(frozen=True)
class Ratios:
    """A figure of ratios at several places.

    Attributes:
        title: what the image shows.
        places: from what was asked for; `Place.named` may also be one of `Training.families`.
    """

    title: str
    places: Callable[[FigureRequest], Iterator[Place]]

    def collect(self, request: FigureRequest) -> list[Row]:
        """A row for each place and policy: ratio to the best baseline there, means, side metrics.

        Raises:
            InputError: if a log or a run cannot be used.
        """
        runs = load_runs(find_runs(request.runs), request.decode)
        rows: list[Row] = []
        for place in self.places(request):
            config = choose_config(place.preset, place.changes(request), request.task_options, runs)
            task = config.task.build(config.name, request.seed)
            specs = [heuristic_spec(name) for name in task.spec.baselines]
            specs += [heuristic_spec(RESERVE)] if RESERVE in task.spec.heuristics.names() else []
            specs += learned_specs(runs, request.decode)
            head = {"exhibit": self.title, "place": place.name}
            rows += ({**head, **row} for row in _rows(place, task, specs, request))
        return rows

    def draw(self, table: Path) -> "Figure":
        """A panel for each place: ratios with their intervals, and numbers beside.

        Raises:
            InputError: if the file does not hold such rows.
        """
        rows = read_rows(table, _COLUMNS)
        places: dict[str, list[Cells]] = {}
        for row in rows:
            places.setdefault(row["place"], []).append(row)
        heights = [_HEAD_HEIGHT + _ROW_HEIGHT * len(some) for some in places.values()]
        with styled():
            figure = new_figure(sum(heights) + 1.3, _WIDTH, TABLE_DPI)
            right = 1 - _CELL_SHARE * len(_HEADS)
            figure.set_layout_engine("constrained", rect=(0, 0, right, 1))
            panels = figure.subplots(len(places), 1, squeeze=False, height_ratios=heights)[:, 0]
            headline(
                figure,
                rows[0]["exhibit"],
                f"{get_metric(rows[0]['metric']).label} over that of the best rule of a panel, as "
                "a geometric mean over sequences; bars: 95% intervals, in pairs of sequences. "
                "Beside it the mean, utilization to the last finish and while jobs arrive, mean "
                "and longest wait",
            )
            for panel, (name, some) in zip(panels, places.items(), strict=True):
                _draw_place(panel, name, some)
            panels[-1].set_xlabel("over the best rule; below 1 is better")
        return figure


def _rows(
    place: Place, task: Task, specs: Sequence[PolicySpec], request: FigureRequest
) -> Iterator[Row]:
    groups = _groups(place, task, request)
    num_sequences = sum(len(jobsets) for _, jobsets in groups)
    request.progress.start(len(specs), unit="policy")
    names = (task.spec.headline, *SIDE_METRICS)
    found: dict[str, dict[str, NDArray[np.float64]]] = {}
    for done, spec in enumerate(specs, start=1):
        found[spec.key] = _measure(spec, groups, task, names)
        request.progress.step(done, f"{place.name}: {spec.key}")
    request.progress.close()
    logs = {key: np.log(values[task.spec.headline]) for key, values in found.items()}
    best = min(task.spec.baselines, key=lambda name: float(logs[name].mean()))
    for spec in specs:
        ratio = _paired(logs[spec.key] - logs[best])
        yield {
            "metric": task.spec.headline,
            "world": task.world.kind,
            **spec_cells(spec, spec.key),
            "told": spec.told(EvaluationProtocol(task)),
            "jobsets": num_sequences,
            "num_jobs": sum(jobset.num_jobs for _, jobsets in groups for jobset in jobsets),
            "best_rule": best,
            "ratio": float(np.exp(ratio.value)),
            "ratio_low": float(np.exp(ratio.low)),
            "ratio_high": float(np.exp(ratio.high)),
            "ratio_over": ratio.over,
            "better": float((logs[spec.key] < logs[best]).mean()),
            **{name: float(values.mean()) for name, values in found[spec.key].items()},
        }


def _groups(place: Place, task: Task, request: FigureRequest) -> list[Group]:
    """The sequences of a place; those of a family have a machine each."""
    count = min(request.num_jobsets, MOST_SEQUENCES)
    if place.named in task.spec.tools.protocols:
        return [(task.world, list(task.spec.tools.protocols[place.named].jobsets(task)))]
    if place.named:
        family, jobs = (
            task.spec.training.families[place.named],
            int(getattr(task.workload, "jobs", 0)),
        )
        streams = (
            generator(task.seed, Purpose.TASK, int(Split.HELD_OUT), index) for index in range(count)
        )
        drawn = [family(task.world, jobs, stream) for stream in streams]
        return [(world, [jobset]) for world, jobset in drawn]
    return [(task.world, task.jobsets(Split.HELD_OUT, range(count)))]


def _measure(
    spec: PolicySpec, groups: Sequence[Group], task: Task, names: Sequence[str]
) -> dict[str, NDArray[np.float64]]:
    """Means of each training seed on each sequence, float64 ``(num_seeds, num_sequences)``."""
    found: dict[str, list[NDArray[np.float64]]] = {name: [] for name in names}
    for world, jobsets in groups:
        if spec.learned:
            policies = spec.make(EvaluationProtocol(replace(task, world=world))).members
        else:
            policies = (get_heuristic(spec.key, world),)
        schedules = [evaluate(policy, jobsets, world) for policy in policies]
        for name, parts in found.items():
            metric = get_metric(name)
            parts.append(np.array([episode_means(metric, one) for one in schedules]))
    return {name: np.concatenate(parts, axis=1) for name, parts in found.items()}


def _paired(differences: NDArray[np.float64]) -> Estimate:
    """Mean of differences of logarithms ``(num_seeds, num_sequences)``, with its interval."""
    means = differences.mean(axis=0)
    within = jobset_interval(Pooled.each(means))
    if differences.shape[0] == 1:
        return within
    return two_level_interval([differences.mean(axis=1).tolist()], within, means.size)


def _draw_place(axes: "Axes", name: str, rows: list[Cells]) -> None:
    order = sorted(rows, key=lambda row: number(row, "ratio"))
    for line, row in enumerate(order):
        color, marker = look_of(row["key"], rows)
        axes.hlines(line, number(row, "ratio_low"), number(row, "ratio_high"), color, linewidth=2)
        value = number(row, "ratio")
        axes.plot(value, line, marker=marker, color=color, markersize=5, linestyle="none")
        time = spec_of_row(row).presentation.time
        side = [written(one, number(row, one), time) for one in SIDE_METRICS]
        cells = [f"{value:.2f}", written(row["metric"], number(row, row["metric"])), *side]
        write_cells(axes, line, cells, bold=is_learned(row), share=_CELL_SHARE)
    write_cells(axes, -1, _HEADS, bold=True, share=_CELL_SHARE)
    axes.axvline(1.0, color="#9a9a9a", linewidth=1, zorder=0)
    axes.set_xscale("log")
    _plain_ticks(axes)
    axes.set_yticks(range(len(order)), [name_of(row).replace("\n", " ") for row in order])
    axes.set_ylim(len(order) - 0.5, -0.6)
    axes.tick_params(axis="y", length=0, labelsize=9)
    axes.tick_params(axis="x", labelsize=9)
    axes.grid(visible=False, axis="y")
    count = int(number(rows[0], "jobsets"))
    sequences = "1 sequence" if count == 1 else f"{count:,} sequences"
    best = rows[0]["best_rule"]
    axes.set_title(f"{name}: {sequences}, best rule {best}", pad=14, fontsize=10)


def _plain_ticks(axes: "Axes") -> None:
    from matplotlib.ticker import FixedLocator, FormatStrFormatter, NullLocator

    axes.xaxis.set_major_locator(FixedLocator([0.1, 0.2, 0.3, 0.5, 0.7, 1, 1.5, 2, 3, 5, 10, 30]))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FormatStrFormatter("%g"))


def _sizes(request: FigureRequest) -> Iterator[Place]:
    for processors in (64, 1024, 8192, 163_840):
        settings = {"world.processors": processors, "workload.jobs": 1024, "workload.load": 0.95}
        yield Place(f"{processors:,} processors", "hpc-smoke", settings)


def _families(request: FigureRequest) -> Iterator[Place]:
    jobs: dict[str, object] = {"workload.jobs": 1024}
    yield Place("Machines of any site", "hpc-smoke", jobs, "any-site")
    for name, settings in (
        ("Lublin's jobs", {"workload.load": 1.0}),
        ("Lublin's jobs of two kinds", {"workload.load": 0.6, "workload.typed": "true"}),
        ("Lublin's jobs, Tsafrir's estimates", {"workload.estimates": "tsafrir"}),
        ("Lognormal jobs", {"workload.kind": "lognormal"}),
    ):
        yield Place(f"{name}, 256 processors", "hpc-smoke", {**jobs, **settings})
    for log, machine in logs_of(request) if request.traces else ():
        yield Place(f"{log}, windows of 1,024 jobs", "hpc-smoke", machine, "rlscheduler")
        yield Place(f"{log}, all of it", "hpc-smoke", machine, "whole")


SIZES = Ratios("Lublin's jobs at 95 % load, by the size of the machine", _sizes)
FAMILIES = Ratios("Generated jobs and job logs", _families)
