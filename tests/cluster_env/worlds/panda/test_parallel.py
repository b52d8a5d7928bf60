"""Environments of several agents, for PettingZoo and RLlib."""

import numpy as np
import pytest

from cluster_env.core.seeding import Split
from cluster_env.objectives import get_objective
from cluster_env.task import Task
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
    options = {"task": task, "agents": 64, "reward_scale": 0.5}
    env = PandaMultiAgentEnv({**options, "mask_in_observation": True})
    unmasked = PandaMultiAgentEnv(options)
    seen, _ = env.reset(seed=3)
    bare, _ = unmasked.reset(seed=3)
    total = 0.0
    departed: set[str] = set()
    over = False
    while not over:
        deciding = {name: one for name, one in seen.items() if name not in departed}
        for name, one in deciding.items():
            zeros, ones = one["action_mask"].reshape(-1, 2).T
            assert zeros.all()  # a bit of an action may always be 0
            assert ones.any()
            assert np.array_equal(bare[name], one["observations"])
        seen = {name: one["observations"] for name, one in deciding.items()}
        actions = best_fit(seen, task)
        assert all((deciding[k]["action_mask"][1::2] >= bits).all() for k, bits in actions.items())
        bare, *_ = unmasked.step(actions)
        seen, rewards, ended, cut, _ = env.step(actions)
        total += sum(rewards.values())
        assert set(rewards) >= set(seen)
        departed |= {name for name in ended if name != "__all__"}
        assert all(env.observation_spaces[name].contains(one) for name, one in seen.items())
        assert all(unmasked.observation_spaces[name].contains(one) for name, one in bare.items())
        over = ended["__all__"] or cut["__all__"]
    jobs = Task(task.world, task.workload, task.objective, seed=3).jobsets(Split.TRAIN, [0])[0]
    assert len(departed) == jobs.num_jobs
    schedule = env.simulator.schedule()
    assert total == pytest.approx(-0.5 * task.objective.cost_of_episodes(schedule)[0])
