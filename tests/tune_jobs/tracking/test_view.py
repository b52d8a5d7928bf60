"""The table of runs shows preset, axis and headline metrics."""

import json
from typing import Any

from tune_jobs.tracking.view import columns, share_view


def run(axis: str | None, *metrics: str) -> dict[str, Any]:
    tags = [{"key": "preset", "value": "p"}]
    tags += [{"key": "metasched.axis", "value": axis}] if axis else []
    return {"tags": tags, "metrics": [{"key": name, "value": 1.0} for name in metrics]}


def test_columns_are_those_of_the_worlds_and_objectives_that_were_run() -> None:
    first = run("processors", "eval/x", "Result/makespan")
    second = run("load", "Result/slowdown")
    assert columns([first, second, run(None)]) == [
        *("tags.`preset`", "tags.`processors`", "tags.`load`"),
        *("metrics.`Result/makespan`", "metrics.`Result/slowdown`"),
    ]
    assert columns([]) == ["tags.`preset`"]
    assert len(columns([run("load", *(f"Result/{n}" for n in range(30)))])) == 8


def test_the_view_is_kept_where_mlflow_looks_for_it() -> None:
    asked: list[tuple[str, dict[str, Any]]] = []

    def ask(question: str, arguments: dict[str, Any]) -> dict[str, Any]:
        asked.append((question, arguments))
        return {"runs": [{"data": run("load", "Result/slowdown")}]}

    assert share_view(ask, "7") == "viewStateShareKey=metasched"
    question, tag = asked[-1]
    assert (question, tag["experiment_id"]) == ("experiments/set-experiment-tag", "7")
    assert tag["key"] == "mlflow.sharedViewState.metasched"
    assert "tags.`load`" in json.loads(tag["value"])["selectedColumns"]
