"""Optimizers that PyTorch does not have, or not without seconds of imports."""

from typing import Any

import torch


class RootMeanSquare(torch.optim.Optimizer):
    """RMSProp with its constant under the root, as in the released code of DeepRM.

    Torch adds the constant to the root instead, which makes it 3e4 times smaller: weights that
    hardly ever get a gradient would then take full steps.
    """

    def __init__(self, params: Any, lr: float, decay: float, eps: float) -> None:
        _leave_compiler_out()
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


class Adam(torch.optim.Adam):
    """PyTorch's Adam without the import of PyTorch's compiler, which takes two seconds."""

    def __init__(self, params: Any, lr: float, **options: Any) -> None:
        _leave_compiler_out()
        super().__init__(params, lr, **options)

    @torch.no_grad()
    def step(self, closure: None = None) -> None:  # type: ignore[override]
        """One update from the gradients of the parameters."""
        step = torch.optim.Adam.step
        getattr(step, "__wrapped__", step)(self)


def _leave_compiler_out() -> None:
    """Tells the methods of optimizers what they would import PyTorch's compiler for.

    It has to leave these methods alone, and nothing here uses it. A PyTorch that keeps the answer
    elsewhere imports it as ever.
    """
    for method in vars(torch.optim.Optimizer).values():
        plain = getattr(method, "__wrapped__", None)
        if plain is not None and plain.__module__ == torch.optim.Optimizer.__module__:
            plain.__dict__.setdefault("__dynamo_disable", plain)
