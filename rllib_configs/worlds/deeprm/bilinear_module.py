"""A bilinear score as an RLModule: for a search its weights alone, for a fit their gradient."""

from typing import Any

import numpy as np
import torch
from ray.rllib.core.columns import Columns

from cluster_env.core.policy import NOT_ALLOWED
from rllib_configs.networks.modules import HeldWeights
from rllib_configs.worlds.deeprm.bilinear_kernels import observe
from rllib_configs.worlds.deeprm.bilinear_weights import STATE_FEATURES, seen_of


class BilinearModule(HeldWeights):
    """Computes the scores of `BilinearSampler` in PyTorch, to other last digits.

    ``model_config`` holds ``world`` and ``training``, beside what `HeldWeights` takes.
    """

    def _forward(self, batch: dict[str, Any], **kwargs: Any) -> dict[str, Any]:
        """Scores, float32 ``(rows, actions)``, of the states under ``Columns.OBS``."""
        states, world = batch[Columns.OBS].numpy(), self.model_config["world"]
        training, num_slots = self.model_config["training"], world.cluster.num_slots
        parts = [self.network[name] for name in ("job", "classes") if name in self.network]
        job = torch.cat(parts)
        looks = np.empty((len(states), num_slots, len(job)), np.float32)
        seen = np.empty((len(states), len(STATE_FEATURES)), np.float32)
        allowed = np.empty((len(states), num_slots + 1), np.bool_)
        shown = seen_of(world, training.ahead, training.books)
        observe(np.ascontiguousarray(states), *shown, looks, seen, allowed)
        context = torch.from_numpy(seen)
        weights = context @ job.T  # of the job features, (rows, job features)
        scores = torch.einsum("ijf,if->ij", torch.from_numpy(looks), weights)
        scores = torch.cat([scores, (context @ self.network["void"])[:, None]], dim=1)
        not_allowed = torch.from_numpy(~allowed)
        return {Columns.ACTION_DIST_INPUTS: scores.masked_fill(not_allowed, float(NOT_ALLOWED))}
