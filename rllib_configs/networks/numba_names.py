"""Makes numba tell compiled functions for structured arrays of different shapes apart.

Numba calls a compiled function after the types of its arguments, but the name of an array in a
record leaves out its shape, and a record is named after the order in which a process met it
(numba 0.68.1, `numba.core.types.NestedArray` and ``Record``, ``mangling_args``). Within a process a
running number makes up for it. Functions from the cache were numbered by other processes: two for
different shapes may have one name, and then the second is silently replaced by the first.

Call `install` before anything that takes such arrays is compiled.
"""

from hashlib import sha256
from typing import Any

from numba.core import types
from numba.core.types.containers import NamedTuple


def install() -> None:
    """Lets the names of these types say all that the types say; once or many times.

    Raises:
        RuntimeError: if this numba names types in another way, so that it cannot be helped so.
    """
    kinds: tuple[Any, ...] = (types.Record, types.NestedArray, NamedTuple)
    for kind in kinds:
        if not isinstance(getattr(kind, "mangling_args", None), property):
            raise RuntimeError(
                f"numba's {kind.__name__} has no property mangling_args, by which cached functions "
                "are told apart; install a version of numba that constraints.txt names"
            )
    for kind in kinds[:2]:
        # The type's class, and a short text that is another for every other type.
        kind.mangling_args = property(
            lambda one: (
                type(one).__name__,
                (f"h{sha256(repr(one.key).encode()).hexdigest()[:24]}",),
            )
        )
    # What a named tuple holds has such a name then.
    NamedTuple.mangling_args = property(lambda one: (one.instance_class.__name__, tuple(one.types)))
