"""What may differ from jobset to jobset of DeepRM's jobs."""

from dataclasses import dataclass

LOWEST_LOAD = 0.001
"""With less, hardly a jobset holds a job, and there is nothing to measure."""


@dataclass(frozen=True)
class Ranges:
    """What differs from jobset to jobset; see `cluster_env.worlds.deeprm.workloads.Mixture`.

    Attributes:
        load: lowest and highest load, drawn uniformly; one that a mix of jobs cannot reach becomes
            the highest that it can.
        window: arrival windows to choose from, in time steps.
        window_weights: how often each window is chosen, relative to the others; by default all
            equally often.
        window_loads: highest load at each window, in place of the highest of `load`: above 100 % a
            long window is only a longer queue.
        small_share: lowest and highest share of short jobs, drawn uniformly.
    """

    load: tuple[float, float] | None = None
    window: tuple[int, ...] = ()
    window_weights: tuple[float, ...] = ()
    window_loads: tuple[float, ...] = ()
    small_share: tuple[float, float] | None = None
