"""Rolling policies out: the same numbers whatever the batch, and no call for finished episodes."""

from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray

from cluster_env.core.errors import InputError
from cluster_env.core.jobs import JobSet
from cluster_env.core.policy import Choose, Policy, chooser
from cluster_env.core.schedule import Schedule
from cluster_env.core.seeding import Split
from cluster_env.evaluation import evaluate
from cluster_env.workloads import sample_jobsets
from cluster_env.worlds.deeprm import DeepRM
from cluster_env.worlds.deeprm.cluster import Cluster
from cluster_env.worlds.deeprm.workloads import BimodalWorkload
from tests.cluster_env.evaluation.measured import WORLD, Idle, heuristic
from tests.cluster_env.schedules import assert_same_schedule

JOBSETS = sample_jobsets(BimodalWorkload(load=0.9), 0, Split.HELD_OUT, range(9))


class Spy:
    """SJF that notes how many episodes each call asks about."""

    name = "spy"

    def __init__(self) -> None:
        self.sizes: list[int] = []

    def act(self, states: NDArray[np.uint8], uniforms: NDArray[np.float64]) -> NDArray[np.int32]:
        assert states.shape[0] == uniforms.size
        self.sizes.append(states.shape[0])
        return heuristic("sjf").act(states, uniforms)


def test_what_a_policy_can_do_is_looked_up_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """To ask at each decision takes as long as a small network."""
    asked: list[Policy] = []

    def look(policy: Policy) -> Choose:
        asked.append(policy)
        return chooser(policy)

    monkeypatch.setattr("cluster_env.core.policy.chooser", look)
    monkeypatch.setattr("cluster_env.evaluation.rollouts.chooser", look, raising=False)
    spy = Spy()
    evaluate(spy, JOBSETS[:1], WORLD)
    assert len(asked) == 1 < len(spy.sizes)


@pytest.mark.parametrize("batch", [1, 2, 5, 7, 1000])
def test_random_decisions_do_not_depend_on_the_batch(batch: int) -> None:
    policy = heuristic("random")
    whole = evaluate(policy, JOBSETS, WORLD, episodes_per_jobset=3)
    parts = evaluate(policy, JOBSETS, WORLD, episodes_per_jobset=3, batch_episodes=batch)
    assert_same_schedule(whole, parts)
    np.testing.assert_array_equal(whole.jobset, parts.jobset)


def test_policies_are_asked_about_active_episodes_only() -> None:
    spy = Spy()
    short = JobSet.of([0], [1], [[1, 1]], window=2)
    long = JobSet.of([0], [9], [[1, 1]], window=2)
    evaluate(spy, [short, long, short], WORLD)
    # One placement and two steps for the short ones; the long one goes on for seven more.
    assert spy.sizes == [3, 3, 3] + [1] * 7


def test_a_policy_that_never_starts_a_job_is_cut_and_its_jobs_are_unfinished() -> None:
    schedule = evaluate(Idle(), JOBSETS, DeepRM(max_time=60))
    assert not schedule.finished.any()
    assert schedule.job.size == sum(jobset.num_jobs for jobset in JOBSETS)
    assert set(schedule.end.tolist()) == {61}


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda p: evaluate(p, [], WORLD), "at least one jobset"),
        (
            lambda p: evaluate(p, JOBSETS, DeepRM(max_time=49)),
            "jobs may arrive for 50 steps",
        ),
        (
            lambda p: evaluate(p, JOBSETS, WORLD, episodes_per_jobset=0),
            "at least 1 episode",
        ),
        (lambda p: evaluate(p, JOBSETS, WORLD, run_seed=-1), "seed must be 0 or larger"),
        (lambda p: evaluate(p, JOBSETS, DeepRM(Cluster(capacity=(10,)))), "asks? for 2 resources"),
    ],
)
def test_impossible_input_is_explained(call: Callable[..., Schedule], sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        call(heuristic("sjf"))
