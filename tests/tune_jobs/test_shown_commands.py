"""Every command that READMEs and help texts show, as it stands, in a folder with a local store.

New ones are found by themselves. What takes long is not done, in one of these ways:

- Words are appended that make work small, as a user could (`SHORTER`), and heuristics are tuned on
  4 jobsets. So compare and adapt run to their end. What stands in several places runs once.
- Pictures are drawn and not rendered, as in most tests.
- The function that does the long part is left out (`LONG`). All before it runs: options, presets,
  keys and values of configs, sweeps and experiments, globs, policies. So it is with train, tune,
  study, report and figures; `test_readme_story` writes a whole report.
- Commands at a live site (shadow, steer) read their options, the policy and its log.
- Commands that give other commands (demo, results) have each of these checked by its parser.
"""

from collections.abc import Callable, Iterator, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import click
import pytest

from cluster_env.workloads.shipped import shipped_logs
from rllib_configs.config.schema import prepare
from tests.conftest import REPOSITORY
from tests.registries import EXAMPLES, OF_EXTENSIONS, own_registrations
from tests.tune_jobs.replaying.slurm_export import write_export
from tests.tune_jobs.shown_commands import (
    AT_SLURM,
    FROM_SLURM,
    PUBLIC,
    Shown,
    files_made,
    logs_read,
    prepare_for,
    shown_commands,
)
from tune_jobs import cli, results
from tune_jobs.experiments import record
from tune_jobs.figures.registry import FIGURES, function_at
from tune_jobs.measuring import protocol
from tune_jobs.recipes.request import FigureRequest
from tune_jobs.replaying import start_report
from tune_jobs.site.choosing import choose_adviser
from tune_jobs.site.starting import foresee_by
from tune_jobs.sweeps.points import check_sweep

SHORTER = {
    "compare": ("--jobsets", "4"),
    "replay": ("--policies", "fcfs:easy,sjf:easy"),
    "adapt": ("--episodes", "4", "--jobsets", "2", "--evaluate", "4", "--steps", "1"),
}
LONG = {
    "train": "tune_jobs.runs.launching:run_training",
    "tune": "tune_jobs.sweeps.launching:run_sweep",
    "study": "tune_jobs.adapting.many_tasks:_measure_all",
    "figure": "tune_jobs.figures.drawing:make_figure",
    "report": "tune_jobs.reports.site_report:describe_log",  # all input has been checked by then
    "bench": "tune_jobs.benchmarks.reporting:machine",
    "results": "tune_jobs.experiments.running:carry_out_all",
    "ui": "tune_jobs.tracking.server:show_runs",
    "sync": "tune_jobs.tracking.sending:send_records",
    "shadow": "tune_jobs.site.reporting:report_shadow",
    "steer": "tune_jobs.site.reporting:report_steer",
}
COMMANDS = shown_commands()
DIFFERENT = {(shown.words, shown.environment): shown for shown in COMMANDS}.values()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A working folder with what Slurm says of a site, and nothing else."""
    write_export(tmp_path / "jobs.txt", [(60 * k, k % 7, 90, 120, 4, 0, "ada") for k in range(99)])
    (tmp_path / "slurm.conf").write_text("NodeName=n[1-4] CPUs=4\nPartitionName=main Nodes=ALL\n")
    (tmp_path / "qos.txt").write_text("Name|Priority|MaxJobsPU\nnormal|0|8\n")
    return tmp_path


@pytest.fixture
def work(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., None]]:
    """Gives a command in the folder, with the variables before it."""
    monkeypatch.chdir(folder)
    monkeypatch.setattr(protocol, "NUM_TUNING_JOBSETS", 4)
    monkeypatch.setattr(results, "MOST_AT_ONCE", 1)
    monkeypatch.setattr(record, "provenance", dict)  # a working tree may hold changes
    for module in ("reporting", "guarding"):
        name = f"tune_jobs.measuring.{module}"
        monkeypatch.setattr(import_module(name), "CALIBRATION_JOBSETS", 4)

    def give(shown: Shown, *appended: str) -> None:
        for key, value in shown.environment:
            if key == "PYTHONPATH":
                monkeypatch.syspath_prepend(REPOSITORY / value)
            else:
                monkeypatch.setenv(key, value)
        assert cli.run(cli.metasched, [*shown.words, *appended]) == 0

    with own_registrations(OF_EXTENSIONS, [path.stem for path in EXAMPLES]):
        yield give


@pytest.fixture
def left_out(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Ends a command before its long part; the list says which have come so far."""
    reached: list[str] = []

    def ending(name: str) -> Callable[..., Any]:
        def end(*args: Any, **options: Any) -> Any:
            reached.append(name)
            if name == "train":
                prepare(args[0]).require_units()  # which a cluster is asked after
            elif name == "tune":
                check_sweep(getattr(args[0], "sweep", args[0]))
            elif name == "figure":
                check_figure(*args)
            elif name in ("shadow", "steer") and args[0].policy:
                choose_adviser(args[0].policy)
                if past := getattr(args[0], "starts", None):
                    few = {"num_futures": 2, "num_instants": 2}
                    foresee_by(args[0].policy, past, args[0].task_options, 0, **few)
            elif name == "results":
                for call in args[0].values():
                    call.values()
                return 0
            raise click.exceptions.Exit(0)

        return end

    for name, place in LONG.items():
        module, _, function = place.partition(":")
        monkeypatch.setattr(import_module(module), function, ending(name))
    return reached


