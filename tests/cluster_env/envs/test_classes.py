"""Environments whose jobs have classes that a policy can tell apart."""

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

from cluster_env.core.errors import InputError
from cluster_env.core.jobs import JobSet
from cluster_env.envs import check_cluster_env
from cluster_env.worlds.deeprm import DeepRM
from cluster_env.worlds.deeprm.cluster import Cluster
from cluster_env.worlds.deeprm.observations import OBSERVATIONS
from cluster_env.worlds.deeprm.rules import RULES
from cluster_env.worlds.deeprm.state import StateLayout
from cluster_env.worlds.deeprm.workloads import BimodalWorkload
from tests.cluster_env.worlds.deeprm.step_rule import check_step

CLUSTER = Cluster(num_slots=4, num_classes=3)
OPTIONS = {"objective": "class_slowdown(0.1, 1, 10)"}


@pytest.mark.parametrize("rules", RULES.names())
@pytest.mark.parametrize("observation", OBSERVATIONS.names())
def test_checkers_have_nothing_to_say(rules: str, observation: str) -> None:
    world = DeepRM(CLUSTER, rules, max_time=300)
    env = gymnasium.make(
        "DeepRM-v0", world=world, observation=observation, mask="start_now", **OPTIONS
    )
    check_env(env.unwrapped, skip_render_check=True)
    check_cluster_env(env, seed=2, step_rule=check_step)


def test_image_and_compact_do_not_show_them() -> None:
    for observation in ("image", "compact"):
        plain, classes = (
            gymnasium.make("DeepRM-v0", world=DeepRM(cluster), observation=observation)
            for cluster in (Cluster(num_slots=4), CLUSTER)
        )
        assert plain.observation_space == classes.observation_space


@pytest.mark.parametrize("num_envs", [1, 7])
def test_slots_show_the_class_of_the_very_job_that_they_show(num_envs: int) -> None:
    """Through moves up from the backlog, new episodes and those that are carried over a load.

    Duration and demand of a job give its class away.
    """
    envs = gymnasium.make_vec(
        "DeepRM-v0",
        world=DeepRM(CLUSTER, max_time=60),
        num_envs=num_envs,
        workload=Telling(),
        observation="state",
    )
    states, _ = envs.reset(seed=3)
    layout = StateLayout(CLUSTER)
    rng = np.random.default_rng(0)
    seen, moved_up = set(), 0
    for _ in range(400):
        slots, shown = layout.slots_of(states).astype(int), states[:, layout.classes]
        present = slots[:, :, 0] > 0
        assert np.array_equal(shown[present], telling_class(slots[present][:, 0], slots[present]))
        assert not shown[~present].any()
        seen |= set(shown[present].tolist())
        moved_up += int(states[:, layout.backlog].max())
        states, *_ = envs.step(rng.integers(0, CLUSTER.num_actions, num_envs))
    assert seen == {0, 1, 2}
    assert moved_up > 0


class Telling:
    """Many jobs at once, the class of each a function of its duration and demand."""

    cluster = CLUSTER

    def sample(self, rng: np.random.Generator) -> JobSet:
        count = int(rng.integers(5, 30))
        duration = rng.integers(1, 6, count)
        demand = rng.integers(1, 6, (count, 2))
        arrival = np.sort(rng.integers(0, 12, count))
        job_class = telling_class(duration, np.column_stack([duration, demand]))
        return JobSet.of(arrival, duration, demand, 12, job_class)


def telling_class(duration: np.ndarray, slots: np.ndarray) -> np.ndarray:
    return (duration + 2 * slots[:, 1] + 5 * slots[:, 2]) % 3


def test_a_jobset_with_a_class_that_the_cluster_lacks_is_refused() -> None:
    env = gymnasium.make(
        "DeepRM-v0", world=DeepRM(Cluster()), workload=BimodalWorkload(cluster=CLUSTER)
    )
    with pytest.raises(InputError, match="num_classes=1"):
        env.reset(seed=0)
