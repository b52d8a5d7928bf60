"""A training run: a trainer, its checkpoints, its records."""

import re
import shlex
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from cluster_env.core.errors import Failure
from meta.maml.options import MAMLOptions
from rllib_configs.config.schema import ExperimentConfig, prepare
from rllib_configs.policy_files import check_start
from tune_jobs.processes.head import watching_head
from tune_jobs.processes.ray_session import check_placement, ray_session
from tune_jobs.runs.checkpoints import Checkpoint
from tune_jobs.runs.describing import TITLE, best_reference, describe, headline
from tune_jobs.runs.directory import RunDirectory, create_run, discard_run
from tune_jobs.runs.history import MetricRow
from tune_jobs.runs.hooks import Hooks
from tune_jobs.runs.resuming import Resumption
from tune_jobs.terminal.files import short_path
from tune_jobs.terminal.progress import NoProgress, Progress
from tune_jobs.terminal.running import program
from tune_jobs.terminal.signals import StopRequest
from tune_jobs.tracking import NullTracker, Tracker
from tune_jobs.tracking.model import may_be_model
from tune_jobs.tracking.provenance import made_with
from tune_jobs.tracking.recording import DrawFigure, tracked

if TYPE_CHECKING:
    from tune_jobs.runs.trainer import Trainer

_PACKAGE = "_ray_pkg_"
"""What the names of folders begin with in which Ray keeps copies of working directories."""


@dataclass(frozen=True, repr=False)
class RunResult:
    """What became of a run.

    Attributes:
        run: its folder.
        num_iterations: iterations that it has done, over all its resumptions.
        metrics: those of the last iteration; see `rllib_configs.builders.iteration_metrics`.
        evaluation: metrics of the newest evaluation, by the names of
            `cluster_env.evaluation.summary.flat_summary`; empty if there was none.
        exit_status: 0, or 130 or 143 if a signal stopped it.
    """

    run: RunDirectory
    num_iterations: int
    metrics: dict[str, float] = field(default_factory=dict)
    evaluation: dict[str, float] = field(default_factory=dict)
    exit_status: int = 0

    def __repr__(self) -> str:
        """The folder, how far the run is, and its newest evaluation as a table."""
        width = max(map(len, self.evaluation), default=0)
        lines = [f"{name:<{width}}  {value:>14,.4f}" for name, value in self.evaluation.items()]
        return "\n".join([f"Run {self.run.path}: {self.num_iterations:,} iterations", *lines])


def run_training(
    config: ExperimentConfig,
    *,
    run_dir: Path | None = None,
    resume: Resumption | None = None,
    address: str | None = None,
    progress: Progress | None = None,
    draw: DrawFigure | None = None,
) -> RunResult:
    """Trains to the end, or until Ctrl-C or SIGTERM; what it did can be resumed either way.

    Args:
        config: what to train; with `resume`, the config in there.
        run_dir: folder of the run, new or empty; by default a new one below ``config.runs``.
        resume: an earlier run to go on with.
        address: Ray cluster; see `tune_jobs.processes.ray_session.ray_session`.
        progress: shows where it is; by default nothing is shown.
        draw: draws the learning curves of a run that has ended; by default nobody does.

    Raises:
        InputError: before anything has started, if the run cannot start.
        Failure: if the cluster's CPUs have not come free in time; see ``resources.wait_s``.
    """
    progress = progress or NoProgress()
    config = prepare(config)
    config.require_units()
    check_placement(config, address)
    may_be_model(config, config.tracking.model)
    if config.training.start is not None and not resume:
        check_start(config, config.training.start)
    run = resume.run if resume else create_run(config, run_dir)
    with ExitStack() as stack:
        if resume:
            run.lock()
        stack.callback(run.unlock)
        if not resume:
            stack.callback(discard_run, run)
        stack.callback(progress.close)
        progress.say(f"{'Resuming' if resume else 'Starting'} {run.path}")
        if any(part.startswith(_PACKAGE) for part in run.path.resolve().parts):
            progress.say(
                "This folder is Ray's copy of the working directory, which goes with the cluster; "
                "--run names one that stays, on storage that all nodes share"
            )
        progress.say("Waiting for Ray")
        stack.enter_context(ray_session(config, address))
        stack.enter_context(watching_head(resume_command(run)))
        # Only now: it imports Ray, which reads the environment then, and what refuses is quicker.
        from tune_jobs.runs.trainer import start_trainer

        trainer = start_trainer(config, progress.say, partial(progress.aside, text="validation"))
        stack.callback(trainer.close)
        loop = _Loop(trainer, run, progress, draw)
        if resume:
            loop.restore(resume.checkpoint)
            run.write_config(config)
        else:
            loop.start()
        with tracked(config, run.path) as opened:
            result = loop.run(opened)
            opened.finish("killed" if result.exit_status else "finished")
        return result


