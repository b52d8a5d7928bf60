"""Compiles everything that is compiled, once: ``python -m cluster_env.warm``.

What is compiled is kept in the user's cache folder, so that later commands and every worker only
load it. Run after an installation; it takes half a minute the first time and seconds after that.
"""

import warnings
from collections.abc import Sequence

from cluster_env.worlds import WORLDS


def warm(kinds: Sequence[str] = ()) -> None:
    """Runs the simulator, heuristics, observations and masks of each world once.

    Args:
        kinds: of worlds, in the order in which they are compiled; all, if none is named.
    """
    for kind in kinds or WORLDS.names():
        WORLDS.get(kind).warm()


def main(kinds: Sequence[str] = ()) -> None:
    """Entry point of ``python -m cluster_env.warm``; see `warm`."""
    with warnings.catch_warnings(action="ignore"):
        warm(kinds)


if __name__ == "__main__":
    main()
