"""Values of server states as an RLModule: what a checkpoint of servers that learn holds."""

from typing import Any

import torch
from ray.rllib.core.columns import Columns
from ray.rllib.core.rl_module.torch import TorchRLModule
from torch import nn

from cluster_env.core.seeding import Purpose, generator
from cluster_env.worlds.accrual.values import first_parameters
from rllib_configs.worlds.accrual.state_values import StateValuesSampler


class StateValuesModule(TorchRLModule):
    """Value functions of all servers, and what else of their learning goes on.

    ``model_config`` holds ``world``, ``kind`` of the value function, ``servers`` and ``seed``.
    """

    def setup(self) -> None:
        """Begins as the paper does; see `first_parameters`."""
        given = self.model_config
        servers = int(given["servers"])
        rng = generator(int(given["seed"]), Purpose.INIT)
        first = first_parameters(given["kind"], servers, rng)
        self.values = nn.Parameter(torch.from_numpy(first).float())  # (servers, num_parameters)
        # (servers, 3), see `rllib_configs.worlds.accrual.fuzzy_td.AVERAGES`
        self.averages = nn.Buffer(torch.zeros(servers, 3))

    def _forward(self, batch: dict[str, Any], **kwargs: Any) -> dict[str, Any]:
        """Logits of the states under ``Columns.OBS``."""
        given = self.model_config
        values = self.values.detach().numpy()
        sampler = StateValuesSampler(given["kind"], values, given["world"])
        logits = sampler.logits(batch[Columns.OBS].numpy())
        return {Columns.ACTION_DIST_INPUTS: torch.from_numpy(logits)}
