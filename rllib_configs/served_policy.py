"""A trained policy that answers batches of observations: what an MLflow model of ours loads.

A model carries ``cluster_env``, ``rllib_configs`` and ``meta`` as code, and names this module as
its loader. So it works where metasched is not installed. It needs no Ray.
"""

import importlib
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from cluster_env.core.errors import InputError
from cluster_env.core.json_text import read_json
from rllib_configs.policy_files import LearnedPolicy, load_policy

OBSERVATIONS, MASK = "observations", "action_mask"
EXTENSIONS_FILE = "extensions.json"
"""Beside a model's weights: names of modules of a user's own, which the policy may need."""
DEFAULTS: Mapping[str, Any] = {"decode": "argmax", "void_bias": 0.0, "seed": -1}
"""What ``params`` are where a question does not say them."""


class PolicyModel:
    """What MLflow calls.

    Args:
        policy: takes states.
        dtype: of the states of its world.
    """

    def __init__(self, policy: LearnedPolicy, dtype: DTypeLike | None) -> None:
        self.policy, self._dtype = policy, dtype

    def predict(
        self, model_input: Mapping[str, Any], params: Mapping[str, Any] | None = None
    ) -> NDArray[np.int64]:
        """Actions, int64 ``(n,)``.

        Args:
            model_input: ``observations``, states ``(n, state_size)`` of the dtype that the world
                has them in, and ``action_mask``, int8 ``(n, num_actions)``, as the world's
                environments give it. An action that the mask forbids would book nothing; void,
                which is returned instead, does the same.
            params: ``decode``, argmax or sample; ``void_bias``, see `LearnedPolicy`; ``seed`` of
                the draws, negative for new ones at each call.

        Raises:
            InputError: if the input is of another shape, or there is no such way to decode.
        """
        options = {**DEFAULTS, **(params or {})}
        if options["decode"] not in ("argmax", "sample"):
            raise InputError(f"decode is argmax or sample, not {options['decode']!r}")
        states = np.ascontiguousarray(model_input[OBSERVATIONS], dtype=self._dtype)
        mask = np.asarray(model_input[MASK]).astype(bool)
        if states.ndim != 2 or mask.shape[:1] != states.shape[:1]:
            raise InputError(
                f"{OBSERVATIONS} and {MASK} need one row for each state, but have the shapes "
                f"{states.shape} and {mask.shape}"
            )
        seed = int(options["seed"])
        uniforms = np.random.default_rng(None if seed < 0 else seed).random(len(states))
        policy = replace(
            self.policy, decode=options["decode"], void_bias=float(options["void_bias"])
        )
        actions = policy.act(states, uniforms).astype(np.int64)
        return np.where(mask[np.arange(len(states)), actions], actions, mask.shape[1] - 1)


def _load_pyfunc(path: str) -> PolicyModel:
    """Called by MLflow with the folder of the policy's files.

    Raises:
        InputError: if a file is broken, or the policy needs a module of a user's own that is not
            there.
    """
    missing = _import_extensions(Path(path) / EXTENSIONS_FILE)
    try:
        policy, config = load_policy(path)
    except InputError as error:
        if not missing:
            raise
        raise InputError(
            f"{error}; it was trained with the extension {' and '.join(missing)}, which cannot be "
            f"imported here: install what has it, or put it on PYTHONPATH"
        ) from None
    return PolicyModel(policy, config.task.world.state_space.dtype)


def _import_extensions(file: Path) -> list[str]:
    """Imports what a policy was trained beside; returns what is missing, perhaps without need."""
    missing = []
    for name in read_json(file) if file.is_file() else ():
        try:
            importlib.import_module(name)
        except Exception:  # whatever the code of others raises
            missing.append(name)
    return missing
