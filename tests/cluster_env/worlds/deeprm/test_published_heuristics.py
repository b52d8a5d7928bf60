"""The heuristics under the released code's rules against an independent study of that code.

The study ran DeepRM's released environment (its rules, its generator) in a simulator that it had
compared with the original step by step. Rows: load in percent; for each heuristic the mean and the
95 % interval over 100 unseen jobsets, and the mean over 1,000 others. Its "190 %" is an arrival in
every step, which is a load of 184.5 %.
"""

import math

import pytest

from cluster_env.core.seeding import Split
from cluster_env.evaluation import Summary, evaluate, summarize
from cluster_env.workloads import sample_jobsets
from cluster_env.worlds import get_heuristic
from cluster_env.worlds.deeprm import DeepRM
from cluster_env.worlds.deeprm.rules import RELEASED_RULES
from cluster_env.worlds.deeprm.workloads import BimodalWorkload

HEURISTICS = ("random", "sjf", "packer", "tetris:0.001")
NUM_JOBSETS = 1000

Published = tuple[float, float, float, float]  # mean, low, high over 100 jobsets; mean over 1,000

PUBLISHED: dict[int, tuple[Published, Published, Published, Published]] = {
    10: ((6.22, 5.47, 7.04, 6.12), (1.35, 1.18, 1.56, 1.28), (1.38, 1.20, 1.60, 1.31),
         (1.35, 1.18, 1.56, 1.28)),
    30: ((6.69, 6.28, 7.11, 6.48), (2.04, 1.84, 2.24, 1.88), (2.46, 2.12, 2.82, 2.27),
         (2.04, 1.85, 2.24, 1.89)),
    50: ((7.25, 6.91, 7.58, 7.00), (2.54, 2.34, 2.74, 2.45), (3.83, 3.36, 4.29, 3.62),
         (2.54, 2.34, 2.73, 2.44)),
    70: ((7.50, 7.21, 7.79, 7.60), (3.14, 2.90, 3.41, 3.08), (5.37, 4.74, 5.98, 5.36),
         (3.06, 2.83, 3.31, 3.07)),
    90: ((7.95, 7.69, 8.23, 7.95), (3.71, 3.47, 3.95, 3.56), (7.35, 6.66, 8.07, 7.31),
         (3.63, 3.40, 3.88, 3.52)),
    110: ((8.58, 8.29, 8.85, 8.51), (4.11, 3.84, 4.36, 4.13), (9.98, 9.04, 10.95, 9.78),
          (4.07, 3.82, 4.31, 4.03)),
    130: ((8.96, 8.72, 9.22, 9.12), (4.98, 4.68, 5.30, 4.93), (12.67, 11.71, 13.69, 12.61),
          (4.67, 4.39, 4.94, 4.76)),
    150: ((9.94, 9.57, 10.32, 9.83), (5.77, 5.31, 6.26, 5.76), (15.18, 14.14, 16.15, 15.59),
          (5.45, 5.06, 5.88, 5.57)),
    170: ((10.83, 10.39, 11.28, 10.77), (7.08, 6.54, 7.63, 7.07), (18.54, 17.36, 19.77, 18.39),
          (6.72, 6.20, 7.24, 6.78)),
    190: ((12.00, 11.60, 12.42, 11.79), (8.71, 8.14, 9.30, 8.48), (21.50, 20.33, 22.67, 20.78),
          (8.34, 7.77, 8.95, 8.11)),
}  # fmt: skip


def summaries(load: int) -> list[Summary]:
    """Each heuristic on 1,000 unseen jobsets of a load, under the released code's rules."""
    most = BimodalWorkload(load=0.1, first_step=1).max_load
    workload = BimodalWorkload(load=min(load / 100, most), first_step=1)
    jobsets = sample_jobsets(workload, 0, Split.HELD_OUT, range(NUM_JOBSETS))
    world = DeepRM(rules=RELEASED_RULES)
    return [summarize(evaluate(get_heuristic(spec, world), jobsets, world)) for spec in HEURISTICS]


@pytest.mark.parametrize("load", [10, 70, 130, 190])
def test_heuristics_agree_with_the_released_code(load: int) -> None:
    for spec, summary, published in zip(HEURISTICS, summaries(load), PUBLISHED[load], strict=True):
        _, low, high, mean = published
        ours = summary.estimate("slowdown")
        assert low <= ours.value <= high, (spec, ours)
        # Both means of 1,000 jobsets vary by chance, and the published one is rounded.
        error = math.sqrt(2) * (ours.high - ours.low) / (2 * 1.96)
        assert abs(ours.value - mean) <= 3 * error + 0.005, (spec, ours, mean)
        assert summary.num_unfinished.sum() == 0
