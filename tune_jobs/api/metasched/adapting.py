"""Adaptation of a trained policy to a task."""

from dataclasses import replace
from pathlib import Path

from metasched.functions import shown, takes
from rllib_configs.policy_files import LearnedPolicy
from tune_jobs.adapting import one_task
from tune_jobs.adapting.many_tasks import study_adaptation
from tune_jobs.commands.adapting import Adapt, Study
from tune_jobs.tables.report import Report


@takes(Adapt)
def adapt(options: Adapt) -> list[LearnedPolicy]:
    """Adapts a policy to a task by a few gradient steps, as ``metasched adapt`` does, without Ray.

    >>> before, *_, after = adapt("runs/maml", ["objective=makespan", "workload.load=1.1"])

    Texts of a task change the one that the policy was trained on. Windows of recorded jobs are then
    those of the command, long and behind a warm-up. The folder `out` gets the last policy, which
    `load_policy` and `adapt` read.

    Returns:
        The policies after 0, 1, ... and all steps; they act in the world of the task.

    Raises:
        InputError: if there is no policy, it cannot be adapted, or a number is out of range.
    """
    folder = None if options.out is None else Path(options.out)
    one_task.check_new(folder)
    adapted = one_task.adapt(options)
    if folder is not None:
        adapted.save(folder, -1)
    return replace(adapted.adaptation, task=adapted.task).policies(options.decode)


@takes(Study)
def study(options: Study) -> Report:
    """Measures how runs adapt to held-out tasks of a family, as ``metasched study`` does.

    >>> study(["runs/maml-*"], num_tasks=4, out="adaptation")["maml-0"]

    Returns:
        The rows of each run as a data frame.

    Raises:
        InputError: if no run is named, one cannot be measured, or a number makes no sense.
    """
    return study_adaptation(options, shown(options.progress))
