"""The README for guests, command by command, in one folder: what it trains is compared and adapted.

`tests.tune_jobs.test_shown_commands` runs every command up to its long part. Here nothing is left
out: the commands of the blocks are carried out in their order, as they stand, with fewer iterations
and jobsets.
"""

import csv
from pathlib import Path

import pytest

from tests.conftest import REPOSITORY
from tests.tune_jobs.shown_commands import Shown, on_page
from tune_jobs import cli
from tune_jobs.measuring import protocol
from tune_jobs.reports import site_report
from tune_jobs.runs.history import History

SHORTER = {
    "train": (
        *("--set", "training.iterations=2", "--set", "resources.num_runners=0"),
        *("--set", "evaluation.every=2", "--set", "evaluation.jobsets=4"),
    ),
    "compare": ("--jobsets", "3"),
    "adapt": ("--episodes", "8", "--jobsets", "2", "--evaluate", "3"),
}
SEARCH = ("--set", "training.jobsets=8", "--set", "training.validation_jobsets=4")
"""Of the preset that is trained without naming it."""
META = ("--set", "training.tasks=2", "--set", "training.jobsets=2")

ELSEWHERE = ("demo", "tune", "ui")  # see tests/tune_jobs/test_demo.py, sweeps/, test_ui.py
STORY = [
    shown
    for shown in on_page(REPOSITORY / "README.md")
    if shown.block
    and shown.words[0] not in ELSEWHERE
    and "--address" not in shown.words  # tests/clusters
    and not shown.environment  # one is about an extension: tests/extensions
]


def table(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def word_after(shown: Shown, option: str) -> str:
    return shown.words[shown.words.index(option) + 1]


@pytest.fixture
def inside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder, in which the commands run."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    monkeypatch.setattr(protocol, "NUM_TUNING_JOBSETS", 4)
    monkeypatch.setattr(site_report, "INSTANTS", 4)
    monkeypatch.setattr("tune_jobs.reports.page._svg", lambda report, picture: picture)
    return tmp_path


def test_the_readme_tells_one_story() -> None:
    assert [shown.words[0] for shown in STORY] == [
        *("compare", "report", "replay", "whatif", "train", "compare", "train", "adapt")
    ]


@pytest.mark.integration
@pytest.mark.slow
def test_the_story_of_the_readme_comes_true(
    local_ray: None, inside: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for shown in STORY:
        name = shown.words[0]
        shorter = SHORTER.get(name, ())
        if name == "train":
            shorter += SEARCH if shown.words[1] == "--run" else META
        assert cli.run(cli.metasched, [*shown.words, *shorter]) == 0, shown
        if name == "train":
            run = inside / word_after(shown, "--run")
            rows = History(run / "metrics.csv").rows()
            assert [row["iteration"] for row in rows] == [1, 2]
            assert rows[-1]["eval/ratio"] > 0
        elif name == "compare":
            if "--out" not in shown.words:
                continue
            rows = table(inside / word_after(shown, "--out") / "comparison.csv")
            assert [row["learned"] for row in rows] == ["False", "False", "False", "True"]
            assert all(float(row["slowdown"]) >= 1 for row in rows)
            assert {(row["window"], row["warmup"]) for row in rows} == {("700", "100")}
        elif name == "report":
            rows = table(inside / "report" / "replay" / "replay.csv")
            assert {row["policy"] for row in rows} == {"as recorded", *site_report.POLICIES}
            assert "Not measured" not in (inside / "report" / "report.html").read_text()
        elif name == "adapt":
            rows = table(inside / word_after(shown, "--out") / "adaptation.csv")
            assert [row["policy"] for row in rows[:5]] == [
                *("before adaptation", "after 1 step", "after 2 steps", "after 3 steps", "sjf")
            ]
    shown_text = capsys.readouterr().out
    assert "deeprm-operation" in shown_text
    assert "after 3 steps" in shown_text
    assert "over best rule" in shown_text

    # A policy that was adapted is a policy like any other.
    line = ["compare", "--policies", "sjf,adapted", "--jobsets", "3", "--no-track"]
    assert cli.run(cli.metasched, line) == 0
