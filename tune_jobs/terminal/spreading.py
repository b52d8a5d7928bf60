"""Many pieces of work, done here or by other processes: whatever does them, the same comes out."""

import multiprocessing
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from functools import lru_cache
from itertools import islice
from typing import Any, Protocol, TypeVar

from cluster_env.core.errors import Failure, InputError
from rllib_configs.extensions import load_extensions
from rllib_configs.schema import ExperimentConfig
from tune_jobs.terminal.capacity import cpus_for
from tune_jobs.terminal.progress import NoProgress
from tune_jobs.terminal.ray_session import check_placement, ray_session, resolve_address

Piece = TypeVar("Piece")
Found = TypeVar("Found")

LIMIT_S = 3600.0
"""How long to wait for the next piece."""


class Spread(Protocol):
    """Does pieces of work, and gives what comes out in their order, as soon as it is there."""

    def __call__(
        self, function: Callable[[Any, Piece], Found], shared: Any, pieces: Sequence[Piece]
    ) -> Iterable[Found]:
        """Calls a pure function.

        Args:
            function: of `shared` and a piece; a function of a module, by name.
            shared: what all pieces need.
            pieces: what differs.
        """


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
            raise InputError("--address names a cluster, so say how many --runners to use there")
        yield here
        return
    config = ExperimentConfig.model_validate({"resources": {"num_runners": runners}})
    check_placement(config, address)
    ray = sys.modules.get("ray")
    connected = ray is not None and ray.is_initialized()
    if resolve_address(address) in (None, "local") and not connected:
        with own_processes(runners) as spread:
            yield spread
        return
    with ExitStack() as stack:

        def spread_on_ray(
            function: Callable[[Any, Piece], Found], shared: Any, pieces: Sequence[Piece]
        ) -> Iterator[Found]:
            import ray

            if not ray.is_initialized():  # now that there is something to do
                stack.enter_context(ray_session(config, address))
            with cpus_for(config, say or NoProgress().say):
                pass  # Ray has tasks wait in line, and so needs nobody's turn
            return _on_ray(function, shared, pieces, runners)

        yield spread_on_ray


@contextmanager
def own_processes(count: int, limit_s: float = LIMIT_S) -> Iterator[Spread]:
    """Processes of this machine, for the time of a ``with`` block; without Ray.

    Args:
        count: how many.
        limit_s: how long to wait for the next piece.
    """
    import cloudpickle
    from joblib import Parallel, delayed, parallel_config
    from joblib.externals.loky import get_reusable_executor
    from joblib.externals.loky.process_executor import TerminatedWorkerError

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
                    "a process of a piece of work was killed, maybe for want of memory; give the "
                    "command again, with fewer --runners if that is so"
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
    import cloudpickle

    load_extensions()
    return cloudpickle.loads(packed)


def _on_ray(
    function: Callable[[Any, Piece], Found], shared: Any, pieces: Sequence[Piece], runners: int
) -> Iterator[Found]:
    """So many pieces at a time, taken as processes come free; joblib's Ray has no generators."""
    import ray
    from ray.exceptions import RayError, RayTaskError

    task = ray.remote(num_cpus=1)(lambda work, piece: work[0](work[1], piece))
    work, left = ray.put((function, shared)), iter(pieces)
    in_order: deque[Any] = deque()
    unfinished: list[Any] = []
    try:
        while True:
            new = [task.remote(work, piece) for piece in islice(left, runners - len(unfinished))]
            in_order += new
            unfinished += new
            if not in_order:
                return
            done, unfinished = ray.wait(unfinished, timeout=LIMIT_S)
            if not done:
                raise Failure(
                    f"no process has answered for {LIMIT_S:.0f} s, while {len(unfinished)} of "
                    f"{len(pieces)} pieces of work were under way; a machine may hang"
                )
            while in_order and in_order[0] not in unfinished:
                yield ray.get(in_order.popleft())
    except RayTaskError as error:
        cause = getattr(error, "cause", None)
        raise (cause if isinstance(cause, InputError | Failure) else error) from None
    except RayError as error:
        raise Failure(
            "the processes of a piece of work were lost again and again, maybe for want of "
            f"memory: {str(error).splitlines()[0]}"
        ) from error
    finally:
        for reference in unfinished:
            ray.cancel(reference)
