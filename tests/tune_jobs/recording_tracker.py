"""A tracker that remembers what it was told."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tune_jobs.tracking import NullTracker
from tune_jobs.tracking.tracker import PathLike


class RecordingTracker(NullTracker):
    """Stands for a tracker."""

    def __init__(self) -> None:
        self.points: dict[tuple[str, int], float] = {}
        self.files: list[str] = []
        self.children: dict[str, tuple[dict[str, Any], RecordingTracker]] = {}

    def child(self, name: str, *, tags: Mapping[str, Any] | None = None) -> "RecordingTracker":
        tracker = RecordingTracker()
        self.children[name] = (dict(tags or {}), tracker)
        return tracker

    def metrics(self, metrics: Mapping[str, Any], step: int) -> None:
        self.points |= {(name, step): value for name, value in metrics.items()}

    def artifact(self, path: PathLike, folder: str | None = None) -> None:
        assert Path(path).is_file()
        self.files.append(Path(path).name)


def record_with(monkeypatch: pytest.MonkeyPatch) -> RecordingTracker:
    """Gives such a tracker to whoever opens a tracker."""
    recorder = RecordingTracker()
    monkeypatch.setattr("tune_jobs.tracking.Tracker.open_result", lambda *args, **options: recorder)
    return recorder
