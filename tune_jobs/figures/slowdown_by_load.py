"""Slowdown against load (DeepRM, figure 4)."""

from pathlib import Path
from typing import TYPE_CHECKING

from cluster_env.core.errors import InputError
from tune_jobs.comparing.comparison import compare
from tune_jobs.comparing.policy_specs import heuristic_spec, learned_specs
from tune_jobs.comparing.protocol import Setting
from tune_jobs.figures import comparison
from tune_jobs.figures.registry import FigureRequest
from tune_jobs.terminal.tables import Row

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LOADS = tuple(percent / 100 for percent in range(10, 191, 20))
"""The paper's. Its 190 % means a job in every step, which is a load of 184.5 %."""

HEURISTICS = ("random", "packer", "sjf", "tetris", "hold")


def collect(request: FigureRequest) -> list[Row]:
    """Evaluates all heuristics and the runs' policies at every load.

    Raises:
        InputError: if a run cannot be used, or the jobs are those of a trace.
    """
    return compare_over_loads(request, "deeprm-fig4")


def compare_over_loads(request: FigureRequest, figure: str) -> list[Row]:
    """The rows of a comparison at the paper's loads, by slowdown, for the figure of that name.

    Raises:
        InputError: if a run cannot be used, or the jobs are those of a trace.
    """
    runs, config = request.load()
    trace = config.task.workload.trace
    if trace is not None:
        raise InputError(
            f"{figure} draws lines over the load, but the trace {trace} has only one; use "
            f"metasched compare --out FOLDER, or made-up jobs with --set task.workload.trace=null"
        )
    setting = request.setting(config.task, cap_loads=True)
    specs = [heuristic_spec(name) for name in HEURISTICS]
    specs += learned_specs(runs, request.decode)
    return compare(setting, specs, _reachable(setting), request.progress)


def _reachable(setting: Setting) -> list[float]:
    """The paper's loads up to the first that this workload cannot reach, which stands for all."""
    used = [setting.at(load).workload.load for load in LOADS]
    return [load for k, load in enumerate(LOADS) if used[k] not in used[:k]]


def draw(table: Path) -> "Figure":
    """Draws the CSV file of `collect`.

    Raises:
        InputError: if the file does not hold it.
    """
    return comparison.draw(table)
