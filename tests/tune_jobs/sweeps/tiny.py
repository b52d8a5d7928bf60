"""Sweeps of three trials, seconds long."""

import io

from rllib_configs.config.loading import parse_section
from tune_jobs.sweeps.definition import Sweep
from tune_jobs.sweeps.folder import TrialRecord
from tune_jobs.sweeps.progress_table import ProgressTable

ITERATIONS = 15
GRID = {
    "name": "three",
    "preset": "deeprm-smoke",
    "settings": {"training.iterations": ITERATIONS, "evaluation.every": 5},
    "space": {"task.objective": {"grid": ["slowdown", "makespan", "utilization"]}},
    "search": "grid",
}


def sweep(**fields) -> Sweep:
    return parse_section(Sweep, {**GRID, **fields})


class Quiet(ProgressTable):
    """Keeps what is said, and may act on it."""

    def __init__(self, act=lambda trial: None, interactive=False) -> None:
        self.text = io.StringIO()
        super().__init__(3, "eval/ratio", "min", self.text, interactive)
        self._act = act

    def put(self, trial: TrialRecord) -> None:
        super().put(trial)
        self._act(trial)
