"""What a runner does with a task: sample, adapt, sample again."""

from dataclasses import dataclass
from time import perf_counter

import numpy as np
from numpy.typing import NDArray

from cluster_env.core.errors import InputError
from cluster_env.core.jobs import JobSet
from cluster_env.core.policy import chooser
from cluster_env.core.seeding import Split, episode_keys, uniforms
from cluster_env.core.spec import get_heuristic
from cluster_env.core.world import World
from cluster_env.task import Task
from meta.maml.decisions import Decisions, decisions_of
from meta.maml.first_order import FirstOrder
from meta.maml.options import MAMLOptions
from meta.maml.rewards import RewardSums, world_in_context
from meta.maml.steps import Parameters, StepOptions
from rllib_configs.config.options import TrainingSection
from rllib_configs.networks.conditions import seen_world
from rllib_configs.networks.registry import network_named
from rllib_configs.networks.sampling import SamplingPolicy
from rllib_configs.runners.rollout import Rollouts, rollout


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
            policy that is conditioned on past rewards, the last stage alone.
        scores: of stages 0 to K.
    """

    world: World
    stages: tuple[Decisions, ...]
    scores: tuple[StageScore, ...]
    adapt_s: float


@dataclass(frozen=True)
class StageSampler:
    """Plays the stages of tasks, one after the other, with the seed of a run's actions.

    For the warm-up see `meta.tasks.warmup_of`.
    """

    training: TrainingSection
    meta: MAMLOptions
    seed: int
    warmup: int = 0

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
        """Samples a stage with the given parameters, and one after each of the inner steps.

        For the rates see `meta.maml.steps.inner_step`. The random numbers of actions are those of
        the iteration and the index of the task in it.
        """
        meta, training = self.meta, self.training
        keys = (self.seed, iteration, index)
        episodes = StageEpisodes(task, training, keys, self.warmup)
        rewards = RewardSums(task.world) if meta.adapt == "context" else None
        seen = seen_world(training, task.world, task.objective)
        kind = network_named(training.network)
        network = kind.scorer(training, seen.feature_names)
        inner = FirstOrder(network, seen, StepOptions.of(meta, network))
        stages: list[Decisions] = []
        scores: list[StageScore] = []
        adapt_s = 0.0
        for stage in range(num_steps + 1):
            # Sample with the parameters, or the context, of this stage.
            weights = {name: value.numpy() for name, value in parameters.items()}
            rollouts, score = episodes.sample(kind.scorer_sampler(training, weights, seen), stage)
            scores.append(score)
            stages.append(
                decisions_of(
                    rollouts,
                    gamma=training.gamma,
                    floor=meta.advantage_floor,
                    relative=meta.relative_gains and stage == num_steps,
                    trace=meta.trace,
                    stride=meta.decision_stride,
                    world=task.world,
                    discount_per=meta.discount_per,
                )
            )
            if stage == num_steps:
                break
            # Adapt, by a gradient step or by what all rewards so far go with.
            started = perf_counter()
            if rewards is None:
                parameters = inner.inner_step(parameters, rates, stages[-1], stage)
            else:
                rewards.add(rollouts)
                seen = world_in_context(seen, rewards.context())
            adapt_s += perf_counter() - started
        if rewards is not None:  # nothing is learned from but the last stage
            del stages[:-1]
        return TaskSample(seen, tuple(stages), tuple(scores), adapt_s)


class StageEpisodes:
    """The episodes of a task's stages: their jobsets, random numbers and scores.

    The keys of the random numbers of actions begin with the run's seed; the stage comes last.
    """

    def __init__(
        self, task: Task, training: TrainingSection, keys: tuple[int, int, int], warmup: int = 0
    ) -> None:
        if not task.spec.baselines:
            raise InputError(
                f"the world {task.world.kind} has no baseline to which returns can be "
                "compared; name one in its registration"
            )
        self._task, self._training, self._keys, self._warmup = task, training, keys, warmup

    def sample(self, policy: SamplingPolicy, stage: int) -> tuple[Rollouts, StageScore]:
        """Plays the episodes of a stage, counted from 0; each has jobsets of its own."""
        task, count = self._task, self._training.jobsets
        episodes = self._training.episodes_per_jobset
        drawn = task.jobsets(Split.TRAIN, range(stage * count, (stage + 1) * count))
        jobsets = [jobset.counting(self._warmup) for jobset in drawn]
        seed, *numbers = self._keys
        keys = episode_keys(seed, Split.TRAIN, *numbers, stage, count=count * episodes)
        rollouts = rollout(task.world, policy, jobsets, task.objective, episodes, keys)
        returns = np.bincount(rollouts.row, rollouts.rewards, rollouts.row_jobset.size)
        best = [returns[rollouts.row_jobset == k].max() for k in np.unique(rollouts.row_jobset)]
        unit = abs(self._baseline_return(jobsets, keys[:count]))
        score = StageScore(
            value=float(returns.mean() / unit) if unit else 0.0,
            headline=rollouts.headline,
            return_mean=float(returns.mean()),
            return_max=float(np.mean(best)),
            num_decisions=rollouts.num_rows,
            num_episodes=rollouts.num_episodes,
        )
        return rollouts, score

    def _baseline_return(self, jobsets: list[JobSet], keys: NDArray[np.uint64]) -> float:
        """Mean return of the heuristic, in an episode of each jobset.

        It is asked through the simulator, because a rule may decide by more than a state shows.
        """
        world = self._task.world
        policy = get_heuristic(self._task.spec.baselines[0], world)
        simulator = world.simulator()
        simulator.load(jobsets, self._task.objective)
        steps: list[NDArray[np.float64]] = []
        choose = chooser(policy)
        while (rows := np.flatnonzero(simulator.active).astype(np.int32)).size:
            rewards = np.empty(rows.size)
            numbers = uniforms(keys[simulator.episode[rows]], len(steps))
            simulator.step(rows, choose(simulator, rows, numbers), rewards)
            steps.append(rewards)
        return float(np.concatenate(steps).sum() / len(jobsets))
