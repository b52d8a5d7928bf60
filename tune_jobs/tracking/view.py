"""How ``metasched ui`` shows the table of runs: with the columns that say what a run is worth."""

import json
from collections.abc import Callable, Mapping
from typing import Any

AXIS_TAG = "metasched.axis"
"""Names the tag with a run's place on the axis that its world's comparisons vary."""

VIEW = "metasched"
_VIEW_TAG = f"mlflow.sharedViewState.{VIEW}"  # what MLflow keeps a shared view of a page in
_FIRST = "Result/"
_MAX_COLUMNS = 8
_NEWEST = 200

Ask = Callable[[str, dict[str, Any]], dict[str, Any]]
"""Makes one call of MLflow's REST interface: its name and its arguments."""


def share_view(ask: Ask, experiment: str) -> str:
    """Gives an experiment a view with columns for preset, axis and headline metrics.

    Returns what the address of a page says to show it.
    """
    newest = {"experiment_ids": [experiment], "max_results": _NEWEST}
    runs = ask("runs/search", {**newest, "order_by": ["start_time DESC"]}).get("runs", [])
    state = json.dumps({"selectedColumns": columns([run.get("data", {}) for run in runs])})
    tag = {"experiment_id": experiment, "key": _VIEW_TAG, "value": state}
    ask("experiments/set-experiment-tag", tag)
    return f"viewStateShareKey={VIEW}"


def columns(runs: list[Mapping[str, Any]]) -> list[str]:
    """Columns for runs, the newest first, by the names that MLflow's page has for them.

    Runs have tags and metrics as the REST interface gives them.
    """
    axes: dict[str, None] = {}
    metrics: dict[str, None] = {}
    for run in runs:
        axes |= {tag["value"]: None for tag in run.get("tags", ()) if tag["key"] == AXIS_TAG}
        names = sorted(metric["key"] for metric in run.get("metrics", ()))
        metrics |= {name: None for name in names if name.startswith(_FIRST)}
    tags = [f"tags.`{name}`" for name in ("preset", *axes)]
    return [*tags, *(f"metrics.`{name}`" for name in metrics)][:_MAX_COLUMNS]
