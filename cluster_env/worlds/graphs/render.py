"""A picture of an episode: which job each executor has run tasks of, up to now."""

from typing import Any

import numpy as np

from cluster_env.core.pictures import Color, Pixels, job_color, pixels_of

_COLUMNS = 900  # pixels of time
IDLE: Color = (233, 235, 239)
_INK = "0.15"


def draw(simulator: Any, episode: int) -> Pixels:
    """Draws a row for each executor and a color for each job, from time 0 to now.

    Below stands how many jobs were there.
    """
    from matplotlib.figure import Figure

    schedule, now = simulator.schedule(), max(int(simulator.time[episode]), 1)
    executors = simulator.world.executors
    mine = schedule.episode == episode
    pieces = schedule.pieces
    colors = np.full((executors, _COLUMNS, 3), IDLE, np.uint8)
    first, last = (at.astype(np.int64) * _COLUMNS // now for at in (pieces.begin, pieces.end))
    last = np.maximum(last, first + 1)  # a task that is shorter than a pixel has one
    for piece in np.flatnonzero(mine[pieces.job]):
        job = int(schedule.job[pieces.job[piece]])
        colors[pieces.node[piece], first[piece] : last[piece]] = job_color(job)
    figure = Figure(figsize=(10.5, 5.5), dpi=100, layout="constrained", facecolor="white")
    machine, queue = figure.subplots(2, 1, sharex=True, height_ratios=(4, 1))
    extent = (0, now / 1000, 0, executors)
    machine.imshow(colors, aspect="auto", origin="lower", extent=extent, interpolation="none")
    machine.set_ylabel("executor", color=_INK)
    arrival, finish = np.sort(schedule.arrival[mine]), np.sort(schedule.finish[mine])
    times = np.linspace(0, now, _COLUMNS)
    here = np.searchsorted(arrival, times, "right")
    here -= np.searchsorted(finish[finish >= 0], times, "right")
    queue.step(times / 1000, here, where="post", color=_INK)
    queue.set_ylim(bottom=0)
    queue.set_ylabel("jobs", color=_INK)
    queue.set_xlabel("time (s)", color=_INK)
    for axes in (machine, queue):
        axes.yaxis.get_major_locator().set_params(integer=True)
        axes.spines[["top", "right"]].set_visible(False)
    figure.suptitle(
        f"time {now / 1000:,.1f} s     jobs here {int(here[-1]):,}     finished "
        f"{int((finish >= 0).sum()):,}     color: job; grey: idle or on the way",
        x=0.01,
        ha="left",
        fontsize=11,
        color=_INK,
    )
    return pixels_of(figure)
