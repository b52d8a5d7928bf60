"""Steps of the compiled simulator on one core, with and without the image."""

import numpy as np
from numpy.typing import NDArray

from cluster_env.core.jobs import JobSet
from cluster_env.core.seeding import Purpose, Split, generator
from cluster_env.objectives import get_objective
from cluster_env.workloads import sample_jobsets
from cluster_env.worlds.deeprm import DeepRM
from cluster_env.worlds.deeprm.image import ImageLayout, image
from cluster_env.worlds.deeprm.workloads import BimodalWorkload
from tune_jobs.benchmarks.measuring import Entry, Work, rates
from tune_jobs.benchmarks.plain import PlainCluster

EPISODES = 256
DECISIONS = 200
PLAIN_DECISIONS = 500

_PLAIN = (
    "the same rules and random actions at load 70 % in plain Python and numpy, one episode at a "
    "time, measured here"
)


def measure(seconds: float) -> list[Entry]:
    """Measures both entries; random actions at load 70 %, an ended episode begins again."""
    workload = BimodalWorkload()
    jobsets = sample_jobsets(workload, 0, Split.TRAIN, range(EPISODES))
    entries = []
    for name, with_image in (("simulator.steps", False), ("simulator.image_steps", True)):
        ours, theirs = rates(
            compiled_work(jobsets, workload, with_image),
            plain_work(jobsets, workload, with_image),
            seconds,
        )
        reference = _PLAIN + (", its image drawn after each step" if with_image else "")
        entries.append(Entry(name, "steps/s on one core", ours, reference, theirs))
    return entries


def compiled_work(jobsets: list[JobSet], workload: BimodalWorkload, with_image: bool) -> Work:
    """Steps all episodes side by side."""
    simulator = DeepRM(workload.cluster).simulator()
    simulator.load(jobsets, get_objective("slowdown"))
    actions = _actions(workload, (DECISIONS, len(jobsets)))
    rows = np.arange(len(jobsets), dtype=np.int32)
    rewards = np.empty(len(jobsets))
    shape = ImageLayout(workload.cluster).shape
    images = np.empty((len(jobsets), *shape), np.uint8)

    def work() -> float:
        for chosen in actions:
            if simulator.step(rows, chosen, rewards) < rows.size:
                simulator.reset(rows[~simulator.active])
            if with_image:
                image(simulator.states, simulator.layout, images)
        return float(actions.size)

    return work


def plain_work(jobsets: list[JobSet], workload: BimodalWorkload, with_image: bool) -> Work:
    """Steps one episode after the other in plain Python."""
    plain = PlainCluster(workload.cluster, jobsets[0])
    actions = [int(action) for action in _actions(workload, (PLAIN_DECISIONS,))]
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


def _actions(workload: BimodalWorkload, shape: tuple[int, ...]) -> NDArray[np.int32]:
    """Uniformly random actions, drawn before the clock starts."""
    rng = generator(0, Purpose.POLICY)
    return rng.integers(workload.cluster.num_actions, size=shape, dtype=np.int32)
