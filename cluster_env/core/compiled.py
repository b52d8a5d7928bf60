"""numba's ``njit`` for kernels that call each other across files.

What is compiled is kept in a folder of our own, and compiled again when any kernel has changed; see
`cluster_env.core.kernel_cache`.
"""

import time
from collections.abc import Callable, Iterator
from typing import Any

import numba
import numpy as np
from numba.extending import overload

from cluster_env.core.kernel_cache import KernelCache
from cluster_env.core.parts import KernelCompiler, PartCompiler, call_at, reference

__all__ = [
    "FALSE",
    "TRUE",
    "ZERO",
    "call_at",
    "callable_at",
    "new_records",
    "njit",
    "njit_called",
    "njit_called_where",
    "njit_either",
    "njit_inlined",
    "njit_kernel",
    "reference",
    "slices",
]

Function = Callable[..., Any]

_CALLED = {"nogil": True, "_nrt": False, "no_cpython_wrapper": True, "no_cfunc_wrapper": True}
_INLINED = {**_CALLED, "forceinline": True}

ZERO: int = np.int64(0)  # type: ignore[assignment]
"""A 0 that kernels begin with. To numba the literal 0 is of a type of its own: a function that is
called with it once and with other numbers elsewhere would be compiled twice."""

FALSE: bool = np.False_  # type: ignore[assignment]
TRUE: bool = np.True_  # type: ignore[assignment]
"""What kernels hand over where other calls hand over what they find out, as `ZERO`."""


def new_records(shape: int | tuple[int, ...], fields: np.dtype[Any]) -> Any:
    """Records of zeros, ``shape``, of whose fields a type checker knows nothing.

    Fields are attributes in plain Python, too, as compiled code has them. No field may have the
    name of an attribute of numpy's records, as ``size``.
    """
    return np.zeros(shape, fields).view(np.recarray)


def slices(first: int) -> Iterator[int]:
    """How many steps compiled code may take at a time, without end, and ``first`` so many.

    Python heeds no signal before compiled code comes back. So the numbers are such that this takes
    about a tenth of a second, by how long the last one took whoever asks for the next.
    """
    steps = first
    while True:
        begin = time.monotonic()
        yield steps
        steps = 2 * steps if time.monotonic() - begin < 0.1 else max(steps // 2, 1)


def njit(**options: Any) -> Callable[[Function], Function]:
    """Compiles a function, with options of ``numba.njit``, and keeps what was compiled."""
    options.pop("cache", None)

    def compiled(function: Function) -> Function:
        dispatcher = numba.njit(**options, pipeline_class=KernelCompiler)(function)
        if not numba.config.DISABLE_JIT:  # then it is the function itself
            dispatcher._cache = KernelCache(function)  # as `enable_caching` sets numba's own
        return dispatcher

    return compiled


def njit_kernel(function: Function) -> Function:
    """Compiles a kernel that allocates nothing: whoever calls it brings all the room it needs.

    So nothing has to count references to arrays, which else costs more than the work itself
    wherever a kernel takes arrays out of a named tuple.
    """
    return njit(nogil=True, _nrt=False, no_cfunc_wrapper=True)(function)


def njit_inlined(function: Function) -> Function:
    """Compiles a part of such kernels into each place that calls it; nothing else may.

    A real call hands over every field of every array that a named tuple holds, hundreds of words.
    There is no way in from Python and nothing is kept on disk, which halves the time to compile.
    """
    compiled: Function = numba.njit(**_INLINED, pipeline_class=PartCompiler)(function)
    return compiled


def njit_called(function: Function) -> Function:
    """Compiles a part of such kernels once, however many places call it.

    It is for parts that work for much longer than it takes to call them, see `njit_inlined`.
    """
    compiled: Function = numba.njit(**_CALLED, pipeline_class=PartCompiler)(function)
    return compiled


def callable_at(function: Callable[[float, float, float], float]) -> Any:
    """Compiles a function of three numbers, which kernels call at the ``address`` of the result.

    So kernels need not be compiled again for it. It is there as long as the result is kept.
    """
    return numba.cfunc("float64(float64, float64, float64)")(function)


def njit_either(without: Any, having: Any, field: str, at: int = 0) -> Function:
    """One function for kernels, of two parts of them with the same arguments.

    ``without`` is called where a field of the argument at a place, a named tuple, is None, and
    ``having`` where it is not. Types decide that, so that a kernel has the code of one alone.
    Each part is compiled as it is elsewhere, into its callers or once.
    """

    def chosen(*args: Any) -> Any:  # in plain Python, which has no way into a compiled part
        part = without if getattr(args[at], field) is None else having
        return getattr(part, "py_func", part)(*args)

    def offer(part: Any, absent: bool) -> None:
        options = {**part.targetoptions, "pipeline_class": PartCompiler}

        @overload(chosen, jit_options=options, strict=False)
        def _of_types(*args: Any) -> Any:
            kind = args[at]
            none = isinstance(kind.types[kind.fields.index(field)], numba.types.NoneType)
            return part.py_func if none == absent else None

    if not numba.config.DISABLE_JIT:
        offer(without, True)
        offer(having, False)
    chosen.parts = (without, having)  # type: ignore[attr-defined]  # for whoever asks what is called
    return chosen


def njit_called_where(field: str, at: int = 0) -> Callable[[Function], Function]:
    """Compiles a part of kernels into its callers, but once where a field is not None.

    The field is of the argument at a place, as in `njit_either`.
    """

    def compiled(function: Function) -> Function:
        return njit_either(njit_inlined(function), njit_called(function), field, at)

    return compiled
