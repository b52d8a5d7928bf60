"""The paper's rewards, by hand and against what agents are paid."""

import numpy as np
import pytest

from cluster_env.core.errors import InputError
from cluster_env.core.jobs import JobSet
from cluster_env.objectives import get_objective
from cluster_env.task import Task
from cluster_env.worlds.panda import Panda
from cluster_env.worlds.panda.consumers import Consumers
from cluster_env.worlds.panda.objectives import expected_time
from cluster_env.worlds.panda.workloads import ClusteredWorkload, Supply
from rllib_configs.worlds.panda.multi_agent import PandaMultiAgentEnv


def test_larger_demands_may_wait_longer() -> None:
    jobset = JobSet.of([0, 0], [8, 8], [[1], [16]])
    assert expected_time(jobset, 16).tolist() == [8.5, 16.0]


def test_of_equal_sums_the_even_one_costs_least_within_a_class() -> None:
    """Two consumers of a class that expects 10 steps, and are there for 40 in all."""
    spread = get_objective("class_spread(16)")
    jobset = JobSet.of([0, 0], [5, 5], [[16], [16]])

    def cost(*times: int) -> float:
        return sum(
            float((np.maximum(times - late.after(jobset), 0) * late.cost(jobset)).sum())
            for late in spread.late_costs
        )

    assert cost(20, 20) == 2.0  # each is 10 beyond 10
    assert cost(10, 30) == 3.0  # the second one 20 beyond 10 and 10 beyond 20
    assert cost(0, 40) == 5.0


def best_fit(seen: dict[str, np.ndarray], task: Task) -> dict[str, np.ndarray]:
    """What the rule's own feature of each node says."""
    items, context = task.world.feature_names
    actions = {}
    for name, one in seen.items():
        nodes = one[: -len(context)].reshape(-1, len(items))
        actions[name] = np.append(nodes[:, items.index("best_fit")], 0).astype(np.int8)
    return actions


@pytest.mark.parametrize(
    "name",
    [
        "completion_time",
        "normalized_time(8)",
        "0.5 normalized_time(8) + 2 class_spread(8)",
        "0.1 completion_time + 1 feedback(8)",
    ],
)
def test_agents_are_paid_what_the_objective_says_and_stay_until_they_depart(name: str) -> None:
    world = Panda(observed=4, held=4, patience=4, max_time=400)
    supply = Supply(stays=60, away=5)
    workload = ClusteredWorkload(world.nodes, load=0.4, window=20, feedback=0.5, supply=supply)
    task = Task(world, workload, get_objective(name), seed=1)
    env = PandaMultiAgentEnv({"task": task})
    seen, _ = env.reset()
    agents = env.possible_agents[: env.jobset.num_jobs]
    returns, departed = dict.fromkeys(agents, 0.0), set[str]()
    while env.agents:
        seen, rewards, ended, cut, _ = env.step(best_fit(seen, task))
        assert not departed & set(seen), "nobody comes back"
        departed |= {agent for agent in (*ended, *cut) if agent != "__all__"}
        for agent, reward in rewards.items():
            returns[agent] += reward
        seen = {agent: one for agent, one in seen.items() if agent in env.agents}
    assert departed == set(agents)
    schedule = env.simulator.schedule()
    assert schedule.finished.all()
    costs = task.objective.cost_of_jobs(schedule)
    assert [-value for value in returns.values()] == pytest.approx(costs.tolist(), rel=1e-9)


def test_optional_feedback_of_consumers_is_part_of_the_reward() -> None:
    """Three consumers that expect 10 steps and take 40; the last one says nothing."""
    jobset = Consumers.with_supply([0] * 3, [5] * 3, [16] * 3, tolerance=[100, 250, 0])
    world = Panda()
    simulator = world.simulator()
    found = []
    for name in ("feedback(16)", "completion_time", "1 completion_time + 2 feedback(16)"):
        simulator.load([jobset], get_objective(name))
        rows, got = np.arange(3, dtype=np.int32), np.zeros(3)
        wait = np.full(3, world.num_actions - 1)
        while simulator.time[0] < 40:
            rewards = np.empty(3)
            simulator.step(rows, wait, rewards)
            got += rewards
        found.append(got)
    assert found[0].tolist() == pytest.approx([-3.0, -1.5, 0.0])
    assert found[2].tolist() == pytest.approx((found[1] + 2 * found[0]).tolist())
    silent = JobSet.of([0], [5], [[16]])
    (late,) = get_objective("feedback(16)").late_costs
    assert late.after(silent).tolist() == [2**31 - 1]


def test_who_is_asked_for_feedback_is_no_other_consumer() -> None:
    plain, asked = (
        ClusteredWorkload(window=200, feedback=share, supply=Supply(stays=50)).sample(
            np.random.default_rng(3)
        )
        for share in (0.0, 0.4)
    )
    assert "tolerance" not in plain.attributes
    tolerance = asked.attributes["tolerance"]
    assert (tolerance > 0).mean() == pytest.approx(0.4, abs=0.1)
    assert np.median(tolerance[tolerance > 0]) == pytest.approx(200, rel=0.2)
    for name in ("arrival", "duration", "demand", "away"):
        assert (getattr(plain, name) == getattr(asked, name)).all()


def test_a_name_without_a_number_is_refused() -> None:
    with pytest.raises(InputError, match=r"as in class_spread\(16\)"):
        get_objective("class_spread(none)")
