"""Utility accrual: the whole of the paper's figure 2, and the same in plain Python."""

import time
from dataclasses import replace

from rllib_configs.worlds.accrual.plain import plain_experiment
from rllib_configs.worlds.accrual.servers import Setting, experiment
from tune_jobs.benchmarks.measuring import ROUNDS, Entry

PLAIN_STEPS = 4_000


def measure(seconds: float) -> list[Entry]:
    """Figure 2, nine policies and what three of them learn; then as much of it in plain Python.

    Args:
        seconds: how long plain Python is measured.
    """
    setting = Setting()
    list(experiment(replace(setting, experiments=1, steps=100), ["utility"], ["both"]))  # compiled
    compiled = []
    for _ in range(ROUNDS):
        began = time.process_time()
        list(experiment(setting))
        compiled.append(time.process_time() - began)
    return [
        Entry(
            "utility.fig2",
            "simulated steps/s on one core",
            [setting.simulated_steps / taken for taken in compiled],
            "the same policies and the same learning in plain Python, step by step",
            [_plain_rate(setting, seconds / ROUNDS, k) for k in range(ROUNDS)],
            parts={"whole_figure_cpu_s": min(compiled)},
        )
    ]


def _plain_rate(setting: Setting, seconds: float, round_index: int) -> float:
    """Steps a second in plain Python, experiment after experiment for at least that long."""
    learning = replace(
        setting.learning, steps=PLAIN_STEPS * setting.learning.steps // setting.steps
    )
    each = replace(setting, steps=PLAIN_STEPS, learning=learning, experiments=1)
    began, steps, index = time.process_time(), 0, round_index
    while True:
        list(plain_experiment(each, index))
        steps, index = steps + each.simulated_steps, index + ROUNDS
        elapsed = time.process_time() - began
        if elapsed >= seconds:
            return steps / elapsed
