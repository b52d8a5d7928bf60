"""The training loop: iterations, evaluations, checkpoints, records."""

from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

from rllib_configs.schema import ExperimentConfig
from tune_jobs.checkpoints import Checkpoint
from tune_jobs.cli import program
from tune_jobs.progress import NoProgress, Progress
from tune_jobs.ray_session import check_placement, ray_session, without_ray_chatter
from tune_jobs.recording import draw_figure, tracked
from tune_jobs.resuming import Resumption
from tune_jobs.runs import RunDirectory, create_run, discard_run
from tune_jobs.stopping import StopRequest
from tune_jobs.tracking import AnyTracker, NullTracker
from tune_jobs.validation import Validation

ALGORITHM = "algorithm"
POLICY = "policy"


@dataclass(frozen=True)
class RunResult:
    """What became of a run.

    Attributes:
        run: its folder.
        iterations: iterations that it has done, over all its resumptions.
        metrics: those of the last iteration; see `rllib_configs.builders.iteration_metrics`.
        evaluation: metrics of the newest evaluation, by the names of
            `cluster_env.evaluation.evaluate_summary`; empty if there was none.
        exit_status: 0, or 130 or 143 if a signal stopped it.
    """

    run: RunDirectory
    iterations: int
    metrics: dict[str, float] = field(default_factory=dict)
    evaluation: dict[str, float] = field(default_factory=dict)
    exit_status: int = 0


def run_training(
    config: ExperimentConfig,
    *,
    run_dir: Path | None = None,
    resume: Resumption | None = None,
    address: str | None = None,
    progress: Progress | None = None,
    tracker: AnyTracker | None = None,
) -> RunResult:
    """Trains to the end, or until Ctrl-C or SIGTERM; what it did can be resumed either way.

    Args:
        config: what to train; with `resume`, the config in there.
        run_dir: folder of the run, new or empty; by default a new one below ``config.runs``.
        resume: an earlier run to go on with.
        address: Ray cluster; see `tune_jobs.ray_session.ray_session`.
        progress: shows where it is; by default nothing is shown.
        tracker: records the run, and is neither finished nor closed; by default one is opened as
            the config says.

    Raises:
        InputError: before anything has started, if the run cannot start.
    """
    progress = progress or NoProgress()
    if config.meta is not None:
        from meta.maml.algorithm import with_base_task

        config = with_base_task(config)
    check_placement(config, address)
    run = resume.run if resume else create_run(config, run_dir)
    with ExitStack() as stack:
        if resume:
            run.lock()
        stack.callback(run.unlock)
        stack.callback(discard_run, run)
        stack.callback(progress.close)
        progress.say(f"{'Resuming' if resume else 'Starting'} {run.path}")
        progress.say("Waiting for Ray")
        stack.enter_context(ray_session(config, address))
        loop = _Loop(config, run, progress)
        stack.callback(loop.close)
        if resume:
            loop.restore(resume.checkpoint)
            run.write_config(config)
        else:
            loop.start()
        if tracker is not None:
            return loop.run(tracker)
        with tracked(config, run) as opened:
            result = loop.run(opened)
            opened.finish("killed" if result.exit_status else "finished")
        return result


