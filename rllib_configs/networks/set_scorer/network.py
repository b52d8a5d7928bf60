"""A policy whose size does not depend on the number of items."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import takewhile
from operator import attrgetter
from typing import Any, ClassVar

import numpy as np
import torch
from torch import nn

from cluster_env.core.seeding import Purpose, generator
from cluster_env.core.world import Features
from rllib_configs.config.options import TrainingSection
from rllib_configs.networks.linear import Linear
from rllib_configs.networks.set_scorer.gradient import backward_rows, block_type, transposed
from rllib_configs.networks.set_scorer.kernels import (
    FORBIDDEN,
    PARAMETERS,
    SKIP_GAIN,
    Kept,
    Records,
    pack,
    scores,
    unpack,
)

WINDOW = "window"
"""Name of the feature of the context that `SetScorerOptions.show_window` is about."""

FeatureNames = tuple[tuple[str, ...], tuple[str, ...]]  # of an item, of the context

_parameters_of = attrgetter(*PARAMETERS)


@dataclass(frozen=True)
class SetScorerOptions:
    """What a config decides about the network.

    Attributes:
        hidden: units of each hidden layer.
        critic: whether it also estimates the value of a state.
        show_window: whether it sees the feature `WINDOW` of the context; no matter in a world
            without one.
        skip_connection: whether an item's features also count directly in its score, by weights
            that start at 0.
    """

    hidden: int = 32
    critic: bool = False
    show_window: bool = False
    skip_connection: bool = False

    @staticmethod
    def of(training: TrainingSection) -> "SetScorerOptions":
        """Those that a config asks for."""
        return SetScorerOptions(
            training.hidden, training.critic, training.show_window, training.skip_connection
        )

    @property
    def without_critic(self) -> "SetScorerOptions":
        """The same network where no values are asked for."""
        return replace(self, critic=False)


class _Layer(nn.Linear):
    """A layer whose weights its network draws, or never draws."""

    def reset_parameters(self) -> None:
        """Leaves them undefined."""


class SetScorer(nn.Module):
    """Scores each item by itself, in the context of its world and of all others.

    Items, as waiting jobs, are treated alike and pooled by a sum, so the score of one does not
    depend on its place, and the same weights serve any number of items (a set function in the
    sense of Zaheer et al., *Deep Sets*, 2017).

    Args:
        feature_names: those of the world. With `skip_connection`, item features at the end whose
            names begin with ``class_`` get a parameter of their own.
        options: width and parts.
        seed: of the initial weights, which are normal with variance 2 / fan-in; with None they are
            undefined, until others are loaded.

    Attributes:
        skip_names: names of the parameters of the skip connection: weights of the features, and, if
            items have classes, of these.
        compiled: whether float32 weights are used by compiled code, several times as fast as
            PyTorch's, whose results depend on no other row of a batch. It has first derivatives
            only; a gradient of a gradient needs False.
        parts: layers and parameters that may be adapted without the others. ``head``: those that
            come after the pooling. Raghu et al., *Rapid
            learning or feature reuse?*, 2020, adapt the last layer alone. Here it is linear in a
            few numbers that say nothing about what is rewarded, so the layer before it is part of
            the head as well. ``direct``: what counts in scores by itself, a number for each
            feature of an item and one for void. ``classes``: of these, those of classes alone.
    """

    compiled = True
    parts: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "head": ("mix", "mix_pooled", "score", "void", "skip", "skip_classes"),
        "direct": ("void.bias", "skip", "skip_classes"),
        "classes": ("skip_classes",),
    }
    critic_scale: torch.Tensor  # (1,), with a critic alone

    def __init__(
        self, feature_names: FeatureNames, options: SetScorerOptions, seed: int | None = None
    ) -> None:
        super().__init__()
        of_item, of_context = feature_names
        self.feature_names, self.options = feature_names, options
        shown = [
            column
            for column, name in enumerate(of_context)
            if name != WINDOW or options.show_window
        ]
        self._shown = None if len(shown) == len(of_context) else np.array(shown)
        width = options.hidden
        self.context = _Layer(len(shown), width)
        self.job = _Layer(len(of_item), width)
        self.job_context = _Layer(width, width, bias=False)
        self.pooled = _Layer(2 * width, width)
        self.mix = _Layer(width, width)
        self.mix_pooled = _Layer(width, width, bias=False)
        self.score = _Layer(width, 1)
        self.void = _Layer(width, 1)
        if options.critic:
            self.critic = nn.Sequential(_Layer(width, width), nn.ReLU(), _Layer(width, 1))
            self.register_buffer("critic_scale", torch.ones(1))
        self.skip_names: tuple[str, ...] = ()
        if options.skip_connection:
            classes = takewhile(lambda name: name.startswith("class_"), reversed(of_item))
            num_classes = len(tuple(classes))
            sizes = {"skip": len(of_item) - num_classes, "skip_classes": num_classes}
            self.skip_names = tuple(name for name, size in sizes.items() if size)
            for name in self.skip_names:
                self.register_parameter(name, nn.Parameter(torch.zeros(sizes[name])))
        if seed is not None:
            self._draw(generator(seed, Purpose.INIT))

    @torch.no_grad()
    def _draw(self, rng: np.random.Generator) -> None:
        for name, parameter in self.named_parameters():
            if parameter.ndim == 1:
                parameter.zero_()
                continue
            head = name.startswith(("score", "void", "critic.2"))
            scale = 0.01 if head else (2.0 / parameter.shape[1]) ** 0.5
            drawn = rng.normal(0.0, scale, tuple(parameter.shape)).astype(np.float32)
            parameter.copy_(torch.from_numpy(drawn))

    @property
    def shown_names(self) -> FeatureNames:
        """Names of the features that the network sees."""
        of_item, of_context = self.feature_names
        if self._shown is None:
            return of_item, of_context
        return of_item, tuple(of_context[column] for column in self._shown)

    def shown(self, features: Features) -> Features:
        """The features without those that the network is not to see, as compiled code takes them.

        Args:
            features: of the world, or what this function gave.
        """
        items, context, allowed = features
        if self._shown is not None and context.shape[1] != self._shown.size:
            context = np.take(context, self._shown, axis=1)
        # One type of array, so that what takes them is compiled once.
        return Features(
            np.require(items, np.float32, ["C", "W"]),
            np.require(context, np.float32, ["C", "W"]),
            np.require(allowed, np.bool_, ["C", "W"]),
        )

    def forward(self, features: Features) -> torch.Tensor:
        """Computes logits.

        Args:
            features: of n states.

        Returns:
            Logits, float32 ``(n, num_items + 1)``; those of forbidden actions are -1e9.
        """
        return self.score_items(features)[0]

    def score_items(self, features: Features) -> tuple[torch.Tensor, torch.Tensor]:
        """Computes logits, as `forward`, and what is known of each state as a whole.

        Returns:
            Logits, float32 ``(n, num_items + 1)``, and float32 ``(n, hidden)``.
        """
        features = self.shown(features)
        if self._runs_compiled():
            return differentiable_scores(self.compiled_parameters(), features)
        return self.score_tensors(*map(torch.from_numpy, features))

    def score_tensors(
        self, items: torch.Tensor, context: torch.Tensor, allowed: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """`score_items` by PyTorch's own operations, from tensors of what `shown` gives."""
        described, pooled = self._describe(items, context)
        described = torch.relu(self.mix(described) + self.mix_pooled(pooled).unsqueeze(1))
        item_scores = self.score(described).squeeze(2)
        if self.skip_names:
            given = items.to(item_scores.dtype)
            item_scores = item_scores + float(SKIP_GAIN) * (given @ self._skip())
        logits = torch.cat([item_scores, self.void(pooled)], dim=1)
        return logits.masked_fill(~allowed, float(FORBIDDEN)), pooled

    def value(self, pooled: torch.Tensor) -> torch.Tensor:
        """Value of states, float32 ``(n,)``, from the second result of `score_items`.

        It is the `rllib_configs.learning.losses.symlog` of the value in units of ``critic_scale``,
        which the algorithm sets.
        """
        values = pooled
        for layer in self.critic:
            if self._runs_compiled() and isinstance(layer, _Layer):  # one order of sums, as scores
                values = Linear.apply(values, layer.weight.t(), layer.bias)  # type: ignore[no-untyped-call]
            else:
                values = layer(values)
        return values.squeeze(1)

    def value_of(self, features: Features) -> torch.Tensor:
        """`value` of n states."""
        if self._runs_compiled():
            # Scores are not asked for, and an item that is not allowed is pooled, but not scored.
            nothing = features._replace(allowed=np.zeros_like(features.allowed))
            return self.value(self.score_items(nothing)[1])
        items, context, _ = map(torch.from_numpy, self.shown(features))
        return self.value(self._describe(items, context)[1])

    def compiled_parameters(self) -> list[torch.Tensor]:
        """The parameters as compiled code takes them; see `kernels.PARAMETERS`."""
        found = list(_parameters_of(self))
        return [*found, self._skip()] if self.skip_names else found

    def _skip(self) -> torch.Tensor:
        return torch.cat([getattr(self, name) for name in self.skip_names])

    def _runs_compiled(self) -> bool:
        return self.compiled and self.score.weight.dtype == torch.float32

    def _describe(
        self, items: torch.Tensor, context: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Each item in its context, ``(n, num_items, hidden)``, and all pooled, ``(n, hidden)``."""
        given, shared = (tensor.to(self.score.weight.dtype) for tensor in (items, context))
        present = given[:, :, :1]
        context = torch.relu(self.context(shared))
        items = torch.relu(self.job(given) + self.job_context(context).unsqueeze(1)) * present
        return items, torch.relu(self.pooled(torch.cat([context, items.sum(1)], dim=1)))


class TensorScorer(nn.Module):
    """Logits of a `SetScorer` from tensors alone; see `SetScorer.score_tensors`."""

    def __init__(self, network: SetScorer) -> None:
        super().__init__()
        self.network = network

    def forward(
        self, items: torch.Tensor, context: torch.Tensor, allowed: torch.Tensor
    ) -> torch.Tensor:
        """Computes logits, float32 ``(n, num_items + 1)``."""
        return self.network.score_tensors(items, context, allowed)[0]


_SECOND_ORDER = (
    "the compiled set scorer has first derivatives only; set compiled = False on the SetScorer "
    "to differentiate its gradient"
)


def differentiable_scores(
    parameters: Sequence[torch.Tensor], features: Features
) -> tuple[torch.Tensor, torch.Tensor]:
    """As `scores`, with a gradient, but none of second order.

    Args:
        parameters: float32 tensors, see `PARAMETERS`; they may be results of a computation
            themselves.
        features: see `scores`.
    """
    if torch.is_grad_enabled() and any(parameter.requires_grad for parameter in parameters):
        logits, pooled = _Scores.apply(_Pass(features), *parameters)  # type: ignore[no-untyped-call]
        return logits, pooled
    found = scores(pack([parameter.detach().numpy() for parameter in parameters]), features)
    return torch.from_numpy(found[0]), torch.from_numpy(found[1])


class _Pass:
    """One pass through the network, on its way from `_Scores` to `_Gradient`."""

    packed: Records
    kept: Kept

    def __init__(self, features: Features) -> None:
        self.features = features


class _Scores(torch.autograd.Function):
    """`scores` with its gradient."""

    @staticmethod
    def forward(one: _Pass, *parameters: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        one.packed = pack([parameter.detach().numpy() for parameter in parameters])
        num_rows, num_items, _ = one.features.items.shape
        one.kept = Kept.room(num_rows, num_items, one.packed["void"].shape[1])
        logits, pooled = scores(one.packed, one.features, one.kept)
        return torch.from_numpy(logits), torch.from_numpy(pooled)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        ctx.one = inputs[0]
        ctx.save_for_backward(*inputs[1:])  # refuses a backward pass after they have changed
        ctx.set_materialize_grads(False)  # without a critic, the pooled vector has no gradient

    @staticmethod
    def backward(
        ctx: Any, logits: torch.Tensor | None, pooled: torch.Tensor | None
    ) -> tuple[torch.Tensor | None, ...]:
        # A function of its own, so that whoever asks for a second derivative is told that there is
        # none: PyTorch would take the result for a constant, and give a wrong one silently.
        return None, *_Gradient.apply(ctx.one, logits, pooled, *ctx.saved_tensors)  # type: ignore[no-untyped-call]


class _Gradient(torch.autograd.Function):
    """The gradient by the parameters, which depends on everything, but has no gradient itself."""

    @staticmethod
    def forward(
        one: _Pass,
        logits: torch.Tensor | None,
        pooled: torch.Tensor | None,
        *parameters: torch.Tensor,
    ) -> tuple[torch.Tensor, ...]:
        features, packed, kept = one.features, one.packed, one.kept
        num_rows, num_items, item_size = features.items.shape
        width = packed["void"].shape[1]
        by_logits, by_pooled = (
            np.zeros((num_rows, size), np.float32)
            if gradient is None
            else gradient.detach().contiguous().numpy()
            for gradient, size in ((logits, num_items + 1), (pooled, width))
        )
        scratch, total = np.empty(1, block_type(num_items, item_size, width)), np.zeros_like(packed)
        back = transposed(packed)
        backward_rows(packed, back, features, kept, by_logits, by_pooled, scratch, total)
        return tuple(torch.from_numpy(part) for part in unpack(total)[: len(parameters)])

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        pass

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> Any:
        raise RuntimeError(_SECOND_ORDER)