def check_figure(name: str, request: FigureRequest, *_: object) -> None:
    """What a figure reads is there."""
    function_at(f"tune_jobs.{FIGURES.get(name).rows}", "collect")
    if request.runs:
        request.load()
    assert all(path.is_dir() for path in request.rows)


@pytest.mark.parametrize("page", sorted({shown.place for shown in COMMANDS}))
def test_logs_that_a_page_names_are_there_or_made_before(page: str) -> None:
    there = {
        *shipped_logs(),
        *PUBLIC.get(page, ()),
        *(FROM_SLURM if page in AT_SLURM or "--help" in page else ()),
    }
    for shown in (one for one in COMMANDS if one.place == page):
        assert {*logs_read(shown.words)} <= there, shown
        there |= {*files_made(shown)}


def test_there_are_many_and_every_command_is_among_them() -> None:
    assert len(COMMANDS) > 80
    assert {shown.words[0] for shown in COMMANDS} >= set(cli.COMMANDS)
    assert {shown.place for shown in COMMANDS} >= {
        "README.md",
        "meta/README.md",
        "docker/README.md",
        "tune_jobs/figures/deeprm.md",
    }


@pytest.mark.parametrize("shown", DIFFERENT, ids=str)
def test_a_command_runs_as_it_is_shown(
    shown: Shown,
    folder: Path,
    work: Callable[..., None],
    left_out: list[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    name = shown.words[0]
    # The files of MLflow's local store stand beside the runs, where globs meet them.
    (folder / "runs" / "mlartifacts" / "0").mkdir(parents=True)
    (folder / "runs" / "mlflow.db").touch()
    prepare_for(shown.words)
    if name == "demo":
        for line in demo_lines(shown):
            understood(line)
        return
    shorter = SHORTER.get(name, ()) if "--policies" not in shown.words or name != "replay" else ()
    check_starts = start_report.check_starts
    monkeypatch.setattr(
        start_report,
        "check_starts",
        lambda *jobs, num_instants, seed: check_starts(*jobs, num_instants=10),
    )
    if any("rollout:" in word for word in shown.words):
        shorter = ("--jobsets", "1", "--window", "60", "--warmup", "10")  # else 10 s
    if shorter and "--runners" in shown.words:
        shorter += ("--runners", "0")
    work(shown, *shorter)
    listing = {"--show", "--dry-run"}
    lists = listing & set(shown.words) or shown.words in (("figure",), ("results",), ("tune",))
    assert bool(left_out) == (name in LONG and not lists)


def understood(words: Sequence[str]) -> click.Context:
    """What the program makes of a command line that it does not run."""
    with click.Context(cli.metasched) as root:
        name, command, rest = cli.metasched.resolve_command(root, [*words])
        assert name is not None
        assert command is not None
        return command.make_context(name, rest)


def demo_lines(shown: Shown) -> list[list[str]]:
    from tune_jobs.demo import Demo

    options = understood(shown.words).params
    return Demo(options["runs"], "made-up", options["quick"]).command_lines()
