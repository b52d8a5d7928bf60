"""How large the machine of a log is, whichever command is given the log."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from cluster_env.core.errors import InputError
from cluster_env.workloads.swf import write_swf
from meta.tasks import read_task
from rllib_configs.config.loading import config_text, load_config
from tune_jobs.measuring.choices import choose_config
from tune_jobs.measuring.protocol import EvaluationProtocol
from tune_jobs.measuring.trained_runs import find_runs, load_runs
from tune_jobs.measuring.wording import described
from tune_jobs.replaying.choices import task_of_log

Size = Callable[[Path, int | None], int]
UNIVERSAL = load_runs(find_runs(["hpc-order"]), "argmax")


def compared(log: Path, processors: int | None) -> int:
    said = {} if processors is None else {"processors": processors}
    config = choose_config(None, [f"task.workload.trace={log}"], said, UNIVERSAL)
    return int(config.task.world.processors)  # type: ignore[attr-defined]


def trained(log: Path, processors: int | None) -> int:
    said = [] if processors is None else [f"task.world.processors={processors}"]
    config = load_config("hpc-smoke", [f"task.workload.trace={log}", *said])
    return int(config.task.world.processors)  # type: ignore[attr-defined]


def adapted(log: Path, processors: int | None) -> int:
    said = [] if processors is None else [f"world.processors={processors}"]
    home = UNIVERSAL[0].config.task.at_point()
    task = read_task([f"workload.trace={log}", *said], home)
    return int(task.world.processors)  # type: ignore[attr-defined]


def replayed(log: Path, processors: int | None) -> int:
    said = {} if processors is None else {"processors": processors}
    task, *_ = task_of_log(log, (), said, guess=False, runs=UNIVERSAL)
    return int(task.world.processors)  # type: ignore[attr-defined]


@pytest.fixture
def logs(tmp_path: Path) -> tuple[Path, Path]:
    """The same jobs, of 1 to 4 processors: SWF that names a machine of 6, and CSV."""
    size = np.arange(40) % 4 + 1
    columns = {"submit": np.arange(40) * 9, "run": np.full(40, 5), "processors": size}
    write_swf(tmp_path / "site.swf", columns, {"MaxProcs": 6})
    lines = ["arrival,duration,processors", *(f"{9 * k},5,{n}" for k, n in enumerate(size))]
    (tmp_path / "site.csv").write_text("\n".join(lines) + "\n")
    return tmp_path / "site.swf", tmp_path / "site.csv"


@pytest.mark.parametrize("size", [compared, trained, adapted, replayed])
def test_what_is_said_counts_then_the_header_and_nothing_else(
    size: Size, logs: tuple[Path, Path]
) -> None:
    with_header, without = logs
    assert [size(with_header, 5), size(without, 5), size(with_header, None)] == [5, 5, 6]
    words = (
        r"site\.csv does not record how many processors the machine has; give the number, as in -"
    )
    with pytest.raises(InputError, match=words):
        size(without, None)


def test_a_config_that_names_a_log_and_its_machine_is_believed(
    logs: tuple[Path, Path], tmp_path: Path
) -> None:
    for log in logs:
        changes = [f"task.workload.trace={log}", "task.world.processors=5"]
        (tmp_path / "mine.yaml").write_text(config_text(load_config("hpc-smoke", changes)))
        mine = choose_config(str(tmp_path / "mine.yaml"), [], {}, ())
        assert mine.task.world.processors == 5  # type: ignore[attr-defined]
    later = [f"task.workload.trace={logs[1]}", "task.workload.splits=[0.5, 0.8]"]
    mine = choose_config(str(tmp_path / "mine.yaml"), later, {}, ())
    assert mine.task.world.processors == 5  # type: ignore[attr-defined]


def test_tables_say_how_many_jobs_are_left_out(logs: tuple[Path, Path]) -> None:
    for processors, words in ((3, "; 10 larger jobs left out"), (4, "unless named")):
        changes, said = [f"task.workload.trace={logs[1]}"], {"processors": processors}
        protocol = EvaluationProtocol(choose_config("hpc-smoke", changes, said, ()).task.build())
        assert described(protocol.columns()).endswith(words)
