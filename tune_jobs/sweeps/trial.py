"""The training of one trial, in a process of its own; it writes nothing where runs are kept.

What it has to say travels in the results: rows, and now and then a state. So it does not matter on
which machine of a cluster a trial runs, and nobody but the sweep's own process writes to its
folder or talks to MLflow.
"""

import json
import math
import tempfile
import time
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import ray
from ray import tune

from cluster_env.core.errors import InputError
from cluster_env.core.json_text import read_json
from tune_jobs.runs.checkpoints import Checkpoints
from tune_jobs.runs.history import MetricRow
from tune_jobs.runs.validation import RATIO
from tune_jobs.sweeps.definition import Sweep
from tune_jobs.sweeps.folder import pack, trial_name, unpack
from tune_jobs.sweeps.points import Point, Presets, trial_config
from tune_jobs.sweeps.searched import SCORE, SCORED_AT, SETTINGS

if TYPE_CHECKING:  # it takes seconds, and the sweep's own process does not need it
    from tune_jobs.runs.trainer import Trainer

STEP_S = 1.0
STATE_EVERY_S = 15.0
_PLACE = "place.json"
_PATIENT_FOR = 3  # iterations, until which a metric may be missing


class NoMetric(InputError):
    """Trials have no metric of the name that ranks them."""


@dataclass(frozen=True)
class TrialContext:
    """What all trials of a sweep know.

    Of trials that are gone on with there are states by index: iteration, and a reference to what
    `tune_jobs.sweeps.folder.pack` made of the state.
    """

    sweep: Sweep
    trials: Path  # their folder, as the sweep's own process sees it
    presets: Presets  # see `tune_jobs.sweeps.points.read_presets`
    states: Mapping[int, tuple[int, ray.ObjectRef]] = field(default_factory=dict)


class SweepTrial(tune.Trainable):
    """A trial as Ray Tune runs it; a process does one after the other.

    A step lasts about a second, and ends early where an evaluation or a checkpoint is due.
    """

    def setup(self, config: dict[str, Any], context: TrialContext | None = None) -> None:
        """Takes the first trial."""
        assert context is not None
        self._context = context
        self._trainer: Trainer | None = None
        self._start: bytes | None = None
        self._take(config)

    def reset_config(self, new_config: dict[str, Any]) -> bool:
        """Takes another trial, or the same with other settings."""
        self._take(new_config)
        return True

    def cleanup(self) -> None:
        """Ends the algorithm."""
        if self._trainer is not None:
            self._trainer.close()
            self._trainer = None

    def step(self) -> dict[str, Any]:
        """Trains for about a second, or says why it cannot; see `_step`."""
        try:
            return self._step()
        except InputError as error:
            everywhere = isinstance(error, NoMetric)
            refusal = {"refused": str(error), "everywhere": everywhere, "iteration": 0}
            return refusal | {SCORE: math.nan, SCORED_AT: 0, "done": True}

    def _step(self) -> dict[str, Any]:
        """Trains for about a second.

        Returns:
            ``rows``: of the iterations that were done; ``state``: packed, or None; ``score``: the
            metric that ranks trials, NaN before there is one; ``scored_at``: the iteration at which
            it was new, 0 before; ``busy_s``: seconds that it took; ``references``: what heuristics
            reach; ``settings``: of the trial; ``done``: whether it has come to its end.
        """
        trainer = self._trainer or self._begin()
        began = time.perf_counter()
        rows = []
        while True:
            row = {"iteration": float(trainer.done + 1), **trainer.iterate()}
            rows.append(row)
            self._note_score(trainer, row)
            due = trainer.is_due(trainer.config.checkpoint.every)
            evaluated = trainer.is_due(trainer.config.evaluation.every)
            if due or evaluated or time.perf_counter() - began > STEP_S:
                break
        late = time.monotonic() - self._state_at > STATE_EVERY_S
        state = self._pack_state(trainer) if due or late else None
        return {
            "iteration": trainer.done,
            "rows": rows,
            "state": state,
            SCORE: sum(self._scores) / len(self._scores) if self._scores else math.nan,
            SCORED_AT: self._scored_at,
            "busy_s": time.perf_counter() - began,
            "references": trainer.references,
            "settings": self._point.settings,
            "done": trainer.finished,
        }

    def save_checkpoint(self, checkpoint_dir: str) -> None:
        """Writes what another trial, or this one later, can go on from; pbt needs it."""
        self._write_state(self._trainer or self._begin(), Path(checkpoint_dir))

    def load_checkpoint(self, checkpoint: Any) -> None:
        """Goes on from what `save_checkpoint` wrote, with the settings that this trial has."""
        self.cleanup()
        self._start = pack(Path(checkpoint))

    def _take(self, config: Mapping[str, Any]) -> None:
        self.cleanup()
        # Not in the config: who takes over from a better trial gets that one's.
        index = int(self.trial_name.rpartition("-")[2])
        self._point = Point(index, dict(config[SETTINGS]))
        self._scores: deque[float] = deque(maxlen=self._context.sweep.average)
        self._scored_at = 0
        self._start = None

    def _begin(self) -> "Trainer":
        from tune_jobs.runs.trainer import Trainer  # takes seconds

        context = self._context
        config = trial_config(context.sweep, self._point, context.trials, context.presets)
        trainer = Trainer(config)
        start = self._start or self._newest_state()
        if start is None:
            trainer.start()
        else:
            with tempfile.TemporaryDirectory() as folder:
                unpack(start, Path(folder))
                saved = read_json(Path(folder, _PLACE))
                trainer.restore(Path(folder), saved["done"])
                self._scores.extend(saved["scores"])
                self._scored_at = saved[SCORED_AT]
        trainer.measure_references()
        self._state_at = time.monotonic()
        self._trainer = trainer
        return trainer

    def _newest_state(self) -> bytes | None:
        """What the trial left before this process: here, if the folder can be seen from here."""
        index = self._point.index
        sent = self._context.states.get(index)
        folder = self._context.trials / trial_name(index) / "checkpoints"
        for checkpoint in reversed(Checkpoints(folder).all()):
            if sent is not None and checkpoint.iteration <= sent[0]:
                break
            if checkpoint.damage() is None:
                return pack(checkpoint.path)
        return None if sent is None else ray.get(sent[1])

    def _pack_state(self, trainer: "Trainer") -> bytes:
        self._state_at = time.monotonic()
        with tempfile.TemporaryDirectory() as folder:
            self._write_state(trainer, Path(folder))
            return pack(Path(folder))

    def _write_state(self, trainer: "Trainer", folder: Path) -> None:
        trainer.save(folder)
        place = {"done": trainer.done, "scores": list(self._scores), SCORED_AT: self._scored_at}
        (folder / _PLACE).write_text(json.dumps(place))

    def _note_score(self, trainer: "Trainer", row: MetricRow) -> None:
        metric = self._context.sweep.metric
        if metric in row:
            self._scores.append(row[metric])
            self._scored_at = trainer.done
            return
        evaluated = trainer.is_due(trainer.config.evaluation.every)
        expected = evaluated if metric.startswith("eval/") else trainer.done >= _PATIENT_FOR
        if not self._scores and (trainer.finished or (expected and metric != RATIO)):
            raise NoMetric(
                f"there is no metric {metric} to rank trials by; a trial has {', '.join(row)}"
            )
