import gymnasium
import numpy as np
import pytest
from gymnasium.error import ResetNeeded

from cluster_env.core.errors import InputError
from cluster_env.core.jobs import JobSet
from cluster_env.core.seeding import Split
from cluster_env.envs import ClusterEnv
from cluster_env.workloads import sample_jobsets
from cluster_env.worlds.deeprm import DeepRM
from cluster_env.worlds.deeprm.cluster import Cluster
from cluster_env.worlds.deeprm.workloads import BimodalWorkload

TINY = Cluster(capacity=(2,), horizon=3, num_slots=1, backlog_view=3)
SHORT_JOBS = {"small_duration": (1, 2), "large_duration": (2, 3)}
THREE_JOBS = JobSet.of([0, 0, 1], [2, 1, 1], [[2], [1], [2]], window=2)


def test_three_jobs_by_hand() -> None:
    env = ClusterEnv(world=DeepRM(TINY), workload=SHORT_JOBS, observation="state", mask="placeable")
    # The code: units in use now, next, then; duration and demand in the slot; backlog; since;
    # time that the job in the slot has waited; arrival window.
    state, info = env.reset(options={"jobset": THREE_JOBS})
    assert state.tolist() == [0, 0, 0, 2, 2, 1, 0, 0, 2]
    assert (info["time"], info["action_mask"].tolist()) == (0, [1, 1])
    script = [
        # action, code, reward, time, mask
        (0, [2, 2, 0, 1, 1, 0, 0, 0], 0.0, 0, [1, 1]),  # job 0 runs at once, job 1 moves up
        (1, [2, 0, 0, 1, 1, 1, 0, 1], -1.5, 1, [1, 1]),  # 1/2 + 1/1; then job 2 arrives
        (0, [2, 1, 0, 1, 2, 0, 0, 0], 0.0, 1, [1, 1]),  # job 1 is booked for step 2
        (0, [2, 1, 2, 0, 0, 0, 0, 0], 0.0, 1, [0, 1]),  # job 2 needs both units: step 3
        (0, [1, 2, 0, 0, 0, 0, 1, 0], -2.5, 2, [0, 1]),  # an empty slot is void
        (1, [2, 0, 0, 0, 0, 0, 2, 0], -2.0, 3, [0, 1]),
        (1, [0, 0, 0, 0, 0, 0, 3, 0], -1.0, 4, [0, 1]),
    ]
    for k, (action, expected, expected_reward, time, mask) in enumerate(script):
        state, reward, terminated, truncated, info = env.step(action)
        assert state.tolist() == [*expected, 2], k
        assert (reward, info["time"]) == (expected_reward, time), k
        assert info["action_mask"].tolist() == mask, k
        assert (terminated, truncated) == (k == len(script) - 1, False), k
    assert env.schedule().start.tolist() == [0, 2, 3]
    assert env.schedule().slowdown.sum() == -sum(step[2] for step in script) == 7


def test_each_reset_plays_the_next_jobset_of_the_seed() -> None:
    env = ClusterEnv()
    env.reset(seed=8)
    played = [env.jobset]
    for _ in range(2):
        env.reset()
        played.append(env.jobset)
    expected = sample_jobsets(BimodalWorkload(), 8, Split.TRAIN, range(3))
    for one, other in zip(played, expected, strict=True):
        assert np.array_equal(one.arrival, other.arrival)
        assert np.array_equal(one.demand, other.demand)


def test_a_given_jobset_leaves_the_order_of_the_others() -> None:
    first, second = (ClusterEnv(world=DeepRM(TINY), workload=SHORT_JOBS) for _ in range(2))
    first.reset(seed=1)
    second.reset(seed=1)
    first.reset(options={"jobset": THREE_JOBS})
    assert first.jobset is THREE_JOBS
    first.reset()
    second.reset()
    assert np.array_equal(first.jobset.demand, second.jobset.demand)
    assert np.array_equal(first.jobset.arrival, second.jobset.arrival)


def test_without_a_seed_two_environments_differ() -> None:
    played = []
    for _ in range(2):
        env = ClusterEnv()
        env.reset()
        played.append(env.jobset.demand.tobytes())
    assert played[0] != played[1]


def test_an_episode_is_truncated_when_the_clock_passes_max_time() -> None:
    env = ClusterEnv(world=DeepRM(TINY, max_time=5), workload=SHORT_JOBS)
    env.reset(options={"jobset": THREE_JOBS})
    ends = [env.step(1)[2:4] for _ in range(6)]
    assert ends == [(False, False)] * 5 + [(False, True)]
    with pytest.raises(ResetNeeded):
        env.step(1)


