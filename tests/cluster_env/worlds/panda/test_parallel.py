"""Environments of several agents, for PettingZoo and RLlib."""

import pytest

from cluster_env.core.seeding import Split
from cluster_env.core.task import Task
from cluster_env.objectives import get_objective
from cluster_env.worlds.panda import Panda
from cluster_env.worlds.panda.workloads import ClusteredWorkload, Supply
from rllib_configs.worlds.panda.multi_agent import PandaMultiAgentEnv
from tests.cluster_env.worlds.panda.test_objectives import best_fit
from tests.conftest import REPOSITORY


@pytest.fixture(scope="module")
def task() -> Task:
    world = Panda(observed=4, held=4, patience=4, max_time=400)
    workload = ClusteredWorkload(world.nodes, load=0.4, window=20, supply=Supply(stays=60, away=5))
    return Task(world, workload, get_objective("completion_time"), seed=0)


def test_pettingzoo_accepts_the_example(task: Task, monkeypatch: pytest.MonkeyPatch) -> None:
    pettingzoo = pytest.importorskip("pettingzoo.test")
    monkeypatch.syspath_prepend(REPOSITORY / "tests" / "extensions")
    from parallel_env import PandaParallelEnv

    pettingzoo.parallel_api_test(PandaParallelEnv(task), num_cycles=150)


def test_rllib_sees_who_decides_and_who_departs(task: Task) -> None:
    env = PandaMultiAgentEnv({"task": task, "agents": 64})
    seen, _ = env.reset(seed=3)
    departed: set[str] = set()
    over = False
    while not over:
        deciding = {name: one for name, one in seen.items() if name not in departed}
        assert all(one["action_mask"].any() for one in deciding.values())
        seen, rewards, ended, cut, _ = env.step(best_fit(deciding, task))
        assert set(rewards) >= set(seen)
        departed |= {name for name in ended if name != "__all__"}
        assert all(env.observation_spaces[name].contains(one) for name, one in seen.items())
        over = ended["__all__"] or cut["__all__"]
    jobs = Task(task.world, task.workload, task.objective, seed=3).jobsets(Split.TRAIN, [0])[0]
    assert len(departed) == jobs.num_jobs
