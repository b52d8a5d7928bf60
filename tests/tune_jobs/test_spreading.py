"""Pieces of work come out the same, in order, whoever does them and whoever is lost."""

import os
import signal
import time
from pathlib import Path

import pytest

from cluster_env.core.errors import Failure, InputError
from tune_jobs.processes.own_processes import own_processes
from tune_jobs.processes.spreading import here, spreading


def squared(shared: dict, piece: int) -> int:
    """Refuses 7; the process that does the `lethal` piece dies, as often as is said."""
    if piece == 7:
        raise InputError("nobody squares 7")
    if piece == shared.get("lethal"):
        marks = Path(shared["folder"])
        count = len(list(marks.iterdir()))
        if count < shared["times"]:
            (marks / str(count)).touch()
            os.kill(os.getpid(), signal.SIGKILL)
    return shared["factor"] * piece**2


def test_here_a_piece_is_done_when_it_is_asked_for() -> None:
    found = iter(here(squared, {"factor": 2}, [1, 2, 7]))
    assert [next(found), next(found)] == [2, 8]
    with pytest.raises(InputError, match="nobody squares 7"):
        next(found)


@pytest.mark.integration
def test_runners_do_the_same_also_where_one_is_killed(local_ray: None, tmp_path: Path) -> None:
    with spreading(2) as spread:
        shared = {"factor": 2, "folder": str(tmp_path), "lethal": 3, "times": 1}
        assert list(spread(squared, shared, range(6))) == [0, 2, 8, 18, 32, 50]
        assert (tmp_path / "0").exists()
        with pytest.raises(InputError, match=r"^nobody squares 7$"):
            list(spread(squared, {"factor": 1}, [7]))


def test_processes_of_this_machine_do_the_same_and_say_where_one_is_killed(
    tmp_path: Path,
) -> None:
    with own_processes(2) as spread:
        assert list(spread(squared, {"factor": 2}, range(6))) == [0, 2, 8, 18, 32, 50]
        assert list(spread(squared, {"factor": 3}, [4])) == [48]
        with pytest.raises(InputError, match=r"^nobody squares 7$"):
            list(spread(squared, {"factor": 1}, [7, 7]))
        lethal = {"factor": 2, "folder": str(tmp_path), "lethal": 3, "times": 1}
        with pytest.raises(Failure, match="was killed, perhaps because memory ran out"):
            list(spread(squared, lethal, range(6)))
        assert list(spread(squared, {"factor": 2}, range(6))) == [0, 2, 8, 18, 32, 50]


def hang(seconds: float, piece: int) -> None:
    time.sleep(seconds * piece)


def test_a_process_of_this_machine_that_hangs_is_named() -> None:
    with (
        own_processes(2, limit_s=3) as spread,
        pytest.raises(Failure, match=r"^no process has answered for 3 s; one may hang$"),
    ):
        list(spread(hang, 600.0, [0, 1, 1]))


def test_a_cluster_without_runners_is_refused() -> None:
    with pytest.raises(InputError, match="--runners"), spreading(0, "10.0.0.5:6379"):
        pass
