"""Settings of a task that commands offer as options of their own."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Shorthand:
    """A setting of a task that is an option of commands, too: ``--window 500``.

    Attributes:
        key: of the setting in a task: ``workload.window``.
        about: what it is, for --help.
        follows: other settings that go with it, by their keys, from the settings of a task that
            has it. What the user sets is left as it is.
    """

    key: str
    about: str
    follows: Callable[[Any], Mapping[str, Any]] = lambda task: {}
