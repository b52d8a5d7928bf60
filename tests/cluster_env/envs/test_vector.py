from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.error import ResetNeeded
from gymnasium.utils.env_checker import data_equivalence
from gymnasium.vector import AutoresetMode

from cluster_env.core.errors import InputError
from cluster_env.core.jobs import JobSet
from cluster_env.core.seeding import Split
from cluster_env.envs import ClusterEnv, ClusterVectorEnv
from cluster_env.workloads import sample_jobsets
from cluster_env.worlds.deeprm import DeepRM
from cluster_env.worlds.deeprm.cluster import Cluster
from cluster_env.worlds.deeprm.rules import RULES
from cluster_env.worlds.deeprm.workloads import BimodalWorkload

# Short episodes, so that each place plays many.
CLUSTER = Cluster(num_slots=3)
SHORT: dict[str, Any] = {
    "world": DeepRM(CLUSTER),
    "workload": BimodalWorkload(load=0.6, window=6, cluster=CLUSTER, large_duration=(4, 5)),
    "observation": "slots",
}


def actions_of(num_steps: int, num_envs: int, num_actions: int = 4) -> np.ndarray:
    return np.random.default_rng(0).integers(0, num_actions, (num_steps, num_envs))


# Some objectives charge jobs that wait for long: what is charged by now moves along when the
# simulator loads the next episodes.
# Each mode meets each objective and each rule set.
@pytest.mark.parametrize(
    ("mode", "objective", "rules"),
    [
        (mode, objective, RULES.names()[(j + k) % len(RULES.names())])
        for j, mode in enumerate(AutoresetMode)
        for k, objective in enumerate(("slowdown", "fair_slowdown", "bounded_slowdown"))
    ],
)
def test_steps_equal_those_of_gymnasiums_own_vector(
    rules: str, mode: AutoresetMode, objective: str
) -> None:
    """Gymnasium's vector steps copies of the single environment one after the other."""
    seeds = [5, 5, 9]
    world = DeepRM(CLUSTER, rules, max_time=12)
    options = {**SHORT, "world": world, "objective": objective, "mask_in_observation": True}
    ours = gymnasium.make_vec("DeepRM-v0", num_envs=3, autoreset_mode=mode, **options)
    theirs = gymnasium.make_vec(
        "DeepRM-v0",
        num_envs=3,
        vectorization_mode="sync",
        vector_kwargs={"autoreset_mode": mode},
        **options,
    )
    assert ours.metadata["autoreset_mode"] is mode
    assert ours.observation_space == theirs.observation_space
    assert ours.action_space == theirs.action_space
    assert data_equivalence(ours.reset(seed=seeds), theirs.reset(seed=seeds), exact=True)
    num_terminated = num_truncated = 0
    for actions in actions_of(400, 3):
        own, other = ours.step(actions), theirs.step(actions)
        assert data_equivalence(own, other, exact=True)
        num_terminated += own[2].sum()
        num_truncated += own[3].sum()
        ended = own[2] | own[3]
        if mode is AutoresetMode.DISABLED and ended.any():
            own = ours.reset(options={"reset_mask": ended.copy()})
            other = theirs.reset(options={"reset_mask": ended.copy()})
            assert data_equivalence(own[0], other[0], exact=True)
    assert num_terminated > 20  # so that episodes were loaded several times
    assert num_truncated > 3


def test_one_seed_deals_the_jobsets_out_in_turn() -> None:
    vector = ClusterVectorEnv(3, **SHORT)
    observation, _ = vector.reset(seed=7)
    singles = [ClusterEnv(**SHORT) for _ in range(3)]
    index = [0, 1, 2]

    def begin(place: int) -> Any:
        jobset = sample_jobsets(SHORT["workload"], 7, Split.TRAIN, [index[place]])[0]
        index[place] += 3
        return singles[place].reset(options={"jobset": jobset})[0]

    for place in range(3):
        assert np.array_equal(begin(place)["slots"], observation["slots"][place])
    ended = np.zeros(3, np.bool_)
    for actions in actions_of(300, 3):
        observation, rewards, terminated, truncated, _ = vector.step(actions)
        for place in range(3):
            if ended[place]:
                expected, reward = begin(place), 0.0
            else:
                expected, reward, *_ = singles[place].step(actions[place])
            assert np.array_equal(expected["slots"], observation["slots"][place])
            assert reward == rewards[place]
        ended = terminated | truncated
    assert min(index) > 15


