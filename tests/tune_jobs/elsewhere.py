"""Pieces of work done as other processes do them, without any."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import cloudpickle


def elsewhere(
    function: Callable[[Any, Any], Any], shared: Any, pieces: Sequence[Any]
) -> Iterator[Any]:
    """As other processes do pieces: with copies, and nothing but what can travel."""
    packed = cloudpickle.dumps((function, shared))
    for piece in pieces:
        own, common = cloudpickle.loads(packed)
        found = own(common, cloudpickle.loads(cloudpickle.dumps(piece)))
        yield cloudpickle.loads(cloudpickle.dumps(found))
