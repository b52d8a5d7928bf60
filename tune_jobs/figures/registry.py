"""The figures by name, and the one way in which they are made."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cluster_env.core.errors import InputError
from cluster_env.core.registry import Registry
from cluster_env.workloads.formats import read_log
from tune_jobs.comparing.choices import choose_config
from tune_jobs.comparing.protocol import EvaluationProtocol
from tune_jobs.comparing.trained_runs import Decode, TrainedRun, find_runs, load_runs
from tune_jobs.terminal.progress import NoProgress, Progress
from tune_jobs.terminal.tables import Row, write_table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from rllib_configs.schema import ExperimentConfig

DEFAULT_TIME_LIMIT_S = 12.0


@dataclass(frozen=True)
class FigureRequest:
    """What a figure is to show.

    Attributes:
        runs: run directories and globs of them.
        rows: folders of `metasched study`, for a figure of adaptation.
        traces: job logs, for a figure that shows such.
        at: values of the axis that lines are drawn along; by default those of DeepRM's figure 4.
        source: preset or config file of the task; by default that of the first run, else deeprm.
        overrides: changes to it, ``key=value``.
        task_options: further changes, by names of the world's options.
        warmup: steps at both ends of the time in which jobs arrive, whose jobs do not count.
        num_jobsets: unseen jobsets that policies are evaluated on.
        num_episodes: episodes of each.
        seed: seed of the jobsets and of the policies' random numbers.
        decode: how learned policies choose.
        limits: of the guard, for a figure that needs one: metrics and shares, ``wait=0.5``.
        time_limit_s: seconds that the search for the best schedule of a jobset may take, for a
            figure that needs one.
        progress: shows where it is.
    """

    runs: Sequence[str] = ()
    rows: Sequence[Path] = ()
    traces: Sequence[Path] = ()
    at: Sequence[float] = ()
    source: str | None = None
    overrides: Sequence[str] = ()
    task_options: Mapping[str, Any] = field(default_factory=dict)
    warmup: int = 0
    num_jobsets: int = 1000
    num_episodes: int = 1
    seed: int = 0
    decode: Decode = "sample"
    limits: Sequence[str] = ()
    time_limit_s: float = DEFAULT_TIME_LIMIT_S
    progress: Progress = field(default_factory=NoProgress)

    def load(self) -> "tuple[list[TrainedRun], ExperimentConfig]":
        """The trained policies, and the config that says what they are evaluated on.

        Raises:
            InputError: if a run or the config cannot be used.
        """
        runs = load_runs(find_runs(self.runs), self.decode)
        return runs, choose_config(self.source, self.overrides, self.task_options, runs)

    def protocol(self, config: "ExperimentConfig", cap: bool = False) -> EvaluationProtocol:
        """What policies are compared on by the world's headline, see `EvaluationProtocol`."""
        return EvaluationProtocol(
            config.task.build(config.name, self.seed),
            num_jobsets=self.num_jobsets,
            num_episodes=self.num_episodes,
            warmup=self.warmup,
            cap=cap,
        )


@dataclass(frozen=True)
class FigureRecipe:
    """How a figure is made; the module of a single figure has two functions of these names.

    Attributes:
        collect: gives rows, from recorded runs or by running what it needs.
        draw: makes an image from the CSV file of those rows, and from nothing else.
    """

    collect: Callable[[FigureRequest], list[Row]]
    draw: "Callable[[Path], Figure]"


@dataclass(frozen=True)
class FigureKind:
    """A figure that can be made.

    Attributes:
        name: what the command line calls it; also the name of its files.
        about: what it shows, in one line.
        source: where ``collect`` and ``draw`` are, see `FigureRecipe`: a module, or a module and
            the name of a recipe in it, as ``tune_jobs.figures.comparison:WIN_RATE``.
        steady: whether it can leave out the jobs of a warm-up.
        guarded: whether it asks a guard, which has limits.
    """

    name: str
    about: str
    source: str
    steady: bool = True
    guarded: bool = False

    def load(self) -> Any:
        """What has ``collect`` and ``draw``, imported now."""
        module, _, name = self.source.partition(":")
        loaded = import_module(module)
        return getattr(loaded, name) if name else loaded


