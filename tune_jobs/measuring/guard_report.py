"""What ``compare --decide`` does: decides on one task, shows why, and keeps the decision."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any

import click

from cluster_env.core.errors import InputError, shortened
from cluster_env.core.policy import Policy
from cluster_env.evaluation import (
    MIN_DISJOINT,
    Estimate,
    GuardDecision,
    PolicyGroup,
    Result,
    by_size,
    compare_policies,
    get_metric,
)
from tune_jobs.commands.comparing import Compare, Guard
from tune_jobs.commands.shared import part_of
from tune_jobs.measuring.all_weeks import AllWeeks, play_weeks, weeks_of, worse_by
from tune_jobs.measuring.choices import protocol_of
from tune_jobs.measuring.evaluating import estimate_of, evaluation_of, references_at, trusted
from tune_jobs.measuring.guarding import calibrate, plain_limits, with_guard_jobs, write_decision
from tune_jobs.measuring.policy_specs import check_specs, learned_spec, split_names
from tune_jobs.measuring.protocol import EvaluationProtocol
from tune_jobs.measuring.table import about_windows, policy_lines
from tune_jobs.measuring.trained_runs import Decode, find_runs, load_runs
from tune_jobs.measuring.wording import described, jobs_in
from tune_jobs.measuring.work import working
from tune_jobs.tables.columns import column, with_interval, within_range
from tune_jobs.tables.frames import estimate_cells, frame_of
from tune_jobs.tables.printing import WIDTH, aligned, folded, title_case
from tune_jobs.tables.report import Report
from tune_jobs.terminal.options import DECISION
from tune_jobs.terminal.progress import NoProgress, Progress

MIN_JOBSETS = 2
"""Of what one may decide on: with one there is no interval."""

_SLACK = 1e-9  # of what is compared in the last digits


@dataclass(frozen=True, eq=False)
class Later:
    """What became of a decision on other jobsets: of a log, those of later weeks.

    So many of these fit side by side into its later part; jobsets may also be drawn one by one. For
    each limit that what was chosen does not keep there, `beyond` has by how much its metric is
    worse than the reference's, as a share.
    """

    num_jobsets: int
    num_disjoint: int | None
    results: tuple[Result, ...]  # of the reference, what was chosen, and the learned policy
    beyond: Mapping[str, float]
    in_one_go: str = ""  # how what was chosen breaks limits over all later weeks, in words


@dataclass(frozen=True, eq=False)
class Decided:
    """A decision with what it rests on.

    Attributes:
        protocol: what it was made on.
        decision: of the guard.
        seconds: that it took.
        later: what became of it on other jobsets, if that was asked for.
        run: whose policy it is about.
        decode: how that policy chooses.
    """

    protocol: EvaluationProtocol
    decision: GuardDecision
    seconds: float
    later: Later | None
    run: Path
    decode: Decode

    def report(self) -> Report:
        """The candidates, and what the chosen one does later."""
        data = _as_data(self.protocol, self.decision, self.seconds, self.later)
        lines = _text(self.protocol, self.decision)
        lines.append(f"Deciding took {self.seconds:.1f} s, tuning the heuristics included.")
        tables = {"candidates": data["candidates"]}
        if self.later is not None:
            lines += _later_text(self.protocol, self.decision, self.later)
            tables["later"] = data["later"]["policies"]
        return Report(
            text="\n".join(lines),
            tables={name: partial(frame_of, rows) for name, rows in tables.items()},
            data=data,
        )

    def write(self, path: Path) -> None:
        """Writes the decision as JSON, see `write_decision`."""
        write_decision(path, self.decision, self.protocol, self.run, self.decode)


def report_decision(options: Compare, out: Path | None, *, later: bool, as_json: bool) -> None:
    """Decides on the one policy that is named, shows the decision, and keeps it in a folder.

    Raises:
        InputError: if something cannot be used, or no policy or several are named.
    """
    names = split_names(map(str, options.policies))
    if len(names) != 1:
        raise InputError(
            f"--decide is about one learned policy, but --policies names {len(names)}; name the "
            "folder of a run, or a pretrained policy"
        )
    if options.decode == "tuned":
        raise InputError("--decode tuned is for comparisons; a decision takes sample or argmax")
    idle = {"at": options.at, "protocol": options.protocols, "episodes": options.num_episodes > 1}
    for name in (name for name, value in idle.items() if value):
        raise InputError(f"--{name} has no effect on a decision, so leave it out")
    guard = part_of(options, Guard, run=names[0], later=later)
    decided = decide(guard, NoProgress() if as_json else Progress())
    decided.report().show(as_json=as_json)
    if out is not None:
        decided.write(out / DECISION)
        if not as_json:
            click.echo(f"Wrote {out / DECISION}")


def decide(options: Guard, progress: Progress) -> Decided:
    """Lets the guard decide.

    Raises:
        InputError: if something cannot be used, or several policies are named.
    """
    if options.num_jobsets < MIN_JOBSETS:
        raise InputError(f"a guard needs at least {MIN_JOBSETS} jobsets to decide on")
    paths = find_runs([str(options.run)])
    if len(paths) > 1:
        raise InputError(
            f"a guard decides on one policy at a time, but {shortened(str(options.run))} names "
            f"{len(paths):,}, as {paths[0].name} and {paths[1].name}; name one of them"
        )
    runs = load_runs(paths, options.decode)
    whole = protocol_of(options, runs, options.num_jobsets, guarded=True)
    spec = learned_spec(paths[0].resolve().name, runs, options.decode)  # by the name it has here
    protocol = with_guard_jobs(whole.at(*whole.values()), [spec])
    check_specs(protocol, [spec])
    started = perf_counter()
    evaluation = evaluation_of([protocol], [], [spec])
    with working(options.num_runners, progress, address=options.address) as work:
        (evaluated,) = evaluation.do(work)
    (decision,) = calibrate(protocol, evaluation.specs, evaluated).decide(evaluated[-1])
    seconds = perf_counter() - started
    later = None
    if options.later:
        known = {one.group.name: one.group.members[0] for one in evaluated[:-1]}
        policies = {decision.reference: known[decision.reference], decision.name: decision.chosen}
        task = protocol.task
        policies |= {spec.key: runs[0].policy.acting_in(task.world, task.objective)}
        later = _look_later(protocol, decision, policies)
    return Decided(protocol, decision, seconds, later, runs[0].path, options.decode)


def _look_later(
    protocol: EvaluationProtocol, decision: GuardDecision, policies: Mapping[str, Policy]
) -> Later:
    """Evaluates the reference, what was chosen, and the learned policy on held-out jobsets."""
    world, jobsets = protocol.task.world, protocol.held_out()
    results = compare_policies(
        [PolicyGroup(key, (policy,)) for key, policy in policies.items()],
        jobsets,
        world,
        run_seed=protocol.task.seed,
        also=[protocol.metric, *decision.limits],
        warmup=protocol.warmup,
    )
    means = {result.name: result.means for result in results}
    beyond = {}
    for metric, limit in decision.limits.items():
        worse = worse_by(metric, means[decision.name][metric], means[decision.reference][metric])
        if worse > limit + _SLACK:
            beyond[metric] = worse
    pairs = [(name, policies[name]) for name in dict.fromkeys((decision.reference, decision.name))]
    whole = play_weeks(protocol, weeks_of(protocol, later=True), pairs)
    in_one_go = AllWeeks.of(protocol, whole[:1]).violation(whole[-1]) if whole else ""
    windows = protocol.num_disjoint_held_out
    return Later(len(jobsets), windows, tuple(results), beyond, in_one_go)


def _text(protocol: EvaluationProtocol, decision: GuardDecision) -> list[str]:
    """The decision, then what it rests on."""
    row, metric = protocol.columns(), protocol.metric
    details = described(row)
    title = f"{title_case(jobs_in(row))}: {protocol.num_guard_jobsets:,} validation jobsets"
    verb = "is" if decision.learned_is_used else "is not"
    sentences = [f"The learned policy {verb} used: {decision.reason}."]
    if protocol.num_disjoint is not None:
        part = "all jobs before the held-out ones" if protocol.all_before else "its validation part"
        sentences.append(
            f"Windows of a log, of {part}, overlap: only {protocol.num_disjoint:,} share no job."
        )
        sentences += _shorter(protocol, protocol.num_disjoint)
    means = {one.name: one.means for one in decision.candidates}
    learned = decision.candidates[-1].name
    shown = (decision.reference, decision.candidates[0].name, decision.name, learned)
    limits = [
        f"{get_metric(name).label} {limit:.0%}"
        for name, limit in decision.limits.items()
        if math.isfinite(limit)
    ]
    best, where = "the best baseline", ""
    if protocol.num_disjoint is not None and references_at(protocol):
        best, where = f"{best} over all earlier weeks in one go", " there or on these jobsets"
    under = (
        f"Refused where marked with !: worse than {decision.reference}, {best} and so the "
        f"reference, by more than a limit{where}: {', '.join(limits)}."
    )
    return [
        click.style(f"{title}{'; ' if details else ''}{details}", bold=True),
        *folded(sentences),
        *aligned(_candidates(protocol, decision), names=2, width=WIDTH),
        *_by_size(metric, {name: means[name] for name in dict.fromkeys(shown)}),
        "",
        *folded([under] if limits else []),
    ]


def _candidates(protocol: EvaluationProtocol, decision: GuardDecision) -> list[list[str]]:
    """Cells of all candidates: who is used, who is refused, and where."""
    metric = protocol.metric
    names = list(decision.limits)
    windows = decision.num_disjoint
    means = {
        one.name: {**one.means, "unfinished": one.num_unfinished} for one in decision.candidates
    }
    if any(one.num_unfinished for one in decision.candidates):
        names.append("unfinished")
    lines = policy_lines(
        protocol.task.spec,
        metric,
        names,
        (
            (
                "used" if one.name == decision.name else "refused" if one.too_dear else "",
                one.name,
                _interval(within_range(metric, trusted(one.mean, windows))),
                means[one.name],
            )
            for one in decision.candidates
        ),
    )
    refused = any(one.too_dear for one in decision.candidates)
    for line, one in zip(lines[-len(means) :], decision.candidates, strict=True):
        for place, name in enumerate(decision.limits if refused else (), start=3):
            line[place] += "!" if f"its {get_metric(name).label} of" in one.too_dear else " "
    return lines


def _interval(estimate: Estimate) -> str:
    return with_interval((estimate.value, estimate.low, estimate.high))


def _shorter(protocol: EvaluationProtocol, num_disjoint: int) -> list[str]:
    """What to give where a log has no room for enough windows."""
    task = protocol.task
    usual, _ = task.spec.presentation.steady(task)
    if num_disjoint >= MIN_DISJOINT or not usual:
        return []
    given = {"warmup": protocol.warmup}
    for name, length in usual.items():
        field = task.spec.presentation.options[name].key.rpartition(".")[2]
        given[name] = min(length, getattr(task.workload, field) or length)
    options = [
        f"--{name} {length * num_disjoint // MIN_DISJOINT}" for name, length in given.items()
    ]
    return [
        f"Shorter ones need {' '.join(options)}. The shorter they are, the more a policy "
        "gains by delaying jobs."
    ]


def _by_size(metric: str, means: Mapping[str, Mapping[str, float]]) -> list[str]:
    """The metric of jobs of each size, of some policies by name; nothing where it is not known."""
    names = by_size(metric, next(iter(means.values())))
    if not names:
        return []
    lines = [["by size of jobs", *(column(name).head for name in names)]]
    for policy, values in means.items():
        lines.append([policy, *(column(name).write(values[name]) for name in names)])
    return ["", *aligned(lines, names=1)]


def _later_text(protocol: EvaluationProtocol, decision: GuardDecision, later: Later) -> list[str]:
    """What the reference, what was chosen and the learned policy do on later jobs."""
    metric = protocol.metric
    lines = policy_lines(
        protocol.task.spec,
        metric,
        list(decision.limits),
        (
            (
                "used" if one.name == decision.name else "",
                one.name,
                _interval(estimate_of(one, metric, later.num_disjoint)),
                one.means,
            )
            for one in later.results
        ),
    )
    broken = [
        f"its {get_metric(name).label} is {worse:.1%} worse than that of {decision.reference}"
        for name, worse in later.beyond.items()
    ]
    words = f"There {decision.name} keeps all limits."
    if broken:
        words = f"There {decision.name} does not keep its limits: {', '.join(broken)}."
    if later.in_one_go:
        words += f" {'Also' if broken else 'But'}, {later.in_one_go}."
    windows = [] if later.num_disjoint is None else [about_windows(later.num_disjoint)]
    title = f"Later: {later.num_jobsets:,} held-out jobsets, not used for the decision"
    return [
        "",
        click.style(title, bold=True),
        *aligned(lines, names=2, width=WIDTH),
        *_by_size(metric, {one.name: one.means for one in later.results}),
        "",
        *folded([*windows, words]),
    ]


def _as_data(
    protocol: EvaluationProtocol, decision: GuardDecision, seconds: float, later: Later | None
) -> dict[str, Any]:
    data: dict[str, Any] = {
        "chosen": decision.name,
        "learned_is_used": decision.learned_is_used,
        "reason": decision.reason,
        "metric": protocol.metric,
        "seconds": seconds,
        "jobsets": protocol.num_guard_jobsets,
        "disjoint_windows": decision.num_disjoint,
        "all_before_held_out": protocol.all_before and decision.num_disjoint is not None,
        "task": protocol.columns(),
        "reference": decision.reference,
        "limits": plain_limits(decision.limits),
        "candidates": [
            {
                **{"policy": one.name, "mean": one.mean.value},
                **{"low": one.mean.low, "high": one.mean.high},
                **estimate_cells("difference", one.difference),
                "unfinished": one.num_unfinished,
                **one.side_metrics,
                "too_dear": one.too_dear,
            }
            for one in decision.candidates
        ],
    }
    if later is not None:
        data["later"] = {
            "jobsets": later.num_jobsets,
            "disjoint_windows": later.num_disjoint,
            "beyond": dict(later.beyond),
            "beyond_in_one_go": later.in_one_go,
            "policies": [{"policy": one.name, **one.means} for one in later.results],
        }
    return data
