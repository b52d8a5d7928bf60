"""What ``metasched record`` does: plays jobsets with advised agents, and keeps what they did."""

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import numpy as np

from cluster_env.core.errors import InputError
from cluster_env.core.seeding import Split
from rllib_configs.loading import load_config
from rllib_configs.schema import ExperimentConfig
from tune_jobs.terminal.running import program

if TYPE_CHECKING:
    from meta.panda.advisor import PolicyAdvisor


def record_consumers(
    *,
    source: str,
    path: Path,
    overrides: Sequence[str],
    num_jobsets: int,
    episodes: int,
    noise: float,
    seed: int,
) -> None:
    """Writes the records; the arguments are the options of the command.

    Raises:
        InputError: if there is no such policy, its agents do not weigh plans, or the file cannot be
            written.
    """
    network, config = _agents(source, overrides)
    from meta.panda.records import record_episodes

    if not path.absolute().parent.is_dir():
        raise InputError(f"cannot write {path}: there is no folder {path.absolute().parent}")
    task = config.task.build(seed=config.seed)
    jobsets = task.jobsets(Split.TRAIN, range(num_jobsets))
    records = record_episodes(network, task, jobsets, episodes, noise, seed=seed)
    try:
        records.write(path)
    except OSError as error:
        raise InputError(f"cannot write {path}: {error.strerror or error}") from None
    times = records.wait + records.use
    click.echo(
        f"Wrote the records of {len(times):,} consumers in {num_jobsets * episodes:,} episodes, "
        f"mean total time {np.mean(times):.1f} steps, to {path}"
    )
    settings = [*overrides, "training.algorithm=offline", f"training.records={path}"]
    shown = " ".join(f"--set {shlex.quote(setting)}" for setting in settings)
    preset = config.name if Path(source).is_dir() else shlex.quote(source)
    click.echo(f"Next     {program()} train {preset} {shown}")


def _agents(source: str, overrides: Sequence[str]) -> "tuple[PolicyAdvisor, ExperimentConfig]":
    """The advisor of a run, or of a preset before its training, and its config."""
    if not Path(source).is_dir():
        config = load_config(source, overrides)
        _require_advisor(config, source)
        from meta.panda.advisor import initial_advisor

        return initial_advisor(config, config.task.world), config
    if overrides:
        raise InputError("--set changes a preset, but a run has its settings; leave it out")
    from rllib_configs.policy_files import load_policy, read_policy_config

    _require_advisor(read_policy_config(source), source)
    policy, config = load_policy(source)
    sampler: Any = policy.network
    return sampler.network, config


def _require_advisor(config: ExperimentConfig, source: str) -> None:
    """Refuses what has no agents with actors of their own."""
    if config.training.network != "policy_advisor":
        raise InputError(
            f"records are made by agents with the network policy_advisor, but {source} has "
            f"{config.training.network}"
        )
