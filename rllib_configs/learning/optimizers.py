"""Optimizers that torch does not have."""

from typing import Any

import torch


class RootMeanSquare(torch.optim.Optimizer):
    """RMSProp with its constant under the root, as in the released code of DeepRM.

    Torch adds the constant to the root instead, which makes it 3e4 times smaller: weights that
    hardly ever get a gradient would then take full steps.
    """

    def __init__(self, params: Any, lr: float, decay: float, eps: float) -> None:
        super().__init__(params, {"lr": lr, "decay": decay, "eps": eps})

    @torch.no_grad()
    def step(self, closure: None = None) -> None:  # type: ignore[override]
        """One update from the gradients of the parameters."""
        for group in self.param_groups:
            for parameter in group["params"]:
                if parameter.grad is None:
                    continue
                state = self.state[parameter]
                if not state:
                    state["mean_square"] = torch.zeros_like(parameter)
                mean_square = state["mean_square"]
                mean_square.mul_(group["decay"])
                mean_square.addcmul_(parameter.grad, parameter.grad, value=1 - group["decay"])
                root = (mean_square + group["eps"]).sqrt_()
                parameter.addcdiv_(parameter.grad, root, value=-group["lr"])
