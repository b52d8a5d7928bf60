"""Where tables are measured: by whoever does the pieces, each once, whatever stops a call."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rllib_configs.config.loading import load_config
from tests.tune_jobs.elsewhere import elsewhere
from tests.tune_jobs.untrained_runs import SMALL_TASK, make_run
from tune_jobs.figures import FIGURES
from tune_jobs.measuring import comparison
from tune_jobs.measuring.comparison import compare
from tune_jobs.measuring.fingerprints import fingerprint_of
from tune_jobs.measuring.policy_specs import PolicySpec, heuristic_spec, learned_specs
from tune_jobs.measuring.protocol import EvaluationProtocol
from tune_jobs.measuring.trained_runs import load_runs
from tune_jobs.measuring.work import Kept, Work
from tune_jobs.recipes.request import FigureRequest
from tune_jobs.tables.frames import Row

pytestmark = pytest.mark.usefixtures("tuned_on_few")

SQUARES: list[int] = []


def square(shared: int, piece: int) -> dict[str, Any]:
    """A piece of work that is seen in `SQUARES`."""
    SQUARES.append(piece)
    if piece == shared:
        raise KeyboardInterrupt
    return {"square": np.int64(piece**2), "nothing": np.float64("nan"), "each": np.ones(2)}


def small_protocol(num_jobsets: int = 3) -> EvaluationProtocol:
    task = load_config("deeprm", SMALL_TASK).task.build()
    return EvaluationProtocol(task, num_jobsets=num_jobsets)


def test_a_call_that_was_stopped_goes_on(tmp_path: Path) -> None:
    path, pieces, keys = tmp_path / "new" / "it.jsonl", range(5), [f"key {k}" for k in range(5)]
    SQUARES.clear()
    with pytest.raises(KeyboardInterrupt):
        list(Work(kept=Kept(path)).measure(square, 3, pieces, keys=keys))
    with path.open("a") as file:
        file.write('{"key": "key 4", "found')  # as a crash of the machine may leave it
    work = Work(kept=Kept(path))
    found = list(work.measure(square, 99, pieces, keys=keys))
    assert SQUARES == [0, 1, 2, 3, 3, 4]
    assert [one["square"] for one in found] == [0, 1, 4, 9, 16]
    work.kept.settle()
    settled = path.read_bytes()
    again = Work(kept=Kept(path))
    backwards = list(again.measure(square, 99, pieces[::-1], keys=keys[::-1]))
    assert str(backwards) == str(found[::-1])
    assert len(SQUARES) == 6
    list(Work(kept=Kept(path)).measure(square, 99, pieces[:1]))  # nothing is known of it
    assert SQUARES[6:] == [0]
    fresh = Work(kept=Kept(tmp_path / "fresh.jsonl"))
    list(fresh.measure(square, 99, pieces, keys=keys))
    fresh.kept.settle()
    assert (tmp_path / "fresh.jsonl").read_bytes() == settled


def test_what_another_machine_does_is_kept_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = iter(["here", *["there", "there"]])
    monkeypatch.setattr("platform.node", lambda: next(names))
    path = tmp_path / "it.jsonl"
    found = list(Work(kept=Kept(path)).measure(square, 99, [4, 5], keys=["a", "b"]))
    assert len(path.read_text().splitlines()) == 2
    assert [Kept(path)[key]["square"] for key in "ab"] == [one["square"] for one in found]


def test_a_comparison_that_was_stopped_goes_on_at_the_next_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    protocol, specs = small_protocol(), [heuristic_spec(name) for name in ("sjf", "tetris")]
    whole = compare(protocol, specs, [0.5, 0.7, 0.9])
    path, places = tmp_path / "it.jsonl", list[float]()
    rows_of = comparison._rows_of_place

    def counted(place: EvaluationProtocol, *rest: Any) -> list[Row]:
        places.append(place.value)
        if len(places) == 2:
            raise KeyboardInterrupt
        return rows_of(place, *rest)

    monkeypatch.setattr(comparison, "_rows_of_place", counted)
    with pytest.raises(KeyboardInterrupt):
        compare(protocol, specs, [0.5, 0.7, 0.9], Work(kept=Kept(path)))
    rows = compare(protocol, specs, [0.5, 0.7, 0.9], Work(kept=Kept(path)))
    assert places == [0.5, 0.7, 0.7, 0.9]
    assert str(rows) == str(whole)


def test_what_numbers_depend_on_is_in_the_fingerprint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = tmp_path / "a.csv"
    lines = (f"{60 * k},50,1\n" for k in range(400))
    log.write_text("".join(["arrival,duration,processors\n", *lines]))
    settings = [f"task.workload.path={log}", "task.workload.kind=trace", "task.world.processors=4"]
    config = load_config("hpc-smoke", [*settings, "task.workload.jobs=20"])
    on_log = EvaluationProtocol(config.task.build())
    place, sjf = small_protocol(), heuristic_spec("sjf")
    (learned,) = learned_specs(load_runs([make_run(tmp_path / "run")], "argmax"), "argmax")
    marks = [
        fingerprint_of(place, [sjf]),
        fingerprint_of(place, [heuristic_spec("tetris")]),
        fingerprint_of(place, [sjf, learned]),
        fingerprint_of(place, [sjf], "something else"),
        fingerprint_of(small_protocol(4), [sjf]),
        fingerprint_of(place.at(0.5), [sjf]),
        fingerprint_of(replace(place, task=replace(place.task, seed=3)), [sjf]),
        fingerprint_of(on_log, [sjf]),
    ]
    assert "" not in marks
    assert marks == [fingerprint_of(place, [sjf]), *marks[1:]]
    make_run(tmp_path / "other", seed=1)
    weights = tmp_path / "run" / "policy" / "weights.pt"
    weights.write_bytes((tmp_path / "other" / "policy" / "weights.pt").read_bytes())
    marks.append(fingerprint_of(place, [sjf, learned]))
    log.write_text(log.read_text().replace(",50,", ",51,", 1))
    marks.append(fingerprint_of(on_log, [sjf]))
    monkeypatch.setattr("tune_jobs.measuring.fingerprints._sources", lambda: "other code")
    marks.append(fingerprint_of(place, [sjf]))
    assert len(set(marks)) == len(marks)
    nameless = PolicySpec("mine", lambda protocol: sjf.make(protocol), named=False)
    assert fingerprint_of(place, [sjf, nameless]) == ""


FEW = {
    "deeprm-fig7": FigureRequest(overrides=SMALL_TASK[:-2], num_jobsets=3),
    "deeprm-fig5": FigureRequest(overrides=SMALL_TASK[:-2], num_jobsets=3),
    "hpc-sizes": FigureRequest(overrides=("task.workload.jobs=40",), num_jobsets=2),
    "panda-drift": FigureRequest(source="panda-drift", num_jobsets=1),
    "utility-fig4": FigureRequest(num_jobsets=2, at=(0.1, 0.2)),
    "utility-machines": FigureRequest(num_jobsets=2, at=(0.1,)),
    "utility-projects": FigureRequest(num_jobsets=1, at=(0.1,)),
}


@pytest.mark.parametrize("name", FEW)
def test_other_processes_measure_the_same_rows(name: str, tmp_path: Path) -> None:
    """With what was kept of them, too."""
    kind, request = FIGURES.get(name), FEW[name]
    assert "runners" in kind.options
    here = kind.collect(request)
    assert {row["table"] for row in here} == {kind.table}
    for path in (tmp_path / "it.jsonl",) * 2:
        work = Work(elsewhere, kept=Kept(path))
        assert str(kind.collect(replace(request, work=work))) == str(here)
        work.kept.settle()
