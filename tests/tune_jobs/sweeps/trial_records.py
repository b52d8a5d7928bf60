"""Trials as a sweep leaves them, made without training."""

from tune_jobs.sweeps.folder import TrialRecord, pack
from tune_jobs.sweeps.points import list_points, trial_config


def state_of(tmp_path, text: str) -> bytes:
    source = tmp_path / f"state-{text}"
    (source / "policy").mkdir(parents=True)
    (source / "policy" / "weights.pt").write_text(text)
    return pack(source)


def record_of(folder, index: int) -> TrialRecord:
    point = list_points(folder.sweep)[index]
    return folder.begin_trial(point, trial_config(folder.sweep, point, folder.trials))


def finish(folder, index: int, score: float) -> None:
    record = record_of(folder, index)
    record.add(rows(1, 4, score), None, 1.0)
    record.settle("finished")
    record.run.unlock()


def rows(first: int, last: int, score: float) -> list[dict[str, float]]:
    return [{"iteration": float(k), "eval/ratio": score} for k in range(first, last + 1)]
