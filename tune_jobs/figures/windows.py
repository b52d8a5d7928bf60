"""The same policies in short windows, in long ones, and in operation."""

from collections.abc import Iterator

from tune_jobs.figures.registry import FigureRequest
from tune_jobs.figures.scenarios import Scenario, ScenarioFigure

PRESET = "deeprm"
WINDOWS = (50, 200, 500)
"""Steps in which jobs arrive at an empty cluster, all of which count."""
STEADY, WARMUP = 700, 100
"""Steps in which jobs arrive, and those at both ends whose jobs do not count."""
LOADS = (0.7, 0.9)
"""In operation; windows are at the first."""
STEPS_PER_WINDOW = 10
"""How many times as long as windows episodes may be, so that all jobs can finish."""


def _places(request: FigureRequest) -> Iterator[Scenario]:
    first = LOADS[0]
    for window in WINDOWS:
        yield _place(f"window {window}, load {first:.0%}", first, window, 0)
    for load in LOADS:
        yield _place(f"operation, load {load:.0%}", load, STEADY, WARMUP)


def _place(name: str, load: float, window: int, warmup: int) -> Scenario:
    settings = {
        "world.rules": "released",
        "world.max_time": STEPS_PER_WINDOW * window,
        "workload.load": load,
        "workload.window": window,
    }
    return Scenario(name, PRESET, settings, warmup=warmup)


FIGURE = ScenarioFigure("DeepRM's world, from short windows to operation", _places, "slowdown")
