"""PANDA's advisor: the types of consumers that it follows, and the actors that it makes."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from cluster_env.core.errors import InputError
from cluster_env.core.seeding import Split
from cluster_env.core.task import Task
from tune_jobs.figures.agents import require_agents
from tune_jobs.figures.registry import FigureRecipe, FigureRequest
from tune_jobs.figures.style import INK, MUTED, headline, new_figure, styled
from tune_jobs.terminal.tables import Cells, Row, number, read_table

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLORS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000", "#8a8a8a")
_TREE = ("node", "left", "right", "place", "height", "posterior", "consumers", "label", "purity")
_MOST_BESIDE = 5  # panels
_POINTS = ("run", "class", "x", "y", "explained_x", "explained_y")


def collect_dendrogram(request: FigureRequest) -> list[Row]:
    """The nodes of the dendrogram above the types of consumers of a task, the types first.

    Raises:
        InputError: if the task is of another world, or the config cannot be used.
    """
    from meta.panda.specifications import SAMPLE, cluster_consumers

    _, config = request.load()
    task = config.task.build(config.name, request.seed)
    require_agents(task.world.kind)
    jobsets = _sampled(task, SAMPLE)
    tree = cluster_consumers(task.world, jobsets)
    columns = _columns(jobsets)[:SAMPLE]
    types, n = tree.cut(), tree.num_rows
    place, height = {node: float(k) for k, node in enumerate(types)}, dict.fromkeys(types, 0.0)
    rows: list[Row] = [_type_row(node, columns[list(tree.below(node))], place) for node in types]
    for merge, (left, right) in enumerate(tree.children.tolist()):
        if left in place and right in place and n + merge not in types:
            node, below = n + merge, max(height[left], height[right])
            place[node] = (place[left] + place[right]) / 2
            height[node] = max(below + 0.15, float(np.log10(1 - min(tree.log_odds[merge], 0))))
            rows.append(
                {
                    **dict(
                        zip(_TREE, (node, left, right, place[node], height[node]), strict=False)
                    ),
                    "posterior": float(tree.posterior[merge]),
                    "consumers": len(list(tree.below(node))),
                    "label": "",
                    "purity": "",
                }
            )
    return rows


def draw_dendrogram(table: Path) -> "Figure":
    """The tree, whose leaves are types of consumers.

    Raises:
        InputError: if the file does not hold one.
    """
    rows = {row["node"]: row for row in read_table(table, _TREE)}
    types = [row for row in rows.values() if not row["left"]]
    with styled():
        figure = new_figure(5.2, max(8.0, 1.15 * len(types)))
        axes = figure.subplots()
        count = sum(int(number(row, "consumers")) for row in types)
        headline(
            figure,
            "Types of consumers, by Bayesian hierarchical clustering",
            f"{count} consumers; below each type what its consumers ask for in the mean, and the "
            "share of the class that most of them were drawn from",
        )
        for row in rows.values():
            if row["left"]:
                _draw_merge(axes, row, rows)
        axes.set_xticks(
            [number(row, "place") for row in types],
            [f"{row['label']}\n{row['purity']}" for row in types],
            fontsize=8,
        )
        axes.set_ylabel("log10(1 + log odds against one type)")
        axes.set_ylim(bottom=0)
        axes.grid(visible=False, axis="x")
    return figure


def _draw_merge(axes: "Axes", row: Cells, rows: dict[str, Cells]) -> None:
    top = number(row, "height")
    sides = [rows[row["left"]], rows[row["right"]]]
    for side in sides:
        x = number(side, "place")
        axes.plot([x, x], [number(side, "height"), top], color=INK, linewidth=1.4)
    axes.plot([number(side, "place") for side in sides], [top, top], color=INK, linewidth=1.4)
    axes.annotate(
        f"r = {number(row, 'posterior'):.2g}",
        *((number(row, "place"), top), (0, 3)),
        textcoords="offset points",
        ha="center",
        fontsize=8,
        color=MUTED,
        bbox={"facecolor": "white", "edgecolor": "none", "pad": 1},
    )


def collect_advisor(request: FigureRequest) -> list[Row]:
    """The two main directions of the weights that advisors make for the task's consumers.

    Raises:
        InputError: without runs, or if one has no advisor or is of another world.
    """
    import torch

    from meta.panda.sampler import AdvisedSampler
    from meta.panda.specifications import specifications

    runs, config = request.load()
    if not runs:
        raise InputError("this figure shows what advisors learned: name runs with --runs")
    task = config.task.build(config.name, request.seed)
    require_agents(task.world.kind)
    jobsets = _sampled(task, 400)
    specs = torch.from_numpy(specifications(task.world, jobsets)[:400])
    classes = np.concatenate([one.job_class for one in jobsets])[:400]
    rows: list[Row] = []
    for run in runs:
        network = run.policy.network
        if not isinstance(network, AdvisedSampler) or network.network.kind == "none":
            raise InputError(
                f"the policy of {run.path} has no advisor, so all of its agents have one actor; "
                f"train with --set training.advisor=tree"
            )
        with torch.inference_mode():
            weights = network.network.advise(specs).double().numpy()
        points, explained = main_directions(weights)
        rows += [
            {
                "run": f"{run.config.training.advisor}, seed {run.config.seed}",
                "class": int(label),
                "x": float(x),
                "y": float(y),
                "explained_x": float(explained[0]),
                "explained_y": float(explained[1]),
            }
            for label, (x, y) in zip(classes, points, strict=True)
        ]
    return rows


def draw_advisor(table: Path) -> "Figure":
    """A panel for each run; a point is the actor of a consumer, colored by its class.

    Raises:
        InputError: if the file does not hold such points.
    """
    panels: dict[str, list[Cells]] = {}
    for row in read_table(table, _POINTS):
        panels.setdefault(row["run"], []).append(row)
    with styled():
        columns = min(len(panels), _MOST_BESIDE)
        lines = -(-len(panels) // columns)
        figure = new_figure(1.0 + 2.8 * lines, max(6.0, 2.6 * columns))
        all_axes = figure.subplots(lines, columns, squeeze=False).ravel()
        headline(
            figure,
            "Actors that advisors make, by class of consumers",
            "each point is the actor of one consumer: its weights along their two main directions",
        )
        for axes, (name, rows) in zip(all_axes, panels.items(), strict=False):
            for label in sorted({int(row["class"]) for row in rows}):
                own = [row for row in rows if int(row["class"]) == label]
                xs, ys = ([number(row, name) for row in own] for name in ("x", "y"))
                color = COLORS[label % len(COLORS)]
                axes.plot(xs, ys, ".", color=color, markersize=6, alpha=0.7, label=str(label))
            axes.set_title(name)
            for side, axis in (("x", axes.xaxis), ("y", axes.yaxis)):
                share = number(rows[0], f"explained_{side}")
                axis.set_label_text(f"{share:.0%} of the variance")
        axes.legend(title="class", fontsize=8, loc="best", frameon=True)
        for empty in all_axes[len(panels) :]:
            empty.set_visible(False)
    return figure


def main_directions(
    weights: NDArray[np.float64],
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Principal components of rows: their coordinates ``(n, 2)``, and shares of the variance."""
    centred = weights - weights.mean(axis=0)
    _, sizes, directions = np.linalg.svd(centred, full_matrices=False)
    shares = sizes**2 / max(float((sizes**2).sum()), 1e-300)
    return centred @ directions[:2].T, shares[:2]


