"""Pieces of work done by tasks of Ray; see `tune_jobs.processes.spreading`."""

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from itertools import islice
from typing import Any

import ray
from ray.exceptions import RayError, RayTaskError

from cluster_env.core.errors import Failure, InputError
from rllib_configs.config.schema import ExperimentConfig
from tune_jobs.processes.capacity import cpus_for
from tune_jobs.processes.pieces import LIMIT_S, Found, Piece, Spread
from tune_jobs.processes.ray_session import ray_session


@contextmanager
def ray_tasks(
    config: ExperimentConfig, address: str | None, say: Callable[[str], None]
) -> Iterator[Spread]:
    """Something that does pieces of work, for the time of a ``with`` block.

    Args:
        config: says how many pieces are done at a time, each by a process as it comes free.
        address: of a Ray cluster, which is joined once there is something to do, unless this
            process is connected to one.
        say: told what it waits for where others have the CPUs.
    """
    with ExitStack() as stack:

        def spread(
            function: Callable[[Any, Piece], Found], shared: Any, pieces: Sequence[Piece]
        ) -> Iterator[Found]:
            if not ray.is_initialized():
                stack.enter_context(ray_session(config, address))
            with cpus_for(config, say):
                pass  # Ray has tasks wait in line, and so needs nobody's turn
            return _results(function, shared, pieces, config.resources.num_runners)

        yield spread


def _results(
    function: Callable[[Any, Piece], Found], shared: Any, pieces: Sequence[Piece], runners: int
) -> Iterator[Found]:
    """What comes out of the pieces, in their order; joblib's Ray has no generators."""
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
                    f"no process has answered for {LIMIT_S:.0f} s, with {len(unfinished)} "
                    f"of {len(pieces)} tasks unfinished; a machine may hang"
                )
            while in_order and in_order[0] not in unfinished:
                yield ray.get(in_order.popleft())
    except RayTaskError as error:
        cause = getattr(error, "cause", None)
        raise (cause if isinstance(cause, InputError | Failure) else error) from None
    except RayError as error:
        raise Failure(
            "worker processes were lost repeatedly, perhaps because memory ran out: "
            f"{str(error).splitlines()[0]}"
        ) from error
    finally:
        for reference in unfinished:
            ray.cancel(reference)
