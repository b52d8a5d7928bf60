"""DeepRM's world, from short windows to operation, and what other tables are of it."""

from collections.abc import Iterator

from tune_jobs.recipes.request import FigureRequest
from tune_jobs.recipes.scenarios import Scenario, ScenarioTable

WORLD = "deeprm"

WITHHOLDING = ("sjf", "tetris", "hold")
"""Heuristics of figure 7."""

IN_HINDSIGHT = ("packer", "sjf", "tetris", "hold")
"""Heuristics that are compared with the best schedules; random ones lie far away."""

STEPS_PER_WINDOW = 10
"""How many times as long as windows episodes may be at least, so that all jobs can finish."""

WINDOWS = (50, 200, 500)
"""Steps in which jobs arrive at an empty cluster, all of which count."""

STEADY, WARMUP = 700, 100
"""Steps in which jobs arrive, and those at both ends whose jobs do not count."""

STEADY_LOADS = (0.7, 0.9)
"""In operation; windows are at the first."""


def _scenarios(request: FigureRequest) -> Iterator[Scenario]:
    first = STEADY_LOADS[0]
    places = [(f"window {window}", first, window, 0) for window in WINDOWS]
    places += [("operation", load, STEADY, WARMUP) for load in STEADY_LOADS]
    for name, load, window, warmup in places:
        settings = {
            "world.rules": "released",
            "world.max_time": STEPS_PER_WINDOW * window,
            "workload.load": load,
            "workload.window": window,
        }
        yield Scenario(f"{name}, load {load:.0%}", WORLD, settings, warmup=warmup)


IN_WINDOWS = ScenarioTable(
    "DeepRM's world, from short windows to operation", _scenarios, "slowdown"
)
