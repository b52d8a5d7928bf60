"""Adaptation of a trained policy to a task."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from cluster_env.core.errors import InputError
from cluster_env.core.task import Task
from meta.adaptation import adapt_policy, load_meta_policy, save_adapted
from meta.tasks import read_task
from rllib_configs.policy_files import Decode, LearnedPolicy
from tune_jobs.adapting.windows import in_steady_operation


def adapt(
    run: str | Path,
    task: Task | Sequence[str],
    num_steps: int = 3,
    *,
    num_episodes: int = 20,
    num_jobsets: int = 4,
    rate: float | None = None,
    seed: int = 0,
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
    if folder is not None and folder.exists() and not _is_empty_folder(folder):
        raise InputError(f"{folder} is not empty; take a new folder for the adapted policy")
    policy = load_meta_policy(run, rate)
    if isinstance(task, Task):
        target, played, warmup = task, task, 0
    else:
        target = read_task(task, policy.task)
        played, warmup = in_steady_operation(target, task)
    adaptation = adapt_policy(
        policy,
        played,
        num_steps,
        num_episodes=num_episodes,
        num_jobsets=num_jobsets,
        seed=seed,
        warmup=warmup,
    )
    if folder is not None:
        save_adapted(policy, target, adaptation.parameters[-1], folder)
    return replace(adaptation, task=target).policies(decode)


def _is_empty_folder(path: Path) -> bool:
    return path.is_dir() and not any(path.iterdir())
