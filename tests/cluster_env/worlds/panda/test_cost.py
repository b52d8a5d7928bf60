"""What a step costs, counted: the kernels run as plain Python, whose lines are counted."""

import json

from tests.waiting import run_python

AGENTS = (10, 20, 40)

COUNT_LINES = """
import json, sys
import numpy as np
from cluster_env.objectives import get_objective
from cluster_env.worlds.panda import Panda
from cluster_env.worlds.panda.consumers import Consumers

world = Panda(observed=8, held=4, collision="need", rounds=4)
lines = 0

def count(frame, event, argument):
    global lines
    if "worlds/panda" in frame.f_code.co_filename:
        lines += event == "line"
        return count

found = {}
for catching, agents in [(c, n) for c in (True, False) for n in map(int, sys.argv[1:])]:
    simulator = world.simulator()
    zeros = np.zeros(agents, int)
    jobset = Consumers.with_supply(zeros, zeros + 20, zeros + 9)
    simulator.load([jobset], get_objective("completion_time"))
    rows = np.flatnonzero(simulator.active).astype(np.int32)
    assert rows.size == agents
    bits = np.zeros((agents, world.num_actions), np.int32)
    if catching:
        bits[:, :8] = 1 + np.random.default_rng(0).permutation(8 * agents).reshape(agents, 8)
    lines = 0
    sys.settrace(count)
    simulator.step(rows, bits, np.empty(agents))
    sys.settrace(None)
    found.setdefault(catching, []).append(lines)
    assert (simulator.nodes["holder"] >= 0).any() == catching
print(json.dumps(list(found.values())))
"""


def test_the_cost_of_a_step_is_linear_in_the_agents() -> None:
    """Where all want all nodes that their filters let pass and collide, and where nobody takes one.

    What 20 agents more take is twice what 10 more take; were it the square, it would be four times.
    """
    done = run_python("-c", COUNT_LINES, *map(str, AGENTS), NUMBA_DISABLE_JIT="1")
    assert done.returncode == 0, done.stderr
    for few, more, most in json.loads(done.stdout):
        assert few > 1000 * AGENTS[0]
        assert 1.6 * (more - few) < most - more < 2.4 * (more - few)
