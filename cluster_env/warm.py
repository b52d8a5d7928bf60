"""Compiles everything that is compiled, once: ``python -m cluster_env.warm``.

Numba keeps what it has compiled beside the source, so that later commands and every worker only
load it. Run after an installation; it takes half a minute the first time and seconds after that.
"""

import warnings

from cluster_env.worlds import WORLDS


def warm() -> None:
    """Runs the simulator, heuristics, observations and masks of every world once."""
    for kind in WORLDS.names():
        WORLDS.get(kind).warm()


def main() -> None:
    """Entry point of ``python -m cluster_env.warm``."""
    with warnings.catch_warnings(action="ignore"):
        warm()


if __name__ == "__main__":
    main()
