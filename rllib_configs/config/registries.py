"""Algorithms and networks by name, with the options of each; needs neither Ray nor PyTorch.

Reading a config and printing a help text must not load Ray or PyTorch, so entries say where the
class is that does the work, and it is imported when it is used.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import field_validator

from cluster_env.core.registry import Registry
from rllib_configs.conditioned import check_conditions
from rllib_configs.config.sections import Section


@dataclass(frozen=True)
class Algorithm:
    """A learning algorithm that configs can name.

    Attributes:
        options: its settings beside those of all algorithms; they stand in ``training``.
        config: RLlib's config class of it, or ``module:attribute`` of that.
        needs_item_scores: whether it takes only networks that score items one by one, and so fit
            clusters of any size.
        needs_gradient: whether it takes only networks that have one.
        varies_objective: whether it learns from several objectives, so that a policy can be told
            which of them counts.
        prepare: makes what only this algorithm needs of a config before a run begins, from the
            config; or ``module:attribute`` of that.
    """

    options: type[Section]
    config: type[Any] | str
    needs_item_scores: bool = False
    needs_gradient: bool = True
    varies_objective: bool = False
    prepare: Callable[[Any], Any] | str | None = None


@dataclass(frozen=True)
class NetworkEntry:
    """A network that configs can name.

    Attributes:
        options: its settings; they stand in ``training``.
        network: a `rllib_configs.networks.Network`, or ``module:attribute`` of one.
        scores_items: whether it scores items one by one, so that its weights serve worlds of
            other sizes, and `meta` can adapt it.
        has_gradient: whether RLlib can compute one; a search does without.
        has_score_gradient: whether the scores of one without have a gradient, which `meta` takes.
    """

    options: type[Section]
    network: Any
    scores_items: bool = False
    has_gradient: bool = True
    has_score_gradient: bool = False


class ConditionOption(Section):
    """An option of networks that can be conditioned on the objective."""

    conditioned_on: tuple[str, ...] = ()
    """Names of what the network is conditioned on: an objective (its weight) or class_weight_0 (the
    weight of a class). Unset: nothing. For algorithms that learn from several objectives."""

    @field_validator("conditioned_on")
    @classmethod
    def _check_conditions(cls, names: tuple[str, ...]) -> tuple[str, ...]:
        check_conditions(names)
        return names


ALGORITHMS: Registry[Algorithm] = Registry("algorithm")
"""Learning algorithms by name; `config.options` and `meta.maml.options` enter ours."""

NETWORKS: Registry[NetworkEntry] = Registry("network")
"""Networks by name; `rllib_configs.config.options` enters ours."""

CHOICES: tuple[Registry[Any], ...] = (ALGORITHMS, NETWORKS)
"""What ``training`` chooses by name, under the key that is the registry's kind."""

RANGES: Registry[Any] = Registry("ranges")
"""Sections of ranges, or ``module:attribute`` of one, by the kind of world that they know."""

CONVERSIONS: Registry[Any] = Registry("conversion")
"""What makes weights of one network from those of another, or ``module:attribute`` of it, by both
names: ``hpc_scorer to set_scorer``. It is called with the config and the weights of the one, and
the config and the weights of the other, which it returns with what the first one knows."""


HOOKS: Registry[Callable[[dict[str, float], Path], object]] = Registry("hook")
"""Functions by name that the driver calls after each iteration of a training or of a sweep's trial,
with the row of ``metrics.csv`` and the run's folder. After a resume, iterations since the newest
checkpoint come again. One that raises an error is off, with a warning."""
