"""What a runner does with a task: sample, adapt, sample again."""

from dataclasses import dataclass
from time import perf_counter

import numpy as np
from numpy.typing import NDArray

from cluster_env.core.seeding import Split, episode_keys
from cluster_env.worlds.deeprm.heuristics import get_heuristic
from cluster_env.worlds.deeprm.simulator import DeepRMSimulator
from meta.maml.decisions import Decisions, decisions_of
from meta.maml.first_order import FirstOrder, StepOptions
from meta.maml.options import MAMLOptions
from meta.maml.steps import Parameters
from meta.tasks import Task
from rllib_configs.networks.set_scorer.network import SetScorer, plain_scorer
from rllib_configs.networks.set_scorer.sampler import SetScorerSampler
from rllib_configs.runners.rollout import Rollouts, SamplingPolicy, rollout
from rllib_configs.schema import TrainingSection
from rllib_configs.task_schema import ClusterSection, TaskSection

BASELINE = "sjf"
"""Heuristic in units of whose return a task's returns are logged, because tasks have units of
their own."""


@dataclass(frozen=True)
class StageScore:
    """How a stage went.

    Attributes:
        value: mean return divided by the absolute one of `BASELINE` on the same jobsets: -0.9
            says that what costs costs a tenth less, 1.1 that what pays pays a tenth more.
        slowdown: mean over all jobs.
        return_mean: mean return of an episode, in the objective's own unit.
        return_max: mean over jobsets of the best one.
        num_decisions: with and without a choice.
        num_episodes: of the stage.
    """

    value: float
    slowdown: float
    return_mean: float
    return_max: float
    num_decisions: int
    num_episodes: int


@dataclass(frozen=True, eq=False)
class TaskSample:
    """A task's answer.

    Attributes:
        cluster: whose codes the stages hold.
        stages: decisions of stages 0 to K; those of stage k were made after k inner steps.
        scores: of the same stages.
        adapt_s: time that the inner steps took.
        worker: index of the runner; only times are ever said of it.
    """

    cluster: ClusterSection
    stages: tuple[Decisions, ...]
    scores: tuple[StageScore, ...]
    adapt_s: float
    worker: int = 0


class StageSampler:
    """Plays the stages of tasks, one after the other.

    What it keeps from task to task saves time and changes no number.

    Args:
        training: episodes, discount and width of the network.
        meta: how inner steps are made.
        seed: of the run's actions.
    """

    def __init__(self, training: TrainingSection, meta: MAMLOptions, seed: int) -> None:
        self._training = training
        self._meta = meta
        self._seed = seed
        self._simulators: dict[str, DeepRMSimulator] = {}
        self._networks: dict[str, SetScorer] = {}
        self._steps: dict[str, FirstOrder] = {}

    def play(
        self,
        task: Task,
        parameters: Parameters,
        rates: Parameters,
        *,
        num_steps: int,
        iteration: int,
        index: int,
        worker: int = 0,
    ) -> TaskSample:
        """Samples a stage with the given parameters, and one after each inner step.

        Args:
            task: of the training split; each stage has jobsets of its own.
            parameters: of the network.
            rates: see `meta.maml.steps.inner_step`.
            num_steps: inner steps, 0 or more.
            iteration: of the run, for the random numbers of actions.
            index: of the task in the iteration, for the same.
            worker: see `TaskSample`.
        """
        meta, training = self._meta, self._training
        network = self._network(task.section.cluster)
        steps = self._steps_on(task.section.cluster)
        stages: list[Decisions] = []
        scores: list[StageScore] = []
        adapt_s = 0.0
        for stage in range(num_steps + 1):
            rollouts, score = self._stage(task, network, parameters, (iteration, index, stage))
            scores.append(score)
            stages.append(
                decisions_of(
                    rollouts,
                    gamma=training.gamma,
                    floor=meta.advantage_floor,
                    relative=meta.relative_gains and stage == num_steps,
                )
            )
            if stage == num_steps:
                break
            started = perf_counter()
            parameters = steps.inner_step(parameters, rates, stages[-1], stage)
            adapt_s += perf_counter() - started
        return TaskSample(task.section.cluster, tuple(stages), tuple(scores), adapt_s, worker)

    def _stage(
        self, task: Task, network: SetScorer, parameters: Parameters, key: tuple[int, int, int]
    ) -> tuple[Rollouts, StageScore]:
        training = self._training
        stage = key[-1]
        jobsets = task.jobsets(
            Split.TRAIN, range(stage * training.jobsets, (stage + 1) * training.jobsets)
        )
        simulator = self._simulator(task.section)
        weights = {name: value.numpy() for name, value in parameters.items()}
        keys = episode_keys(
            self._seed,
            Split.TRAIN,
            *key,
            count=training.jobsets * training.episodes_per_jobset,
        )

        def play(policy: SamplingPolicy, episodes: int) -> Rollouts:
            count = training.jobsets * episodes
            return rollout(simulator, policy, jobsets, task.objective, episodes, keys[:count])

        rollouts = play(SetScorerSampler(network, weights), training.episodes_per_jobset)
        reference = play(_BaselineSampler(task), 1)
        return rollouts, _score(rollouts, reference)

    def _network(self, section: ClusterSection) -> SetScorer:
        key = section.model_dump_json()
        if key not in self._networks:
            self._networks[key] = plain_scorer(section.build(), self._training)
        return self._networks[key]

    def _steps_on(self, section: ClusterSection) -> FirstOrder:
        key = section.model_dump_json()
        if key not in self._steps:
            self._steps[key] = FirstOrder(self._network(section), StepOptions.of(self._meta))
        return self._steps[key]

    def _simulator(self, section: TaskSection) -> DeepRMSimulator:
        key = section.model_dump_json(include={"cluster", "rules", "max_time"})
        if key not in self._simulators:
            self._simulators[key] = DeepRMSimulator(
                section.cluster.build(), section.build_rules(), section.max_time
            )
        return self._simulators[key]


class _BaselineSampler:
    """The heuristic as a `SamplingPolicy`."""

    def __init__(self, task: Task) -> None:
        self._policy = get_heuristic(BASELINE, task.cluster)

    def sample(
        self, states: NDArray[np.uint8], uniforms: NDArray[np.float64]
    ) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
        """It leaves nothing to chance."""
        return self._policy.act(states, uniforms), np.zeros(states.shape[0], np.float32)


def _score(rollouts: Rollouts, reference: Rollouts) -> StageScore:
    returns = np.bincount(rollouts.episode, rollouts.rewards, rollouts.num_episodes)
    unit = abs(reference.rewards.sum()) / reference.num_episodes
    best = [returns[rollouts.jobset == k].max() for k in np.unique(rollouts.jobset)]
    return StageScore(
        value=float(returns.mean() / unit) if unit else 0.0,
        slowdown=float(rollouts.slowdown_sum.sum() / max(1, rollouts.num_jobs.sum())),
        return_mean=float(returns.mean()),
        return_max=float(np.mean(best)),
        num_decisions=rollouts.num_rows,
        num_episodes=rollouts.num_episodes,
    )
