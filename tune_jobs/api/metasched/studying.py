"""Studies of adaptation: many tasks and several runs."""

from collections.abc import Sequence
from pathlib import Path

from meta.costs import Keep
from metasched.arguments import shown
from rllib_configs.policy_files import Decode
from tune_jobs.adapting.many_tasks import StudyOptions, study_adaptation
from tune_jobs.tables.report import Report

_STEPS = (0, 1, 2, 3, 5, 10)
_RATES = (0.0625, 0.125, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0)


def study(
    runs: Sequence[str],
    *,
    family: str | Path = "objectives",
    num_tasks: int = 40,
    task_seed: int = 0,
    num_seeds: int = 3,
    steps: Sequence[int] = _STEPS,
    num_episodes: int = 20,
    num_jobsets: int = 4,
    num_held_out: int = 100,
    decode: Decode = "argmax",
    keep: Keep = "last",
    rate: float | None = None,
    rates: Sequence[float] = _RATES,
    num_rate_tasks: int = 15,
    num_scratch: int = 0,
    scratch_times: int = 1,
    num_specialists: int = 0,
    num_iterations: int = 100,
    num_runners: int = 0,
    address: str | None = None,
    out: str | Path = "adaptation",
    track: bool = False,
    progress: bool = False,
) -> Report:
    """Measures how runs adapt to held-out tasks of a family, as ``metasched study`` does.

    >>> study(["runs/maml-*"], num_tasks=4, out="adaptation")["maml-0"]

    Args:
        runs: folders of runs and globs of them.
        family: name of a family of tasks, or a YAML file.
        num_tasks: held-out tasks.
        task_seed: of the tasks.
        num_seeds: adaptations of each task.
        steps: numbers of steps after which policies are evaluated.
        num_episodes: episodes of a step.
        num_jobsets: jobsets of a step.
        num_held_out: held-out jobsets of a task, over which costs are means.
        decode: how the policies act.
        keep: which policy is measured: the last one, or the best one so far.
        rate: inner rate of all runs; by default what a run learned, else the best of `rates`.
        rates: inner rates to choose from.
        num_rate_tasks: validation tasks to choose one on.
        num_scratch: untrained policies that are measured as well.
        scratch_times: steps of an untrained policy for each step of the others.
        num_specialists: tasks, beginning with the first, for each of which a policy is trained
            alone, from the one joint policy that is named.
        num_iterations: of the training of each specialist.
        num_runners: processes that measure.
        address: Ray cluster for them.
        out: folder for the rows; what it holds already is not measured again.
        track: whether MLflow records it beside the runs.
        progress: whether to show on stderr where it is.

    Returns:
        The rows of each run as a data frame.

    Raises:
        InputError: if no run is named, one cannot be measured, or a number makes no sense.
    """
    options = StudyOptions(
        runs=list(runs),
        family=str(family),
        num_tasks=num_tasks,
        task_seed=task_seed,
        num_seeds=num_seeds,
        steps=",".join(map(str, steps)),
        num_episodes=num_episodes,
        num_jobsets=num_jobsets,
        num_held_out=num_held_out,
        decode=decode,
        keep=keep,
        rate=rate,
        rates=",".join(map(str, rates)),
        num_rate_tasks=num_rate_tasks,
        num_scratch=num_scratch,
        scratch_times=scratch_times,
        num_specialists=num_specialists,
        num_iterations=num_iterations,
        num_runners=num_runners,
        address=address,
    )
    return study_adaptation(options, shown(progress), out=Path(out), track=track)
