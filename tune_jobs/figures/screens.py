"""What environments render: one state of an episode under a rule."""

from functools import partial
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from cluster_env.core.jobs import JobSet
from cluster_env.envs import ClusterEnv
from tune_jobs.figures.style import MUTED, styled
from tune_jobs.tables.frames import read_frame

_DPI = 100


def draw(table: Path, kind: str) -> Figure:
    """Takes the decisions of the CSV file again, and draws what the environment renders."""
    times = ("arrival", "duration", "estimate")
    rows = read_frame(table, ("series", "demand"), (*times, "action"))
    of_jobs = rows[rows["series"] == "job"]
    arrival, duration, estimate = (of_jobs[name].to_numpy(np.int64) for name in times)
    demand = [[int(units) for units in text.split()] for text in of_jobs["demand"]]
    window = int(arrival.max()) + 1
    jobs = JobSet.of(arrival, duration, demand, window, attributes={"estimate": estimate})
    env = ClusterEnv(world=kind, render_mode="rgb_array")
    env.reset(options={"jobset": jobs})
    actions = rows.loc[rows["series"] == "decision", "action"]
    for action in actions:
        env.step(int(action))
    pixels = env.render()
    assert pixels is not None
    height, width = pixels.shape[:2]
    with styled():
        figure = Figure(figsize=(width / _DPI, height / _DPI), dpi=_DPI)
        figure.figimage(pixels)
        words = f"{kind}: {len(of_jobs):,} jobs, after {len(actions):,} decisions"
        figure.text(0.99, 1 - 24 / height, words, ha="right", fontsize=9, color=MUTED)
    return figure


draw_deeprm = partial(draw, kind="deeprm")
draw_hpc = partial(draw, kind="hpc")
