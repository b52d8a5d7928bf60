"""The solver that optima are searched with, which is an extra."""

from typing import Any

from cluster_env.core.errors import InputError


def cp_solver(purpose: str) -> Any:
    """OR-tools' module of CP-SAT, imported now.

    Args:
        purpose: what needs it; begins the sentence where it is missing.

    Raises:
        InputError: that says how to install it, if it is not installed.
    """
    try:
        from ortools.sat.python import cp_model
    except ImportError:
        raise InputError(
            f"{purpose} needs OR-tools, which is not installed; install the extra with: "
            "pip install 'metasched[clairvoyant]'"
        ) from None
    return cp_model
