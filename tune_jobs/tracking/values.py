"""What a record may hold: flat names that MLflow takes, text, and numbers."""

import math
import posixpath
import re
from collections.abc import Mapping
from typing import Any

from rllib_configs.config.secrets import hide_secrets

MAX_NAME = 250  # characters, MLflow's limit

Point = tuple[str, float, int, int]
"""Name, value, time in milliseconds since 1970, step."""


def flatten(mapping: Mapping[Any, Any], separator: str = ".") -> dict[str, Any]:
    """Leaves of a nested mapping under names like ``training.lr``, in order."""
    flat: dict[str, Any] = {}
    for key, value in mapping.items():
        if isinstance(value, Mapping):
            inner = flatten(value, separator)
            flat |= {f"{key}{separator}{name}": leaf for name, leaf in inner.items()}
        else:
            flat[str(key)] = value
    return flat


def clean_name(name: str) -> str:
    """A name that MLflow accepts: letters, digits, ``_ - . / :`` and spaces, at most 250.

    MLflow takes a name for a path, which must be in its shortest form and lead nowhere else.
    """
    short = re.sub(r"[^\w\-./ :]", "_", name)[:MAX_NAME]
    return posixpath.normpath(f"/{short}").lstrip("/") or "_"


def as_text(mapping: Mapping[Any, Any]) -> dict[str, str]:
    """Parameters or tags as flat text, without secrets."""
    return {clean_name(name): hide_secrets(str(value)) for name, value in flatten(mapping).items()}


def as_numbers(mapping: Mapping[Any, Any]) -> tuple[dict[str, float], list[str]]:
    """Metrics as flat numbers; infinity becomes NaN, a gap in a chart.

    MLflow would store infinity as 1.8e308, which no chart survives.

    Returns:
        The metrics, and the names of those that are no numbers.
    """
    numbers: dict[str, float] = {}
    others: list[str] = []
    for name, value in flatten(mapping, "/").items():
        try:
            number = float(value)
        except (TypeError, ValueError, OverflowError, RuntimeError):  # the last one is torch's
            others.append(name)
        else:
            numbers[clean_name(name)] = number if math.isfinite(number) else math.nan
    return numbers, others
