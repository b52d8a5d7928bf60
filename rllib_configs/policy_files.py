"""The files of a trained policy: its weights as plain tensors, and the config. Needs no Ray."""

from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from cluster_env.core.errors import InputError

CONFIG_FILE = "config.yaml"
WEIGHTS_FILE = "weights.pt"
POLICY_FOLDER = "policy"


def policy_folder(path: str | Path) -> Path:
    """Folder of a policy.

    Args:
        path: that folder, or a run's.

    Raises:
        InputError: if there is no policy.
    """
    folder = Path(path)
    if (folder / POLICY_FOLDER).is_dir():
        folder = folder / POLICY_FOLDER
    if not (folder / WEIGHTS_FILE).is_file():
        raise InputError(f"there is no trained policy in {path}: it has no {WEIGHTS_FILE}")
    return folder


def stored_weights(folder: Path) -> dict[str, NDArray[np.float32]]:
    """The weights in a policy's folder, by name. No code in the file is ever run."""
    tensors = torch.load(folder / WEIGHTS_FILE, weights_only=True)
    return {name: tensor.numpy() for name, tensor in tensors.items()}


def check_policy(path: str | Path) -> None:
    """Makes sure, in a moment and without Ray, that there is a policy that can be read.

    Raises:
        InputError: if not.
    """
    folder = policy_folder(path)
    try:
        stored_weights(folder)
    except Exception as error:
        raise InputError(f"{folder / WEIGHTS_FILE} is broken: {error}") from None
