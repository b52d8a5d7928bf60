"""One kill of each command that writes results: given again, it ends as if nothing had happened.

A command is killed as it puts its last file in place. Those that train lose more in `test_killing`.
"""

import multiprocessing
import os
import shlex
import signal
from pathlib import Path
from typing import Any

import pytest
from matplotlib.figure import Figure

from meta.adaptation import untrained_policy
from rllib_configs.config.loading import load_config, write_config
from rllib_configs.policy_files import write_policy
from tests.tune_jobs.untrained_runs import SMALL_TASK, make_run
from tests.waiting import PATIENCE_S
from tune_jobs import cli
from tune_jobs.measuring import protocol

pytestmark = [pytest.mark.integration, pytest.mark.slow]

FEW = "--jobsets 2 --episodes 4 --steps 1 --evaluate 2"
LINES = {
    "adapt": f"adapt scorer --task objective=makespan {FEW} --out out",
    "compare": "compare --policies sjf,run --jobsets 2 --out out",
    "figure": "figure deeprm-fig4 --jobsets 2 --at 0.9 --out out",
    "generate": "generate out.csv",
    "guard": "compare --decide --policies run --jobsets 4 --out out",
    "replay": "replay log.csv --processors 8 --policies fcfs:easy --out out",
    "study": "study joint --steps 1 --tasks 2 --seeds 1 --rate 1 --out out",
    "trace": "trace log.csv --processors 8 --out out",
    "whatif": "whatif log.csv --processors 8 --change policy=sjf:easy --out out",
}
UNLIKE = (".png",)
"""Files that hold when they were made, or by what."""

NEEDED = (
    *("cffi", "pycparser.c_parser", "scipy.stats", "meta.panda.records", "tune_jobs.study"),
    *("tune_jobs.adapting.rows", "tune_jobs.figures.drawing", "tune_jobs.figures.comparison"),
    *("tune_jobs.measuring.guard_report", "tune_jobs.replaying.trace_report"),
)
"""What the process that is forked has imported."""

CONTEXT = multiprocessing.get_context("forkserver")


def make_inputs(folder: Path) -> None:
    make_run(folder / "run")
    for name, preset, settings in (
        ("scorer", "deeprm-ppo", SMALL_TASK),
        ("joint", "deeprm-joint", ("training.hidden=4",)),
    ):
        config = load_config(preset, settings)
        write_policy(untrained_policy(config, 0).weights, config, folder / f"{name}/policy")
        write_config(config, folder / f"{name}/config.yaml")
    jobs = "".join(f"\n{600 * k},{60 + 97 * k % 5000},{1 + k % 8}" for k in range(60))
    (folder / "log.csv").write_text(f"arrival,duration,processors{jobs}\n")


def carry_out(line: str, folder: Path, places: Any, last: int) -> None:
    """In a process of its own: counts what is put in place, and dies before number ``last``."""
    os.chdir(folder)
    put = os.replace

    def replace(source: Any, target: Any, **options: Any) -> None:
        if Path(target).absolute().is_relative_to(folder):  # and no cache of numba
            places.value += 1
            if places.value == last:
                os.kill(os.getpid(), signal.SIGKILL)
        put(source, target, **options)

    os.replace = replace
    protocol.NUM_TUNING_JOBSETS = 2  # to save time
    Figure.savefig = lambda figure, file, **options: Path(file).write_bytes(b"")
    raise SystemExit(cli.run(cli.metasched, shlex.split(line)))


def run_in(folder: Path, line: str, last: int = 0) -> tuple[int | None, int]:
    """Exit status of a command, and how often it put something in place."""
    places = CONTEXT.Value("i", 0)
    process = CONTEXT.Process(target=carry_out, args=(line, folder, places, last))
    process.start()
    process.join(PATIENCE_S)
    return process.exitcode, places.value


def results_in(folder: Path) -> dict[str, bytes]:
    """What a command leaves; of some files only that they are there.

    What it had put aside when it was killed is hidden, and stays until somebody looks.
    """
    paths = {str(path.relative_to(folder)): path for path in folder.rglob("*") if path.is_file()}
    return {
        name: b"" if path.suffix in UNLIKE else path.read_bytes().replace(bytes(folder), b"")
        for name, path in paths.items()
        if "/." not in f"/{name}"
    }


@pytest.fixture(scope="module")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    CONTEXT.set_forkserver_preload([__name__, *NEEDED])
    folder = tmp_path_factory.mktemp("inputs")
    make_inputs(folder)
    return folder


@pytest.mark.parametrize("command", LINES)
def test_a_killed_command_that_is_given_again_leaves_the_same(
    command: str, inputs: Path, tmp_path: Path
) -> None:
    undisturbed, killed = tmp_path / "undisturbed", tmp_path / "killed"
    for folder in (undisturbed, killed):
        folder.mkdir()
        for path in inputs.iterdir():
            (folder / path.name).symlink_to(path)
    status, count = run_in(undisturbed, LINES[command])
    assert status == 0
    assert count > 0, "it writes nothing that way"
    assert run_in(killed, LINES[command], count)[0] == -signal.SIGKILL
    assert run_in(killed, LINES[command])[0] == 0
    assert results_in(killed) == results_in(undisturbed)
