"""The site that predictions are made with: without delays it is the simulator."""

from dataclasses import replace

import numpy as np
import pytest

from tests.slurm.predicting import Delays, with_delays, without_delays
from tune_jobs.site.deciding import Limits

RNG = np.random.default_rng(0)
JOBS = [
    {"submit": float(3 * k), "seconds": seconds, "limit": seconds, "cpus": cpus, "nodes": 1}
    for k, (seconds, cpus) in enumerate(
        zip(RNG.integers(1, 40, 30).tolist(), RNG.integers(1, 9, 30).tolist(), strict=True)
    )
]


EACH_SECOND = Delays(tick_s=1.0, look_s=0.0, backfill_s=1.0)


def delayed(jobs, nodes, longer_s=0.0):
    return with_delays(jobs, None, nodes, replace(EACH_SECOND, longer_s=longer_s), Limits())


def test_on_one_node_and_without_delays_it_does_what_the_simulator_does():
    assert delayed(JOBS, [8])["start"].tolist() == (
        without_delays(JOBS, "fcfs:easy", 8)["start"].tolist()
    )


@pytest.mark.parametrize(("nodes", "longer_s"), [([5, 5], 0.0), ([10], 2.0)])
def test_nodes_and_delays_make_jobs_wait(nodes, longer_s):
    narrow = [{**job, "cpus": min(job["cpus"], 5)} for job in JOBS]
    free, bound = delayed(narrow, [10]), delayed(narrow, nodes, longer_s)
    assert bound["start"].sum() > free["start"].sum()
    assert (bound["start"] >= bound["submit"]).all()
