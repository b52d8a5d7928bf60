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
from cluster_env.core.policy import choose
from cluster_env.core.spec import WorldSpec
from cluster_env.core.task import build_workload
from cluster_env.core.world import World
from cluster_env.envs.episodes import JobsetStream
from cluster_env.envs.view import View
from cluster_env.evaluation import evaluate, summarize
from cluster_env.evaluation.withholding import find_withheld
from cluster_env.objectives import OBJECTIVES
from cluster_env.worlds import WORLDS

_NUM_JOBS = 8  # of a jobset: what is compiled does not depend on sizes


def warm(names: Sequence[str] = ()) -> None:
    """Plays each thing once that is registered with a world: rules, objectives, views.

    Args:
        names: of worlds, in the order in which they are compiled; all, if none is named.
    """
    for name in names or WORLDS.names():
        spec = WORLDS.get(name)
        world = spec.world()
        stream = JobsetStream(build_workload(world, spec.workloads.names()[0], {}), run_seed=0)
        jobsets = [stream.draw().select(slice(0, _NUM_JOBS)) for _ in range(2)]
        _play_rules(spec, world, jobsets)
        _take_steps(spec, world, jobsets[:1])
        _look(spec, world, jobsets)
        spec.tools.warm(world, jobsets)


def _play_rules(spec: WorldSpec, world: World, jobsets: Sequence[JobSet]) -> None:
    """Plays every rule to the end, and measures what came of it."""
    for name in spec.heuristics.names():
        schedule = evaluate(spec.heuristics.get(name).make(world, ""), jobsets, world)
        summarize(schedule, metrics=spec.metrics)
        find_withheld(schedule)


def _take_steps(spec: WorldSpec, world: World, jobsets: Sequence[JobSet]) -> None:
    """Takes a decision by each rule under each objective that the world can reward."""
    simulator, spare = world.simulator(), world.simulator()
    rules = [spec.heuristics.get(name).make(world, "") for name in spec.heuristics.names()]
    for name in OBJECTIVES.names():
        for rule in rules:
            # An objective may need other jobs, and a rule may play nothing but whole episodes.
            with suppress(InputError):
                for each in (simulator, spare):
                    each.load(jobsets, OBJECTIVES.get(name))
                rows = np.flatnonzero(simulator.active).astype(np.int32)
                actions = choose(rule, simulator, rows, np.zeros(rows.size))
                simulator.step(rows, actions, np.empty(rows.size))
                spare.take_over(simulator, rows, rows)


def _look(spec: WorldSpec, world: World, jobsets: Sequence[JobSet]) -> None:
    """Shows the first states in every observation, and with every mask."""
    observations, masks = (
        registry.names() for registry in (spec.environments.observations, spec.environments.masks)
    )
    views = [View(world, name, None, False) for name in observations]
    for view in (*views, *(View(world, None, name, False) for name in masks)):
        simulator = view.world.simulator()
        simulator.load(jobsets, OBJECTIVES.get("completion_time"))
        rows = np.flatnonzero(simulator.active)
        # One environment shows a view of the simulator's states, several show a copy.
        for states in (simulator.states[rows[0] : rows[0] + 1], simulator.states[rows]):
            view.look(states, view.buffer(len(states)))


def main(names: Sequence[str] = ()) -> None:
    """Entry point of ``python -m cluster_env.warm``; see `warm`."""
    with warnings.catch_warnings(action="ignore"):
        warm(names)


if __name__ == "__main__":
    main()
