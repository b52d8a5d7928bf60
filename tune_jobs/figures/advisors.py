"""PANDA's advisor: the types of consumers that it follows, and the actors that it makes."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from matplotlib.figure import Figure
from numpy.typing import NDArray

from cluster_env.core.errors import InputError
from cluster_env.core.seeding import Split
from cluster_env.task import Task
from meta.panda.sampler import AdvisedSampler
from meta.panda.specifications import SAMPLE, cluster_consumers, specifications
from tune_jobs.figures.agents import require_agents
from tune_jobs.figures.registry import FigureRecipe, FigureRequest
from tune_jobs.figures.style import INK, MUTED, headline, new_figure, style_of, styled
from tune_jobs.tables.frames import Row, read_frame

_TREE = ("node", "left", "right", "place", "height", "posterior", "consumers", "label", "purity")
_MOST_BESIDE = 5  # panels
_POINTS = ("run", "class", "x", "y", "explained_x", "explained_y")


def collect_dendrogram(request: FigureRequest) -> list[Row]:
    """The nodes of the dendrogram above the types of consumers of a task, the types first.

    Raises:
        InputError: if the task is of another world, or the config cannot be used.
    """
    _, config = request.load()
    task = config.task.build(config.name, request.seed)
    require_agents(task.world.kind)
    jobsets = _sampled(task, SAMPLE)
    tree = cluster_consumers(task.world, jobsets)
    consumers = pd.concat([_columns(jobset) for jobset in jobsets], ignore_index=True)
    types, n = tree.cut(), tree.num_rows
    place, height = {node: float(k) for k, node in enumerate(types)}, dict.fromkeys(types, 0.0)
    rows: list[Row] = []
    for node in types:
        members = consumers.iloc[list(tree.below(node))]
        kind, where = members["core_type"].iloc[0], members["topology"].iloc[0]
        most = members["class"].mode()[0]
        label = (
            f"{members['cores'].mean():.2g} cores",
            f"{members['steps'].mean():.0f} steps",
            "any cores" if kind < 0 else f"type {kind}",
            ("anywhere", "one region", "one rack")[where],
        )
        purity = f"{len(members)}: {(members['class'] == most).mean():.0%} class {most}"
        cells = (node, "", "", place[node], 0.0, 1.0, len(members), "\n".join(label), purity)
        rows.append(dict(zip(_TREE, cells, strict=True)))
    for merge, (left, right) in enumerate(tree.children.tolist()):
        if left in place and right in place and n + merge not in types:
            node, below = n + merge, max(height[left], height[right])
            place[node] = (place[left] + place[right]) / 2
            height[node] = max(below + 0.15, float(np.log10(1 - min(tree.log_odds[merge], 0))))
            posterior, count = float(tree.posterior[merge]), len(list(tree.below(node)))
            inner = (node, left, right, place[node], height[node], posterior, count, "", "")
            rows.append(dict(zip(_TREE, inner, strict=True)))
    return rows


def draw_dendrogram(table: Path) -> Figure:
    """The tree, whose leaves are types of consumers."""
    rows = read_frame(table, _TREE, ("place", "height", "posterior", "consumers"))
    rows = rows.set_index("node", drop=False)
    types = rows[rows["left"] == ""]
    with styled():
        figure = new_figure(5.2, max(8.0, 1.15 * len(types)))
        axes = figure.subplots()
        headline(
            figure,
            "Types of consumers, by Bayesian hierarchical clustering",
            f"{int(types['consumers'].sum())} consumers; below each type: the mean request "
            "of its consumers, and the share of their most frequent class",
        )
        for _, row in rows[rows["left"] != ""].iterrows():
            sides, top = rows.loc[[row["left"], row["right"]]], row["height"]
            axes.plot(sides["place"], [top, top], color=INK, linewidth=1.4)
            for x, height in zip(sides["place"], sides["height"], strict=True):
                axes.plot([x, x], [height, top], color=INK, linewidth=1.4)
            axes.annotate(
                f"r = {row['posterior']:.2g}",
                (row["place"], top),
                xytext=(0, 3),
                textcoords="offset points",
                ha="center",
                fontsize=8,
                color=MUTED,
                bbox={"facecolor": "white", "edgecolor": "none", "pad": 1},
            )
        axes.set_xticks(types["place"], types["label"] + "\n" + types["purity"], fontsize=8)
        axes.set_ylabel("log10(1 + log odds against one type)")
        axes.set_ylim(bottom=0)
        axes.grid(visible=False, axis="x")
    return figure


def collect_advisor(request: FigureRequest) -> list[Row]:
    """The two main directions of the weights that advisors make for the task's consumers.

    Raises:
        InputError: without runs, or if one has no advisor or is of another world.
    """
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
        columns = (classes, *points.T, *np.broadcast_to(explained[:, None], points.T.shape))
        name = f"{run.config.training.advisor}, seed {run.config.seed}"
        rows += [
            dict(zip(_POINTS, (name, int(label), *map(float, cells)), strict=True))
            for label, *cells in zip(*columns, strict=True)
        ]
    return rows


def draw_advisor(table: Path) -> Figure:
    """A panel for each run; a point is the actor of a consumer, colored by its class."""
    rows = read_frame(table, _POINTS, _POINTS[1:])
    panels = {str(run): some for run, some in rows.groupby("run", sort=False)}
    with styled():
        columns = min(len(panels), _MOST_BESIDE)
        lines = -(-len(panels) // columns)
        figure = new_figure(1.0 + 2.8 * lines, max(6.0, 2.6 * columns))
        all_axes = figure.subplots(lines, columns, squeeze=False).ravel()
        headline(
            figure,
            "Actors computed by advisors, by class of consumers",
            "each point is the actor of one consumer: its weights along their two main directions",
        )
        for axes, (name, points) in zip(all_axes, panels.items(), strict=False):
            for label, own in points.groupby("class"):
                color, _, marker = style_of(int(label))
                look = {"color": color, "markersize": 6, "alpha": 0.7, "label": str(int(label))}
                axes.plot(own["x"], own["y"], marker, **look)
            axes.set_title(name)
            for side, axis in (("x", axes.xaxis), ("y", axes.yaxis)):
                share = points[f"explained_{side}"].iloc[0]
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
    jobsets: list[Any] = []
    while sum(one.num_jobs for one in jobsets) < count and len(jobsets) < 64:
        jobsets += task.jobsets(Split.TRAIN, [len(jobsets)])
    return jobsets


def _columns(jobset: Any) -> pd.DataFrame:
    """What consumers ask for, a row each."""
    kinds = {name: jobset.attributes[name] for name in ("core_type", "topology")}
    asked = {"cores": jobset.demand[:, 0], "steps": jobset.duration}
    return pd.DataFrame({"class": jobset.job_class, **asked, **kinds})
