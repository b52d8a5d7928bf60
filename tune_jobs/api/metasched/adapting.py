"""Adaptation of a trained policy to a task."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from cluster_env.task import Task
from metasched.arguments import Count, CountOrZero, Seed, Several
from rllib_configs.policy_files import Decode, LearnedPolicy
from tune_jobs.adapting import one_task
from tune_jobs.adapting.one_task import AdaptationOptions, check_new


def adapt(
    run: str | Path,
    task: Task | Sequence[str],
    num_steps: CountOrZero = 3,
    *,
    num_episodes: Several = 20,
    num_jobsets: Count = 4,
    rate: float | None = None,
    seed: Seed = 0,
    decode: Decode = "argmax",
    out: str | Path | None = None,
) -> list[LearnedPolicy]:
    """Adapts a trained policy to a task, by a few gradient steps; needs no Ray.

    >>> before, *_, after = adapt("runs/maml", ["objective=makespan", "workload.load=1.1"])

    Args:
        run: folder of a run that trained a set scorer, by ``maml`` or ``ppo``, or one that `out`
            named before.
        task: what to adapt to: a task, or texts as ``metasched adapt --task`` takes them, of which
            each that is a setting changes the task that the policy was trained on. Windows of
            recorded jobs are then those of the command, long and behind a warm-up.
        num_steps: gradient steps, 0 to 1000.
        num_episodes: episodes of a step, shared out evenly to its jobsets, at least 2 each.
        num_jobsets: jobsets of a step.
        rate: inner rate of all parameters; by default what the run has learned, else the one of
            its config, else 1.
        seed: of jobsets and actions; the same one gives the same bits.
        decode: how the policies act: the likeliest action, or with ``sample`` a drawn one.
        out: new or empty folder for the last policy, which `load_policy` and `adapt` read.

    Returns:
        The policies after 0, 1, ... and all steps; they act in the world of the task.

    Raises:
        InputError: if there is no policy, it cannot be adapted, or a number is out of range.
    """
    folder = None if out is None else Path(out)
    check_new(folder)
    adapted = one_task.adapt(
        AdaptationOptions(
            run=run,
            task=task,
            num_steps=num_steps,
            num_episodes=num_episodes,
            num_jobsets=num_jobsets,
            rate=rate,
            seed=seed,
        )
    )
    if folder is not None:
        adapted.save(folder, -1)
    return replace(adapted.adaptation, task=adapted.task).policies(decode)
