"""This process and others of its machine, which do pieces of work side by side; without Ray.

Ray takes eight seconds to start on two cores, as long as many a comparison. Other processes take
two or three, and this one works meanwhile.
"""

from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from time import monotonic
from typing import Any, TypeVar
from uuid import uuid4

from cluster_env.core.errors import Failure
from rllib_configs.extensions import load_extensions

Piece = TypeVar("Piece")
Found = TypeVar("Found")

ATTEMPTS = 3
"""Times that a piece is done again after its process was lost."""
FACTOR, LEAST_S = 20.0, 900.0
"""How long to wait for the next piece: so many times what one took so far, and at least so long."""

_ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")

_given: tuple[str, Any] = ("", None)


class OwnProcesses:
    """See this module.

    Args:
        count: processes, this one among them.
    """

    def __init__(self, count: int) -> None:
        self._others = count - 1
        self._pool: Any = None
        for _ in range(self._others):  # they start at once
            self.submit(load_extensions)

    def close(self) -> None:
        """Ends the others, whatever they are at."""
        if self._pool is not None:
            self._pool.shutdown(wait=True, kill_workers=True)
            self._pool = None

    def spread(
        self, function: Callable[[Any, Piece], Found], shared: Any, pieces: Sequence[Piece]
    ) -> Iterator[Found]:
        """See `tune_jobs.terminal.spreading.Spread`.

        Raises:
            Failure: if a process does not answer, or is lost too often.
        """
        work = _Work(self, function, shared, pieces)
        for wanted in range(len(pieces)):
            while wanted not in work.found:
                work.go_on()
            yield work.found.pop(wanted)

    def submit(self, *task: Any) -> tuple[Any, Any]:
        """Hands a task to one of the others; returns its future, and the pool that it is in."""
        from concurrent.futures import BrokenExecutor

        from joblib.externals.loky import ProcessPoolExecutor

        while True:
            if self._pool is None:
                self._pool = ProcessPoolExecutor(self._others, env=_ONE_THREAD)
            pool = self._pool
            try:
                return pool.submit(*task), pool
            except BrokenExecutor:
                self.drop(pool)

    def drop(self, pool: Any) -> None:
        """Takes note that a process of a pool was lost, and with it all others of it."""
        if pool is self._pool:
            self.close()

    def ahead(self, left: int) -> int:
        """Tasks that the others are given: the next one waits there while this process works.

        Args:
            left: tasks that nobody has been given; of the last ones, each waits here.
        """
        return self._others * (2 if left > 2 * self._others else 1)


class _Work:
    """Pieces that are under way.

    Attributes:
        found: what came of pieces, by index.
    """

    def __init__(
        self, processes: OwnProcesses, function: Any, shared: Any, pieces: Sequence[Any]
    ) -> None:
        import cloudpickle

        self.found: dict[int, Any] = {}
        self._processes, self._function = processes, function
        self._shared, self._pieces = shared, pieces
        self._given = (uuid4().hex, cloudpickle.dumps((function, shared)))
        self._left = deque(range(len(pieces)))
        self._asked: dict[Any, tuple[int, Any]] = {}  # by future: index, and its pool
        self._lost: Counter[int] = Counter()
        self._longest_s, self._since = 0.0, monotonic()

    def go_on(self) -> None:
        """Hands out pieces, does one, and takes what has come; or waits, if nothing is left."""
        from concurrent.futures import FIRST_COMPLETED, wait

        left, limit_s = self._left, 0.0
        while left and len(self._asked) < self._processes.ahead(len(left)):
            if len(left) == 1 and not self._lost[left[0]]:
                break  # it is done here
            index = left.popleft()
            future, pool = self._processes.submit(_do, *self._given, self._pieces[index])
            self._asked[future] = index, pool
        here = next((index for index in left if not self._lost[index]), None)
        if here is not None:  # what may take a process with it is not done in this one
            left.remove(here)
            self.found[here] = self._function(self._shared, self._pieces[here])
        else:
            limit_s = max(LEAST_S, FACTOR * self._longest_s)
        done, _ = wait(self._asked, limit_s, FIRST_COMPLETED)
        for future in done:
            self._take(future)
        if not done and limit_s and self._asked:
            raise Failure(
                f"no process has answered for {limit_s:.0f} s, while {len(self._asked)} of "
                f"{len(self._pieces)} pieces of work were under way; one may hang"
            )
        self._longest_s = max(self._longest_s, monotonic() - self._since)
        self._since = monotonic()

    def _take(self, future: Any) -> None:
        from concurrent.futures import BrokenExecutor

        index, pool = self._asked.pop(future)
        try:
            self.found[index] = future.result()
        except BrokenExecutor as error:
            self._lost[index] += 1
            if self._lost[index] > ATTEMPTS:
                raise Failure(
                    "the processes of a piece of work were lost too often, maybe for want of "
                    f"memory: {str(error).strip().splitlines()[0]}"
                ) from error
            self._left.appendleft(index)
            self._processes.drop(pool)  # the next piece starts another


def _do(name: str, given: bytes, piece: Any) -> Any:
    """In another process; what all pieces share is read once."""
    global _given
    if _given[0] != name:
        import cloudpickle

        load_extensions()
        _given = (name, cloudpickle.loads(given))
    function, shared = _given[1]
    return function(shared, piece)
