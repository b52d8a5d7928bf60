"""A policy whose size does not depend on the number of slots."""

from operator import attrgetter

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from cluster_env.core.seeding import Purpose, generator
from cluster_env.worlds.deeprm.cluster import Cluster
from cluster_env.worlds.deeprm.features import (
    context_feature_names,
    slot_feature_names,
    slot_features,
    window_features,
)
from cluster_env.worlds.deeprm.masks import live_mask
from cluster_env.worlds.deeprm.state import StateLayout
from rllib_configs.networks.set_scorer.autograd import (
    FORBIDDEN,
    PARAMETERS,
    Rows,
    differentiable_scores,
)
from rllib_configs.networks.set_scorer.kernels import SKIP_GAIN
from rllib_configs.schema import TrainingSection

_parameters_of = attrgetter(*PARAMETERS)


class _Layer(nn.Linear):
    """A layer whose weights its network draws, or never draws."""

    def reset_parameters(self) -> None:
        """Leaves them undefined."""


class SetScorer(nn.Module):
    """Scores each waiting job by itself, in the context of the cluster and of all others.

    Slots are treated alike and pooled by a sum, so the score of a job does not depend on which
    slot it lies in, and the same weights serve any number of slots (a set function in the sense of
    Zaheer et al., *Deep Sets*, 2017).

    Args:
        cluster: resources, horizon and slots.
        width: units of each hidden layer.
        seed: of the initial weights, which are normal with variance 2 / fan-in; with None they are
            undefined, until others are loaded.
        critic: whether it also estimates the value of a state.
        shows_window: whether it is told the length of the arrival window.
        skip_connection: whether a job's features also count directly in its score, by weights that
            start at 0.

    Attributes:
        skip_names: names of the parameters of the skip_connection: weights of the features, and, if
            the cluster has classes, of these.
        compiled: whether float32 weights are used by compiled code, several times as fast as
            PyTorch's, whose results depend on no other row of a batch. It has first derivatives
            only; a gradient of a gradient needs False.
    """

    compiled = True
    critic_scale: torch.Tensor  # (1,), with a critic alone

    def __init__(
        self,
        cluster: Cluster,
        width: int,
        seed: int | None,
        critic: bool = False,
        shows_window: bool = False,
        skip_connection: bool = False,
    ) -> None:
        super().__init__()
        self.layout = StateLayout(cluster)
        self.shows_window = shows_window
        slot = len(slot_feature_names(cluster))
        context = len(context_feature_names(cluster)) + shows_window
        self.context = _Layer(context, width)
        self.job = _Layer(slot, width)
        self.job_context = _Layer(width, width, bias=False)
        self.pooled = _Layer(2 * width, width)
        self.mix = _Layer(width, width)
        self.mix_pooled = _Layer(width, width, bias=False)
        self.score = _Layer(width, 1)
        self.void = _Layer(width, 1)
        if critic:
            self.critic = nn.Sequential(_Layer(width, width), nn.ReLU(), _Layer(width, 1))
            self.register_buffer("critic_scale", torch.ones(1))
        self.skip_names: tuple[str, ...] = ()
        if skip_connection:
            self._add_skip_connection(slot, cluster.num_classes if cluster.num_classes > 1 else 0)
        if seed is not None:
            self._draw(generator(seed, Purpose.INIT))

    def _add_skip_connection(self, num_features: int, num_classes: int) -> None:
        sizes = {"skip": num_features - num_classes, "skip_classes": num_classes}
        self.skip_names = tuple(name for name, size in sizes.items() if size)
        for name in self.skip_names:
            self.register_parameter(name, nn.Parameter(torch.zeros(sizes[name])))

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

    def features(
        self, states: NDArray[np.uint8]
    ) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """What the network sees of states, uint8 ``(rows, state_size)``.

        Returns:
            Of the slots, float32 ``(rows, num_slots, slot features)``, and of the cluster, float32
            ``(rows, context features)``.
        """
        slots, context = slot_features(states, self.layout)
        if self.shows_window:
            context = np.concatenate([context, window_features(states, self.layout)], axis=1)
        return slots, context

    def forward(
        self, states: NDArray[np.uint8], allowed: NDArray[np.bool_] | None = None
    ) -> torch.Tensor:
        """Computes logits.

        Args:
            states: uint8 ``(rows, state_size)``.
            allowed: bool ``(rows, num_actions)``, by default `live_mask` of the states.

        Returns:
            Logits, float32 ``(rows, num_actions)``; those of forbidden actions are -1e9.
        """
        return self.score_slots(states, allowed)[0]

    def score_slots(
        self, states: NDArray[np.uint8], allowed: NDArray[np.bool_] | None = None
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Computes logits, as `forward`, and what is known of each state as a whole.

        Returns:
            Logits, float32 ``(rows, num_actions)``, and float32 ``(rows, width)``.
        """
        if allowed is None:
            allowed = live_mask(states, self.layout)
        if self._runs_compiled():
            allowed = np.require(allowed, np.bool_, ["C", "W"])  # one type, so compiled once
            rows = Rows(*self.features(states), allowed)
            return differentiable_scores(self.compiled_parameters(), rows)
        jobs, pooled = self._describe(states)
        jobs = torch.relu(self.mix(jobs) + self.mix_pooled(pooled).unsqueeze(1))
        job_scores = self.score(jobs).squeeze(2)
        if self.skip_names:
            slots = torch.from_numpy(self.features(states)[0]).to(job_scores.dtype)
            job_scores = job_scores + float(SKIP_GAIN) * (slots @ self._direct())
        logits = torch.cat([job_scores, self.void(pooled)], dim=1)
        return logits.masked_fill(torch.from_numpy(~allowed), FORBIDDEN), pooled

    def value(self, pooled: torch.Tensor) -> torch.Tensor:
        """Value of states, float32 ``(rows,)``, from the second result of `score_slots`.

        It is the `rllib_configs.learning.losses.symlog` of the value in units of ``critic_scale``,
        which the algorithm sets.
        """
        value: torch.Tensor = self.critic(pooled).squeeze(1)
        return value

    def value_of(self, states: NDArray[np.uint8]) -> torch.Tensor:
        """`value` of states, uint8 ``(rows, state_size)``."""
        if self._runs_compiled():
            nothing = np.zeros((states.shape[0], self.layout.cluster.num_actions), np.bool_)
            return self.value(self.score_slots(states, nothing)[1])
        return self.value(self._describe(states)[1])

    def compiled_parameters(self) -> list[torch.Tensor]:
        """The parameters as compiled code takes them; see `slot_scorer_compiled.PARAMETERS`."""
        found = list(_parameters_of(self))
        return [*found, self._direct()] if self.skip_names else found

    def _direct(self) -> torch.Tensor:
        return torch.cat([getattr(self, name) for name in self.skip_names])

    def _runs_compiled(self) -> bool:
        return self.compiled and self.score.weight.dtype == torch.float32

    def _describe(self, states: NDArray[np.uint8]) -> tuple[torch.Tensor, torch.Tensor]:
        """Each job in its context, ``(rows, slots, width)``, and all pooled, ``(rows, width)``."""
        dtype = self.score.weight.dtype
        slots, shared = (torch.from_numpy(array).to(dtype) for array in self.features(states))
        present = slots[:, :, :1]
        context = torch.relu(self.context(shared))
        jobs = torch.relu(self.job(slots) + self.job_context(context).unsqueeze(1)) * present
        return jobs, torch.relu(self.pooled(torch.cat([context, jobs.sum(1)], dim=1)))


def plain_scorer(cluster: Cluster, training: TrainingSection, seed: int | None = None) -> SetScorer:
    """The network of a config without a critic.

    Args:
        cluster: which may differ from the config's in capacities and slots.
        training: width and options.
        seed: of the initial weights; undefined without.
    """
    return SetScorer(
        cluster,
        training.hidden,
        seed,
        shows_window=training.show_window,
        skip_connection=training.skip_connection,
    )
