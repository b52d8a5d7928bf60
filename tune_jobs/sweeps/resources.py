"""What trials take of a cluster, checked before Ray Tune would wait for it."""

import time

from cluster_env.core.errors import InputError
from rllib_configs.schema import ExperimentConfig

_PATIENCE_S = 2.0
_LONG_PATIENCE_S = 15.0


def cpus_of(config: ExperimentConfig) -> int:
    """CPUs that a trial takes: itself and its runners."""
    return 1 + config.resources.num_runners


def check_cpus(config: ExperimentConfig, total: float, free: float) -> None:
    """Makes sure that a trial can start; Ray Tune would wait for ever.

    Args:
        config: of the trial that needs most.
        total: CPUs that there are.
        free: those that nobody else uses.

    Raises:
        InputError: if there are too few.
    """
    needed = cpus_of(config)
    if needed <= free:
        return
    what = f"a trial needs {needed} CPUs (1 + {config.resources.num_runners} runners)"
    if needed > total:
        raise InputError(
            f"{what}, but there are {total:g}; set resources.num_runners lower, or use a larger "
            f"cluster with --address"
        )
    raise InputError(
        f"{what}, but of {total:g} only {free:g} are free; wait until others have finished"
    )


def num_slots(wanted: int, num_trials: int, free: float, per_trial: int) -> int:
    """Trials at a time.

    Args:
        wanted: by the user; 0 for as many as possible.
        num_trials: how many there are.
        free: CPUs.
        per_trial: CPUs of a trial.
    """
    return max(1, min(wanted or num_trials, num_trials, int(free // per_trial)))


def free_cpus(wanted: float, needed: float) -> float:
    """CPUs of the Ray that this process is connected to that nobody uses.

    Waits a moment for those of a process that is just ending.

    Args:
        wanted: with so many it does not wait at all.
        needed: with fewer it waits longer.
    """
    import ray

    began = time.monotonic()
    while True:
        free = float(ray.available_resources().get("CPU", 0.0))
        waited = time.monotonic() - began
        if free >= wanted or waited > (_PATIENCE_S if free >= needed else _LONG_PATIENCE_S):
            return free
        time.sleep(0.1)