FIGURES: Registry[FigureKind] = Registry("figure")
for _kind in (
    FigureKind(
        "deeprm-fig4",
        "Slowdown against load, 10 to 190 %: every heuristic, and learned policies (--runs).",
        "tune_jobs.figures.comparison:VALUES",
    ),
    FigureKind(
        "deeprm-fig5",
        "Several objectives (--runs that were trained for them): every policy on every objective, "
        "over the best heuristic.",
        "tune_jobs.figures.objectives",
    ),
    FigureKind(
        "deeprm-fig6",
        "Learning curves (--runs): slowdown on validation jobsets, mean and maximum reward.",
        "tune_jobs.figures.learning_curves",
        steady=False,
    ),
    FigureKind(
        "deeprm-fig7",
        "Which jobs are kept waiting though there is room, and how long; slowdown against job "
        "length: sjf, tetris, hold, and learned policies (--runs).",
        "tune_jobs.figures.withheld_jobs",
    ),
    FigureKind(
        "win-rate",
        "How often a policy is as good as the best baseline on the same jobset, and how many jobs "
        "have a slowdown of at most 2, along the values --at.",
        "tune_jobs.figures.comparison:WIN_RATE",
    ),
    FigureKind(
        "deeprm-windows",
        "The same policies where jobs arrive for 50, 200 and 500 steps, and in operation at two "
        "loads, with their price: every heuristic, and learned policies (--runs).",
        "tune_jobs.figures.windows:FIGURE",
    ),
    FigureKind(
        "optimality-gap",
        "Slowdown over the best in hindsight (CP-SAT): heuristics, and learned policies (--runs). "
        "Takes up to --time-limit for each jobset; --jobsets 40 will do.",
        "tune_jobs.figures.optimality_gap",
        steady=False,
    ),
    FigureKind(
        "guard",
        "Learned policies (--runs) over the best heuristic on 20 tasks, with and without the "
        "guard; --jobsets 200 will do.",
        "tune_jobs.figures.guard",
        guarded=True,
    ),
    FigureKind(
        "adaptation",
        "Cost over the best heuristic's against steps of adaptation, on unseen tasks of each "
        "family (--rows of metasched study).",
        "tune_jobs.figures.adaptation:BY_FAMILY",
        steady=False,
    ),
    FigureKind(
        "adaptation-objectives",
        "The same for the tasks of each objective alone (--rows).",
        "tune_jobs.figures.adaptation:BY_OBJECTIVE",
        steady=False,
    ),
    FigureKind(
        "adaptation-win-rate",
        "Share of unseen tasks on which a policy is as good as the best heuristic, against steps "
        "of adaptation (--rows).",
        "tune_jobs.figures.adaptation:WIN_RATE",
        steady=False,
    ),
    FigureKind(
        "adaptation-differences",
        "Each method less joint training, in pairs of tasks, and how often adaptation makes things "
        "worse (--rows).",
        "tune_jobs.figures.adaptation_comparisons:DIFFERENCES",
        steady=False,
    ),
    FigureKind(
        "meta-curves",
        "Curves of meta-training (--runs): cost before and after adaptation on validation tasks, "
        "and entropy.",
        "tune_jobs.figures.meta_curves:CURVES",
        steady=False,
    ),
    FigureKind(
        "sweep",
        "A sweep (--runs SWEEP_DIR): its trials as lines over their settings, and the metric "
        "against each setting.",
        "tune_jobs.figures.sweep",
        steady=False,
    ),
    FigureKind(
        "headroom",
        "How much of the way from joint training to specialists of each task (metasched "
        "specialists) adaptation goes (--rows).",
        "tune_jobs.figures.adaptation_comparisons:HEADROOM",
        steady=False,
    ),
    *(
        FigureKind(
            f"cunha-fig5.{number}",
            f"Learning curves (--runs) of {what}, for any world.",
            "tune_jobs.figures.learning_curves",
            steady=False,
        )
        for number, what in (
            (2, "policy gradient methods"),
            (3, "other algorithms"),
            (4, "two observations"),
        )
    ),
    FigureKind(
        "cunha-fig5.5",
        "Slowdown in five scenarios of machine and job length: every rule, and learned policies "
        "(--runs).",
        "tune_jobs.figures.places:FIGURE_5",
    ),
    FigureKind(
        "cunha-fig5.6",
        "Time to train (--runs): minutes for a million decisions, for any world.",
        "tune_jobs.figures.learning_curves:TIME",
        steady=False,
    ),
    FigureKind(
        "cunha-fig5.7",
        "Decisions of an episode while training (--runs), as with several rewards, for any world.",
        "tune_jobs.figures.learning_curves:LENGTH",
        steady=False,
    ),
    FigureKind(
        "cunha-fig5.8",
        "Bounded slowdown of Lublin's jobs on machines of 64 to 16,384 processors: policies "
        "(--runs) that were trained on one of them, and every rule.",
        "tune_jobs.figures.places:FIGURE_8",
    ),
    FigureKind(
        "cunha-fig5.9",
        "Bounded slowdown of Lublin's jobs against the noise of estimates: every rule, and learned "
        "policies (--runs).",
        "tune_jobs.figures.places:FIGURE_9",
    ),
    *(
        FigureKind(
            f"cunha-table5.{number}",
            f"{what}: every rule and its price, and learned policies (--runs).",
            f"tune_jobs.figures.places:TABLE_{number}",
        )
        for number, what in (
            (6, "Bounded slowdown on RLScheduler's windows of job logs (--trace)"),
            (7, "Utilization on RLScheduler's windows of job logs (--trace)"),
            (9, "Bounded slowdown of Lublin's jobs, by processors and estimates"),
            (10, "Bounded slowdown on job logs (--trace), by estimates"),
            (11, "Utilization on job logs (--trace), by estimates"),
        )
    ),
    FigureKind(
        "cunha-table5.8",
        "Job logs (--trace): machine, jobs, span, load, run times and estimates of each.",
        "tune_jobs.figures.trace_table",
        steady=False,
    ),
    FigureKind(
        "hpc-run-times",
        "What the baselines gain on whole job logs (--trace) by better run times: what users ask "
        "for, their last two jobs, a learned correction, and the truth.",
        "tune_jobs.figures.run_times",
        steady=False,
    ),
    FigureKind(
        "hpc-pareto",
        "What a small slowdown costs: every rule, and learned policies (--runs), by utilization "
        "and longest wait, on Lublin's jobs or on job logs (--trace).",
        "tune_jobs.figures.pareto",
    ),
    FigureKind(
        "hpc-families",
        "Learned policies (--runs) over the best rule, sequence by sequence: generated jobs of "
        "several kinds, windows of job logs (--trace) and the whole of them; --jobsets 50 will do.",
        "tune_jobs.figures.ratios:FAMILIES",
        steady=False,
    ),
    FigureKind(
        "hpc-sizes",
        "The same on machines of 64 to 163,840 processors.",
        "tune_jobs.figures.ratios:SIZES",
        steady=False,
    ),
    FigureKind(
        "inner-rates",
        "Inner rates that were learned (--runs), by block of parameters.",
        "tune_jobs.figures.meta_curves:INNER_RATES",
        steady=False,
    ),
    *(
        FigureKind(f"utility-{name}", about, f"tune_jobs.figures.utility:{recipe}", steady=False)
        for name, about, recipe in (
            (
                "fig2",
                "Utility accrual: productivity of the paper's nine policies, and of EDF, value "
                "density, DASA and LBESA; at most 50 experiments, fewer with --jobsets.",
                "FIG2",
            ),
            ("fig3", "The same: utilization.", "FIG3"),
            ("fig4", "The same: productivity against jobs that arrive in a step (--at).", "FIG4"),
            ("fig5", "The same: productivity under other time-utility functions.", "FIG5"),
            ("values", "The same: the rulebase that servers learned, and its values.", "VALUES"),
        )
    ),
    *(
        FigureKind(f"panda-{name}", about, f"tune_jobs.figures.{source}", steady=False)
        for name, about, source in (
            (
                "comparison",
                "Agents on unlike nodes: total time, utilization, longest wait and fairness of "
                "every rule and of learned policies (--runs); --jobsets 100 will do.",
                "agents:COMPARISON",
            ),
            (
                "drift",
                "The same by the time of arrival, while the consumers and the nodes change.",
                "agents:DRIFT",
            ),
            (
                "dendrogram",
                "Types of consumers of a task, by Bayesian hierarchical clustering.",
                "advisors:DENDROGRAM",
            ),
            (
                "advisor",
                "The weights that advisors (--runs) make for consumers, by class.",
                "advisors:ADVISOR",
            ),
        )
    ),
    FigureKind(
        "utility-machines",
        "Utility accrual: several servers with one queue, values of each or one function for all; "
        "at most 20 experiments, fewer with --jobsets.",
        "tune_jobs.figures.utility:MACHINES_FIGURE",
        steady=False,
    ),
    FigureKind(
        "utility-bound",
        "Utility accrual on small jobsets: policies, learned ones too (--runs), over what nobody "
        "can beat in hindsight.",
        "tune_jobs.figures.utility_policies:BOUND",
        steady=False,
    ),
    FigureKind(
        "utility-learned",
        "Utility accrual: trained policies (--runs) over the aggressive policy and the paper's "
        "rulebase, at the rates that they were trained at; at most 20 experiments, fewer with "
        "--jobsets.",
        "tune_jobs.figures.utility_policies:LEARNED_FIGURE",
        steady=False,
    ),
):
    FIGURES.register(_kind.name)(_kind)


def make_figure(
    name: str, request: FigureRequest, out: Path, table: Path | None = None
) -> tuple[Path, Path]:
    """Makes a figure.

    Args:
        name: see `FIGURES`.
        request: what to show.
        out: folder for the files, created if need be.
        table: CSV file of an earlier call to draw again, instead of collecting anew.

    Returns:
        The paths of the image and of the CSV file that it was drawn from.

    Raises:
        InputError: if there is no such figure, what it needs is missing, or it knows no warm-up or
            no limits; before anything is evaluated if a log cannot be read.
    """
    kind = FIGURES.get(name)
    if request.warmup and not kind.steady:
        raise InputError(f"{name} measures all jobs of an episode, so leave out --warmup")
    if request.limits and not kind.guarded:
        raise InputError(f"{name} asks no guard, so leave out --limit")
    recipe: FigureRecipe = kind.load()
    from tune_jobs.figures.style import save  # imports matplotlib, which refusals do without

    if table is None:
        for path in request.traces:
            read_log(path)
        table = out / f"{name}.csv"
        write_table(table, recipe.collect(request))
    image = out / f"{name}.png"
    save(recipe.draw(table), image)
    return image, table
