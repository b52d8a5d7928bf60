"""From a trained policy and a task to policies that are adapted to it, in seconds.

policy = load_meta_policy("runs/MY_RUN")
task = read_task(["objective=makespan"], policy)
before, *_, after = adapt_policy(policy, task, steps=3)
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from cluster_env.core.errors import InputError
from cluster_env.core.seeding import Split, episode_keys
from cluster_env.worlds.deeprm.cluster import Cluster
from cluster_env.worlds.deeprm.simulator import DeepRMSimulator
from meta.maml.decisions import Decisions, decisions_of
from meta.maml.first_order import FirstOrder, StepOptions
from meta.maml.options import MAMLOptions, maml_options
from meta.maml.steps import Parameters
from meta.tasks.task import Task
from rllib_configs.networks import Weights, make_sampler
from rllib_configs.networks.set_scorer.network import plain_scorer
from rllib_configs.policies import Decode, LearnedPolicy, read_weights, write_policy
from rllib_configs.runners.rollout import rollout
from rllib_configs.schema import ExperimentConfig
from rllib_configs.task_schema import TaskSection

DEFAULT_RATE = 1.0
"""Inner rate of a run that has learned none and whose config says nothing."""

MAX_STEPS = 1000
"""Most steps of an adaptation, so that no two seeds share a jobset."""

ADAPTATION = 2000
"""First key of the random streams of actions; evaluation has 1000 there, training a split's."""

_ADAPTED = "-adapted"  # at the end of an adapted policy's name
_NETWORK, _RATES = "network.", "rates."


@dataclass(frozen=True, eq=False)
class MetaPolicy:
    """A trained policy that can be adapted.

    Attributes:
        name: what tables call it.
        config: what it was trained with.
        weights: by name, as the RLModule has them.
        rates: inner rate of each parameter of the network, by its name.
        learned_rates: whether the rates were learned; else all are one number.
    """

    name: str
    config: ExperimentConfig
    weights: Weights
    rates: Mapping[str, float]
    learned_rates: bool

    @property
    def parameters(self) -> Parameters:
        """The network's parameters by name; a critic's are left out, because none is asked."""
        return {
            name.removeprefix(_NETWORK): torch.from_numpy(np.array(value))
            for name, value in self.weights.items()
            if name.startswith(_NETWORK) and not name.startswith(f"{_NETWORK}critic")
        }

    @property
    def task(self) -> TaskSection:
        """What it was trained on, without variation; of meta-training, the base of the family."""
        return self.config.task.at_point()

    @property
    def meta(self) -> MAMLOptions:
        """How its steps are made: as in its meta-training, else as usual there."""
        return maml_options(self.config)

    def with_rate(self, rate: float) -> "MetaPolicy":
        """The policy with one inner rate for all parameters, above 0.

        Raises:
            InputError: if it is not above 0.
        """
        if not rate > 0:
            raise InputError(f"an inner rate must be above 0, but {rate:g} was given")
        return replace(self, rates=dict.fromkeys(self.rates, rate), learned_rates=False)


def load_meta_policy(run: str | Path, rate: float | None = None) -> MetaPolicy:
    """Reads a trained policy that can be adapted.

    Args:
        run: a run's folder, or a folder that `save_adapted` wrote.
        rate: inner rate of all parameters; by default those that the run has learned, else the
            one of its config, else `DEFAULT_RATE`.

    Raises:
        InputError: if there is no policy, it is broken, or its network is no scorer of slots.
    """
    weights, config = read_weights(run)
    _require_scorer(config, f"the policy in {run}")
    policy = _with_rates(config.name, config, weights)
    _check_shapes(policy, config.task.cluster.build(), f"the weights in {run}")
    return policy if rate is None else policy.with_rate(rate)


def untrained_policy(config: ExperimentConfig, seed: int) -> MetaPolicy:
    """A policy with the initial weights of a seed, and nothing learned.

    Raises:
        InputError: if the config's network is no scorer of slots.
    """
    _require_scorer(config, "the policy")
    network = plain_scorer(config.task.cluster.build(), config.training, seed)
    weights = {f"{_NETWORK}{name}": value.numpy() for name, value in network.state_dict().items()}
    return _with_rates("scratch", config.model_copy(update={"seed": seed}), weights)


def adapt_policy(
    policy: MetaPolicy,
    task: Task,
    steps: int,
    *,
    episodes: int = 20,
    jobsets: int = 4,
    seed: int = 0,
    decode: Decode = "argmax",
) -> list[LearnedPolicy]:
    """Adapts a policy to a task.

    Each step samples episodes of new jobsets of the task's training split with the parameters that
    it starts from, and takes one inner step on them. The same arguments give the same bits.

    Args:
        policy: what to adapt.
        task: what to adapt to; its cluster may differ from the policy's in capacities and slots.
        steps: how many steps, 0 or more.
        episodes: episodes of a step, shared out evenly to its jobsets, at least 2 each.
        jobsets: jobsets of a step.
        seed: of jobsets and actions; different seeds share neither.
        decode: how the policies that are given back act, see `LearnedPolicy`. The steps' episodes
            are drawn, whatever this says.

    Returns:
        The policies after 0, 1, ... and all steps.

    Raises:
        InputError: if a number is out of range, or the cluster has other resources, another horizon
            or other job classes than the policy was trained for.
    """
    found = adapt_parameters(policy, task, steps, episodes=episodes, jobsets=jobsets, seed=seed)
    return [
        learned_policy(policy, task, parameters, f"{policy.name} +{step}", decode)
        for step, parameters in enumerate(found)
    ]


