"""What a benchmark ran on."""

import os
import platform
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from tune_jobs.tracking.provenance import processor

PACKAGES = ("metasched", "numpy", "numba", "gymnasium", "torch", "ray")


def machine() -> dict[str, Any]:
    """Cores, CPU and versions, as the entry ``machine``."""
    return {
        "name": "machine",
        "cores": len(os.sched_getaffinity(0)),
        "cpu": processor(),
        "memory_gib": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1),
        "load_average": os.getloadavg()[0],
        "system": f"{platform.system()} {platform.release()} {platform.machine()}",
        "python": platform.python_version(),
        "versions": {name: _version(name) for name in PACKAGES},
    }


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None
