"""What RLlib's multilayer perceptron computes under its action mask, computed without RLlib."""

import re
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from cluster_env.envs.view import View
from cluster_env.simulators.code import CodeLayout
from rllib_configs.modules.sampling import sample_actions
from rllib_configs.schema import ExperimentConfig

VIEW: dict[str, Any] = {"observation": "compact", "mask": "start_now", "mask_in_observation": True}
"""What the network sees: options of `cluster_env.envs.ClusterEnv`."""

_LAYER = re.compile(r"encoder\.actor_encoder\.net\.mlp\.(\d+)\.weight")
_LOWEST = -3.4e38  # as RLlib has it
_HEAD = "pi.net.mlp.0"


class MaskedMLPSampler:
    """Samples actions from the network.

    Args:
        experiment: what it was trained for.
        weights: by name, as the RLModule has them; those of the critic may be among them.

    Raises:
        RuntimeError: if the weights are those of another network.
    """

    def __init__(
        self, experiment: ExperimentConfig, weights: Mapping[str, NDArray[np.float32]]
    ) -> None:
        task, hidden = experiment.task, experiment.training.hidden
        self._view = View(CodeLayout(task.cluster.build()), task.build_rules(), **VIEW)
        found = sorted((int(match[1]), name) for name in weights if (match := _LAYER.match(name)))
        names = [*(name.removesuffix(".weight") for _, name in found), _HEAD]
        try:
            self._layers = [
                tuple(torch.from_numpy(np.array(weights[f"{name}.{kind}"])) for kind in _KINDS)
                for name in names
            ]
        except KeyError as error:
            raise RuntimeError(f"the weights have no {error}") from None
        inputs = self._view.buffer(1)["observations"].shape[1]
        expected = [(hidden, inputs), (hidden, hidden), (task.cluster.build().num_actions, hidden)]
        shapes = [tuple(weight.shape) for weight, _ in self._layers]
        if shapes != expected:
            raise RuntimeError(f"the weights have shapes {shapes}, but should have {expected}")

    def logits(self, codes: NDArray[np.uint8]) -> NDArray[np.float32]:
        """See `Sampler`."""
        seen = self._view.buffer(codes.shape[0])
        self._view.look(codes, seen)
        values = torch.from_numpy(seen["observations"])
        mask = torch.from_numpy(seen["action_mask"])
        with torch.inference_mode():
            *hidden, head = self._layers
            for weight, bias in hidden:
                values = torch.tanh(torch.nn.functional.linear(values, weight, bias))
            logits = torch.nn.functional.linear(values, *head)
            logits = logits + torch.clamp(torch.log(mask.float()), min=_LOWEST)
        found: NDArray[np.float32] = logits.numpy()
        return found

    def sample(
        self, codes: NDArray[np.uint8], uniforms: NDArray[np.float64]
    ) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
        """See `Sampler`."""
        return sample_actions(self.logits(codes), uniforms)


_KINDS = ("weight", "bias")
