"""What becomes of a gradient that is not finite: it is named, and never applied."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import torch

from cluster_env.core.errors import Failure

_NAMED = 5


class FiniteUpdates:
    """A learner's part: it leaves out updates whose gradients are not finite, and remembers them.

    A mixin of RLlib's ``TorchLearner``.
    """

    _skipped: tuple[tuple[str, ...], ...] = ()
    config: Any
    module: Any
    get_param_ref: Any

    def accepts(self, is_finite: bool, gradients: Callable[[], Mapping[Any, torch.Tensor]]) -> bool:
        """Whether an update may be made; if not, it is remembered.

        With ``training.on_nan: stop``, no update is accepted any more after the first that was not.

        Args:
            is_finite: whether the gradient is.
            gradients: its parts by parameter, wanted where it is not.
        """
        if self._skipped and self.config.experiment.training.on_nan == "stop":
            return False
        if not is_finite:
            names = {
                self.get_param_ref(parameter): name
                for module in self.module.keys()  # noqa: SIM118 - no dict
                for name, parameter in self.module[module].unwrapped().named_parameters()
            }
            broken = tuple(
                names.get(key, "an unnamed parameter")
                for key, gradient in gradients().items()
                if not bool(torch.isfinite(gradient).all())
            )
            self._skipped = (*self._skipped, broken)
        return is_finite

    def take_skipped(self) -> tuple[tuple[str, ...], ...]:
        """The broken parameters of each update that was left out since the last call."""
        found, self._skipped = self._skipped, ()
        return found


def judge_skipped(skipped: Iterable[tuple[str, ...]], on_nan: str, iteration: int) -> int:
    """Number of updates of an iteration that were left out.

    Args:
        skipped: by their broken parameters; see `FiniteUpdates`.
        on_nan: see `rllib_configs.config.schema.TrainingSection`.
        iteration: counted from 1.

    Raises:
        Failure: if there is one and the run is to stop.
    """
    skipped = list(skipped)
    if skipped and on_nan == "stop":
        names = list(dict.fromkeys(name for update in skipped for name in update))
        more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
        raise Failure(
            f"iteration {iteration}: the gradient of {', '.join(names[:_NAMED])}{more} is not "
            "finite; the weights are those before it; to leave such updates out, resume with "
            "--set training.on_nan=skip"
        )
    return len(skipped)
