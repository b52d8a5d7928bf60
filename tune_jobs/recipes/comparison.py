"""Every rule and policy along the axis of a task."""

from cluster_env.core.errors import InputError
from tune_jobs.measuring.comparison import compare
from tune_jobs.recipes.request import FigureRequest
from tune_jobs.tables.frames import Row

VALUES_OF = {"deeprm": tuple(percent / 100 for percent in range(10, 191, 20))}
"""Values of a world's axis that lines are drawn along by default: DeepRM's loads of its figure 4,
whose 190 % means a job in every step, which is a load of 184.5 %."""


def collect(request: FigureRequest) -> list[Row]:
    """Evaluates all heuristics of the world and the runs' policies along the axis.

    Returns:
        The rows of `tune_jobs.measuring.comparison.compare`. ``win_rate`` is the share of jobsets
        on which a policy's mean is at least as good as the best of the world's baselines there; a
        jobset that it leaves unfinished is lost. ``within_2`` is the share of jobs with a slowdown
        of at most 2.

    Raises:
        InputError: if a run cannot be used, or the jobs are as they are.
    """
    runs, config = request.load()
    protocol = request.protocol(config, cap=True)
    task = protocol.task
    if not task.has_axis:
        raise InputError(
            f"this figure draws lines, but {task.spec.presentation.words(task)} has only "
            "one value; use metasched compare --out FOLDER, or synthetic jobs"
        )
    values = request.at or VALUES_OF.get(task.world.kind, ())
    if not values:
        raise InputError("this figure draws lines: give the values along them with --at")
    # Of the values that the workload cannot reach, the first stands for all.
    used = [protocol.at(value).task.position for value in values]
    reachable = [value for k, value in enumerate(values) if used[k] not in used[:k]]
    specs = request.specs(task.spec.heuristics.names(), runs)
    return compare(protocol, specs, reachable, request.work)
