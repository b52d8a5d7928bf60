"""How tables, figures and messages name the jobs that numbers rest on."""

from rllib_configs.task_schema import WorkloadSection


def on_jobs(load: float, trace: str = "", mixture: str = "") -> str:
    """Says which jobs: ``at load 70%``, or ``on the trace jobs.csv (load 62%)``.

    Args:
        load: asked for, or measured where there is a trace.
        trace: name of the trace's file; empty for made-up jobs.
        mixture: what `mixture_of` calls jobs that vary; empty for others.
    """
    if mixture:
        return f"on {mixture}"
    return f"on the trace {trace} (load {load:.0%})" if trace else f"at load {load:.0%}"


def arriving(window: object, warmup: float = 0) -> str:
    """Says which arrivals count: ``arrival window 50 steps``, or a part of it.

    Args:
        window: steps in which jobs may arrive.
        warmup: steps at both of its ends whose jobs do not count; NaN stands for 0.
    """
    if not warmup > 0:
        return f"arrival window {window} steps"
    last = int(float(str(window))) - int(warmup) - 1
    return f"jobs that arrive in steps {warmup:.0f} to {last} of {window}"


def trained_on(load: float, trace: str = "", mixture: str = "") -> str:
    """Says what a policy was trained on: ``trained at 70%``, or ``trained on jobs.csv``.

    Args:
        load: of the made-up jobs that it was trained on.
        trace: name of the file that it was trained on instead; empty for none.
        mixture: what `mixture_of` calls the jobs that it was trained on; empty for others.
    """
    jobs = trace or mixture
    return f"trained on {jobs}" if jobs else f"trained at {load:.0%}"


def mixture_of(workload: WorkloadSection) -> str:
    """Names jobs that vary: ``loads 10 to 184%, windows 50 to 500``; empty if none do."""
    vary = workload.vary
    if not vary.anything:
        return ""
    parts = [f"loads {_range(*vary.load)}" if vary.load else f"load {workload.load:.0%}"]
    if vary.window:
        low, high = min(vary.window), max(vary.window)
        parts.append(f"windows {low} to {high}" if low < high else f"window {low}")
    if vary.small_share:
        parts.append(f"short jobs {_range(*vary.small_share)}")
    return ", ".join(parts)


def _range(low: float, high: float) -> str:
    """``10 to 184%``."""
    return f"{100 * low:.0f} to {high:.0%}"
