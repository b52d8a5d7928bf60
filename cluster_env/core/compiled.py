"""numba's ``njit`` for kernels that call each other across files.

numba keeps what it has compiled and looks at a function's own file to see whether that still holds.
What the function calls is compiled into it, though. Kernels that get ``njit`` from here are
compiled again when any file with kernels has changed; see `cluster_env.core.kernel_cache`.
"""

from collections.abc import Callable
from typing import Any

from numba import njit
from numba.core import caching, config

from cluster_env.core.kernel_cache import LockedCacheFile

__all__ = ["njit", "njit_inlined", "njit_kernel"]

Function = Callable[..., Any]

_LOCATORS = ("InstalledCopy", "GivenFolder", "SourceFolder", "UserFolder")

caching.IndexDataCacheFile = LockedCacheFile  # runners that start together compile together

if not config.CACHE_LOCATOR_CLASSES:  # the user's own choice
    config.CACHE_LOCATOR_CLASSES = ",".join(
        f"cluster_env.core.kernel_cache.{name}Locator" for name in _LOCATORS
    )


def njit_kernel(function: Function) -> Function:
    """Compiles a kernel that allocates nothing: whoever calls it brings all the room it needs.

    So nothing has to count references to arrays, which else costs more than the work itself
    wherever a kernel takes arrays out of a named tuple.
    """
    compiled: Function = njit(cache=True, nogil=True, _nrt=False)(function)
    return compiled


def njit_inlined(function: Function) -> Function:
    """Compiles a part of such kernels into each place that calls it; nothing else may.

    A real call hands over every field of every array that a named tuple holds, hundreds of words.
    There is no way in from Python and nothing is kept on disk, which halves the time to compile.
    """
    compiled: Function = njit(
        nogil=True, _nrt=False, forceinline=True, no_cpython_wrapper=True, no_cfunc_wrapper=True
    )(function)
    return compiled
