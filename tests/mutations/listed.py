"""The list of mutations: small faults put into the program, each with a test that notices it."""

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import yaml

REPOSITORY = Path(__file__).resolve().parents[2]
LIST = Path(__file__).with_name("mutations.yaml")


@dataclass(frozen=True)
class Mutation:
    """A fault, and who notices it.

    Attributes:
        fault: what is wrong then, in a few words; tells it from all others.
        file: of the program, from the repository's root.
        before: a part of the file that stands there once.
        after: what takes its place.
        test: of the ordinary suite, as pytest names it; it fails then.
        compiled: whether kernels are compiled for the test; else they run as plain Python, which
            is quicker for a small test. It means nothing where no kernel runs.
    """

    fault: str
    file: str
    before: str
    after: str
    test: str
    compiled: bool = True

    def mutated(self, text: str) -> str:
        """The text of the file with the fault.

        Raises:
            ValueError: unless the part stands there exactly once.
        """
        count = text.count(self.before)
        if count != 1:
            raise ValueError(
                f"{self.fault}: the text before stands {count} times in {self.file}, not once"
            )
        return text.replace(self.before, self.after)


@lru_cache
def mutations() -> tuple[Mutation, ...]:
    """All of them, in the order of the file."""
    return tuple(Mutation(**entry) for entry in yaml.safe_load(LIST.read_text(encoding="utf-8")))
