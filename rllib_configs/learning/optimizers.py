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
    """PyTorch's fused Adam without the import of PyTorch's compiler, which takes two seconds.

    A step of it is a call or two. What PyTorch's own does around them takes ten times as long where
    a process has waited for gradients, and is called once for each.
    """

    def __init__(self, params: Any, lr: float, betas: tuple[float, float] = (0.9, 0.999)) -> None:
        _leave_compiler_out()
        super().__init__(params, lr, betas=betas, fused=True)

    @torch.no_grad()
    def step(self, closure: None = None) -> None:  # type: ignore[override]
        """One update from the gradients of the parameters."""
        for group in self.param_groups:
            found = [parameter for parameter in group["params"] if parameter.grad is not None]
            states = [self.state[parameter] for parameter in found]
            for parameter, state in zip(found, states, strict=True):
                if not state:
                    state["step"] = torch.zeros(())
                    state["exp_avg"] = torch.zeros_like(parameter)
                    state["exp_avg_sq"] = torch.zeros_like(parameter)
                state["step"] += 1
            torch._fused_adam_(
                found,
                [parameter.grad for parameter in found],
                [state["exp_avg"] for state in states],
                [state["exp_avg_sq"] for state in states],
                [],
                [state["step"] for state in states],
                lr=group["lr"],
                beta1=group["betas"][0],
                beta2=group["betas"][1],
                weight_decay=0.0,
                eps=group["eps"],
                amsgrad=False,
                maximize=False,
            )


def _leave_compiler_out() -> None:
    """Tells the methods of optimizers what they would import PyTorch's compiler for.

    It has to leave these methods alone, and nothing here uses it. A PyTorch that keeps the answer
    elsewhere imports it as ever.
    """
    for method in vars(torch.optim.Optimizer).values():
        plain = getattr(method, "__wrapped__", None)
        if plain is not None and plain.__module__ == torch.optim.Optimizer.__module__:
            plain.__dict__.setdefault("__dynamo_disable", plain)