class RetryingWriter:
    """Writes what the disk takes, tries the rest again, and says so at the end if that was in vain.

    A checkpoint that cannot be written costs nothing but what would be repeated after a crash, so
    training goes on; the one before stays whole. Rows of the table wait in memory meanwhile.

    Args:
        run: where it is kept.
        progress: is told.
    """

    def __init__(self, run: RunDirectory, progress: Progress | NoProgress) -> None:
        self._run = run
        self._progress = progress
        self._num_waiting = 0
        self._refusal: str | None = None

    @contextmanager
    def saving(self, iteration: int) -> Iterator[None]:
        """A ``with`` block that writes a checkpoint; what the disk refuses is said, not raised.

        Args:
            iteration: of the checkpoint.
        """
        try:
            yield
        except OSError as error:
            self._refusal = _reason(error)
            self._progress.say(
                f"iteration {iteration}: no checkpoint could be written ({self._refusal}); "
                f"{self._newest()}; training goes on, and the next checkpoint is tried again"
            )
        else:
            self._refusal = None

    def append(self, iteration: int, row: Mapping[str, float]) -> None:
        """Adds the row of an iteration to the table, after those that the disk has refused."""
        self._num_waiting += 1
        try:
            self._run.history.append(iteration, row)
        except OSError as error:
            if self._num_waiting == 1:
                self._progress.say(
                    f"iteration {iteration}: {self._run.history.path.name} cannot be written "
                    f"({_reason(error)}); its rows wait in memory"
                )
        else:
            self._num_waiting = 0

    def require_all(self) -> None:
        """Makes sure that all is on disk.

        Raises:
            Failure: if not.
        """
        try:
            if self._num_waiting:
                self._run.history.flush()
        except OSError as error:
            self._refusal = self._refusal or _reason(error)
        if self._refusal is not None:
            next_step = "resume from it" if self._whole() else "begin it again with --resume"
            raise Failure(
                f"the end of the run could not be written to {self._run.path} ({self._refusal}); "
                f"{self._newest()}; make room and {next_step}"
            )

    def _newest(self) -> str:
        whole = self._whole()
        return f"that of iteration {whole[-1]} is whole" if whole else "there is none yet"

    def _whole(self) -> list[int]:
        return [one.iteration for one in self._run.checkpoints.all() if one.damage() is None]


def resume_command(run: RunDirectory) -> str:
    """How to go on with a run."""
    return f"{program()} train --resume {shlex.quote(str(short_path(run.path)))}"


