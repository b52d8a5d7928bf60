"""What fails at a site, said when it begins, when it changes, and when it is over."""

import re
from collections.abc import Callable

_NUMBERS = re.compile(r"\d+")


class Trouble:
    """Announces failures that are new; two that differ in numbers alone are the same.

    Args:
        prefix: what each sentence about a failure begins with.
        announce: takes the sentences.
    """

    def __init__(self, prefix: str, announce: Callable[[str], None]) -> None:
        self._prefix, self._announce = prefix, announce
        self.now = ""
        """What fails; empty if nothing does."""

    def note(self, problem: str) -> bool:
        """Notes what fails now, empty if nothing does; returns whether that is new."""
        new = _NUMBERS.sub("", problem) != _NUMBERS.sub("", self.now)
        self.now = problem
        if new:
            self._announce(f"{self._prefix}: {problem}" if problem else "Slurm answers again")
        return new
