"""From a trained policy and a task to policies that are adapted to it, in seconds.

policy = load_meta_policy("runs/MY_RUN")
task = read_task(["objective=makespan"], policy.task)
before, *_, after = adapt_policy(policy, task, 3).policies()
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch

from cluster_env.core.errors import InputError
from cluster_env.core.seeding import Split, episode_keys
from cluster_env.core.world import World
from cluster_env.task import Task
from meta.checks import MAX_STEPS, check_numbers, require_features, require_scorer
from meta.maml.decisions import decisions_of
from meta.maml.first_order import FirstOrder
from meta.maml.options import MAMLOptions, maml_options
from meta.maml.rewards import RewardSums
from meta.maml.steps import Parameters, StepOptions
from meta.study import StudyPlan
from rllib_configs.config.schema import ExperimentConfig
from rllib_configs.config.task_schema import TaskSection
from rllib_configs.networks.conditions import seen_world
from rllib_configs.networks.registry import Weights, make_sampler, network_of, require_shapes
from rllib_configs.networks.sampling import SamplingPolicy
from rllib_configs.policy_files import Decode, LearnedPolicy, read_weights, write_policy
from rllib_configs.runners.rollout import Rollouts, rollout

DEFAULT_RATE = 1.0
"""Inner rate of a run that has learned none and whose config says nothing."""

ADAPTATION = 2000
"""First key of the random streams of actions; evaluation has 1000 there, training a split's."""

_ADAPTED = "-adapted"  # at the end of an adapted policy's name
_NETWORK, _CRITIC, _RATES = "network.", "network.critic", "rates."


@dataclass(frozen=True, eq=False)
class AdaptedStep:
    """What a step of adaptation came to; the reason says why it changed nothing, as a clause."""

    parameters: Parameters  # after it
    changed: bool = False  # whether it changed any of them; the start has not
    reason: str = ""


@dataclass(frozen=True, eq=False)
class MetaPolicy:
    """A trained policy that can be adapted.

    Attributes:
        weights: by name, as the RLModule has them.
        rates: inner rate of each parameter of the network, by its name.
        learned_rates: whether the rates were learned; else all are one number.
    """

    name: str
    config: ExperimentConfig
    weights: Weights
    rates: Mapping[str, float]
    learned_rates: bool

    @classmethod
    def of(cls, name: str, config: ExperimentConfig, weights: Weights) -> "MetaPolicy":
        """A policy with the rates among its weights, else with the one of its config."""
        meta = config.training if isinstance(config.training, MAMLOptions) else None
        rate = DEFAULT_RATE if meta is None else float(meta.inner_rate)
        names = _parameters_in(weights)
        learned = {
            parameter: float(np.exp(weights[key]))
            for parameter in names
            if (key := f"{_RATES}{parameter.replace('.', '_')}") in weights
        }
        by_run = meta is None or (meta.learn_rates and meta.inner_steps > 0)
        rates = dict.fromkeys(names, rate) | learned
        return cls(name, config, weights, rates, learned_rates=bool(learned) and by_run)

    @property
    def parameters(self) -> Parameters:
        """The network's parameters by name; a critic's are left out, because none is asked."""
        return {
            name: torch.from_numpy(np.array(value))
            for name, value in _parameters_in(self.weights).items()
        }

    @property
    def task(self) -> TaskSection:
        """What it was trained on, without variation; of meta-training, the base of the family."""
        return self.config.task.at_point()

    @property
    def meta(self) -> MAMLOptions:
        """How its steps are taken: as in its meta-training, else as usual there."""
        return maml_options(self.config)

    def with_rate(self, rate: float) -> "MetaPolicy":
        """The policy with one inner rate for all parameters, above 0.

        Raises:
            InputError: if it is not above 0.
        """
        if not rate > 0:
            raise InputError(f"an inner rate must be above 0, but {rate:g} was given")
        return replace(self, rates=dict.fromkeys(self.rates, rate), learned_rates=False)

    def widened(self, world: World) -> "MetaPolicy":
        """The same policy, which sees the classes of jobs of a world, as far as its network can."""
        config, weights = network_of(self.config).widened(self.config, self.weights, world)
        if weights is self.weights:
            return self
        rates = {name: self.rates.get(name, DEFAULT_RATE) for name in _parameters_in(weights)}
        if not self.learned_rates:  # all are one number
            rates = dict.fromkeys(rates, next(iter(self.rates.values())))
        return replace(self, config=config, weights=weights, rates=rates)

    def weights_with(self, parameters: Parameters) -> Weights:
        """The weights by name, with other parameters of the network."""
        others = {f"{_NETWORK}{name}": value.detach().numpy() for name, value in parameters.items()}
        return {**self.weights, **others}

    def acting(
        self, task: Task, parameters: Parameters, name: str, decode: Decode = "argmax"
    ) -> LearnedPolicy:
        """A policy for a task's world with these parameters; for ``decode`` see `LearnedPolicy`."""
        weights, goal = self.weights_with(parameters), task.objective
        return LearnedPolicy(name, make_sampler(self.config, weights, task.world, goal), decode)

    def after(self, task: Task, plan: StudyPlan, seed: int) -> list[LearnedPolicy]:
        """The policies after each of a plan's numbers of steps on a task, see `adapt_policy`."""
        numbers = {"num_episodes": plan.num_episodes, "num_jobsets": plan.num_jobsets}
        adaptation = adapt_policy(
            self, task, plan.steps[-1], **numbers, seed=seed, warmup=plan.warmup
        )
        policies = adaptation.policies(plan.decode)
        return [policies[step] for step in plan.steps]


