"""Networks of every world as RLModules, which RLlib trains; all else about them needs no Ray."""

from copy import deepcopy
from typing import Any

import torch
from numpy.typing import NDArray
from ray.rllib.core.columns import Columns
from ray.rllib.core.rl_module.torch import TorchRLModule

from cluster_env.core.observation import allowed_mask
from cluster_env.core.world import Mask, State, World
from rllib_configs.networks import dense
from rllib_configs.networks.own import made, masked_logits
from rllib_configs.networks.set_scorer.network import SetScorer, SetScorerOptions


class SetScorerModule(TorchRLModule):
    """`SetScorer` as an RLModule, which gets states and asks their world for the features.

    ``model_config`` holds ``world``, ``options`` (`SetScorerOptions`) and ``seed``.
    """

    def setup(self) -> None:
        """Builds the network."""
        self._world: World = self.model_config["world"]
        self._options: SetScorerOptions = self.model_config["options"]
        seed = int(self.model_config["seed"])
        self.network = SetScorer(self._world.feature_names, self._options, seed)

    def _forward(self, batch: dict[str, Any], **kwargs: Any) -> dict[str, Any]:
        """Logits, and values if there is a critic, of the states under ``Columns.OBS``."""
        features = self._world.features(batch[Columns.OBS].numpy())
        logits, pooled = self.network.score_items(features)
        if not self._options.critic:
            return {Columns.ACTION_DIST_INPUTS: logits}
        return {
            Columns.ACTION_DIST_INPUTS: logits,
            Columns.VF_PREDS: self.network.value(pooled),
        }


class DenseModule(TorchRLModule):
    """`dense.Dense` as an RLModule, which gets states and views them.

    ``model_config`` holds ``view`` (`dense.ObservedWorld`) and ``network``, with its first weights.
    """

    def setup(self) -> None:
        """Takes a copy of the network."""
        self._view: dense.ObservedWorld = self.model_config["view"]
        self.network: dense.Dense = deepcopy(self.model_config["network"])

    def observe(self, states: State) -> tuple[NDArray[Any], Mask]:
        """Observations and masks of states, which take longer than the network itself."""
        return self._view.shown(states), allowed_mask(self._view.world, states)

    def _forward(self, batch: dict[str, Any], **kwargs: Any) -> dict[str, Any]:
        """Logits, and values if there is a critic.

        ``Columns.OBS`` are states, or what `observe` gives with the masks under ``allowed``.
        """
        shown, allowed = batch[Columns.OBS].numpy(), batch.get("allowed")
        if allowed is None:
            shown, allowed = self.observe(shown)
        numbers = self.network.scaled(self._view.numbers(shown))
        found = {Columns.ACTION_DIST_INPUTS: dense.masked_logits(self.network, numbers, allowed)}
        if hasattr(self.network, "critic"):
            found[Columns.VF_PREDS] = self.network.value(numbers)
        return found


class FeatureModule(TorchRLModule):
    """A network of one's own; gets states and asks their world for the features.

    ``model_config`` holds ``make``, ``training``, ``world`` and ``seed``; see
    `rllib_configs.networks.own.network_of_features`.
    """

    def setup(self) -> None:
        """Builds the network."""
        given = self.model_config
        self.network = made(given["make"], given["training"], given["world"], int(given["seed"]))

    def _forward(self, batch: dict[str, Any], **kwargs: Any) -> dict[str, Any]:
        """Logits of the states under ``Columns.OBS``."""
        states = batch[Columns.OBS].numpy()
        logits = masked_logits(self.network, self.model_config["world"], states)
        return {Columns.ACTION_DIST_INPUTS: logits}


class HeldWeights(TorchRLModule):
    """Holds weights that a search finds: RLlib keeps them, and computes nothing with them.

    ``model_config`` holds ``start``, the first weights by name.
    """

    def setup(self) -> None:
        """Takes the first weights."""
        self.network = torch.nn.ParameterDict(
            {
                name.removeprefix("network."): torch.nn.Parameter(torch.from_numpy(value.copy()))
                for name, value in self.model_config["start"].items()
            }
        )

    def _forward(self, batch: dict[str, Any], **kwargs: Any) -> dict[str, Any]:
        """Not used: actions come from compiled code, and nothing has a gradient."""
        raise NotImplementedError("this network acts in compiled code alone")
