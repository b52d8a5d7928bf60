"""DeepRM's jobs by their rate of arrival."""

from dataclasses import replace
from typing import Any

from cluster_env.worlds.deeprm.workloads import LOWEST_LOAD, BimodalWorkload


def at_rate(arrival_rate: float, **options: Any) -> BimodalWorkload:
    """The workload whose probability of an arrival in a step is given instead of its load."""
    least = BimodalWorkload(load=LOWEST_LOAD, **options)
    return replace(least, load=arrival_rate * least.max_load)
