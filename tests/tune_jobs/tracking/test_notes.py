"""A run's description says what came out, how it compares, and which command made it."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.waiting import wait_for
from tune_jobs.tracking import Tracker
from tune_jobs.tracking.notes import (
    MAX_NOTE,
    MAX_OF_MODEL,
    NOTE_TAG,
    sections_of,
    with_section,
    with_verdicts,
)
from tune_jobs.tracking.provenance import as_command
from tune_jobs.tracking.recording import annotate, record_result

Runs = Callable[[], dict[str, Any]]


def note_of(runs: Runs, name: str = "r") -> str:
    return str(runs()[name].data.tags[NOTE_TAG])


def test_a_section_is_replaced_and_the_words_of_others_stay() -> None:
    note = with_section("Mine.", "Result", "4")
    note = with_section(note + "\n\nMine too.", "Comparison", "5")
    note = with_section(note, "Result", "3")
    assert [line for line in note.splitlines() if line and not line.startswith("<!--")] == [
        *("Mine.", "### Result", "3", "Mine too.", "### Comparison", "5")
    ]
    assert sections_of(note) == {"Result": "3", "Comparison": "5"}


def test_a_description_stays_within_the_limit_of_mlflow() -> None:
    note = with_section("", "Result", "4")
    note = with_section(note, "Comparison", "| 1 | 2 |\n" * 5000)
    assert MAX_NOTE - 100 < len(note) <= MAX_NOTE
    assert note.splitlines()[-2] == "..."
    assert "### Result\n\n4\n" in with_section(note, "Result", "4")


def test_a_registered_model_has_all_verdicts_within_the_limit_of_a_database() -> None:
    """Tables stand in the description of the run."""
    table = "| 1 | 2 |\n" * 400
    sections = {title: f"- {title} wins\n- twice\n\n{table}" for title in "ABCD"}
    description = with_verdicts("Mine.", sections)
    assert len(description) < MAX_OF_MODEL
    assert sections_of(description) == {title: f"- {title} wins\n- twice" for title in "ABCD"}
    longest = with_verdicts(description, {"A": "word\n" * 2000})
    assert MAX_OF_MODEL - 100 < len(longest) <= MAX_OF_MODEL
    assert sections_of(longest)["D"] == "- D wins\n- twice"


def test_the_result_stands_with_both_commands(run_dir: Path, runs: Runs) -> None:
    with as_command(["/bin/metasched", "train", "a b"]):
        tracker = Tracker.open(run_dir, run_name="r")
        tracker.note("Result", "**4** | so far")
        tracker.close()
    with as_command(["metasched", "train", "--resume", "r"]), Tracker.open(run_dir) as tracker:
        tracker.note("Result", "**3**")
    note = note_of(runs)
    assert "**3**\n\n```\nmetasched train 'a b'\nmetasched train --resume r\n```" in note
    assert "so far" not in note


def test_a_comparison_is_added_to_a_run_that_has_ended(
    run_dir: Path, client: Any, runs: Runs
) -> None:
    with Tracker.open(run_dir, run_name="r") as tracker:
        tracker.note("Result", "4")
    table = run_dir.parent / "table.csv"
    table.write_text("a,b\n")
    with as_command(["metasched", "compare"]):
        assert annotate(run_dir, "Comparison", "password=x1y2z3", {"comparisons": table})
    note = note_of(runs)
    assert "### Result\n\n4" in note
    assert "### Comparison\n\npassword=***\n\n```\nmetasched compare\n```" in note
    run = runs()["r"]
    assert run.info.status == "FINISHED"
    files = client.list_artifacts(run.info.run_id, "comparisons")
    assert [file.path for file in files] == ["comparisons/table.csv"]


def test_a_run_that_trains_gets_it_too_and_goes_on(run_dir: Path, runs: Runs) -> None:
    tracker = Tracker.open(run_dir, run_name="r")
    wait_for(lambda: tracker.run_id, "its first record")
    assert annotate(run_dir, "Comparison", "5")
    tracker.note("Result", "4")
    tracker.close()
    assert note_of(runs).count("###") == 2
    assert runs()["r"].info.status == "RUNNING"


def test_a_run_that_was_not_recorded_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    assert not annotate(tmp_path / "run", "Comparison", "5")
    assert list((tmp_path / "run").iterdir()) == []


@pytest.mark.parametrize(("again", "num_runs"), [(1.0, 1), (2.0, 2)])
def test_a_result_with_other_numbers_is_another_run(
    run_dir: Path, client: Any, again: float, num_runs: int
) -> None:
    for value in (1.0, again):
        record_result(run_dir, "comparison", "c", curves=[(70, {"sjf/slowdown": value})], note="n")
    experiment = client.get_experiment_by_name("metasched results").experiment_id
    found = client.search_runs([experiment])
    assert len(found) == num_runs
    assert {run.data.metrics["sjf/slowdown"] for run in found} == {1.0, again}
    for run in found:
        assert len(client.get_metric_history(run.info.run_id, "sjf/slowdown")) == 1
        assert run.data.tags[NOTE_TAG].startswith("<!-- metasched result -->\n### Result\n\nn\n")


def test_parts_of_a_result_are_runs_below_it(run_dir: Path, client: Any) -> None:
    parts = {f"load {load}": ({"load": f"{load}"}, {"sjf/slowdown": load}) for load in (0.7, 1.1)}
    record_result(run_dir, "comparison", "c", parts=parts)
    experiment = client.get_experiment_by_name("metasched results").experiment_id
    found = {run.info.run_name: run for run in client.search_runs([experiment])}
    assert found.keys() == {"c", "load 0.7", "load 1.1"}
    for load in (0.7, 1.1):
        part = found[f"load {load}"].data
        assert (part.tags["load"], part.metrics) == (f"{load}", {"sjf/slowdown": load})
        assert part.tags["mlflow.parentRunId"] == found["c"].info.run_id
