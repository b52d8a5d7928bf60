"""Jobs of task graphs as they are drawn."""

import numpy as np
import pytest

from cluster_env.core.errors import InputError
from cluster_env.core.graphs import stages_of
from cluster_env.core.spec import get_heuristic
from cluster_env.evaluation import evaluate
from cluster_env.worlds.graphs import Graphs
from cluster_env.worlds.graphs.workloads import SHIFTS, ShiftedWorkload
from tests.cluster_env.worlds.graphs.test_simulator import TRACE, with_trace

FILES = ["", pytest.param(str(TRACE.parent), marks=with_trace)]


def drawn(shift, durations, seed=0):
    return ShiftedWorkload(shift, 400, durations).sample(np.random.default_rng(seed))


@pytest.mark.parametrize("durations", FILES)
def test_a_shift_changes_what_it_names_and_keeps_the_load(durations):
    jobsets = {shift: drawn(shift, durations) for shift in SHIFTS}
    stages = {shift: stages_of(jobset) for shift, jobset in jobsets.items()}
    load = {shift: stages[shift].work.sum() / jobsets[shift].arrival[-1] / 50 for shift in SHIFTS}
    assert 0.55 < min(load.values()) <= max(load.values()) < 1
    arrivals = {shift: np.unique(jobset.arrival).size for shift, jobset in jobsets.items()}
    assert arrivals == {"none": 400, "bursts": 50, "sizes": 400, "shape": 400}
    assert stages["sizes"].work.mean() < 0.4 * stages["none"].work.mean()
    parents = stages["shape"].parents[stages["shape"].tasks > 0]
    assert (np.bitwise_count(parents) <= 1).all()
    assert (np.bitwise_count(stages["none"].parents) > 1).any()


def test_any_shift_is_drawn_for_a_jobset():
    burst = [np.unique(drawn("any", "", seed).arrival).size == 50 for seed in range(12)]
    assert 0 < sum(burst) < 12
    again = [drawn("any", "", 3).arrival.tolist() for _ in range(2)]
    assert again[0] == again[1]


@with_trace
def test_jobs_of_all_shifts_are_played_side_by_side():
    world = Graphs(executors=50, durations=str(TRACE.parent))
    jobsets = [ShiftedWorkload(shift, 5, world.durations) for shift in SHIFTS]
    drawn = [workload.sample(np.random.default_rng(0)) for workload in jobsets]
    assert evaluate(get_heuristic("fair", world), drawn, world).finished.all()


def test_an_unknown_shift_is_refused():
    with pytest.raises(InputError, match="shift"):
        ShiftedWorkload("burst")
