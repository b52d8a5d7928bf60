"""What `metasched.record` does: plays jobsets with advised agents, and keeps what they did."""

from pathlib import Path
from typing import Any

from cluster_env.core.errors import InputError
from cluster_env.core.seeding import Split
from rllib_configs.config.loading import load_config
from rllib_configs.policy_files import load_policy, read_policy_config
from tune_jobs.commands.results import Record
from tune_jobs.commands.shared import texts_of
from tune_jobs.measuring.trained_runs import is_heuristic


def record_consumers(options: Record) -> None:
    """Writes the records.

    Raises:
        InputError: if there is no such policy, its agents do not weigh plans, or the file cannot be
            written.
    """
    source, overrides, path = str(options.policy), texts_of(options.changes), Path(options.path)
    trained = Path(source).is_dir()
    if trained and overrides:
        raise InputError("a run has its settings, and takes no changes; leave them out")
    if not trained and is_heuristic(source):
        raise InputError(
            f"{source} is a heuristic, but records are made by agents that learn: give a run, or a "
            "preset such as panda-elastic"
        )
    config = read_policy_config(source) if trained else load_config(source, overrides)
    if config.training.network != "policy_advisor":
        raise InputError(
            f"records are made by agents with the network policy_advisor, but {source} has "
            f"{config.training.network}"
        )
    if config.training.actor != "plans":  # before a tree of consumers is made
        raise InputError("records are made by actors that weigh plans; take training.actor=plans")
    # Only now, because it imports PyTorch, which takes longer than all checks before.
    from meta.panda.advisor import initial_advisor
    from meta.panda.records import record_episodes

    network: Any
    if trained:
        sampler: Any = load_policy(source)[0].network
        network = sampler.network
    else:
        network = initial_advisor(config, config.task.world)
    task = config.task.build(seed=config.seed)
    jobsets = task.jobsets(Split.TRAIN, range(options.num_jobsets))
    records = record_episodes(
        network, task, jobsets, options.num_episodes, options.noise, seed=options.seed
    )
    try:
        records.write(path)
    except OSError as error:
        raise InputError(f"cannot write {path}: {error.strerror or error}") from None
