"""A module that leaves something changed behind is found; see `tests.conftest`."""

import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from cluster_env.objectives import OBJECTIVES
from tests.isolation import RAY, changes, shared_state


def test_nothing_has_changed_where_nothing_was_done() -> None:
    assert changes(shared_state(), shared_state()) == {}


@pytest.mark.parametrize(
    ("change", "name"),
    [
        (lambda patch, path: patch.chdir(path), "working folder"),
        (lambda patch, path: patch.syspath_prepend(path), "search path"),
        (lambda patch, path: patch.setenv("METASCHED_IMPORTS", "other"), "$METASCHED_IMPORTS"),
        (lambda patch, path: patch.setenv("MADE_UP", "1"), "$MADE_UP"),
        (lambda patch, path: patch.delenv("PATH"), "$PATH"),
        (
            lambda patch, path: patch.setitem(OBJECTIVES._things, "made up", None),
            "cluster_env.objectives.registry.OBJECTIVES",
        ),
    ],
)
def test_what_has_changed_is_named(
    change: Callable[..., None], name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = shared_state()
    change(monkeypatch, tmp_path)
    found = changes(before, shared_state())
    assert name in found
    assert found[name][0] != found[name][1]
    monkeypatch.undo()
    assert changes(before, shared_state()) == {}


def test_a_signal_handler_that_stays_is_named() -> None:
    before = shared_state()
    plain = signal.signal(signal.SIGTERM, signal.SIG_IGN)
    try:
        assert set(changes(before, shared_state())) == {"SIGTERM"}
    finally:
        signal.signal(signal.SIGTERM, plain)


def test_what_libraries_set_for_themselves_is_let_be(monkeypatch: pytest.MonkeyPatch) -> None:
    before = shared_state()
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_TIMEOUT", "10")
    assert os.environ["MLFLOW_HTTP_REQUEST_TIMEOUT"] == "10"
    assert changes(before, shared_state()) == {}


def test_what_the_shared_ray_sets_once_it_starts_is_let_be() -> None:
    before = shared_state() | {RAY: False, "SIGTERM": "as it was"}
    assert changes(before, before | {RAY: True, "SIGTERM": "of Ray"}) == {}
    running = before | {RAY: True}
    assert set(changes(running, running | {"SIGTERM": "another"})) == {"SIGTERM"}
