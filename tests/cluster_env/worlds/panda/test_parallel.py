"""Environments of several agents, for PettingZoo and RLlib."""

import numpy as np
import pytest

from cluster_env.core.seeding import Split
from cluster_env.core.task import Task
from cluster_env.objectives import get_objective
from cluster_env.worlds.panda import Panda
from cluster_env.worlds.panda.multiagent import PandaParallelEnv
from cluster_env.worlds.panda.workloads import ClusteredWorkload, Supply
from rllib_configs.worlds.panda.multi_agent import PandaMultiAgentEnv


@pytest.fixture(scope="module")
def task() -> Task:
    world = Panda(observed=4, held=4, patience=4, max_time=400)
    workload = ClusteredWorkload(world.nodes, load=0.4, window=20, supply=Supply(stays=60, away=5))
    return Task(world, workload, get_objective("completion_time"), seed=0)


def test_pettingzoo_accepts_the_parallel_environment(task: Task) -> None:
    pettingzoo = pytest.importorskip("pettingzoo.test")
    pettingzoo.parallel_api_test(PandaParallelEnv(task), num_cycles=150)


def _best_fit(seen: dict[str, dict[str, np.ndarray]], task: Task) -> dict[str, np.ndarray]:
    """What the rule's own feature of each node says."""
    items, context = task.world.feature_names
    actions = {}
    for name, one in seen.items():
        nodes = one["observation"][: -len(context)].reshape(-1, len(items))
        actions[name] = np.append(nodes[:, items.index("best_fit")], 0).astype(np.int8)
    return actions


def test_returns_are_minus_the_times_in_the_system_and_agents_stay_until_they_depart(
    task: Task,
) -> None:
    env = PandaParallelEnv(task, seed=3)
    seen, _ = env.reset()
    returns, over = dict.fromkeys(env.possible_agents, 0.0), set()
    while seen:
        actions = _best_fit(seen, task)
        seen, rewards, ended, cut, _ = env.step(actions)
        assert not over & set(seen), "nobody comes back"
        over |= {name for name in seen if ended[name] or cut[name]}
        for name, reward in rewards.items():
            returns[name] += reward
        seen = {name: value for name, value in seen.items() if name in env.agents}
    assert over == set(env.possible_agents)
    schedule = env.simulator.schedule()
    assert schedule.finished.all()
    assert np.allclose([-value for value in returns.values()], schedule.completion)


def test_rllib_sees_who_decides_and_who_departs(task: Task) -> None:
    env = PandaMultiAgentEnv({"task": task, "agents": 64})
    seen, _ = env.reset(seed=3)
    departed: set[str] = set()
    over = False
    while not over:
        deciding = {name: one for name, one in seen.items() if name not in departed}
        assert all(one["action_mask"].any() for one in deciding.values())
        seen, rewards, ended, cut, _ = env.step(_best_fit(deciding, task))
        assert set(rewards) >= set(seen)
        departed |= {name for name in ended if name != "__all__"}
        assert all(env.observation_spaces[name].contains(one) for name, one in seen.items())
        over = ended["__all__"] or cut["__all__"]
    jobs = Task(task.world, task.workload, task.objective, seed=3).jobsets(Split.TRAIN, [0])[0]
    assert len(departed) == jobs.num_jobs
