"""What commands about a log found is one report: text, JSON, CSV files and pictures of it."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from matplotlib.figure import Figure

from cluster_env.core.errors import InputError
from tests.tune_jobs.replaying.slurm_export import write_export
from tune_jobs import cli
from tune_jobs.commands.logs import Replay, Trace, WhatIf
from tune_jobs.figures.pictures import with_pictures
from tune_jobs.replaying.calibration import calibrate_log
from tune_jobs.replaying.replay_report import replay_log
from tune_jobs.replaying.start_report import foresee_starts
from tune_jobs.replaying.trace_report import describe_log
from tune_jobs.replaying.what_if import compare_changes
from tune_jobs.tables.frames import plain
from tune_jobs.tables.report import Report
from tune_jobs.terminal.progress import NoProgress

pytestmark = pytest.mark.usefixtures("as_in_plans")

MACHINE = {"processors": "16"}
RULES = ("fcfs:easy", "sjf:easy")

FINDS: dict[str, tuple[Callable[[Path], Report], list[str]]] = {
    "trace": (
        lambda path: describe_log(Trace(path=path, task_options=MACHINE)),
        ["trace"],
    ),
    "calibration": (
        lambda path: calibrate_log(Replay(path=path, task_options=MACHINE), NoProgress()),
        ["replay", "--calibrate"],
    ),
    "replay": (
        lambda path: replay_log(
            Replay(path=path, policies=RULES, task_options=MACHINE), NoProgress()
        ),
        ["replay", "--policies", ",".join(RULES)],
    ),
    "starts": (
        lambda path: foresee_starts(
            Replay(path=path, task_options=MACHINE, num_instants=10), NoProgress()
        ),
        ["replay", "--starts", "--instants", "10"],
    ),
    "whatif": (
        lambda path: compare_changes(
            WhatIf(path=path, change=["load=0.9"], task_options=MACHINE),
            NoProgress(),
        ),
        ["whatif", "--change", "load=0.9"],
    ),
}


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    jobs = [
        (300 * k, 1 + 37 * k % 4000, 90 + 37 * k % 4000, 6000, 1 + k % 6, 0, "abcde"[k % 5])
        for k in range(300)
    ]
    return write_export(tmp_path_factory.mktemp("site") / "jobs.txt", jobs)


@pytest.mark.parametrize("name", FINDS)
def test_text_json_and_files_are_of_one_report(
    name: str, log: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    find, (command, *words) = FINDS[name]
    line = [command, str(log), "--processors", "16", *words]
    report = with_pictures(find(log))
    assert cli.run(cli.metasched, [*line, "--out", str(tmp_path / "out")]) == 0
    text = capsys.readouterr().out
    assert text.startswith(f"{report!r}\n\nWrote {tmp_path / 'out'}")
    runners = [] if command == "trace" else ["--runners", "2"]  # nobody's results depend on them
    assert cli.run(cli.metasched, [*line, "--json", *runners]) == 0
    data = json.loads(capsys.readouterr().out)
    assert without_seconds(data) == without_seconds(json.loads(json.dumps(report.data)))
    replace(report, draw=lambda *_, **__: Figure()).write(tmp_path / "own")  # drawn below, and once
    for path in (tmp_path / "out").iterdir():
        assert path.read_bytes() == (tmp_path / "own" / path.name).read_bytes(), path.name
    tables = {path.stem for path in (tmp_path / "own").glob("*.csv")}
    assert tables == set(report)
    for table, rows in data.items():
        if table in tables:
            assert plain(report[table].to_dict("records")) == rows
    assert {path.stem for path in (tmp_path / "own").glob("*.png")} == set(report.pictures)
    for picture in report.pictures:
        assert report.figure(picture).axes


def without_seconds(data: dict) -> dict:
    """All but how long it took."""
    return {name: value for name, value in data.items() if name != "seconds"}


def test_of_many_policies_the_best_stand_beside_users() -> None:
    """And the log is called as the user calls it, and not by where it lies."""
    names = ("ljf:strict", "random:strict", "sjf:easy", "fcfs:easy", "saf:easy", "wspt:skip")
    report = replay_log(Replay(path=Path("example"), policies=names), NoProgress())
    assert "/example.swf" not in report.text
    (head,) = [line for line in report.text.splitlines() if line.startswith("user ")]
    assert head.split()[-4:] == ["sjf:easy", "fcfs:easy", "saf:easy", "wspt:skip"]


def test_frames_hold_numbers_and_unknown_names_are_refused(log: Path) -> None:
    report = with_pictures(FINDS["replay"][0](log))
    assert report["replay"]["mean_wait"].dtype == float
    assert report["schedule-fcfs-easy"]["wait"].mean() == pytest.approx(
        report["replay"].set_index("policy")["mean_wait"]["fcfs:easy"]
    )
    with pytest.raises(KeyError):
        report["by-users"]
    with pytest.raises(InputError, match="did you mean 'timeline'"):
        report.figure("timelines")
