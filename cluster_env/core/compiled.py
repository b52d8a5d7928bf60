"""numba's ``njit`` for kernels that call each other across files.

numba keeps what it has compiled and looks at a function's own file to see whether that still holds.
What the function calls is compiled into it, though. Kernels that get ``njit`` from here are
compiled again when any file with kernels has changed; see `cluster_env.core.kernel_cache`.
"""

from numba import get_num_threads, njit, prange
from numba.core import caching, config

from cluster_env.core.kernel_cache import LockedCacheFile

__all__ = ["get_num_threads", "njit", "prange"]

_LOCATORS = ("InstalledCopy", "GivenFolder", "SourceFolder", "UserFolder")

caching.IndexDataCacheFile = LockedCacheFile  # runners that start together compile together

if not config.CACHE_LOCATOR_CLASSES:  # the user's own choice
    config.CACHE_LOCATOR_CLASSES = ",".join(
        f"cluster_env.core.kernel_cache.{name}Locator" for name in _LOCATORS
    )
