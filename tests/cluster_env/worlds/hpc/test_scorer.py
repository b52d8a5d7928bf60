"""Scorers: the kernel equals plain Python, and rules that weights can say."""

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from cluster_env.core.errors import InputError
from cluster_env.core.invariants import check_schedule
from cluster_env.core.jobs import JobSet
from cluster_env.worlds.hpc import HPC
from cluster_env.worlds.hpc.rules import Rule
from cluster_env.worlds.hpc.scorer import MODES, SIZE, Scorer
from cluster_env.worlds.hpc.workloads import LublinWorkload
from tests.cluster_env.worlds.hpc.hpc_jobs import PROCESSORS, jobset_of, played, small_jobsets
from tests.cluster_env.worlds.hpc.plain_scorer import plain_scored_starts

WORLD = HPC(processors=PROCESSORS)
RULES = {
    "sjf": {"log_estimate": 4.0},
    "ljf": {"log_estimate": -4.0},
    "narrow": {"share": 1.0},
    "saf": {"log_estimate": 4.0, "log_share": 4.0},
}


def drawn(seed: int, mode: str, bilinear: bool) -> Scorer:
    """Weights of all features; scores of both signs."""
    rng = np.random.default_rng(seed)
    weights = rng.standard_normal((SIZE, SIZE))
    if not bilinear:
        weights[:-1, :-1] = 0
    return Scorer(weights, mode)


@pytest.mark.parametrize("bilinear", [False, True], ids=["linear", "bilinear"])
@pytest.mark.parametrize("mode", MODES)
@given(jobset=small_jobsets(corrected=True), seed=st.integers(0, 10**6))
@settings(max_examples=40)
def test_every_mode_is_that_of_a_plain_loop(
    mode: str, bilinear: bool, jobset: JobSet, seed: int
) -> None:
    scorer = drawn(seed, mode, bilinear)
    schedule = played(WORLD, [jobset], scorer)
    check_schedule(schedule, [jobset], complete_until=WORLD.max_time)
    assert schedule.start.tolist() == plain_scored_starts(jobset, scorer, PROCESSORS)


@pytest.mark.parametrize("mode", ["strict", "skip", "easy"])
@pytest.mark.parametrize("order", RULES)
@given(jobset=small_jobsets(corrected=True))
@settings(max_examples=25)
def test_a_rule_that_weights_can_say_is_that_rule(order: str, mode: str, jobset: JobSet) -> None:
    """But for areas that are equal in different ways: their logarithms differ in the last digit."""
    pairs = set(zip(jobset.attributes["order_estimate"], jobset.demand[:, 0], strict=True))
    assume(order != "saf" or len({a * b for a, b in pairs}) == len(pairs))
    found = played(WORLD, [jobset], Scorer.linear(mode, **RULES[order]))
    assert found.start.tolist() == played(WORLD, [jobset], Rule(order, mode)).start.tolist()


@pytest.mark.parametrize("mode", ["strict", "skip", "easy"])
def test_rules_as_weights_in_long_queues(mode: str) -> None:
    """Several sequences at once, with estimates that are wrong."""
    workload = LublinWorkload(jobs=400, load=1.2, estimates="gaussian:0.5")
    jobsets = [workload.sample(np.random.default_rng(seed)) for seed in range(3)]
    found = played(HPC(), jobsets, Scorer.linear(mode, log_estimate=4.0))
    assert found.start.tolist() == played(HPC(), jobsets, Rule("sjf", mode)).start.tolist()


@pytest.mark.parametrize("mode", ["gate", "gated_easy"])
def test_a_job_is_held_until_nothing_runs(mode: str) -> None:
    """All but job 2 fit beside job 0, but only job 3, the narrowest, may start there.

    Where no job is too wide, none is held: nobody waits for what would stay free.
    """
    scorer = Scorer.linear(mode, share=1.0, constant=-0.6)
    jobset = jobset_of([0, 1, 1, 2], [50, 5, 5, 5], [50, 5, 5, 5], [2, 6, 8, 4])
    assert played(WORLD, [jobset], scorer).start.tolist() == [0, 50, 55, 2]
    nobody = Scorer.linear(mode, constant=1.0)
    assert played(WORLD, [jobset], nobody).start.tolist() == [0, 50, 55, 60]
    calm = jobset_of([0, 1, 2], [50, 5, 5], [50, 5, 5], [2, 6, 4])
    assert played(WORLD, [calm], scorer).start.tolist() == [0, 1, 6]


@pytest.mark.parametrize("mode", ["gate", "gated_easy"])
def test_a_job_without_memory_for_it_counts_as_one_that_waits(mode: str) -> None:
    """Job 2 has the processors that it needs, but not the memory, so that job 1 is held."""
    world = HPC(processors=8, memory=10)
    demand = np.array([[2, 6], [6, 1], [1, 9]])
    jobset = jobset_of([0, 1, 1], [50, 5, 5], [50, 5, 5], demand)
    scorer = Scorer.linear(mode, share=1.0, constant=-0.6)
    assert played(world, [jobset], scorer).start.tolist()[1] == 50


def test_no_reservation_is_made_for_a_job_that_is_held() -> None:
    """Job 1 comes first of what may start, and waits for its eight processors until 10.

    Job 2 would delay it. If job 1 is held as well, all are, for job 1 has the lowest score.
    """
    jobset = jobset_of([0, 1, 2], [10, 20, 30], [10, 20, 30], [4, 8, 4])
    by_size = {"share": -1.0}
    assert played(WORLD, [jobset], Scorer.linear("gated_easy", **by_size)).start.tolist() == [
        *(0, 10, 30)
    ]
    assert played(WORLD, [jobset], Scorer.linear("gate", **by_size)).start.tolist() == [0, 32, 2]
    held = Scorer.linear("gated_easy", **by_size, constant=1.5)
    assert played(WORLD, [jobset], held).start.tolist() == [0, 10, 30]


@pytest.mark.parametrize(
    ("weights", "mode", "words"),
    [
        (np.zeros((SIZE, SIZE)), "gated", "did you mean 'gate"),
        (np.zeros((3, SIZE)), "gate", "needs weights of shape"),
        (np.full((SIZE, SIZE), np.nan), "gate", "must be finite"),
    ],
)
def test_impossible_scorers_are_refused(weights: np.ndarray, mode: str, words: str) -> None:
    with pytest.raises(InputError, match=words):
        Scorer(weights, mode)
    with pytest.raises(InputError, match="did you mean 'log_share'"):
        Scorer.linear(log_shares=1.0)
