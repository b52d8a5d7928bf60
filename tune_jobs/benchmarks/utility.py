"""Utility accrual: the whole of the paper's figure 2, and the same server in plain Python."""

import time
from dataclasses import replace

from cluster_env.core.seeding import Split
from cluster_env.core.world import kind_of
from cluster_env.workloads import sample_jobsets
from rllib_configs.worlds.accrual import COLUMNS, POLICIES, Setting, experiment
from tune_jobs.benchmarks.measuring import Entry, Sample

ROUNDS = 5
PLAIN_STEPS = 4_000


def measure(seconds: float) -> list[Entry]:
    """Figure 2 once, nine policies and what three of them learn; plain Python for the rest.

    Args:
        seconds: how long plain Python is measured.
    """
    setting = Setting()
    list(experiment(replace(setting, experiments=1, steps=100), ["utility"], ["both"]))  # compiled
    began = time.process_time()
    list(experiment(setting))
    taken = time.process_time() - began
    learned = len(COLUMNS) * setting.learning.steps
    steps = setting.experiments * (len(POLICIES) * len(COLUMNS) * setting.steps + learned)
    plain = tuple(_plain_rate(setting, seconds / ROUNDS, k) for k in range(ROUNDS))
    return [
        Entry(
            "utility.fig2",
            "simulated steps/s on one core",
            Sample((steps / taken,)),
            "the same server under the aggressive policy in plain Python, step by step",
            Sample(plain),
            parts={"whole_figure_cpu_s": taken},
        )
    ]


def _plain_rate(setting: Setting, seconds: float, seed: int) -> float:
    """Steps a second in plain Python, episode after episode for at least that long."""
    world = replace(setting.world, max_time=PLAIN_STEPS)
    plain = kind_of(world).plain
    assert plain is not None
    [jobset] = sample_jobsets(setting.workload(PLAIN_STEPS), seed, Split.HELD_OUT, [0])
    began, steps = time.process_time(), 0
    while True:
        server = plain(world, jobset)
        server.play()
        steps += server.now
        elapsed = time.process_time() - began
        if elapsed >= seconds:
            return steps / elapsed
