"""A bilinear score as an RLModule: for a search its weights alone, for a fit their gradient."""

from typing import Any

import torch
from ray.rllib.core.columns import Columns

from rllib_configs.networks.bilinear import bilinear_scores
from rllib_configs.networks.modules import HeldWeights
from rllib_configs.worlds.deeprm.bilinear_weights import observed, seen_of


class BilinearModule(HeldWeights):
    """Computes the scores of `BilinearSampler` in PyTorch, to other last digits.

    ``model_config`` holds ``world`` and ``training``, beside what `HeldWeights` takes.
    """

    def _forward(self, batch: dict[str, Any], **kwargs: Any) -> dict[str, Any]:
        """Scores, float32 ``(rows, actions)``, of the states under ``Columns.OBS``."""
        world, training = self.model_config["world"], self.model_config["training"]
        parts = [self.network[name] for name in ("job", "classes") if name in self.network]
        job = torch.cat(parts)
        seen = seen_of(world, training.ahead, training.books)
        features = observed(batch[Columns.OBS].numpy(), seen, len(job))
        items, context, allowed = map(torch.from_numpy, features)
        scores = bilinear_scores(items, context, allowed, job, self.network["void"])
        return {Columns.ACTION_DIST_INPUTS: scores}