@dataclass(frozen=True, eq=False)
class Adaptation:
    """A policy before it was adapted to a task; the start, then what each step came to."""

    policy: MetaPolicy
    task: Task
    steps: Sequence[AdaptedStep]

    @property
    def parameters(self) -> list[Parameters]:
        """The parameters after 0, 1, ... and all steps."""
        return [step.parameters for step in self.steps]

    def policies(self, decode: Decode = "argmax") -> list[LearnedPolicy]:
        """The policies after 0, 1, ... and all steps, for the task's world.

        They act as ``decode`` says, see `LearnedPolicy`; episodes of steps are drawn in any case.
        """
        return [
            self.policy.acting(self.task, parameters, f"{self.policy.name} +{step}", decode)
            for step, parameters in enumerate(self.parameters)
        ]


def load_meta_policy(run: str | Path, rate: float | None = None) -> MetaPolicy:
    """Reads a trained policy that can be adapted: a run's folder, or one of `save_adapted`.

    Inner rates are by default those that the run has learned, else the one of its config, else
    `DEFAULT_RATE`.

    Raises:
        InputError: if there is no policy, it is broken, or its network is no set scorer.
    """
    weights, config = read_weights(run)
    require_scorer(config, f"the policy in {run}")
    expected = _initial_weights(config, config.seed)
    own = {name: value for name, value in weights.items() if not name.startswith(_CRITIC)}
    try:
        require_shapes(own, {name: value.shape for name, value in expected.items()})
    except InputError as error:
        raise InputError(f"the policy in {run} cannot be used: {error}") from None
    policy = MetaPolicy.of(config.name, config, weights)
    return policy if rate is None else policy.with_rate(rate)


def untrained_policy(config: ExperimentConfig, seed: int) -> MetaPolicy:
    """A policy with the initial weights of a seed, and nothing learned.

    Raises:
        InputError: if the config's network is no set scorer.
    """
    require_scorer(config, "the policy")
    own = config.model_copy(update={"seed": seed})
    return MetaPolicy.of("scratch", own, _initial_weights(config, seed))


