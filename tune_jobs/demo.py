"""``metasched demo``: commands that train, compare, replay and adapt, one after the other."""

import os
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from statistics import fmean
from textwrap import fill, indent
from typing import Annotated

import click

from tune_jobs.cli import metasched
from tune_jobs.commands import command_line
from tune_jobs.commands.flags import Flag
from tune_jobs.commands.shared import FOLDER
from tune_jobs.terminal.options import ADAPTATION_TABLE, COMPARISON_TABLE
from tune_jobs.terminal.running import program

RULES = "sjf,tetris,hold"
OPERATION = ("--at", "0.7", "--window", "700", "--warmup", "100")
LOG = "example"
LOG_RULES = "fcfs:easy,sjf:easy,saf:easy,wspt:skip"
LOG_POLICY = "hpc-order"
TASKS = (0, 1, 2)
"""The first held-out tasks of the family priorities-operation."""
QUICK_TASKS = TASKS[:1]
ITERATIONS = 2  # of meta-training
JOBSETS, QUICK_JOBSETS = 100, 20
QUICK = ("training.iterations=2", "evaluation.jobsets=20", "checkpoint.every=2")
QUICK_META = ("evaluation.jobsets=5",)
MODEL = "metasched-demo"  # of the preset
SEEDS = (
    "recorded for five seeds on 300 jobsets: it wins in 5 of 5, and the mean slowdown is 0.52 "
    "[0.35, 0.70] lower than that of tetris, the best of the same rules (metasched results demo)"
)
"""What `tune_jobs/figures/recorded/demo.csv` holds."""


@dataclass(frozen=True)
class Demo:
    """The folders and numbers of a demo."""

    runs: Path  # folder of all
    name: str  # end of the folders' names
    quick: bool = False

    @property
    def tasks(self) -> Sequence[int]:
        """The tasks that the policy is adapted to."""
        return QUICK_TASKS if self.quick else TASKS

    def folder(self, part: str) -> Path:
        """Where one of its parts is: run, compared, log, replayed, meta or task-0."""
        return self.runs / f"demo-{part}-{self.name}"

    def command_lines(self) -> list[list[str]]:
        """What it runs, as words of the command line."""
        run, meta = str(self.folder("run")), str(self.folder("meta"))
        jobsets = ["--jobsets", str(QUICK_JOBSETS if self.quick else JOBSETS)]
        runners = ["--runners", str(min(2, len(os.sched_getaffinity(0))))]
        training = ["--set", f"runs={self.runs}", *runners]
        iterations = f"training.iterations={1 if self.quick else ITERATIONS}"
        policies = f"{LOG_RULES},{LOG_POLICY}"
        adapt = ["adapt", meta, "--evaluate", jobsets[1], "--track"]
        return [
            ["train", "demo", "--run", run, *training, *_sets(QUICK if self.quick else ())],
            [
                *("compare", "--policies", f"{RULES},{run}", *OPERATION, *jobsets),
                *("--out", str(self.folder("compared")), "--track"),
            ],
            [
                *("figure", "schedules", "--runs", run, *OPERATION, *jobsets),
                *("--out", f"{run}/figures", "--track"),
            ],
            ["trace", LOG, "--out", str(self.folder("log"))],
            [
                *("replay", LOG, "--policies", policies, "--max-wait", "x2"),
                *("--out", str(self.folder("replayed"))),
            ],
            [
                *("train", "deeprm-maml-operation", "--run", meta, *training),
                *_sets([iterations, *(QUICK_META if self.quick else ())]),
            ],
            *(
                [
                    *(*adapt, "--task", f"priorities-operation:{task}"),
                    *("--out", str(self.folder(f"task-{task}"))),
                ]
                for task in self.tasks
            ),
        ]

    def summary(self) -> Iterator[tuple[str, str]]:
        """What came out of its tables, as labels and lines.

        Each line compares with all rules of the table that it is about.
        """
        from tune_jobs.measuring.verdict import verdicts
        from tune_jobs.tables.frames import read_table

        compared = self.folder("compared") / COMPARISON_TABLE
        for sentence in verdicts(read_table(compared, ("learned", "best"))):
            yield "Trained", sentence
        if not self.quick:
            yield "", SEEDS
        yield "Log", self._of_log()
        yield "Adapted", self._of_tasks()
        yield "Picture", f"first open {self.folder('run') / 'figures' / 'schedules.png'}"
        yield "", f"then {self.folder('replayed') / 'timeline.png'}"
        yield "Next", "with jobs of your own: metasched trace FILE, then metasched replay FILE"
        yield "", "with a paper's results: metasched results"
        yield "", "on a cluster: metasched train deeprm-ppo-large-batch --address auto"

    def _of_log(self) -> str:
        from tune_jobs.measuring.verdict import beside_heuristics
        from tune_jobs.tables.frames import read_table

        rows = {
            row["policy"]: {**row, "world": "hpc", "wait": row["mean_wait"]}
            for row in read_table(self.folder("replayed") / "replay.csv", ("policy", "mean_wait"))
        }
        rules = [rows[name] for name in LOG_RULES.split(",")]
        said = beside_heuristics(LOG_POLICY, rows[LOG_POLICY], rules, "bounded_slowdown")
        return f"on the log {LOG}, {said} It is one log, so there is no interval."

    def _of_tasks(self) -> str:
        from tune_jobs.measuring.wording import best_of
        from tune_jobs.tables.frames import read_table

        tables = [
            read_table(self.folder(f"task-{task}") / ADAPTATION_TABLE, ("step", "kept", "ratio"))
            for task in self.tasks
        ]
        rules = [[row for row in rows if not row["step"]] for rows in tables]
        kept = [next(row for row in rows if row["kept"] == "1") for rows in tables]
        best = [min(own, key=lambda row: float(row["cost"])) for own in rules]

        def mean(rows: Sequence[dict[str, str]], name: str) -> float:
            return fmean(float(row[name]) for row in rows)

        price = ", ".join(
            f"{title} {format(mean(kept, name), form)} ({format(mean(best, name), form)})"
            for title, name, form in (
                ("utilization", "utilization", ".1%"),
                ("mean wait", "wait", ".1f"),
                ("longest wait", "longest_wait", ".1f"),
            )
        )
        names = [row["policy"].partition(":")[0] for row in rules[0]]
        ratios = ", ".join(f"{float(row['ratio']):.2f}" for row in kept)
        before = mean([rows[0] for rows in tables], "ratio")
        return (
            f"to unseen tasks with hidden priorities ({len(tables)}): after at most three steps, "
            f"{ratios} times the cost of {best_of(names)} on the task ({before:.2f} on the mean "
            f"before steps); {price}."
        )


