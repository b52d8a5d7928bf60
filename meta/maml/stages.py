"""What a runner does with a task: sample, adapt, sample again."""

from dataclasses import dataclass
from time import perf_counter

import numpy as np
from numpy.typing import NDArray

from cluster_env.core.errors import InputError
from cluster_env.core.seeding import Split, episode_keys
from cluster_env.core.spec import get_heuristic
from cluster_env.core.task import Task
from cluster_env.core.world import State, World
from meta.maml.decisions import Decisions, decisions_of
from meta.maml.first_order import FirstOrder
from meta.maml.options import MAMLOptions
from meta.maml.rewards import RewardSums, told_world
from meta.maml.steps import Parameters, StepOptions
from rllib_configs.networks.conditions import seen_world
from rllib_configs.networks.sampling import SamplingPolicy
from rllib_configs.networks.set_scorer.network import SetScorer, SetScorerOptions
from rllib_configs.networks.set_scorer.sampler import SetScorerSampler
from rllib_configs.runners.rollout import Rollouts, rollout
from rllib_configs.schema import TrainingSection


@dataclass(frozen=True)
class StageScore:
    """How a stage went.

    Attributes:
        value: mean return divided by the absolute one of a heuristic on the same jobsets, because
            tasks have units of their own: -0.9 says that what costs costs a tenth less, 1.1 that
            what pays pays a tenth more. The heuristic is the first of the world's baselines.
        headline: mean of the world's headline metric, over all jobs or episodes.
        return_mean: mean return of an episode, in the objective's own unit.
        return_max: mean over jobsets of the best one.
        num_decisions: with and without a choice.
        num_episodes: of the stage.
    """

    value: float
    headline: float
    return_mean: float
    return_max: float
    num_decisions: int
    num_episodes: int


@dataclass(frozen=True, eq=False)
class TaskSample:
    """A task's answer.

    Attributes:
        world: whose states the stages hold, as the network sees them.
        stages: decisions of stages 0 to K; those of stage k were made after k inner steps. Of a
            policy that is told what rewards went with, the last stage alone.
        scores: of stages 0 to K.
        adapt_s: time that the inner steps took.
    """

    world: World
    stages: tuple[Decisions, ...]
    scores: tuple[StageScore, ...]
    adapt_s: float


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
        self._steps: dict[World, FirstOrder] = {}

    def play(
        self,
        task: Task,
        parameters: Parameters,
        rates: Parameters,
        *,
        num_steps: int,
        iteration: int,
        index: int,
    ) -> TaskSample:
        """Samples a stage with the given parameters, and one after each inner step.

        Args:
            task: of the training split; each stage has jobsets of its own.
            parameters: of the network.
            rates: see `meta.maml.steps.inner_step`.
            num_steps: inner steps, 0 or more.
            iteration: of the run, for the random numbers of actions.
            index: of the task in the iteration, for the same.
        """
        meta, training = self._meta, self._training
        options = SetScorerOptions.of(training).without_critic
        seen = seen_world(training, task.world, task.objective)
        network = SetScorer(seen.feature_names, options)
        rewards = RewardSums(task.world) if meta.adapt == "context" else None
        stages: list[Decisions] = []
        scores: list[StageScore] = []
        adapt_s = 0.0
        for stage in range(num_steps + 1):
            sampler = SetScorerSampler(
                network, {name: value.numpy() for name, value in parameters.items()}, seen
            )
            rollouts, score = self._stage(task, sampler, (iteration, index, stage))
            scores.append(score)
            stages.append(
                decisions_of(
                    rollouts,
                    gamma=training.gamma,
                    floor=meta.advantage_floor,
                    relative=meta.relative_gains and stage == num_steps,
                    discount_per=meta.discount_per,
                )
            )
            if stage == num_steps:
                break
            started = perf_counter()
            if rewards is None:
                steps = self._steps_in(network, seen)
                parameters = steps.inner_step(parameters, rates, stages[-1], stage)
            else:
                rewards.add(rollouts)
                seen = told_world(seen, rewards.told())
            adapt_s += perf_counter() - started
        if rewards is not None:  # nothing was learned from but the last stage
            del stages[:-1]
        return TaskSample(seen, tuple(stages), tuple(scores), adapt_s)

    def _stage(
        self, task: Task, sampler: SetScorerSampler, key: tuple[int, int, int]
    ) -> tuple[Rollouts, StageScore]:
        training = self._training
        stage = key[-1]
        jobsets = task.jobsets(
            Split.TRAIN, range(stage * training.jobsets, (stage + 1) * training.jobsets)
        )
        keys = episode_keys(
            self._seed,
            Split.TRAIN,
            *key,
            count=training.jobsets * training.episodes_per_jobset,
        )

        def play(policy: SamplingPolicy, episodes: int) -> Rollouts:
            count = training.jobsets * episodes
            return rollout(task.world, policy, jobsets, task.objective, episodes, keys[:count])

        rollouts = play(sampler, training.episodes_per_jobset)
        reference = play(_BaselineSampler(task), 1)
        return rollouts, _score(rollouts, reference)

    def _steps_in(self, network: SetScorer, world: World) -> FirstOrder:
        if world not in self._steps:
            self._steps[world] = FirstOrder(network, world, StepOptions.of(self._meta, network))
        return self._steps[world]


class _BaselineSampler:
    """The heuristic as a `SamplingPolicy`."""

    def __init__(self, task: Task) -> None:
        if not task.spec.baselines:
            raise InputError(
                f"the world {task.world.kind} has no baseline that returns could be measured in; "
                f"name one in its registration"
            )
        self._policy = get_heuristic(task.spec.baselines[0], task.world)

    def sample(
        self, states: State, uniforms: NDArray[np.float64]
    ) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
        """It leaves nothing to chance."""
        return self._policy.act(states, uniforms), np.zeros(states.shape[0], np.float32)


def _score(rollouts: Rollouts, reference: Rollouts) -> StageScore:
    returns = np.bincount(rollouts.row, rollouts.rewards, rollouts.row_jobset.size)
    unit = abs(reference.rewards.sum()) / reference.num_episodes
    best = [returns[rollouts.row_jobset == k].max() for k in np.unique(rollouts.row_jobset)]
    return StageScore(
        value=float(returns.mean() / unit) if unit else 0.0,
        headline=rollouts.headline,
        return_mean=float(returns.mean()),
        return_max=float(np.mean(best)),
        num_decisions=rollouts.num_rows,
        num_episodes=rollouts.num_episodes,
    )