def adapt_parameters(
    policy: MetaPolicy,
    task: Task,
    steps: int,
    *,
    episodes: int = 20,
    jobsets: int = 4,
    seed: int = 0,
) -> list[Parameters]:
    """The parameters of the policies of `adapt_policy`; arguments and errors are the same."""
    check_numbers(steps, episodes, jobsets, seed)
    _check_shapes(policy, task.cluster, f"the policy {policy.name}")
    network = plain_scorer(task.cluster, policy.config.training)
    inner = FirstOrder(network, StepOptions.of(policy.meta))
    found = [policy.parameters]
    rates = {name: torch.tensor(rate).log() for name, rate in policy.rates.items()}
    with single_threaded():
        for step in range(steps):
            batch = seed * MAX_STEPS + step
            decisions = _sample(policy, task, found[-1], batch, episodes, jobsets)
            found.append(inner.inner_step(found[-1], rates, decisions, step))
    return found


def learned_policy(
    policy: MetaPolicy,
    task: Task,
    parameters: Parameters,
    name: str,
    decode: Decode = "argmax",
) -> LearnedPolicy:
    """A policy for a task's cluster, with these parameters; see `LearnedPolicy` for ``decode``."""
    config, weights = _for_task(policy, task, parameters)
    only = {key: value for key, value in weights.items() if key.startswith(_NETWORK)}
    return LearnedPolicy(name, make_sampler(config, only), decode)


def save_adapted(policy: MetaPolicy, task: Task, parameters: Parameters, folder: Path) -> None:
    """Writes an adapted policy with its task, so that it can be compared, and adapted further.

    Args:
        policy: what was adapted.
        task: what it was adapted to.
        parameters: one of the results of `adapt_parameters`.
        folder: created if need be; see `rllib_configs.policies.load_policy`.
    """
    config, weights = _for_task(policy, task, parameters)
    name = f"{config.name.removesuffix(_ADAPTED)}{_ADAPTED}"
    write_policy(weights, config.model_copy(update={"name": name}), folder)


def _for_task(
    policy: MetaPolicy, task: Task, parameters: Parameters
) -> tuple[ExperimentConfig, dict[str, NDArray[np.float32]]]:
    """Config and weights of an adapted policy."""
    adapted = {f"{_NETWORK}{name}": value.detach().numpy() for name, value in parameters.items()}
    config = policy.config.model_copy(update={"task": task.section})
    return config, {**policy.weights, **adapted}


def _sample(
    policy: MetaPolicy, task: Task, parameters: Parameters, batch: int, episodes: int, jobsets: int
) -> Decisions:
    """Plays one step's episodes; ``batch`` numbers the steps of all seeds."""
    drawn = task.jobsets(Split.TRAIN, range(batch * jobsets, (batch + 1) * jobsets))
    rollouts = rollout(
        DeepRMSimulator(task.cluster, task.rules, task.section.max_time),
        learned_policy(policy, task, parameters, policy.name).network,
        drawn,
        task.objective,
        episodes // jobsets,
        episode_keys(task.seed, ADAPTATION, batch, count=episodes),
    )
    gamma = policy.config.training.gamma
    return decisions_of(rollouts, gamma=gamma, floor=policy.meta.advantage_floor)


def _with_rates(name: str, config: ExperimentConfig, weights: Weights) -> MetaPolicy:
    """The policy with the rates among its weights, else with one of its config."""
    learner = config.training if isinstance(config.training, MAMLOptions) else None
    rate = DEFAULT_RATE if learner is None else float(learner.inner_rate)
    policy = MetaPolicy(name, config, weights, {}, learned_rates=False)
    rates = dict.fromkeys(policy.parameters, rate)
    found = {
        parameter: float(np.exp(weights[key]))
        for parameter in rates
        if (key := f"{_RATES}{parameter.replace('.', '_')}") in weights
    }
    learned = bool(found) and (learner is None or (learner.learn_rates and learner.inner_steps > 0))
    return replace(policy, rates={**rates, **found}, learned_rates=learned)


def _require_scorer(config: ExperimentConfig, what: str) -> None:
    if config.training.network != "set_scorer":
        raise InputError(
            f"{what} has the network {config.training.network}, but only a set_scorer can be "
            f"adapted"
        )


def _check_shapes(policy: MetaPolicy, cluster: Cluster, what: str) -> None:
    """Makes sure that the parameters are those of a network for a cluster."""
    network = plain_scorer(cluster, policy.config.training)
    expected = {name: tuple(value.shape) for name, value in network.named_parameters()}
    found = {name: tuple(value.shape) for name, value in policy.parameters.items()}
    if expected != found:
        raise InputError(
            f"{what} cannot be used on a cluster with {cluster.num_resources} resources and a "
            f"horizon of {cluster.horizon}: these and the job classes must be those that it was "
            f"trained with, while capacities and slots may differ"
        )


def check_numbers(steps: int, episodes: int, jobsets: int, seed: int) -> None:
    """Makes sure that an adaptation of these numbers has a meaning; see `adapt_policy`.

    Raises:
        InputError: if it has none.
    """
    if not 0 <= steps <= MAX_STEPS:
        raise InputError(f"the steps of an adaptation must lie in 0..{MAX_STEPS}, not {steps}")
    if jobsets < 1 or episodes < 2 * jobsets or episodes % jobsets:
        raise InputError(
            f"the episodes of a step are shared out to its jobsets, at least 2 each and all alike, "
            f"but {episodes} episodes and {jobsets} jobsets were given"
        )
    if seed < 0:
        raise InputError(f"a seed must be 0 or larger, but {seed} was given")


@contextmanager
def single_threaded() -> Iterator[None]:
    """Sums in the same order on every machine; networks of this size are fastest so, too."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
