"""Many pieces of work, done here or by runners of a Ray: whatever does them, the same comes out."""

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from time import monotonic
from typing import Any, Protocol, TypeVar

from cluster_env.core.errors import Failure, InputError
from rllib_configs.schema import ExperimentConfig
from tune_jobs.terminal.capacity import cpus_for
from tune_jobs.terminal.own_processes import ATTEMPTS, FACTOR, LEAST_S, OwnProcesses
from tune_jobs.terminal.progress import NoProgress
from tune_jobs.terminal.ray_session import check_placement, ray_session, resolve_address

Piece = TypeVar("Piece")
Found = TypeVar("Found")


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

    Without a cluster, and without a Ray that this process is connected to, the processes are those
    of `OwnProcesses`.

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
    with ExitStack() as stack:
        if resolve_address(address) in (None, "local") and not _is_connected():
            yield stack.enter_context(closing(OwnProcesses(runners))).spread
            return

        def spread(
            function: Callable[[Any, Piece], Found], shared: Any, pieces: Sequence[Piece]
        ) -> Iterator[Found]:
            _begin(stack, config, address, say or NoProgress().say)
            return _on_ray(function, shared, pieces, runners)

        yield spread


def _is_connected() -> bool:
    ray = sys.modules.get("ray")
    return ray is not None and ray.is_initialized()


def _begin(
    stack: ExitStack, config: ExperimentConfig, address: str | None, say: Callable[[str], None]
) -> None:
    """Connects to Ray, once there is something to do, and waits for CPUs."""
    import ray

    if not ray.is_initialized():
        stack.enter_context(ray_session(config, address))
    with cpus_for(config, say):
        pass  # Ray has tasks wait in line, and so needs nobody's turn


def _on_ray(
    function: Callable[[Any, Piece], Found], shared: Any, pieces: Sequence[Piece], runners: int
) -> Iterator[Found]:
    """So many pieces at a time, taken as processes come free."""
    import ray

    task = ray.remote(num_cpus=1, max_retries=ATTEMPTS)(_do)
    given = ray.put((function, shared))
    waiting: dict[Any, int] = {}
    found: dict[int, Any] = {}
    asked, longest_s, since = 0, 0.0, monotonic()
    try:
        for wanted in range(len(pieces)):
            while wanted not in found:
                while asked < len(pieces) and len(waiting) < runners:
                    waiting[task.remote(given, pieces[asked])] = asked
                    asked += 1
                limit_s = max(LEAST_S, FACTOR * longest_s)
                ready, _ = ray.wait(list(waiting), num_returns=1, timeout=limit_s)
                if not ready:
                    raise Failure(
                        f"no process has answered for {limit_s:.0f} s, while "
                        f"{len(waiting)} of {len(pieces)} pieces of work were under way; a machine "
                        f"may hang"
                    )
                found[waiting.pop(ready[0])] = _answer(ready[0])
                longest_s, since = max(longest_s, monotonic() - since), monotonic()
            yield found.pop(wanted)
    finally:
        for reference in waiting:
            ray.cancel(reference)


def _do(given: tuple[Callable[[Any, Any], Any], Any], piece: Any) -> Any:
    function, shared = given
    return function(shared, piece)


def _answer(reference: Any) -> Any:
    """What a process has answered.

    Raises:
        InputError: as it was raised there.
        Failure: if it was lost too often.
    """
    import ray
    from ray.exceptions import RayError, RayTaskError

    try:
        return ray.get(reference)
    except RayTaskError as error:
        cause = getattr(error, "cause", None)
        raise (cause if isinstance(cause, InputError | Failure) else error) from None
    except RayError as error:
        raise Failure(
            f"the processes of a piece of work were lost {ATTEMPTS + 1} times, maybe for want of "
            f"memory: {str(error).splitlines()[0]}"
        ) from error
