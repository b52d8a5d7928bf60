"""How tables, figures and messages name the jobs that numbers rest on."""


def on_jobs(load: float, trace: str = "") -> str:
    """Says which jobs: ``at load 70%``, or ``on the trace jobs.csv (load 62%)``.

    Args:
        load: asked for, or measured where there is a trace.
        trace: name of the trace's file; empty for made-up jobs.
    """
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


def trained_on(load: float, trace: str = "") -> str:
    """Says what a policy was trained on: ``trained at 70%``, or ``trained on jobs.csv``.

    Args:
        load: of the made-up jobs that it was trained on.
        trace: name of the file that it was trained on instead; empty for none.
    """
    return f"trained on {trace}" if trace else f"trained at {load:.0%}"
