"""Compiles everything that is compiled, once: ``python -m cluster_env.warm``.

What is compiled is kept in the user's cache folder, so that later commands and every worker only
load it. Run after an installation; it takes a minute the first time and seconds after that.
"""

import warnings
from collections.abc import Sequence
from contextlib import suppress

import numpy as np

from cluster_env.core.errors import InputError
from cluster_env.core.jobs import JobSet
from cluster_env.core.policy import Policy, choose
from cluster_env.core.world import World
from cluster_env.envs.episodes import JobsetStream
from cluster_env.envs.view import View
from cluster_env.evaluation import evaluate, summarize
from cluster_env.evaluation.withholding import find_withheld
from cluster_env.objectives import OBJECTIVES, Objective
from cluster_env.task import build_workload
from cluster_env.worlds import WORLDS

_NUM_JOBS = 8  # of a jobset: what is compiled does not depend on sizes


def warm(names: Sequence[str] = ()) -> None:
    """Plays each thing once that is registered with a world: rules, objectives, views.

    Only the named worlds, in this order, if any are named.
    """
    for name in names or WORLDS.names():
        spec = WORLDS.get(name)
        world = spec.world()
        stream = JobsetStream(build_workload(world, spec.workloads.names()[0], {}), run_seed=0)
        jobsets = [stream.draw().select(slice(0, _NUM_JOBS)) for _ in range(2)]
        rules = [spec.heuristics.get(rule).make(world, "") for rule in spec.heuristics.names()]
        for rule in rules:
            # Whole episodes, and what is measured of them.
            schedule = evaluate(rule, jobsets, world)
            summarize(schedule, metrics=spec.metrics)
            find_withheld(schedule)
            for objective in OBJECTIVES.names():
                # An objective may need other jobs, and a rule may play nothing but episodes.
                with suppress(InputError):
                    _decide_once(world, rule, jobsets[0], OBJECTIVES.get(objective))
        shown = spec.environments
        views = [View(world, each, None, False) for each in shown.observations.names()]
        for view in (*views, *(View(world, None, each, False) for each in shown.masks.names())):
            simulator = view.world.simulator()
            simulator.load(jobsets, OBJECTIVES.get("completion_time"))
            rows = np.flatnonzero(simulator.active)
            # One environment shows a view of the simulator's states, several show a copy.
            for states in (simulator.states[rows[0] : rows[0] + 1], simulator.states[rows]):
                view.look(states, view.buffer(len(states)))
        spec.tools.warm(world, jobsets)


def _decide_once(world: World, rule: Policy, jobset: JobSet, objective: Objective) -> None:
    """Takes one decision, in an episode that another simulator then goes on with."""
    simulator, other = world.simulator(), world.simulator()
    for each in (simulator, other):
        each.load([jobset], objective)
    rows = np.flatnonzero(simulator.active).astype(np.int32)
    actions = choose(rule, simulator, rows, np.zeros(rows.size))
    simulator.step(rows, actions, np.empty(rows.size))
    other.take_over(simulator, rows, rows)


def main(names: Sequence[str] = ()) -> None:
    """Entry point of ``python -m cluster_env.warm``."""
    with warnings.catch_warnings(action="ignore"):
        warm(names)


if __name__ == "__main__":
    main()