def test_resets_without_a_seed_go_on_in_the_order() -> None:
    vector = ClusterVectorEnv(2, observation="state")
    vector.reset(seed=1)
    first, _ = vector.reset()
    again = ClusterVectorEnv(2, observation="state")
    again.reset(seed=1)
    second, _ = again.reset()
    assert np.array_equal(first, second)
    other = ClusterVectorEnv(2, observation="state")
    assert not np.array_equal(other.reset()[1], first)


def test_given_jobsets_are_played_where_they_are_given() -> None:
    jobset = JobSet.of([0], [4], [[3, 2]], window=1)
    vector = ClusterVectorEnv(3, observation="state")
    vector.reset(seed=3, options={"jobsets": [None, jobset, None]})
    plain = ClusterVectorEnv(3, observation="state")
    plain.reset(seed=3)
    for _ in range(5):
        states, _, terminated, _, _ = vector.step(np.asarray([10, 0, 10]))
        expected = plain.step(np.asarray([10, 0, 10]))[0]
        assert np.array_equal(states[[0, 2]], expected[[0, 2]])
    assert terminated.tolist() == [False, True, False]


def test_a_reset_mask_leaves_the_other_episodes_alone() -> None:
    vector = ClusterVectorEnv(4, observation="state")
    vector.reset(seed=0)
    for actions in actions_of(25, 4, 11):
        before = vector.step(actions)
    mask = np.asarray([True, False, False, True])
    states, infos = vector.reset(options={"reset_mask": mask})
    assert np.array_equal(states[~mask], before[0][~mask])
    assert infos["time"][mask].tolist() == [0, 0]
    assert np.array_equal(infos["time"][~mask], before[4]["time"][~mask])


def test_observations_are_new_arrays_unless_asked_otherwise() -> None:
    for copied in (True, False):
        vector = ClusterVectorEnv(2, copy=copied)
        first, _ = vector.reset(seed=0)
        second = vector.step(np.asarray([10, 10]))[0]
        assert (first is second) is not copied


def test_gymnasiums_wrappers_find_what_they_need() -> None:
    vector = gymnasium.make_vec("DeepRM-v0", num_envs=2, **SHORT)
    counted = gymnasium.wrappers.vector.RecordEpisodeStatistics(vector)
    wrapped = gymnasium.wrappers.vector.DictInfoToList(counted)
    wrapped.reset(seed=0)
    total, found = 0.0, None
    for actions in actions_of(200, 2):
        _, rewards, terminated, _, infos = wrapped.step(actions)
        total += rewards[0]
        if terminated[0]:
            found = infos[0]["episode"]["r"]
            break
    assert found == pytest.approx(total)
    assert infos[0]["action_mask"].shape == (4,)


def test_bad_options_are_refused() -> None:
    with pytest.raises(InputError, match="num_envs must be 1 or larger"):
        ClusterVectorEnv(0)


def test_bad_calls_are_refused() -> None:
    vector = ClusterVectorEnv(2)
    with pytest.raises(ResetNeeded):
        vector.step(np.asarray([0, 0]))
    with pytest.raises(ResetNeeded, match="first reset"):
        vector.reset(options={"reset_mask": np.asarray([True, False])})
    with pytest.raises(InputError, match="2 seeds are needed, but 3"):
        vector.reset(seed=[1, 2, 3])
    with pytest.raises(InputError, match="2 jobsets are needed, but 1"):
        vector.reset(options={"jobsets": [None]})
    with pytest.raises(InputError, match="reset_mask must be an array of 2 bools"):
        vector.reset(options={"reset_mask": np.asarray([1, 0])})
    with pytest.raises(InputError, match="'jobset' was given"):
        vector.reset(options={"jobset": None})
    vector.reset(seed=0)
    with pytest.raises(InputError, match=r"every action must lie in 0\.\.10"):
        vector.step(np.asarray([0, 11]))
    with pytest.raises(InputError, match="whole numbers of the shape"):
        vector.step(np.asarray([0.0, 1.0]))
    with pytest.raises(InputError, match="whole numbers of the shape"):
        vector.step(np.asarray([0]))


def test_stepping_an_ended_episode_is_refused_without_autoreset() -> None:
    vector = ClusterVectorEnv(1, world=DeepRM(max_time=1), autoreset_mode=AutoresetMode.DISABLED)
    vector.reset(seed=0)
    vector.step(np.asarray([10]))
    assert vector.step(np.asarray([10]))[3].all()
    with pytest.raises(ResetNeeded):
        vector.step(np.asarray([10]))