DENDROGRAM = FigureRecipe(collect_dendrogram, draw_dendrogram)
ADVISOR = FigureRecipe(collect_advisor, draw_advisor)


def _sampled(task: Task, count: int) -> list[Any]:
    """Jobsets of the training split with so many consumers."""
    found: list[Any] = []
    while sum(one.num_jobs for one in found) < count and len(found) < 64:
        found += task.jobsets(Split.TRAIN, [len(found)])
    return found


def _columns(jobsets: list[Any]) -> NDArray[np.float64]:
    """Class, cores, run time, core type and topology of consumers, float64 ``(n, 5)``."""
    parts = []
    for one in jobsets:
        kinds = [one.attributes[name] for name in ("core_type", "topology")]
        parts.append(np.stack([one.job_class, one.demand[:, 0], one.duration, *kinds], axis=1))
    return np.concatenate(parts).astype(np.float64)


def _type_row(node: int, members: NDArray[np.float64], place: dict[int, float]) -> Row:
    classes, counts = np.unique(members[:, 0].astype(int), return_counts=True)
    cores, steps = members[:, 1].mean(), members[:, 2].mean()
    kind, where = int(members[0, 3]), ("anywhere", "one region", "one rack")[int(members[0, 4])]
    return {
        "node": node,
        "left": "",
        "right": "",
        "place": place[node],
        "height": 0.0,
        "posterior": 1.0,
        "consumers": len(members),
        "label": f"{cores:.2g} cores\n{steps:.0f} steps\n"
        f"{'any cores' if kind < 0 else f'type {kind}'}\n{where}",
        "purity": f"{len(members)}: {counts.max() / counts.sum():.0%} "
        f"class {classes[counts.argmax()]}",
    }
