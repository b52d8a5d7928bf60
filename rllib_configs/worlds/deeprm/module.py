"""DeepRM's network as an RLModule."""

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from ray.rllib.core.columns import Columns
from ray.rllib.core.rl_module.torch import TorchRLModule

from cluster_env.core.compiled import njit
from cluster_env.core.seeding import Purpose, generator
from rllib_configs.networks.linear import Linear
from rllib_configs.worlds.deeprm.lookups import LookupLayout
from rllib_configs.worlds.deeprm.mlp import lookup_sum, shapes


@njit(cache=True, nogil=True)
def _scatter_rows(
    lookups: NDArray[np.int32], gradient: NDArray[np.float32], num_entries: int
) -> NDArray[np.float32]:
    """Adds each row of the gradient to the entries that it looked up, in the order of the rows.

    One thread: runners have a core each, and the rows of a unit are theirs alone.
    """
    rows, width = gradient.shape
    total = np.zeros((num_entries, width), np.float32)
    for row in range(rows):
        for k in range(lookups.shape[1]):
            entry = lookups[row, k]
            for unit in range(width):
                total[entry, unit] += gradient[row, unit]
    return total


class LookupLinear(torch.autograd.Function):
    """``image(codes) @ weight + bias`` without the image."""

    @staticmethod
    def forward(
        weight: torch.Tensor, bias: torch.Tensor, lookups: torch.Tensor, layout: LookupLayout
    ) -> torch.Tensor:
        """Computes the layer.

        Args:
            weight: float32 ``(image_size, width)``.
            bias: float32 ``(width,)``.
            lookups: int32 ``(rows, num_lookups)``, from `LookupLayout.lookups`.
            layout: where the entries stand for which cells of the image.

        Returns:
            float32 ``(rows, width)``.
        """
        table = layout.prefix_table(weight.detach().numpy())
        return torch.from_numpy(lookup_sum(table, bias.detach().numpy(), lookups.numpy()))

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: torch.Tensor) -> None:
        """Keeps what `backward` needs."""
        _, _, lookups, layout = inputs
        ctx.save_for_backward(lookups)
        ctx.layout = layout

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        """Gradients of weight and bias."""
        (lookups,) = ctx.saved_tensors
        layout: LookupLayout = ctx.layout
        scattered = _scatter_rows(
            lookups.numpy(), gradient.contiguous().numpy(), layout.num_entries
        )
        return (
            torch.from_numpy(layout.spread_table_gradient(scattered)),
            gradient.sum(0),
            None,
            None,
        )


class DeepRMModule(TorchRLModule):
    """Image, 20 rectified units, one logit for each slot and for void: 89,451 parameters.

    The image is never made: its product with the first weight is looked up from prefix sums. The
    network has no mask, as in the paper: an action that cannot be carried out lets time pass. With
    the released code's last column of the image it has 89,851 parameters.

    ``model_config`` holds ``world`` (`cluster_env.worlds.deeprm.DeepRM`), ``hidden``,
    ``since_column`` and ``seed``.
    """

    def setup(self) -> None:
        """Builds the layers; weights are normal with variance 1 / fan-in, biases 0.

        The paper does not say how the network starts.
        """
        layout = self.model_config["world"].layout
        self.lookup_layout = LookupLayout(layout, bool(self.model_config.get("since_column")))
        sizes = shapes(self.lookup_layout, int(self.model_config["hidden"]))
        rng = generator(int(self.model_config["seed"]), Purpose.INIT)
        self.hidden_weight = _normal(rng, *sizes["hidden_weight"])
        self.hidden_bias = torch.nn.Parameter(torch.zeros(sizes["hidden_bias"]))
        self.head_weight = _normal(rng, *sizes["head_weight"])
        self.head_bias = torch.nn.Parameter(torch.zeros(sizes["head_bias"]))

    def _forward(self, batch: dict[str, Any], **kwargs: Any) -> dict[str, Any]:
        """Logits, float32 ``(rows, actions)``, of the states under ``Columns.OBS``."""
        lookups = torch.from_numpy(self.lookup_layout.lookups(batch[Columns.OBS].numpy()))
        first = LookupLinear.apply(  # type: ignore[no-untyped-call]
            self.hidden_weight, self.hidden_bias, lookups, self.lookup_layout
        )
        logits = Linear.apply(  # type: ignore[no-untyped-call]
            torch.relu(first), self.head_weight, self.head_bias
        )
        return {Columns.ACTION_DIST_INPUTS: logits}


def _normal(rng: np.random.Generator, rows: int, columns: int) -> torch.nn.Parameter:
    weights = rng.normal(0.0, rows**-0.5, (rows, columns)).astype(np.float32)
    return torch.nn.Parameter(torch.from_numpy(weights))
