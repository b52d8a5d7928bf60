"""What a run keeps on disk while it trains, when the disk may be full."""

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from cluster_env.core.errors import Failure
from tune_jobs.runs.directory import RunDirectory
from tune_jobs.terminal.progress import NoProgress, Progress


class RetryingWriter:
    """Writes what the disk takes, tries the rest again, and says so at the end if that was in vain.

    A checkpoint that cannot be written costs nothing but what would be repeated after a crash, so
    training goes on; the one before stays whole. Rows of the table wait in memory meanwhile.

    Args:
        run: where it is kept.
        progress: is told.
    """

    def __init__(self, run: RunDirectory, progress: Progress | NoProgress) -> None:
        self._run = run
        self._progress = progress
        self._rows: list[tuple[int, Mapping[str, float]]] = []
        self._refusal: str | None = None

    @contextmanager
    def saving(self, iteration: int) -> Iterator[None]:
        """A ``with`` block that writes a checkpoint; what the disk refuses is said, not raised.

        Args:
            iteration: of the checkpoint.
        """
        try:
            yield
        except OSError as error:
            self._refusal = _reason(error)
            self._progress.say(
                f"iteration {iteration}: no checkpoint could be written ({self._refusal}); "
                f"{self._newest()}; training goes on, and the next checkpoint is tried again"
            )
        else:
            self._refusal = None

    def append(self, iteration: int, row: Mapping[str, float]) -> None:
        """Adds the row of an iteration to the table, after those that the disk has refused."""
        self._rows.append((iteration, row))
        try:
            self._write_rows()
        except OSError as error:
            if len(self._rows) == 1:
                self._progress.say(
                    f"iteration {iteration}: {self._run.history.path.name} cannot be written "
                    f"({_reason(error)}); its rows wait in memory"
                )

    def require_all(self) -> None:
        """Makes sure that all is on disk.

        Raises:
            Failure: if not.
        """
        try:
            self._write_rows()
        except OSError as error:
            self._refusal = self._refusal or _reason(error)
        if self._refusal is not None:
            raise Failure(
                f"the end of the run could not be written to {self._run.path} ({self._refusal}); "
                f"{self._newest()}; make room and resume from it"
            )

    def _write_rows(self) -> None:
        while self._rows:
            self._run.history.append(*self._rows[0])
            del self._rows[0]

    def _newest(self) -> str:
        whole = [one.iteration for one in self._run.checkpoints.all() if one.damage() is None]
        return f"that of iteration {whole[-1]} is whole" if whole else "there is none yet"


def _reason(error: OSError) -> str:
    """What the system said, without what libraries say around it."""
    text = error.strerror or str(error)
    found = re.search(r"\[errno \d+\] (.+)", text, re.IGNORECASE)
    return (found[1] if found else text).strip()
