"""Pieces of work come out the same, in order, whoever does them and whoever is lost."""

import os
import signal
from pathlib import Path

import pytest

from cluster_env.core.errors import InputError
from tune_jobs.terminal.spreading import here, spreading


def squared(shared: dict, piece: int) -> int:
    """Refuses 7; where a folder is named, its process dies the first time that it is to do 3."""
    if piece == 7:
        raise InputError("nobody squares 7")
    mark = Path(shared["folder"]) / "mark" if "folder" in shared else None
    if piece == 3 and mark is not None and not mark.exists():
        mark.write_text("here I was")
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
        shared = {"factor": 2, "folder": str(tmp_path)}
        assert list(spread(squared, shared, range(6))) == [0, 2, 8, 18, 32, 50]
        assert (tmp_path / "mark").exists()
        with pytest.raises(InputError, match=r"^nobody squares 7$"):
            list(spread(squared, {"factor": 1}, [7]))


def test_a_cluster_without_runners_is_refused() -> None:
    with pytest.raises(InputError, match="--runners"), spreading(0, "10.0.0.5:6379"):
        pass