def adapt_policy(
    policy: MetaPolicy,
    task: Task,
    num_steps: int,
    *,
    num_episodes: int = 20,
    num_jobsets: int = 4,
    seed: int = 0,
    warmup: int = 0,
) -> Adaptation:
    """Adapts a policy to a task.

    Each step samples episodes of new jobsets of the task's training split with the parameters that
    it starts from, and takes one inner step on them. The same arguments give the same bits.

    Args:
        policy: what to adapt.
        task: what to adapt to; its world may differ from the policy's in capacities and slots.
        num_steps: how many steps, 0 or more.
        num_episodes: episodes of a step, divided evenly among its jobsets, at least 2 each.
        num_jobsets: jobsets of a step.
        seed: of jobsets and actions; different seeds share neither.
        warmup: units of time at the beginning and at the end of a jobset's window whose jobs do not
            count, as in `cluster_env.evaluation.summarize`: they cost nothing.

    Raises:
        InputError: if a number is out of range, or the world has other features than the policy
            was trained for, as with other resources, another horizon or other job classes.
    """
    check_numbers(num_steps, num_episodes, num_jobsets, seed)
    policy = policy.widened(task.world)
    require_features(policy.config, task.world, f"the policy {policy.name}")
    meta = policy.meta
    seen = seen_world(policy.config.training, task.world, task.objective)
    kind, training = network_of(policy.config), policy.config.training
    network = kind.scorer(training, seen.feature_names)
    inner = FirstOrder(network, seen, StepOptions.of(meta, network))
    rates = {name: torch.tensor(rate).log() for name, rate in policy.rates.items()}
    rewards = None
    if meta.adapt == "context":
        # What it was conditioned on before is mixed into its parameters, and cannot be taken out.
        if policy.config.name.endswith(_ADAPTED):
            raise InputError(
                f"{policy.config.name} is conditioned on past rewards, which its file does "
                "not contain; adapt the run that it came from, with more steps"
            )
        rewards = RewardSums(task.world)
    steps = [AdaptedStep(policy.parameters)]
    with single_threaded():
        for step in range(num_steps):
            before = steps[-1].parameters
            weights = {name: value.detach().numpy() for name, value in before.items()}
            acting = kind.scorer_sampler(training, weights, seen)
            batch = seed * MAX_STEPS + step
            rollouts = sample_step(task, acting, batch, num_episodes, num_jobsets, warmup)
            # Learn from them: by a gradient, or by what all rewards so far go with.
            if rewards is None:
                decisions = decisions_of(
                    rollouts,
                    gamma=policy.config.training.gamma,
                    floor=meta.advantage_floor,
                    trace=meta.trace,
                    stride=meta.decision_stride,
                    world=task.world,
                    discount_per=meta.discount_per,
                )
                after = inner.inner_step(before, rates, decisions, step)
                reason = inner.why_unchanged(decisions)
            else:
                rewards.add(rollouts)
                start = {name: each.numpy() for name, each in policy.parameters.items()}
                found = kind.in_context(start, rewards.context())
                after = {name: torch.from_numpy(each) for name, each in found.items()}
                reason = "its rewards said nothing new"
            changed = any(not torch.equal(after[name], before[name]) for name in after)
            steps.append(AdaptedStep(after, changed, "" if changed else reason))
    return Adaptation(policy, task, steps)


def sample_step(
    task: Task,
    acting: SamplingPolicy,
    batch: int,
    num_episodes: int,
    num_jobsets: int,
    warmup: int = 0,
) -> Rollouts:
    """Plays the episodes of one step; the arguments after ``batch`` are those of `adapt_policy`.

    The batch is the number of the step among those of all seeds: no two share a jobset or a random
    number.
    """
    drawn = task.jobsets(Split.TRAIN, range(batch * num_jobsets, (batch + 1) * num_jobsets))
    return rollout(
        task.world,
        acting,
        [jobset.counting(warmup) for jobset in drawn],
        task.objective,
        num_episodes // num_jobsets,
        episode_keys(task.seed, ADAPTATION, batch, count=num_episodes),
    )


def save_adapted(policy: MetaPolicy, task: Task, parameters: Parameters, folder: Path) -> None:
    """Writes an adapted policy with its task, so that it can be compared, and adapted further.

    `rllib_configs.policy_files.load_policy` reads it; the folder is created if need be.
    """
    name = f"{policy.config.name.removesuffix(_ADAPTED)}{_ADAPTED}"
    config = policy.config.model_copy(update={"task": TaskSection.of(task), "name": name})
    write_policy(policy.weights_with(parameters), config, folder)


def _parameters_in(weights: Weights) -> Weights:
    """The network's parameters among the weights, without a critic's, by their own names."""
    return {
        name.removeprefix(_NETWORK): value
        for name, value in weights.items()
        if name.startswith(_NETWORK) and not name.startswith(_CRITIC)
    }


def _initial_weights(config: ExperimentConfig, seed: int) -> Weights:
    """The weights of a config's network, without a critic, drawn from a seed."""
    task = config.task
    seen = seen_world(config.training, task.world, task.build_objective())
    network = network_of(config).scorer(config.training, seen.feature_names, seed)
    return {f"{_NETWORK}{name}": value.numpy() for name, value in network.state_dict().items()}


@contextmanager
def single_threaded() -> Iterator[None]:
    """Sums in the same order on every machine; networks of this size are fastest so, too."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
