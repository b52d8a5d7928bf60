"""From the values of a training run to what a spool can hold."""

import math
import re
from collections.abc import Iterator, Mapping
from typing import Any

MAX_NAME = 250  # characters, MLflow's limit


def flatten(mapping: Mapping[Any, Any], separator: str) -> Iterator[tuple[str, Any]]:
    """Leaves of a nested mapping under names like ``training.lr``, in order."""
    for key, value in mapping.items():
        if isinstance(value, Mapping):
            for name, leaf in flatten(value, separator):
                yield f"{key}{separator}{name}", leaf
        else:
            yield str(key), value


def clean_name(name: str) -> str:
    """A name that MLflow accepts: letters, digits, ``_ - . / :`` and spaces, at most 250."""
    return re.sub(r"[^\w\-./ :]", "_", name)[:MAX_NAME]


def as_text(mapping: Mapping[Any, Any]) -> dict[str, str]:
    """Parameters or tags as flat text."""
    return {clean_name(name): str(value) for name, value in flatten(mapping, ".")}


def as_numbers(mapping: Mapping[Any, Any]) -> tuple[dict[str, float | str], list[str]]:
    """Metrics as flat JSON values, ``"nan"`` and ``"inf"`` as text.

    Returns:
        The metrics, and the names of those that are no numbers.
    """
    numbers: dict[str, float | str] = {}
    others: list[str] = []
    for name, value in flatten(mapping, "/"):
        try:
            number = float(value)
        except (TypeError, ValueError, OverflowError, RuntimeError):  # the last one is torch's
            others.append(name)
        else:
            numbers[clean_name(name)] = number if math.isfinite(number) else str(number)
    return numbers, others