class _Loop:
    """An algorithm with everything that a run does around its iterations."""

    def __init__(
        self,
        config: ExperimentConfig,
        run: RunDirectory,
        progress: Progress,
    ) -> None:
        from rllib_configs.builders import build_algorithm

        self._config = config
        self._run = run
        self._progress = progress
        self._tracker: AnyTracker = NullTracker()
        self._validation = Validation(config)
        self._references: dict[str, float] = {}
        self._evaluation: dict[str, float] = {}
        self._metrics: dict[str, float] = {}
        self._done = 0
        self._saved = 0
        with without_ray_chatter():
            self._algorithm = build_algorithm(config)

    def close(self) -> None:
        """Ends the algorithm's processes."""
        self._algorithm.stop()

    def start(self) -> None:
        """Begins with the weights of an earlier run, if the config names one."""
        from rllib_configs.policies import start_from

        if self._config.training.start is not None:
            start_from(self._algorithm, self._config.training.start)
            self._progress.say(f"Starting with the weights of {self._config.training.start}")

    def restore(self, checkpoint: Checkpoint | None) -> None:
        """Goes back to a checkpoint; what the run did after it is removed, to be done again.

        Args:
            checkpoint: None goes back to the beginning.
        """
        if checkpoint is not None:
            self._algorithm.restore_from_path(str(checkpoint.path / ALGORITHM))
            self._done = self._saved = checkpoint.iteration
        self._run.history.cut_after(self._done)
        self._run.checkpoints.remove_after(self._done)
        if checkpoint is None:
            self.start()
            self._progress.say("It has no checkpoint, so it begins again")
        else:
            self._progress.say(f"Going on after iteration {self._done}")

    def run(self, tracker: AnyTracker) -> RunResult:
        """Trains until all iterations are done or a signal asks to stop."""
        self._tracker = tracker
        self._begin()
        total = self._config.training.iterations
        with StopRequest(self._announce_stop) as stop:
            try:
                while self._done < total and not stop:
                    self._iterate()
                if self._saved < self._done:
                    self._save()
            except BaseException as error:
                failed = isinstance(error, Exception)
                self._say_how_to_resume("The run failed." if failed else "Stopped at once.")
                raise
            self._progress.close()
            self._end(stop)
        return RunResult(self._run, self._done, self._metrics, self._evaluation, stop.exit_status)

    def _begin(self) -> None:
        self._tracker.params(self._config.to_dict())
        self._tracker.artifact(self._run.path / "config.yaml")
        self._references = self._validation.references()
        self._progress.say(self._validation.describe(self._references))
        self._tracker.metrics(
            {f"reference/{name}": value for name, value in self._references.items()}, self._done
        )
        self._progress.start(self._config.training.iterations, self._done)

    def _iterate(self) -> None:
        from rllib_configs.builders import iteration_metrics

        self._metrics = iteration_metrics(self._algorithm.train())
        self._done += 1
        row = {**self._metrics, **self._throughput()}
        if self._is_due(self._config.evaluation.every):
            self._evaluate()
            row |= {f"eval/{name}": value for name, value in self._evaluation.items()}
        self._run.history.append(self._done, row)
        self._tracker.metrics(row, self._done)
        self._progress.step(self._done, self._line(row))
        if self._is_due(self._config.checkpoint.every):
            self._save()

    def _is_due(self, every: int) -> bool:
        last = self._done == self._config.training.iterations
        return last or bool(every and self._done % every == 0)

    def _throughput(self) -> dict[str, float]:
        training, metrics = self._config.training, self._metrics
        if "time/decisions_per_s" in metrics:
            return {}
        episodes = training.jobsets * training.episodes_per_jobset
        decisions = metrics.get("train/decisions_per_episode", 0.0) * episodes
        seconds = metrics.get("time/iteration_s", 0.0)
        return {"time/decisions_per_s": decisions / seconds} if seconds else {}

    def _line(self, row: dict[str, float]) -> str:
        metric = self._validation.metric
        parts = [f"reward {row['train/return_mean']:.1f}"]
        if "train/slowdown" in row:
            parts.append(f"slowdown {row['train/slowdown']:.2f}")
        if self._evaluation:
            parts.append(f"validation {metric} {self._evaluation[metric]:.3g}")
        if "meta/gain" in row:
            parts.append(f"gain by adapting {row['meta/gain']:+.3f}")
        if "time/decisions_per_s" in row:
            parts.append(f"{row['time/decisions_per_s']:,.0f} decisions/s")
        return "  ".join(parts)

    def _evaluate(self) -> None:
        from rllib_configs.policies import learned_policy

        metric = self._validation.metric
        self._evaluation = self._validation.evaluate(learned_policy(self._algorithm))
        value, unfinished = self._evaluation[metric], self._evaluation["unfinished"]
        interval = ""
        if metric == "slowdown":
            low, high = self._evaluation["slowdown_low"], self._evaluation["slowdown_high"]
            interval = f" [{low:.2f}, {high:.2f}]"
        left = f", {unfinished:.0f} jobs unfinished" if unfinished else ""
        rivals = ", ".join(f"{name} {number:.3g}" for name, number in self._references.items())
        self._progress.say(
            f"iteration {self._done}: validation {metric} {value:.3g}{interval}{left} ({rivals})"
        )

    def _save(self) -> None:
        from rllib_configs.policies import save_policy

        def save(folder: Path) -> None:
            save_policy(self._algorithm, self._config, folder)

        def fill(folder: Path) -> None:
            self._algorithm.save_to_path(str(folder / ALGORITHM))
            save(folder / POLICY)

        self._run.checkpoints.write(self._done, fill, self._config.checkpoint.keep)
        self._run.write_policy(save)
        self._saved = self._done

    def _end(self, stop: StopRequest) -> None:
        if self._run.policy.is_dir():
            self._tracker.artifact(self._run.policy)
        for checkpoint in self._run.checkpoints.all()[-1:]:
            self._tracker.artifact(checkpoint.path, "checkpoints")
        if stop:
            self._say_how_to_resume(f"Stopped after iteration {self._done}.")
        else:
            draw_figure("deeprm-fig6", self._run, self._tracker)

    def _announce_stop(self, signal_name: str) -> None:
        self._progress.say(
            f"{signal_name}: finishing iteration {self._done + 1} and writing a checkpoint "
            "(once more stops at once)"
        )

    def _say_how_to_resume(self, what: str) -> None:
        self._progress.close()
        if self._saved:
            what += f" Resume with: {program()} train --resume {_short(self._run.path)}"
        self._progress.say(what)


def _short(path: Path) -> Path:
    """The path as seen from here, where that is shorter."""
    return path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path
