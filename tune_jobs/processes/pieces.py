"""Types of pieces of work, and of what does them."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Protocol, TypeVar

Piece = TypeVar("Piece")
Found = TypeVar("Found")

LIMIT_S = 3600.0
"""How long to wait for the next piece."""


class Spread(Protocol):
    """Does pieces of work, and gives what comes out in their order, as soon as it is there."""

    def __call__(
        self, function: Callable[[Any, Piece], Found], shared: Any, pieces: Sequence[Piece]
    ) -> Iterable[Found]:
        """Calls a pure function.

        Args:
            function: of `shared` and a piece; a function of a module, by name.
            shared: what all pieces need.
            pieces: what differs.
        """
