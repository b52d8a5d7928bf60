"""Run times that a scorer believes: by hand, from the past alone, and where they count."""

from dataclasses import replace

import numpy as np
import pytest

from cluster_env.core.jobs import JobSet
from cluster_env.evaluation import evaluate
from cluster_env.workloads.run_times import mixed_with_past
from cluster_env.worlds.hpc import HPC
from cluster_env.worlds.hpc.believed import with_believed
from cluster_env.worlds.hpc.rules import Rule as HPCRule
from cluster_env.worlds.hpc.rules import RulePolicy
from rllib_configs.loading import load_config
from rllib_configs.policy_files import LearnedPolicy, policy_of
from rllib_configs.worlds.hpc.scorer import start_weights
from tests.cluster_env.worlds.hpc.hpc_jobs import jobset_of, played

WORLD = HPC(processors=8)
COUNT = 60


def crowd(seed: int = 0, exact: bool = False, **attributes) -> JobSet:
    """Jobs of four users who ask for up to nine times as much as their jobs take."""
    rng = np.random.default_rng(seed)
    run = rng.integers(20, 900, COUNT)
    estimate = run if exact else run * rng.integers(1, 10, COUNT)
    submit = np.cumsum(rng.integers(0, 300, COUNT))
    user = rng.integers(0, 4, COUNT)
    return jobset_of(submit, run, estimate, rng.integers(1, 9, COUNT), user=user, **attributes)


def scorer(run_times: str) -> LearnedPolicy:
    """Small areas first, with EASY backfilling."""
    config = load_config("hpc-order", [f"training.run_times={run_times}"])
    return policy_of(config, start_weights(config), run_times, "argmax", WORLD)


def test_the_mean_of_a_group_is_drawn_to_the_wider_one() -> None:
    """Only the first job has ended when others come; it took a quarter of what was asked for.

    The mean over all jobs is then a third of ln(1 / 4), over those of its user 5 ninths, and over
    those that are like it 19 of 27 parts. A user of whom nothing is known is like all.
    """
    found = mixed_with_past(
        submit=np.array([0, 0, 40, 40]),
        end=np.array([30, 90, 80, 80]),
        run=np.array([25, 90, 40, 40]),
        estimate=np.full(4, 100),
        size=np.array([1, 2, 1, 1]),
        user=np.array([0, 0, 0, 1]),
    )
    alike, other = 100 * 0.25 ** (19 / 54), 100 * 0.25 ** (1 / 6)
    assert found.tolist() == [100, 100, np.ceil(alike), np.ceil(other)]


def test_what_is_believed_depends_on_no_job_that_ends_later() -> None:
    jobset = crowd()
    believed = with_believed(WORLD, jobset).attributes["order_estimate"]
    assert (believed < jobset.attributes["estimate"]).sum() > COUNT / 2
    assert believed.min() >= 1
    for last in (20, 40):
        longer = jobset.duration.copy()
        longer[last:] += 10_000
        changed = with_believed(WORLD, replace(jobset, duration=longer))
        assert np.array_equal(
            changed.attributes["order_estimate"][: last + 1], believed[: last + 1]
        )


def test_users_who_are_right_are_believed() -> None:
    jobset = crowd(exact=True)
    seen = with_believed(WORLD, jobset).attributes["order_estimate"]
    assert np.array_equal(seen, jobset.attributes["estimate"])


def test_nothing_is_believed_twice_or_without_estimates() -> None:
    known = crowd(order_estimate=np.full(COUNT, 7))
    assert with_believed(WORLD, known) is known
    bare = JobSet.of([0, 1], [1, 1], [[1], [1]])
    assert with_believed(WORLD, bare) is bare


@pytest.mark.parametrize("run_times", ["user", "mixed"])
def test_a_policy_is_evaluated_on_jobs_as_it_sees_them(run_times: str) -> None:
    """By estimates it is the smallest area first, whatever else the jobs know."""
    jobset = crowd(seed=3)
    seen = jobset if run_times == "user" else with_believed(WORLD, jobset)
    rule = HPCRule("saf", "easy")
    starts = evaluate(scorer(run_times), [jobset], WORLD).start
    assert np.array_equal(starts, played(WORLD, [seen], rule).start)
    # What one policy sees is nothing to the next.
    assert np.array_equal(
        evaluate(RulePolicy("saf", rule), [jobset], WORLD).start,
        played(WORLD, [jobset], rule).start,
    )
    assert not np.array_equal(
        played(WORLD, [with_believed(WORLD, jobset)], rule).start,
        played(WORLD, [jobset], rule).start,
    )
