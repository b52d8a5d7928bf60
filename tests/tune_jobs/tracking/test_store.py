"""The local store is complete or not there."""

from pathlib import Path

import pytest

from tune_jobs.tracking import store
from tune_jobs.tracking.store import Store, StoreAway


def open_store(folder: Path) -> Store:
    return Store(f"sqlite:///{folder / 'mlflow.db'}", folder)


def test_a_database_that_was_not_finished_is_made_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(store.os, "replace", lambda *paths: (_ for _ in ()).throw(OSError("gone")))
        with pytest.raises(StoreAway, match="gone"):
            open_store(tmp_path)
    assert not (tmp_path / "mlflow.db").exists()
    (half,) = tmp_path.glob(".mlflow.db.*.new")
    half.write_bytes(half.read_bytes()[:5000])
    found = open_store(tmp_path)
    assert found.experiment("metasched") == open_store(tmp_path).experiment("metasched")
    assert not half.exists()
