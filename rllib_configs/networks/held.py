"""Weights that a search finds as an RLModule: RLlib keeps them, and computes nothing with them."""

from typing import Any

import torch
from ray.rllib.core.rl_module.torch import TorchRLModule


class HeldWeights(TorchRLModule):
    """Holds weights that a search finds.

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
