"""What PPO has its runners do: sample a unit, keep its rows, and take gradients from them."""

from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import torch
from numpy.typing import NDArray
from ray.rllib.core.columns import Columns as Names

from cluster_env.core.seeding import Purpose, generator
from cluster_env.core.world import Features, Mask, State
from rllib_configs.algorithms.batched import episode_sums
from rllib_configs.config.schema import ExperimentConfig
from rllib_configs.learning.advantages import advantages_by_clock
from rllib_configs.learning.agents import advantages_of_agents
from rllib_configs.learning.equalizing import Equalizer, Spreads
from rllib_configs.learning.flat import flat_gradient, load_flat
from rllib_configs.learning.losses import clipped_loss, symlog
from rllib_configs.networks.registry import make_sampler
from rllib_configs.networks.sampling import Sampler, ValuingSampler
from rllib_configs.networks.set_scorer.network import SetScorer
from rllib_configs.networks.set_scorer.policy_gradient import Choices, PolicyLoss, UnitGradient
from rllib_configs.runners.rollout import Rollouts
from rllib_configs.runners.sampling import SampleUnit, UnitSampler
from rllib_configs.runners.sums import Part
from rllib_configs.runners.units import Arrays

Vector = NDArray[np.float32]
KEPT_BYTES = 1 << 26
"""Features that a unit may keep from one update to the next, in bytes."""


@dataclass(frozen=True)
class UnitRows:
    """What the driver has to know of a unit's rows before any of them is learned from.

    Attributes:
        num_rows: decisions that had a choice.
        spreads: of their advantages, by jobset of the unit.
    """

    num_rows: int
    spreads: Spreads

    def rows_of(self, minibatch: int, minibatches: int) -> int:
        """How many rows an update takes of them."""
        share = share_of(self.num_rows, minibatch, minibatches)
        return share.stop - share.start


@dataclass(frozen=True)
class PPOStep:
    """An update.

    Attributes:
        iteration: of the run.
        epoch: pass over the rows.
        minibatch: share of the pass.
        num_rows: of the update, in all units.
        equalizer: scale of the advantages.
        entropy_coefficient: gain for each nat of entropy.
    """

    iteration: int
    epoch: int
    minibatch: int
    num_rows: int
    equalizer: Equalizer
    entropy_coefficient: float


@dataclass(eq=False)
class HeldRows:
    """Rows of a unit, those that had a choice.

    Attributes:
        index: of the unit.
        states: ``(rows, state_size)``.
        actions: see `Rollouts`.
        log_probabilities: float32 ``(rows,)``.
        advantages: float64 ``(rows,)``, not yet on the scale that all units share.
        jobset: int32 ``(rows,)``, among those of the unit.
        spreads: of the advantages, by jobset.
        targets: float32 ``(rows,)``, for a critic.
        order: int64 ``(rows,)``, of the last pass that was asked for, which `epoch` is.
        shown: features of the states, unless they take more than `KEPT_BYTES`; for compiled code.
        observed: what a module with a method ``observe`` gives for the states; the same holds.
    """

    index: int
    states: State
    actions: NDArray[np.int32]
    log_probabilities: NDArray[np.float32]
    advantages: NDArray[np.float64]
    jobset: NDArray[np.int32]
    spreads: Spreads
    targets: NDArray[np.float32]
    order: NDArray[np.int64] | None = None
    epoch: int = -1
    shown: Features | None = None
    observed: tuple[NDArray[Any], Mask] | None = None