def _sets(settings: Sequence[str]) -> list[str]:
    return [word for text in settings for word in ("--set", text)]


@command_line.command("demo")
def command(
    *,
    quick: Annotated[
        bool, Flag("Check the installation in one or two minutes; nothing is learned.")
    ] = False,
    runs: Annotated[Path, Flag("Folder for the runs and the MLflow store.", type=FOLDER)] = Path(
        "runs"
    ),
) -> None:
    """Train, compare, replay and adapt, in about three minutes on two cores.

    The demo trains a policy for a cluster in operation for under a minute, compares it with the
    best rules on unseen jobs, and draws both on the same jobs. It replays a log under rules and a
    shipped policy. Then it meta-trains another policy, and adapts it to unseen tasks with hidden
    priorities. Each part is an ordinary command, which is shown before it runs.

    \b
    Examples:
      metasched demo
      metasched demo --quick --runs trial
    """
    from tune_jobs.tracking.provenance import as_command

    stamp = datetime.now().strftime("%Y%m%d-%H%M%S")
    demo = Demo(runs, stamp, quick)
    lines = demo.command_lines()
    done = 0
    minutes = "one or two minutes" if quick else "about three minutes"
    click.echo(f"{len(lines)} commands, {minutes} on two cores; each is shown before it runs.\n")
    try:
        for line in lines:
            click.secho(f"[{done + 1}/{len(lines)}] metasched {shlex.join(line)}", bold=True)
            with as_command(["metasched", *line]):
                status = metasched.main(line, prog_name="metasched", standalone_mode=False)
            if status:
                raise click.exceptions.Exit(status)
            done += 1
            click.echo()
        for label, text in demo.summary():
            text = fill(text, 71, break_long_words=False, break_on_hyphens=False)
            click.echo(f"{click.style(f'{label:8}', bold=True)} {indent(text, 9 * ' ').lstrip()}")
    finally:  # what there is by now is worth a look, also if the rest was stopped
        if done:
            click.echo(f"Results  {runs}/demo-*-{demo.name}/")
            click.echo(f"Model    models:/{MODEL}/latest in MLflow, to load or to serve")
            click.echo(f"MLflow   {program()} ui --runs {runs}")


if __name__ == "__main__":
    from tune_jobs.terminal.running import run_command

    run_command(command)
