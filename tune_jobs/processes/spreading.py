"""Many pieces of work, done here or by other processes: whatever does them, the same comes out."""

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from cluster_env.core.errors import InputError
from rllib_configs.config.schema import ExperimentConfig
from tune_jobs.processes.pieces import Found, Piece, Spread
from tune_jobs.processes.ray_session import check_placement, resolve_address
from tune_jobs.terminal.progress import NoProgress
from tune_jobs.terminal.running import prepare_environment


def here(
    function: Callable[[Any, Piece], Found], shared: Any, pieces: Sequence[Piece]
) -> Iterator[Found]:
    """All in this process, each when it is asked for; see `Spread`."""
    return (function(shared, piece) for piece in pieces)


@contextmanager
def spreading(
    runners: int, address: str | None = None, say: Callable[[str], None] | None = None
) -> Iterator[Spread]:
    """Something that does pieces of work, for the time of a ``with`` block.

    Without a cluster, and without a Ray that this process is connected to, that are processes of
    this machine: Ray takes eight seconds to start on two cores, as long as many a comparison.

    Args:
        runners: processes, each with one CPU; 0: all is done in this one.
        address: of a Ray cluster, see `ray_session`; by default there is none.
        say: told what it waits for where others have the CPUs; by default nobody is.

    Raises:
        InputError: if there are fewer CPUs, or there is no cluster at the address.
        Failure: if they have not come free in time; see `cpus_for`.
    """
    if not runners:
        if address:
            raise InputError(
                "--address names a cluster, so give the number of --runners to use there"
            )
        yield here
        return
    config = ExperimentConfig.model_validate({"resources": {"num_runners": runners}})
    check_placement(config, address)
    if resolve_address(address) in (None, "local") and not _is_connected():
        from tune_jobs.processes.own_processes import own_processes

        with own_processes(runners) as spread:
            yield spread
        return
    prepare_environment()  # Ray reads it when it is imported
    from tune_jobs.processes.ray_tasks import ray_tasks

    with ray_tasks(config, address, say or NoProgress().say) as spread:
        yield spread


def _is_connected() -> bool:
    """Whether this process uses a Ray already; one that has not imported it does not."""
    ray = sys.modules.get("ray")
    return ray is not None and ray.is_initialized()
