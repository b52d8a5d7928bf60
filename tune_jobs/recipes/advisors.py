"""PANDA's advisor: the types of consumers that it follows, and the actors that it makes."""

from typing import Any

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray

from cluster_env.core.errors import InputError
from cluster_env.core.seeding import Split
from cluster_env.task import Task
from meta.panda.sampler import AdvisedSampler
from meta.panda.specifications import SAMPLE, cluster_consumers, specifications
from tune_jobs.recipes.agents import require_agents
from tune_jobs.recipes.request import FigureRequest
from tune_jobs.tables.frames import Row

TREE = ("node", "left", "right", "place", "height", "posterior", "consumers", "label", "purity")

POINTS = ("run", "class", "x", "y", "explained_x", "explained_y")


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
        rows.append(dict(zip(TREE, cells, strict=True)))
    for merge, (left, right) in enumerate(tree.children.tolist()):
        if left in place and right in place and n + merge not in types:
            node, below = n + merge, max(height[left], height[right])
            place[node] = (place[left] + place[right]) / 2
            height[node] = max(below + 0.15, float(np.log10(1 - min(tree.log_odds[merge], 0))))
            posterior, count = float(tree.posterior[merge]), len(list(tree.below(node)))
            inner = (node, left, right, place[node], height[node], posterior, count, "", "")
            rows.append(dict(zip(TREE, inner, strict=True)))
    return rows


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
            dict(zip(POINTS, (name, int(label), *map(float, cells)), strict=True))
            for label, *cells in zip(*columns, strict=True)
        ]
    return rows


def main_directions(
    weights: NDArray[np.float64],
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Principal components of rows: their coordinates ``(n, 2)``, and shares of the variance."""
    centred = weights - weights.mean(axis=0)
    _, sizes, directions = np.linalg.svd(centred, full_matrices=False)
    shares = sizes**2 / max(float((sizes**2).sum()), 1e-300)
    return centred @ directions[:2].T, shares[:2]


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
