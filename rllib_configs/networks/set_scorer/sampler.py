"""Acts with a set scorer: from states to features to actions, without RLlib and gradients."""

import numpy as np
import torch
from numpy.typing import NDArray

from cluster_env.core.compiled import njit
from cluster_env.core.world import Features, State, World
from rllib_configs.conditioned import ConditionedWorld
from rllib_configs.learning.losses import symexp
from rllib_configs.networks.sampling import Sampler, TensorForm
from rllib_configs.networks.set_scorer.kernels import (
    FORBIDDEN,
    Floats,
    Kept,
    Records,
    pack,
    score_rows,
)
from rllib_configs.networks.set_scorer.network import SetScorer, TensorScorer

_PIECE = 1024  # rows; four times as many take three times as long each


class SetScorerSampler(Sampler):
    """Samples actions from a `SetScorer`, row by row; a snapshot of the weights.

    Args:
        network: takes the weights.
        weights: by name, as the RLModule has them.
        world: where it acts; a `ConditionedWorld`, if the network is told of the objective.
    """

    by_row = True

    def __init__(
        self, network: SetScorer, weights: dict[str, NDArray[np.float32]], world: World
    ) -> None:
        state = {
            name.removeprefix("network."): torch.from_numpy(np.array(value))
            for name, value in weights.items()
        }
        if isinstance(world, ConditionedWorld):
            # What is told is the same in all states, so that its weights only move the biases of
            # the layer that sees it: a network that is told nothing does the same.
            values = torch.tensor([value for _, value in world.condition], dtype=torch.float32)
            seen, of_told = state["context.weight"].tensor_split((-values.numel(),), dim=1)
            moved = (of_told * values).sum(1)  # one order on every processor
            state |= {"context.weight": seen, "context.bias": state["context.bias"] + moved}
            network, world = SetScorer(world.world.feature_names, network.options), world.world
        self._network, self._world = network.eval(), world
        self._network.load_state_dict(state)
        with torch.no_grad():
            self._packed = pack([value.numpy() for value in network.compiled_parameters()])
        width = self._packed["void"].shape[1]
        self._room = Kept.room(1, world.num_actions - 1, width)  # for one row of items

    def logits(self, states: State) -> Floats:
        """See `Sampler`; the network is asked only where there is more than one thing to do."""
        shown = self._network.shown(self._world.features(states))
        return _logits(shown, self._packed, self._room)

    def values(self, states: State) -> NDArray[np.float64]:
        """Values, float64 ``(n,)``, computed in pieces that fit a cache."""
        values = np.empty(states.shape[0])
        with torch.inference_mode():
            for first in range(0, states.shape[0], _PIECE):
                piece = slice(first, first + _PIECE)
                features = self._world.features(states[piece])
                values[piece] = symexp(self._network.value_of(features)).numpy()
        return values * self._network.critic_scale.numpy()

    def tensor_form(self) -> TensorForm:
        """See `TensorForm`; context lacks features that the network is not to see."""
        network, world = self._network, self._world
        inputs = {
            "items": torch.zeros(2, 3, network.job.in_features),
            "context": torch.zeros(2, network.context.in_features),
            "allowed": torch.ones(2, 4, dtype=torch.bool),
        }
        any_size = {"items": (0, 1), "context": (0,), "allowed": (0, 1)}
        return TensorForm(
            TensorScorer(network),
            inputs,
            any_size,
            lambda states: network.shown(world.features(states))._asdict(),
            dict(zip(("items", "context"), network.shown_names, strict=True)),
        )


@njit(cache=True, nogil=True)
def _logits(features: Features, packed: Records, room: Kept) -> Floats:
    """Logits, float32 ``(n, num_items + 1)``, of features."""
    items, context, allowed = features
    pooled = np.empty((1, packed[0].void.shape[0]), np.float32)
    logits = np.empty(allowed.shape, np.float32)
    for i in range(items.shape[0]):
        num_open = 0
        for action in range(allowed.shape[1]):
            logits[i, action] = 0.0 if allowed[i, action] else FORBIDDEN
            num_open += allowed[i, action]
        if num_open > 1:  # where there is nothing to choose, the network is not asked
            one = slice(i, i + 1)
            row = Features(items[one], context[one], allowed[one])
            score_rows(packed, row, room, False, logits[one], pooled)
    return logits
