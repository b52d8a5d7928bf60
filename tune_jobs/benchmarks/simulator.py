"""Steps of the compiled simulator on one core, with and without the image; tasks of task graphs."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from cluster_env.core.graphs import stages_of
from cluster_env.core.jobs import JobSet
from cluster_env.core.seeding import Purpose, Split, generator
from cluster_env.core.spec import get_heuristic
from cluster_env.task import Task
from rllib_configs.config.loading import load_config
from rllib_configs.worlds.deeprm.plain import PlainCluster
from tune_jobs.benchmarks.measuring import Entry, Work, rates
from tune_jobs.benchmarks.plain_graphs import PlainGraphs

EPISODES = 256
DECISIONS = 200
PLAIN_DECISIONS = 500
GRAPHS = 60  # jobs
GRAPHS_PLAYED = 20  # times for each time in plain Python

_PLAIN = (
    "the same rules and random actions at load 70 % in plain Python and numpy, one episode at a "
    "time, measured here"
)


def measure(seconds: float) -> list[Entry]:
    """Measures all entries; random actions at load 70 %, an ended episode begins again."""
    task = load_config("deeprm").task.build()
    jobsets = task.jobsets(Split.TRAIN, range(EPISODES))
    entries = []
    for name, with_image in (("simulator.steps", False), ("simulator.image_steps", True)):
        ours, theirs = rates(
            compiled_work(jobsets, task, with_image),
            plain_work(jobsets, task, with_image),
            seconds,
        )
        reference = _PLAIN + (", its image drawn after each step" if with_image else "")
        entries.append(Entry(name, "steps/s on one core", ours, reference, theirs))
    ours, theirs = rates(*graphs_works(), seconds)
    reference = "the same rules and jobs in plain Python, measured here"
    return [*entries, Entry("simulator.graphs", "tasks/s on one core", ours, reference, theirs)]


def graphs_works() -> tuple[Work, Work]:
    """Plays jobs of task graphs under fair, compiled and in plain Python."""
    workload = [f"task.workload.jobs={GRAPHS}"]
    task = load_config("graphs", workload).task.build()
    jobsets = task.jobsets(Split.TRAIN, range(1))
    simulator: Any = task.world.simulator()
    fair: Any = get_heuristic("fair", task.world)
    simulator.load(jobsets, task.objective)
    world: Any = task.world
    num_tasks = float(stages_of(jobsets[0]).tasks.sum())

    def compiled() -> float:
        for _ in range(GRAPHS_PLAYED):
            fair.play(simulator, np.zeros(1, np.uint64))
        return GRAPHS_PLAYED * num_tasks

    def plain() -> float:
        PlainGraphs(world, jobsets[0], "fair").play()
        return num_tasks

    return compiled, plain


def compiled_work(jobsets: list[JobSet], task: Task, with_image: bool) -> Work:
    """Steps all episodes side by side."""
    simulator = task.world.simulator()
    simulator.load(jobsets, task.objective)
    actions = _actions(task, (DECISIONS, len(jobsets)))
    rows = np.arange(len(jobsets), dtype=np.int32)
    rewards = np.empty(len(jobsets))
    image: Any = task.spec.environments.observations.get("image")(task.world)
    images = np.empty((len(jobsets), *image.space.shape), np.uint8)

    def work() -> float:
        for chosen in actions:
            if simulator.step(rows, chosen, rewards) < rows.size:
                simulator.reset(rows[~simulator.active])
            if with_image:
                image.write(simulator.states, images)
        return float(actions.size)

    return work


def plain_work(jobsets: list[JobSet], task: Task, with_image: bool) -> Work:
    """Steps one episode after the other in plain Python."""
    world: Any = task.world
    plain = PlainCluster(world.cluster, jobsets[0])
    actions = [int(action) for action in _actions(task, (PLAIN_DECISIONS,))]
    ended = 0

    def work() -> float:
        nonlocal ended
        for action in actions:
            _, over = plain.step(action)
            if over:
                ended += 1
                plain.load(jobsets[ended % len(jobsets)])
            if with_image:
                plain.image()
        return float(len(actions))

    return work


def _actions(task: Task, shape: tuple[int, ...]) -> NDArray[np.int32]:
    """Uniformly random actions, drawn before the clock starts."""
    rng = generator(0, Purpose.POLICY)
    return rng.integers(task.world.num_actions, size=shape, dtype=np.int32)
