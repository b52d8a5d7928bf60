"""What every registered environment promises."""

import copy
import json
import pickle
import warnings
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env, data_equivalence

from cluster_env.envs import ClusterEnv, ClusterVectorEnv, check_cluster_env, environment_ids
from cluster_env.worlds import WORLDS, get_spec
from cluster_env.worlds.deeprm import DeepRM
from cluster_env.worlds.deeprm.rules import PAPER_RULES, RELEASED_RULES
from tests.cluster_env.worlds.step_rules import STEP_RULES

FEW_JOBS: dict[str, Any] = {"graphs": {"jobs": 16}, "hpc": {"jobs": 16}}

every_id = pytest.mark.parametrize("name", environment_ids())


def every_choice() -> list[Any]:
    """Each world's first id with every observation and mask, and the other ids with every mask.

    The mask is inside and outside of the observation.
    """
    return [
        pytest.param(
            name,
            {"observation": observation, "mask": mask, "mask_in_observation": k % 2 == 0},
            id=f"{observation}-{mask}-{name}",
        )
        for spec in map(get_spec, WORLDS.names())
        for n, name in enumerate(spec.environments.ids)
        for observation in spec.environments.observations.names()[: 1 if n else None]
        for k, mask in enumerate(spec.environments.masks.names())
    ]


every_option = pytest.mark.parametrize(("name", "options"), every_choice())


def made(name: str, make: Any = gymnasium.make, **options: Any) -> Any:
    """An environment of an id, whose episodes are short."""
    kinds = [kind for kind in WORLDS.names() if name in WORLDS.get(kind).environments.ids]
    return make(name, workload=FEW_JOBS.get(kinds[0]), **options)


def test_ids_are_those_that_results_were_published_under() -> None:
    assert set(environment_ids()) == {
        "Accrual-v0",
        "Graphs-v0",
        "DeepRM-v0",
        "DeepRMReleased-v0",
        *(f"HPC{name}-v0" for name in ("", "Base", "Sparse", "Reduced", "Options")),
    }


@every_option
def test_gymnasiums_checker_has_nothing_to_say(name: str, options: dict[str, Any]) -> None:
    env = gymnasium.make(name, **options)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_env(env.unwrapped)


@every_option
def test_our_checker_has_nothing_to_say(name: str, options: dict[str, Any]) -> None:
    env = made(name, **options)
    check_cluster_env(env, num_episodes=2, step_rule=STEP_RULES[env.unwrapped.world.kind])


def test_simulators_are_stepped_with_actions_of_the_type_that_they_are_compiled_for() -> None:
    """Actions of Python and of numpy's usual type would have each world compiled once more."""
    one, many = gymnasium.make("DeepRM-v0").unwrapped, gymnasium.make_vec("DeepRM-v0", num_envs=2)
    for env, actions in ((one, 0), (many, np.zeros(2, np.int64))):
        env.reset(seed=0)
        simulator = env.simulator if env is one else env._episodes.simulator
        given, step = [], simulator.step
        simulator.step = lambda *each, given=given, step=step: given.append(each) or step(*each)
        env.step(actions)
        assert [each.dtype for each in given[0]] == [np.int32, np.int32, np.float64]


@every_id
@pytest.mark.parametrize("action", [0, -1], ids=["first", "void"])
def test_a_policy_of_one_action_finishes_all_jobs(name: str, action: int) -> None:
    """As a deterministic policy without a mask may be at first."""
    env = made(name, gymnasium.make_vec, num_envs=2)
    env.reset(seed=0)
    chosen = np.full(2, range(env.single_action_space.n)[action])
    over = np.zeros(2, np.bool_)
    while not over.all():
        *_, terminated, truncated, _ = env.step(chosen)
        assert not truncated.any()
        over |= terminated


@every_id
def test_rewards_are_scaled(name: str) -> None:
    options = {"objective": "completion_time"}
    envs = [gymnasium.make(name, **options), gymnasium.make(name, reward_scale=0.25, **options)]
    envs += [gymnasium.make_vec(name, num_envs=1, reward_scale=0.25, **options)]
    for env in envs:
        env.reset(seed=0)
    rewards, void = [], envs[0].action_space.n - 1
    for k in range(60):
        action = int(envs[0].unwrapped.action_masks().argmax()) if k % 2 else void
        steps = [env.step(action) for env in envs[:2]] + [envs[2].step(np.full(1, action))]
        rewards.append([float(np.sum(step[1])) for step in steps])
        if steps[0][2]:
            break
    plain, scaled, of_vector = np.transpose(rewards)
    assert plain.any()
    assert np.array_equal(0.25 * plain, scaled)
    assert np.array_equal(scaled, of_vector)


@every_id
def test_both_classes_are_made_from_one_id(name: str) -> None:
    assert isinstance(gymnasium.make(name).unwrapped, ClusterEnv)
    assert isinstance(gymnasium.make_vec(name, num_envs=2), ClusterVectorEnv)


@every_id
def test_specification_survives_json(name: str) -> None:
    spec = gymnasium.envs.registration.EnvSpec.from_json(gymnasium.spec(name).to_json())
    assert json.loads(spec.to_json()) == json.loads(gymnasium.spec(name).to_json())
    assert spec.make().reset(seed=0)[1]["time"] == 0


@every_id
@pytest.mark.parametrize(
    "duplicate",
    [copy.deepcopy, lambda env: pickle.loads(pickle.dumps(env))],
    ids=["copy", "pickle"],
)
def test_a_copied_environment_goes_on_like_the_original(name: str, duplicate: Any) -> None:
    env = gymnasium.make(name).unwrapped
    _, info = env.reset(seed=4)
    for _ in range(30):
        _, _, _, _, info = env.step(int(np.argmax(info["action_mask"])))
    other = duplicate(env)
    for k in range(300):
        results = [each.step(k % 11) for each in (env, other)]
        assert data_equivalence(*results, exact=True)
        if results[0][2]:
            assert data_equivalence(env.reset(), other.reset(), exact=True)


def test_released_rules_and_first_step_are_those_of_the_released_id() -> None:
    task = gymnasium.make("DeepRMReleased-v0").unwrapped.setup.task
    assert task.world == DeepRM(rules=RELEASED_RULES, max_time=200)
    assert (task.workload.first_step, task.workload.load) == (1, 0.7)
    paper = gymnasium.make("DeepRM-v0").unwrapped.setup.task
    assert paper.world == DeepRM(rules=PAPER_RULES)
    assert (paper.workload.first_step, paper.workload.load) == (0, 0.7)
