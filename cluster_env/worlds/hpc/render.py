"""A picture of a state: who runs where, until when that is expected, and who waits."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from cluster_env.core.durations import duration
from cluster_env.core.pictures import Color, Pixels, job_color, pixels_of
from cluster_env.core.placement import paint, place

_SPANS_S = (60, 600, 1800, 3600, 7200, 6 * 3600, 12 * 3600, 86_400, 2 * 86_400, 7 * 86_400)
_COVERED = 0.9  # of the jobs' estimates that are no longer than what is shown of the future
_PARTS = 6  # of the time that is shown, between labels
_COLUMNS, _ROWS = 480, 256  # pixels of the machine, where it has so many processors or more
_MOST_WAITING = 24  # jobs of the queue that are drawn
_FREE: Color = (233, 235, 239)
_LIGHT = 0.55  # how far the color of what is only expected goes towards white
_INK, _MUTED = "0.15", "0.6"


def draw(simulator: Any, episode: int) -> Pixels:
    """Draws the machine over time around now, and beside it the queue, oldest first.

    Each row is a resource. Left of now stands what has happened; right of it, paler, how long jobs
    are expected to run on. A job has the lowest units that were free when it started, and keeps
    its color from the queue to the machine. A job that fits now is written black in the queue.
    All pictures of a jobset have one size and one scale of time.
    """
    from matplotlib.figure import Figure

    scene = _Scene(simulator, episode)
    figure = Figure(figsize=(10.5, 1.2 + 3.2 * scene.capacity.size), dpi=100, layout="constrained")
    figure.set_facecolor("white")
    grid = figure.add_gridspec(scene.capacity.size, 2, width_ratios=(2, 1.1))
    for r, name in enumerate(simulator.world.resources):
        axes = figure.add_subplot(grid[r, 0])
        _draw_machine(axes, scene, r)
        axes.set_ylabel(name, fontsize=9, color=_INK)
    words = "solid: what has run; pale: what is expected to run on"
    axes.set_xlabel(words, fontsize=9, color=_MUTED)
    _draw_queue(figure.add_subplot(grid[:, 1]), scene)
    figure.suptitle(scene.headline, x=0.01, ha="left", fontsize=11, weight="bold", color=_INK)
    return pixels_of(figure)


class _Scene:
    """What a picture shows of an episode.

    Jobs are rows of ``demand``, ``start``, ``arrival`` and ``ends``: true ends of what is over,
    expected ones of what runs.
    """

    def __init__(self, simulator: Any, episode: int) -> None:
        schedule = simulator.schedule()
        rows = np.flatnonzero(schedule.episode == episode)
        self.now, self.capacity = int(simulator.time[episode]), schedule.capacity
        self.job, self.demand = schedule.job[rows], schedule.demand[rows]
        self.start = schedule.start[rows].astype(np.int64)
        self.arrival = schedule.arrival[rows].astype(np.int64)
        jobset = simulator.believed(episode)
        attributes = {name: column[self.job] for name, column in jobset.attributes.items()}
        run = schedule.duration[rows].astype(np.int64)
        known = {"estimate": run, **attributes}
        self.estimate = known.get("order_estimate", known["estimate"])
        over = self.start + run
        expected = self.start + known.get("reserve_estimate", known["estimate"])
        self.runs = (self.start >= 0) & (over > self.now)
        self.ends = np.where(self.runs, np.maximum(expected, self.now + 1), over)
        estimates = jobset.attributes.get("estimate", jobset.duration)
        reach = np.quantile(estimates, _COVERED)
        self.span = next((span for span in _SPANS_S if span >= reach), _SPANS_S[-1])

    @property
    def waiting(self) -> NDArray[np.int64]:
        """Rows of the waiting jobs, the oldest first."""
        return np.flatnonzero(self.start < 0)

    @property
    def free(self) -> NDArray[np.int64]:
        """Free units of each resource."""
        return np.asarray(self.capacity - self.demand[self.runs].sum(axis=0), np.int64)

    @property
    def headline(self) -> str:
        """The state in numbers."""
        in_use = 1 - self.free[0] / self.capacity[0]
        return (
            f"time {duration(self.now)}     running {self.runs.sum():,}     "
            f"processors in use {in_use:.0%}     waiting {self.waiting.size:,}"
        )


def _draw_machine(axes: Any, scene: _Scene, resource: int) -> None:
    """Draws who has units of a resource, from as long before now as behind it."""
    order = np.argsort(scene.start, kind="stable")
    order = order[scene.start[order] >= 0]
    start, ends, units = scene.start[order], scene.ends[order], int(scene.capacity[resource])
    places = place(start, ends, scene.demand[order, resource].astype(np.int64), units)
    shape = (min(_ROWS, units), _COLUMNS)
    first = scene.now - scene.span

    def column(times: NDArray[np.int64]) -> NDArray[np.int64]:
        return np.ceil((times - first) * (_COLUMNS / (2 * scene.span)) - 0.5).astype(np.int64)

    cells = paint(column(start), column(ends), scene.job[order] + 1, places, units, shape)
    colors = np.empty((*shape, 3))
    for cell in np.unique(cells):
        colors[cells == cell] = _FREE if cell == 0 else job_color(int(cell) - 1)
    expected = cells > 0
    expected[:, : _COLUMNS // 2] = False
    colors[expected] += _LIGHT * (255 - colors[expected])
    extent = (-scene.span, scene.span, 0, units)
    axes.imshow(
        colors.astype(np.uint8), aspect="auto", origin="lower", extent=extent, interpolation="none"
    )
    axes.axvline(0, color=_INK, linewidth=1)
    ticks = np.linspace(-scene.span, scene.span, _PARTS + 1)
    labels = [duration(at) if at < 0 else f"+{duration(at)}" if at else "now" for at in ticks]
    axes.set_xticks(ticks, labels)
    axes.yaxis.get_major_locator().set_params(integer=True)
    axes.tick_params(labelsize=8, colors=_INK)
    axes.spines[["top", "right"]].set_visible(False)


def _draw_queue(axes: Any, scene: _Scene) -> None:
    """Draws the oldest waiting jobs as bars, as long as their estimates are."""
    waiting, free = scene.waiting, scene.free
    for line, row in enumerate(waiting[:_MOST_WAITING]):
        size, estimate = int(scene.demand[row, 0]), int(scene.estimate[row])
        color = [part / 255 for part in job_color(int(scene.job[row]))]
        axes.barh(line, min(estimate, scene.span), 0.86, color=color)
        words = (
            f"{line}: {size:,} for {duration(estimate)}, "
            f"waited {duration(scene.now - int(scene.arrival[row]))}"
        )
        ink = _INK if (scene.demand[row] <= free).all() else _MUTED
        axes.text(1.04 * scene.span, line, words, fontsize=8, va="center", color=ink)
    more = waiting.size - _MOST_WAITING
    left_out = f", {more:,} more not drawn" if more > 0 else ""
    axes.set_title(f"Queue, oldest first{left_out}", loc="left", fontsize=9, color=_INK)
    axes.set_ylim(_MOST_WAITING - 0.5, -0.5)
    axes.set_xlim(0, 3.2 * scene.span)
    axes.set_xticks([0, scene.span], ["0", duration(scene.span)], fontsize=8)
    axes.set_yticks([])
    axes.set_xlabel("bar: estimate; black: fits now", fontsize=9, color=_MUTED, loc="left")
    axes.spines[["top", "right", "left", "bottom"]].set_visible(False)
