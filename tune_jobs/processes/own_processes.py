"""Pieces of work done by processes of this machine, without Ray."""

import multiprocessing
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from functools import lru_cache
from typing import Any

import cloudpickle
from joblib import Parallel, delayed, parallel_config
from joblib.externals.loky import get_reusable_executor
from joblib.externals.loky.process_executor import TerminatedWorkerError

from cluster_env.core.errors import Failure
from rllib_configs.config.extensions import load_extensions
from tune_jobs.processes.pieces import LIMIT_S, Found, Piece, Spread


@contextmanager
def own_processes(count: int, limit_s: float = LIMIT_S) -> Iterator[Spread]:
    """Processes of this machine, for the time of a ``with`` block; without Ray.

    Args:
        count: how many.
        limit_s: how long to wait for the next piece.
    """

    def spread(
        function: Callable[[Any, Piece], Found], shared: Any, pieces: Sequence[Piece]
    ) -> Iterator[Found]:
        packed = cloudpickle.dumps((function, shared))
        with (
            parallel_config(backend="loky", inner_max_num_threads=1),
            Parallel(
                count, return_as="generator", batch_size=1, timeout=limit_s, max_nbytes=None
            ) as parallel,
            closing(parallel(delayed(_do)(packed, piece) for piece in pieces)) as results,
        ):
            try:
                yield from results
            except TerminatedWorkerError:
                raise Failure(
                    "a worker process was killed, perhaps because memory ran out; if so, "
                    "give the command again with fewer --runners"
                ) from None
            except multiprocessing.TimeoutError:
                sentence = f"no process has answered for {limit_s:.0f} s; one may hang"
                raise Failure(sentence) from None

    try:
        yield spread
    finally:
        get_reusable_executor().shutdown(wait=True, kill_workers=True)


def _do(packed: bytes, piece: Any) -> Any:
    """In another process."""
    function, shared = _unpacked(packed)
    return function(shared, piece)


@lru_cache(maxsize=1)
def _unpacked(packed: bytes) -> Any:
    """What all pieces share, read once by each process."""
    load_extensions()
    return cloudpickle.loads(packed)