class PPOWork:
    """See `rllib_configs.runners.units.UpdateWork`.

    Decisions with only one allowed action, two thirds of them, have no gradient and are left out:
    their log-probability is exactly 0.
    """

    def __init__(self, experiment: ExperimentConfig, module: Any) -> None:
        self._experiment, self._module = experiment, module
        self._training = experiment.training
        self.sampler = UnitSampler(experiment)
        self.expect = self.sampler.expect
        self._policy: Sampler
        self._compiled: UnitGradient | None = None
        network = getattr(module, "network", None)
        if isinstance(network, SetScorer) and not self._training.critic:
            self._compiled = UnitGradient(network, self.sampler.task.world)

    def set_weights(self, weights: Arrays) -> None:
        """Takes the weights that sample, and say what states are worth."""
        self._policy = make_sampler(self._experiment, weights, self.sampler.task.world)
        self._module.set_state(dict(weights))

    def play(self, unit: SampleUnit) -> tuple[Part, HeldRows]:
        """Samples, and weighs the decisions."""
        rollouts = self.sampler(unit, self._policy)
        sums: dict[str, float] = episode_sums(rollouts)
        values = np.zeros(rollouts.num_rows)
        trace = 1.0
        if self._training.critic:
            if unit.iteration == 0:
                _, returns = self._advantages(rollouts, values, 1.0)
                sums["returns_to_go"] = float(np.abs(returns).sum())
            critic = cast("ValuingSampler", self._policy)
            values, trace = critic.values(rollouts.states), self._training.gae_lambda
        advantages, targets = self._advantages(rollouts, values, trace)
        rows = np.flatnonzero(rollouts.log_probabilities < 0)
        episode = rollouts.episode[rows]
        # A long episode has more rows, and would outvote the others.
        advantages = advantages[rows] / rollouts.outcome["weight"][episode]
        jobset = rollouts.jobset[episode]
        held = HeldRows(
            unit.index,
            rollouts.states[rows],
            rollouts.actions[rows],
            rollouts.log_probabilities[rows],
            advantages,
            jobset,
            Spreads.of(advantages, jobset),
            targets[rows].astype(np.float32),
        )
        return Part(sums=sums, per_unit={unit.index: UnitRows(rows.size, held.spreads)}), held

    def set_parameters(self, parameters: Vector) -> None:
        """Takes the parameters that gradients are computed at."""
        if self._compiled is not None:
            self._compiled.set_parameters(parameters)
        else:
            load_flat(self._module, parameters)

    def gradient(self, rows: HeldRows, step: PPOStep) -> Part:
        """Of this unit's part of the mean over an update's rows."""
        training = self._training
        if rows.epoch != step.epoch or rows.order is None:
            # An order of its own, which depends on seed, iteration, pass and unit alone.
            seed = self._experiment.seed
            rng = generator(seed, Purpose.SHUFFLE, step.iteration, step.epoch, rows.index)
            rows.order, rows.epoch = rng.permutation(len(rows.actions)), step.epoch
        chosen = rows.order[share_of(len(rows.actions), step.minibatch, training.minibatches)]
        if not chosen.size:
            return Part()
        advantages = step.equalizer(rows.advantages[chosen], rows.jobset[chosen], rows.spreads)
        differentiate = self._by_torch if self._compiled is None else self._by_kernels
        gradient, sums = differentiate(rows, chosen, advantages.astype(np.float32), step)
        share = np.float32(chosen.size / step.num_rows)  # those are means over this unit's rows
        return Part(share * gradient, {name: chosen.size * value for name, value in sums.items()})

    def _by_kernels(
        self, rows: HeldRows, chosen: NDArray[np.int64], advantages: Vector, step: PPOStep
    ) -> tuple[Vector, dict[str, float]]:
        """Gradient and statistics of the mean over the chosen rows of a network without critic."""
        assert self._compiled is not None
        if rows.shown is None:
            shown = self._compiled.show(rows.states)
            if sum(array.nbytes for array in shown) <= KEPT_BYTES:
                rows.shown = shown
        else:
            shown = rows.shown
        choices = Choices(
            Features(shown.items[chosen], shown.context[chosen], shown.allowed[chosen]),
            rows.actions[chosen],
            rows.log_probabilities[chosen],
            advantages,
            np.array([0, chosen.size]),
        )
        loss = PolicyLoss(clip=self._training.clip, entropy_coefficient=step.entropy_coefficient)
        gradient, entropy = self._compiled(choices, loss)
        return gradient, {"entropy": entropy}

    def _by_torch(
        self, rows: HeldRows, chosen: NDArray[np.int64], advantages: Vector, step: PPOStep
    ) -> tuple[Vector, dict[str, float]]:
        """Likewise of any network, with a critic or without."""
        found = self._module.forward_train(self._batch(rows, chosen))
        loss, entropy = clipped_loss(
            found[Names.ACTION_DIST_INPUTS],
            torch.from_numpy(rows.actions[chosen]),
            torch.from_numpy(rows.log_probabilities[chosen]),
            torch.from_numpy(advantages),
            self._training.clip,
        )
        loss = loss - step.entropy_coefficient * entropy.mean()
        sums = {"entropy": entropy.mean().item()}
        if self._training.critic:
            scale = self._module.network.critic_scale
            targets = symlog(torch.from_numpy(rows.targets[chosen]) / scale)
            missed = ((found[Names.VF_PREDS] - targets) ** 2).mean()
            loss = loss + 0.5 * missed
            sums["critic_loss"] = missed.item()
        return flat_gradient(loss, self._module), sums

    def _batch(self, rows: HeldRows, chosen: NDArray[np.int64]) -> dict[str, Any]:
        """The chosen rows as the module takes them."""
        observe = getattr(self._module, "observe", None)
        if observe is None:
            return {Names.OBS: torch.from_numpy(rows.states[chosen])}
        if rows.observed is None:
            shown, allowed = observe(rows.states)
            if shown.nbytes + allowed.nbytes <= KEPT_BYTES:
                rows.observed = shown, allowed
        else:
            shown, allowed = rows.observed
        return {Names.OBS: torch.from_numpy(shown[chosen]), "allowed": allowed[chosen]}

    def _advantages(
        self, rollouts: Rollouts, values: NDArray[np.float64], trace: float
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        training = self._training
        if not rollouts.alone and not training.critic:
            found = advantages_of_agents(
                *(rollouts.rewards, rollouts.row, rollouts.episode, rollouts.time),
                *(rollouts.jobset, training.gamma, training.joint),
            )
            return found, found
        return advantages_by_clock(
            rollouts.rewards,
            values,
            rollouts.row,
            rollouts.time,
            rollouts.row_jobset,
            training.gamma,
            trace,
            training.discount_per,
        )


def share_of(num_rows: int, minibatch: int, minibatches: int) -> slice:
    """Which of so many rows in order an update takes; the shares of a pass are nearly equal."""
    return slice(num_rows * minibatch // minibatches, num_rows * (minibatch + 1) // minibatches)
