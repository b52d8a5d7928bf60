"""The observation ``graph``, by a job worked out by hand, and the picture."""

import gymnasium
import numpy as np

from cluster_env.core.graphs import Stages, graph_jobs
from cluster_env.objectives import get_objective
from cluster_env.worlds.graphs import Graphs
from cluster_env.worlds.graphs.render import IDLE, draw
from cluster_env.worlds.graphs.rules import Rule


def diamond():
    """A stage of two tasks, two that wait for it, and one that waits for both; one chain of two."""
    tasks = np.array([[2, 1, 1, 1], [1, 1, 0, 0]])
    parents = np.array([[0, 1, 1, 6], [0, 1, 0, 0]])
    return graph_jobs([0, 0], Stages(tasks, 1000.0 * (tasks > 0), parents))


def test_a_graph_has_the_stages_that_have_not_ended_and_how_to_pick_them():
    world = Graphs(executors=2, delay=0, warmup=0, spread=0.0, stages=4, nodes=8)
    env = gymnasium.make("Graphs-v0", world=world, observation="graph").unwrapped
    seen, info = env.reset(options={"jobset": diamond()})
    assert seen["nodes"][:, 0].tolist() == [1] * 6 + [0] * 2
    edges = [[0, 1], [0, 2], [1, 3], [2, 3], [4, 5]]
    assert np.argwhere(seen["edges"]).tolist() == edges
    assert seen["actions"].tolist() == [0, -1, -1, -1, 1, -1, -1, -1]
    assert np.flatnonzero(info["action_mask"][:-1]).tolist() == [0, 1]
    # Two executors could go to the first stage, so that they are counted next.
    counting, *_ = env.step(0)
    assert counting["context"][0] == 1
    assert counting["actions"].tolist() == [0] + [-1] * 7
    seen, *_ = env.step(1)
    # One of its two tasks has ended: stages behind it can be picked in advance.
    assert env.simulator.time[0] == 1000
    assert np.argwhere(seen["edges"]).tolist() == edges
    assert seen["actions"].tolist() == [-1, 0, 1, -1, 2, -1, -1, -1]
    env.step(0)
    seen, *_ = env.step(0)
    # The other has ended, too: its edges are gone, one stage runs, and one wants an executor.
    assert env.simulator.time[0] == 1000
    assert np.argwhere(seen["edges"]).tolist() == [[0, 2], [1, 2], [3, 4]]
    assert seen["actions"].tolist() == [0, -1, -1, 1, -1, -1, -1, -1]


def test_a_graph_that_does_not_fit_is_cut_off():
    world = Graphs(executors=2, stages=4, nodes=3)
    env = gymnasium.make("Graphs-v0", world=world, observation="graph").unwrapped
    seen, _ = env.reset(options={"jobset": diamond()})
    assert np.argwhere(seen["edges"]).tolist() == [[0, 1], [0, 2]]


def test_a_picture_shows_a_long_task_to_its_end():
    world = Graphs(executors=1, delay=0, warmup=0, spread=0.0, stages=1)
    one = np.ones((1, 1), np.int64)
    simulator = world.simulator()
    simulator.load([graph_jobs([0], Stages(one, 3e6 * one, 0 * one))], get_objective("makespan"))
    simulator.play(Rule("fair"))
    assert not (draw(simulator, 0) == IDLE).all(axis=2).any()
