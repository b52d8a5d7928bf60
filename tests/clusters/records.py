"""What runs have written down, in their tables and in MLflow."""

import json
import math
from pathlib import Path
from typing import Any

from tests.clusters.services import request
from tune_jobs.runs.history import History

Points = dict[tuple[str, int], float]


def iterations(run: Path) -> int:
    """Iterations that a run has written down."""
    return len(History(run / "metrics.csv").rows()) if (run / "metrics.csv").exists() else 0


def in_table(run: Path) -> Points:
    """All numbers of a run's table, by metric and iteration."""
    return {
        (name, int(row["iteration"])): value
        for row in History(run / "metrics.csv").rows()
        for name, value in row.items()
        if name != "iteration" and math.isfinite(value)
    }


class MLflow:
    """What the server has, asked over HTTP.

    Args:
        uri: of the server.
    """

    def __init__(self, uri: str) -> None:
        self._uri = uri

    def runs(self) -> dict[str, dict[str, Any]]:
        """All runs of the usual experiment by name."""
        named = {"filter": "name = 'metasched'", "max_results": 10}
        (experiment,) = self._ask("experiments/search", named)["experiments"]
        of_it = {"experiment_ids": [experiment["experiment_id"]], "max_results": 1000}
        found = self._ask("runs/search", of_it)["runs"]
        runs = {run["info"]["run_name"]: run for run in found}
        assert len(runs) == len(found), "a run is in MLflow twice"
        return runs

    def points(self, run: dict[str, Any]) -> Points:
        """All points of a run's curves, references apart.

        A point may have been sent twice, by a run that was lost and went on, but with one value.
        """
        points: Points = {}
        for metric in run["data"]["metrics"]:
            name = metric["key"]
            question = f"metrics/get-history?run_id={run['info']['run_id']}&metric_key={name}"
            for point in self._ask(question)["metrics"]:
                place = (name, int(point.get("step", 0)))
                if not name.startswith("reference/"):
                    points[place] = float(point["value"])
        return points

    def _ask(self, question: str, body: dict[str, Any] | None = None) -> Any:
        data = None if body is None else json.dumps(body).encode()
        status, answer = request(f"{self._uri}/api/2.0/mlflow/{question}", data)
        assert status == 200, answer
        return answer


def tags(run: dict[str, Any]) -> dict[str, str]:
    return {tag["key"]: tag["value"] for tag in run["data"]["tags"]}


def is_complete(store: MLflow, run: dict[str, Any], folder: Path) -> None:
    """Checks that a run has finished and that all of its table is in MLflow."""
    table = in_table(folder)
    recorded = store.points(run)
    missing = sorted(table.keys() - recorded.keys())
    assert not missing, f"{len(missing)} of {len(table)} points are not in MLflow: {missing[:5]}"
    steady = {place for place in table if not place[0].startswith(("time/", "workers/"))}
    assert {place: recorded[place] for place in steady} == {p: table[p] for p in steady}
    assert run["info"]["status"] == "FINISHED"
