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
from tests.cluster_env.worlds.hpc.hpc_jobs import PROCESSORS, played, small_jobsets
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


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("order", RULES)
@given(jobset=small_jobsets(corrected=True))
@settings(max_examples=25)
def test_a_rule_that_weights_can_say_is_that_rule(order: str, mode: str, jobset: JobSet) -> None:
    """But for areas that are equal in different ways: their logarithms differ in the last digit."""
    pairs = set(zip(jobset.attributes["order_estimate"], jobset.demand[:, 0], strict=True))
    assume(order != "saf" or len({a * b for a, b in pairs}) == len(pairs))
    found = played(WORLD, [jobset], Scorer.linear(mode, **RULES[order]))
    assert found.start.tolist() == played(WORLD, [jobset], Rule(order, mode)).start.tolist()


@pytest.mark.parametrize("mode", MODES)
def test_rules_as_weights_in_long_queues(mode: str) -> None:
    """Several sequences at once, with estimates that are wrong."""
    workload = LublinWorkload(jobs=400, load=1.2, estimates="gaussian:0.5")
    jobsets = [workload.sample(np.random.default_rng(seed)) for seed in range(3)]
    found = played(HPC(), jobsets, Scorer.linear(mode, log_estimate=4.0))
    assert found.start.tolist() == played(HPC(), jobsets, Rule("sjf", mode)).start.tolist()


@pytest.mark.parametrize(
    ("weights", "mode", "words"),
    [
        (np.zeros((SIZE, SIZE)), "gated_easy", r"removed: take easy"),
        (np.zeros((3, SIZE)), "skip", "needs weights of shape"),
        (np.full((SIZE, SIZE), np.nan), "skip", "must be finite"),
    ],
)
def test_impossible_scorers_are_refused(weights: np.ndarray, mode: str, words: str) -> None:
    with pytest.raises(InputError, match=words):
        Scorer(weights, mode)
    with pytest.raises(InputError, match="did you mean 'log_share'"):
        Scorer.linear(log_shares=1.0)