class _Loop:
    """A trainer with the records that a run keeps of it."""

    def __init__(
        self,
        trainer: "Trainer",
        run: RunDirectory,
        progress: Progress,
        draw: DrawFigure | None,
    ) -> None:
        self._trainer = trainer
        self._config = trainer.config
        self._run = run
        self._progress = progress
        self._draw = draw
        self._tracker: Tracker = NullTracker()
        self._records = RetryingWriter(run, progress)
        self._hooks = Hooks()
        self._saved = 0

    def start(self) -> None:
        """Begins with the weights of an earlier run, if the config names one."""
        self._trainer.start()
        if self._config.training.start is not None:
            self._progress.say(f"Starting with the weights of {self._config.training.start}")

    def restore(self, checkpoint: Checkpoint | None) -> None:
        """Goes back to a checkpoint; what the run did after it is removed, to be done again.

        Args:
            checkpoint: None goes back to the beginning.
        """
        self._run.go_back(checkpoint)
        if checkpoint is None:
            self.start()
            self._progress.say("It has no checkpoint, so it begins again")
        else:
            self._saved = checkpoint.iteration
            self._trainer.restore(checkpoint.path, checkpoint.iteration)
            self._progress.say(f"Going on after iteration {checkpoint.iteration}")

    def run(self, tracker: Tracker) -> RunResult:
        """Trains until all iterations are done or a signal asks to stop."""
        self._tracker = tracker
        self._begin()
        trainer = self._trainer

        def announce(signal_name: str) -> None:
            self._progress.say(
                f"{signal_name}: finishing iteration {trainer.done + 1} and writing a checkpoint "
                "(once more stops at once)"
            )

        with StopRequest(announce) as stop:
            try:
                while not trainer.finished and not stop:
                    self._iterate()
                if self._saved < trainer.done:
                    self._save()
                self._records.require_all()
            except BaseException as error:
                failed = isinstance(error, Exception)
                self._describe("failed" if failed else "stopped at once")
                self._say_how_to_resume("The run failed." if failed else "Stopped at once.")
                raise
            self._progress.close()
            self._end(stop)
            self._describe("stopped by a signal" if stop else "finished")
        return RunResult(
            self._run, trainer.done, trainer.metrics, trainer.evaluation, stop.exit_status
        )

    def _begin(self) -> None:
        if not self._trainer.finished:
            self._run.write_made(self._trainer.done, made_with())
        self._tracker.params(self._config.to_dict())
        self._tracker.artifact(self._run.path / "config.yaml")
        references = self._trainer.measure_references()
        self._progress.say(self._trainer.validation.describe(references))
        # At step 0 also in a run that is resumed, so that it has each reference once.
        self._tracker.metrics({f"reference/{name}": v for name, v in references.items()}, 0)
        self._tracker.complete(
            (step, self._shown(row)) for step, row in self._run.history.by_iteration()
        )
        self._describe("in training")
        self._progress.start(self._config.training.iterations, self._trainer.done)

    def _iterate(self) -> None:
        trainer = self._trainer
        row = trainer.iterate()
        if trainer.is_due(self._config.evaluation.every):
            self._say_evaluation()
        self._records.append(trainer.done, row)
        self._tracker.metrics(self._shown(row), trainer.done)
        self._hooks.on_iteration({"iteration": float(trainer.done), **row}, self._run.path)
        self._progress.step(trainer.done, self._line(row))
        if trainer.is_due(self._config.checkpoint.every):
            self._save()

    def _shown(self, row: MetricRow) -> MetricRow:
        """What MLflow shows of an iteration."""
        validation = self._trainer.validation
        return {**headline(row, validation.metric, validation.side_metrics), **row}

    def _line(self, row: dict[str, float]) -> str:
        metric, evaluation = self._trainer.validation.metric, self._trainer.evaluation
        parts = []
        if evaluation:  # first, because a narrow terminal cuts off the end
            best, value = best_reference(self._trainer)
            parts.append(f"validation {metric} {evaluation[metric]:.3g} ({best} {value:.3g})")
        parts.append(f"reward {row['train/return_mean']:.1f}")
        headline = self._trainer.validation.headline
        if f"train/{headline}" in row:
            parts.append(f"{headline.replace('_', ' ')} {row[f'train/{headline}']:.2f}")
        if "meta/gain" in row:
            parts.append(f"gain by adapting {row['meta/gain']:+.3f}")
        if "time/decisions_per_s" in row:
            parts.append(f"{row['time/decisions_per_s']:,.0f} decisions/s")
        return "  ".join(parts)

    def _say_evaluation(self) -> None:
        metric, evaluation = self._trainer.validation.metric, self._trainer.evaluation
        value, unfinished = evaluation[metric], evaluation["unfinished"]
        low, high = evaluation.get(f"{metric}_low"), evaluation.get(f"{metric}_high")
        interval = "" if low is None or high is None else f" [{low:.3g}, {high:.3g}]"
        left = f", {unfinished:.0f} jobs unfinished" if unfinished else ""
        references = self._trainer.references
        baselines = ", ".join(f"{name} {number:.3g}" for name, number in references.items())
        self._progress.say(
            f"iteration {self._trainer.done}: validation {metric} {value:.3g}{interval}{left} "
            f"({baselines})"
        )
        if side := self._trainer.validation.side_metrics_of(evaluation):
            self._progress.say(f"  at {side}")

    def _save(self) -> None:
        done = self._trainer.done
        with self._records.saving(done):
            self._run.write_checkpoint(done, self._trainer.save, self._config.checkpoint.keep)
            self._run.write_policy(self._trainer.save_policy)
            self._saved = done
            self._describe("as far as its newest checkpoint")

    def _describe(self, state: str) -> None:
        if self._trainer.references:
            self._tracker.note(TITLE, describe(self._trainer, state))

    def _end(self, stop: StopRequest) -> None:
        if self._run.policy.is_dir():
            self._tracker.artifact(self._run.policy)
        for checkpoint in self._run.checkpoints.all()[-1:]:
            self._tracker.artifact(checkpoint.path, "checkpoints")
        if stop:
            self._say_how_to_resume(f"Stopped after iteration {self._trainer.done}.")
        else:
            if self._draw is not None:
                learns_tasks = isinstance(self._config.training, MAMLOptions)
                curves = "meta-curves" if learns_tasks else "learning-curves"
                self._draw(curves, self._run, self._tracker)
            self._tracker.model(self._run.policy, self._config.tracking.model)

    def _say_how_to_resume(self, what: str) -> None:
        self._progress.close()
        if self._saved:
            what += f" Resume with: {resume_command(self._run)}"
        self._progress.say(what)


def _reason(error: OSError) -> str:
    """What the system said, without what libraries say around it."""
    text = error.strerror or str(error)
    found = re.search(r"\[errno \d+\] (.+)", text, re.IGNORECASE)
    return (found[1] if found else text).strip()