def test_backlog_beyond_its_view_loses_no_job() -> None:
    cluster = Cluster(capacity=(1,), horizon=3, num_slots=1, backlog_view=3)
    jobset = JobSet.of([0] * 6, [1] * 6, [[1]] * 6, window=1)
    env = ClusterEnv(world=DeepRM(cluster), workload=SHORT_JOBS)
    picture, info = env.reset(options={"jobset": jobset})
    assert picture[:, -1].tolist() == [1, 1, 1]  # 5 wait there, 3 can be shown
    terminated = False
    while not terminated:
        _, _, terminated, _, info = env.step(int(np.argmax(info["action_mask"])))
    assert sorted(env.schedule().start.tolist()) == list(range(6))


@pytest.mark.parametrize("mask", ["placeable", "start_now", "live"])
def test_mask_is_the_same_through_wrappers(mask: str) -> None:
    env = gymnasium.make("DeepRM-v0", mask=mask)
    _, info = env.reset(seed=0)
    for k in range(200):
        found = env.get_wrapper_attr("action_masks")()
        assert found.dtype == np.bool_
        assert found.tolist() == (info["action_mask"] == 1).tolist()
        found[:] = False  # a copy: what a caller does with it changes nothing
        _, _, terminated, _, info = env.step(k % 11)
        if terminated:
            _, info = env.reset()


def test_worlds_and_workloads_come_as_options_too() -> None:
    world = {"kind": "deeprm", "cluster": {"num_slots": 3}, "rules": "released"}
    env = ClusterEnv(world=world, workload={"load": 0.9})
    assert env.world == DeepRM(Cluster(num_slots=3), "released")
    assert env.action_space.n == 4
    assert env.setup.task.workload == BimodalWorkload(
        load=0.9, cluster=Cluster(num_slots=3), first_step=1
    )
    assert ClusterEnv(workload={"load": 1.2}).setup.task.workload.load == 1.2


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"world": {"kind": "deeprm", "rules": "papr"}}, "did you mean 'paper'"),
        ({"world": {"kind": "deeprm", "ruls": "paper"}}, "did you mean 'rules'"),
        ({"world": "deeperm"}, "did you mean 'deeprm'"),
        ({"objective": "slowdwn"}, "did you mean 'slowdown'"),
        ({"observation": "imgae"}, "did you mean 'image'"),
        ({"mask": "placable"}, "did you mean 'placeable'"),
        ({"render_mode": "human"}, "unknown render mode 'human'"),
        ({"reward_scale": 0}, "reward_scale must be a number above 0, but 0 was given"),
        ({"reward_scale": float("nan")}, "reward_scale must be a number above 0"),
        ({"world": {"kind": "deeprm", "max_time": 0}}, "max_time must lie in 1..1000000000"),
        ({"world": {"kind": "deeprm", "max_time": "200"}}, "max_time must be a whole number"),
        ({"world": {"kind": "deeprm", "cluster": {"horizon": 9.5}}}, "horizon must be a whole"),
        ({"world": {"kind": "deeprm", "cluster": {"capacity": [9.5]}}}, "in whole numbers, but"),
        ({"world": {"kind": "deeprm", "cluster": {"capacity": 9}}}, "in whole numbers, but 9"),
        ({"workload": {"lod": 0.7}}, "did you mean 'load'"),
        ({"workload": {"load": 3.0}}, "out of reach"),
        ({"world": "hpc", "workload": {"trace": "a.swf"}}, "kind=trace with path=..."),
    ],
)
def test_bad_options_are_refused_with_a_hint(options: dict, message: str) -> None:
    with pytest.raises(InputError, match=message):
        ClusterEnv(**options)


def test_bad_calls_are_refused() -> None:
    env = ClusterEnv()
    for early in (lambda: env.step(0), env.schedule, env.action_masks):
        with pytest.raises(ResetNeeded):
            early()
    with pytest.raises(InputError, match="a seed must be a whole number"):
        env.reset(seed=-1)
    with pytest.raises(InputError, match="'jobsets' was given"):
        env.reset(options={"jobsets": []})
    with pytest.raises(InputError, match="the cluster has 2"):
        env.reset(options={"jobset": THREE_JOBS})
    env.reset(seed=0)
    for action in (-1, 11):
        with pytest.raises(InputError, match=r"must lie in 0\.\.10"):
            env.step(action)
    for no_number in (2.9, np.array([0]), "1", None):
        with pytest.raises(
            InputError, match=r"must be a whole number in 0\.\.10, but .* was given"
        ):
            env.step(no_number)
    for number in (np.int64(10), np.array(10)):  # what policies return
        env.step(number)
