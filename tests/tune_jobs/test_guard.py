"""The guard on the command line: ``compare --guard`` and ``compare --decide``."""

import json
import math
import re
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import click
import numpy as np
import pytest
from click.testing import CliRunner, Result

from cluster_env.core.errors import InputError
from cluster_env.core.policy import Policy
from cluster_env.core.seeding import Split
from cluster_env.evaluation import PolicyGroup, evaluate
from cluster_env.objectives.standard import bounded_slowdown
from cluster_env.workloads import sample_jobsets
from cluster_env.worlds import get_heuristic, get_spec
from cluster_env.worlds.deeprm import DeepRM
from cluster_env.worlds.deeprm.cluster import Cluster
from cluster_env.worlds.deeprm.workloads import BimodalWorkload
from cluster_env.worlds.hpc.bounds import read_bound
from rllib_configs.config.loading import load_config
from rllib_configs.config.task_schema import TaskSection
from tests.tune_jobs.untrained_runs import make_run
from tune_jobs import cli, compare, generate
from tune_jobs.measuring import comparison, protocol
from tune_jobs.measuring.all_weeks import AllWeeks, play_weeks, weeks_of
from tune_jobs.measuring.choices import choose_comparison
from tune_jobs.measuring.guarding import load_decided, with_guard_jobs
from tune_jobs.measuring.policy_specs import PolicySpec, heuristic_spec, learned_specs
from tune_jobs.measuring.protocol import EvaluationProtocol
from tune_jobs.measuring.table import format_rows
from tune_jobs.measuring.trained_runs import find_runs, load_runs

TASK = load_config("deeprm", ["task.workload.load=1.1"]).task.build()


def run(command: click.Command, *args: str) -> Result:
    return CliRunner().invoke(command, list(args), catch_exceptions=False)


def decided(name: str, *args: str) -> Result:
    """What is decided on a policy."""
    return run(compare.command, "--decide", "--policies", name, *args)


def as_learned(key: str, *specs: str) -> PolicySpec:
    """Heuristics in the place of a policy that was trained with so many seeds."""

    def make(protocol: EvaluationProtocol) -> PolicyGroup:
        world = protocol.task.world
        return PolicyGroup(key, tuple(get_heuristic(spec, world) for spec in specs))

    return PolicySpec(key, make, learned=True, num_seeds=len(specs), trained_at=0.7)


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run whose policy decides nearly at random."""
    return make_run(tmp_path_factory.mktemp("guard") / "poor", "name=poor")


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Jobs of some days, of a machine of 32 processors."""
    path = tmp_path_factory.mktemp("log") / "jobs.csv"
    run(generate.command, str(path), "--jobs", "400", "--processors", "32", "--seed", "2")
    return path


def test_what_is_decided_on_earlier_weeks_is_shown_on_later_ones(
    log: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(get_spec("hpc").heuristics, "names", lambda: ("saf", "fcfs"))
    monkeypatch.setattr("tune_jobs.measuring.protocol.NUM_TUNING_JOBSETS", 2)
    task = ("--set", f"task.workload.trace={log}", "--processors", "32", "--jobsets", "12")
    args = ("hpc-order", *task, "--later", "--json")
    free = [part for name in ("wait", "longest_wait") for part in ("--limit", f"{name}=off")]
    seen = {}
    for name, limits in {
        "usual": [],
        "none": [*free, "--limit", "utilization=off"],
        "unkept": [*free, "--limit", "utilization=0.9"],
    }.items():
        found = json.loads(decided(*args, *limits).stdout)
        later, by_name = found["later"], {one["policy"]: one for one in found["later"]["policies"]}
        seen[name] = found
        assert set(by_name) == {found["reference"], found["chosen"], "hpc-order"}
        assert later["jobsets"] == 12
        chosen, reference = by_name[found["chosen"]], by_name[found["reference"]]
        for metric, limit in found["limits"].items():
            worse = chosen[metric] / reference[metric] - 1
            worse = -worse if metric == "utilization" else worse
            broken = limit is not None and worse > limit
            assert (metric in later["beyond"]) == broken
            assert not broken or later["beyond"][metric] == pytest.approx(worse)
        for size in ("narrow", "medium", "wide"):
            assert f"bounded_slowdown_{size}" in chosen
    assert not seen["usual"]["learned_is_used"]
    assert not seen["none"]["later"]["beyond"]
    text = " ".join(decided(*args[:-1]).stdout.split())
    assert "Later: 12 held-out jobsets" in text
    assert "narrow" in text
    assert (seen["usual"]["disjoint_windows"], seen["usual"]["all_before_held_out"]) == (5, True)
    assert "all jobs before the held-out ones, overlap: only 5 share no job." in text
    assert "keeps all limits" in text or "does not keep its limits" in text


@pytest.mark.parametrize(
    ("said", "bound"),
    [
        ((), "x2"),
        (("--max-wait", "x3"), "x3"),
        (("--max-wait", "90m"), 5400),
        (("--set", "task.world.max_wait=3600"), 3600),
        (("--max-wait", "0"), 0),
        (("--set", "task.world.max_wait=0"), 0),
    ],
)
def test_on_a_log_a_guard_bounds_waits_and_compares_with_the_best_rule_that_backfills(
    said: tuple[str, ...], bound: str | int, log: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(get_spec("hpc").heuristics, "names", lambda: ("lcfs", "fcfs"))
    monkeypatch.setattr("tune_jobs.measuring.protocol.NUM_TUNING_JOBSETS", 2)
    task = ("--set", f"task.workload.trace={log}", "--processors", "32", "--jobsets", "8")
    found = json.loads(decided("hpc-order", *task, *said, "--later", "--json").stdout)
    if isinstance(bound, str):  # of the longest wait under fcfs:easy before the held-out jobs
        bound = read_bound(bound, load_config("hpc-smoke", _on(log)).task.build)
        assert bound > 0
    assert found["task"].get("max_wait", 0) == bound
    means = {one["policy"]: one["mean"] for one in found["candidates"]}
    references = set(get_spec("hpc").training.references(get_spec("hpc").world()))
    assert means.keys() == references | {"lcfs", "hpc-order"}
    world = load_config("hpc-order", [f"task.world.max_wait={bound}", *_on(log)]).task.build().world
    workload: Any = load_config("hpc-smoke", _on(log)).task.build_workload()
    weeks = [workload.before_held_out().recorded.jobset()]
    over_all = {
        name: bounded_slowdown(evaluate(get_heuristic(name, world), weeks, world)).mean()
        for name in references
    }
    assert found["reference"] in references
    assert over_all[found["reference"]] == min(over_all.values())
    text = " ".join(decided("hpc-order", *task, *said).stdout.split())
    best = f"worse than {found['reference']}, the best baseline over all earlier weeks in one go"
    assert f"{best} and so the reference, by more than a limit there or on these jobsets: " in text
    assert ("goes first" in text) == bool(bound)


def test_limits_hold_over_all_weeks_of_a_log_in_one_go(log: Path) -> None:
    task = load_config("hpc-order", ["task.world.max_wait=0", *_on(log)]).task.build()
    rules = {name: get_heuristic(name, task.world) for name in ("saf", "lcfs", "fcfs")}
    for limit, later in ((0.0, False), (0.0, True), (math.inf, False)):
        limited = EvaluationProtocol(task, limits={"wait": limit})
        whole = weeks_of(limited, later=later)
        results = {one.name: one for one in play_weeks(limited, whole, [*rules.items()])}
        weeks = AllWeeks.of(limited, [*results.values()])
        workload: Any = task.workload
        part = workload.part(Split.HELD_OUT) if later else workload.before_held_out()
        jobsets = [part.recorded.jobset()]
        played = {name: evaluate(rule, jobsets, task.world) for name, rule in rules.items()}
        slowdowns = {name: bounded_slowdown(one).mean() for name, one in played.items()}
        waits = {name: float((one.start - one.arrival).mean()) for name, one in played.items()}
        best = weeks.reference.name
        assert slowdowns[best] == min(slowdowns.values())
        for name, result in results.items():
            words = weeks.violation(result)
            assert bool(words) == (waits[name] > waits[best] and limit == 0)
            assert not words or f"mean wait of {waits[name]:.3g} over all weeks in one go" in words
    drawn = load_config("hpc-order").task.build()
    assert weeks_of(EvaluationProtocol(drawn)) == []


def test_what_breaks_a_limit_over_all_weeks_is_not_used(
    log: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = "its mean wait of 9 over all weeks in one go is 99% worse"

    def violation(weeks: AllWeeks, result: Any) -> str:
        return "" if result.name == weeks.reference.name else words

    monkeypatch.setattr(AllWeeks, "violation", violation)
    monkeypatch.setattr(get_spec("hpc").heuristics, "names", lambda: ("saf", "fcfs"))
    monkeypatch.setattr("tune_jobs.measuring.protocol.NUM_TUNING_JOBSETS", 2)
    free = [f"--limit={name}=off" for name in ("utilization", "wait", "longest_wait")]
    task = ("--set", f"task.workload.trace={log}", "--processors", "32", "--jobsets", "4", *free)
    found = json.loads(decided("hpc-order", *task, "--later", "--json").stdout)
    assert found["chosen"] == found["reference"]
    refused = {one["policy"]: one["too_dear"] for one in found["candidates"]}
    assert refused["hpc-order"] == words
    assert found["later"]["beyond_in_one_go"] == ""


def _on(log: Path) -> list[str]:
    return [f"task.workload.trace={log}", "task.world.processors=32"]


def test_a_decision_on_a_log_keeps_its_bound(
    log: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(get_spec("hpc").heuristics, "names", lambda: ("fcfs",))
    monkeypatch.setattr("tune_jobs.measuring.protocol.NUM_TUNING_JOBSETS", 2)
    task = ("--set", f"task.workload.trace={log}", "--processors", "32", "--jobsets", "4")
    out = tmp_path / "decision.json"
    decided("hpc-order", *task, "--max-wait", "2h", "--out", str(tmp_path))
    assert json.loads(out.read_text())["world"]["max_wait"] == 7200


def test_drawn_jobs_and_a_run_with_a_bound_of_its_own_are_as_they_were(tmp_path: Path) -> None:
    shown = get_spec("hpc").presentation
    assert not shown.guarded(load_config("hpc-order").task.build())
    steps = tmp_path / "jobs.csv"
    steps.write_text("arrival,duration,processors,estimate\n0,9,1,9\n5,9,1,9\n7,9,1,9\n")
    on_log = load_config("hpc-order", _on(steps)).task.build()
    assert shown.guarded(on_log) == {"max-wait": "x2"}
    assert not shown.guarded(replace(on_log, world=replace(on_log.world, max_wait=60)))


@pytest.mark.parametrize("text", ["x-1", "xx", "soon", "-5"])
def test_a_bound_that_makes_no_sense_is_refused(
    text: str, log: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    task = ["--set", f"task.workload.trace={log}", "--processors", "32", f"--max-wait={text}"]
    assert cli.run(cli.metasched, ["compare", "--decide", "--policies", "hpc-order", *task]) == 2
    shown = capsys.readouterr().err
    assert "--max-wait" in shown
    assert len(shown.splitlines()) == 1


def test_a_log_that_is_too_short_decides_nothing_and_says_what_would(
    log: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(get_spec("hpc").heuristics, "names", lambda: ("saf", "fcfs"))
    args = ("hpc-order", "--set", f"task.workload.trace={log}", "--processors", "32")
    few = ("--jobsets", "4", "--limit", "wait=off", "--limit", "longest_wait=off")

    def said(*more: str) -> str:
        return " ".join(decided(*args, *few, *more).stdout.split())

    text = said("--window", "1000000000")
    assert "is not used: the log has room for 1 window without overlap, and fewer than 5" in text
    (shorter,) = re.findall(r"Shorter ones need (--warmup 0 --window \d+)\.", text)
    text = said(*shorter.split())
    assert re.search(r"overlap: only ([5-9]|\d\d) share no job\.", text)
    assert "Shorter" not in text


@pytest.mark.parametrize(("window", "enough"), [((), False), (("--window", "900"), True)])
def test_compare_and_a_look_at_later_weeks_say_the_same(
    window: tuple[str, ...], enough: bool, log: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a log with too little room: neither an interval nor who is better."""
    monkeypatch.setattr(get_spec("hpc").heuristics, "names", lambda: ("saf", "fcfs"))
    monkeypatch.setattr("tune_jobs.measuring.protocol.NUM_TUNING_JOBSETS", 2)
    task = (*("--set", f"task.workload.trace={log}", "--processors", "32"), *window)
    task += ("--max-wait", "0")  # compare has no bound unless somebody asks for one
    args = (*task, "--jobsets", "12", "--set", "task.world.kind=hpc")
    compared = ("--policies", "saf,hpc-order", *args)
    rows = json.loads(run(compare.command, *compared, "--json").stdout)
    later = json.loads(decided("hpc-order", *args, "--later", "--json").stdout)
    (windows,) = {row["disjoint_windows"] for row in rows}
    assert windows == later["later"]["disjoint_windows"]
    assert (windows >= 5) == enough
    texts = [
        run(compare.command, *compared).stdout,
        decided("hpc-order", *args, "--later").stdout,
    ]
    sentence = f"Windows of a log overlap: only {windows} of these share no job"
    assert all(sentence in " ".join(text.split()) for text in texts)
    marks = [line for line in texts[0].splitlines() if line.startswith((">", "~"))]
    assert len(marks) == (3 if enough else 0)  # the best, one that is not different, the legend
    for row in rows:
        assert (row["difference_low"] is not None) == enough
        if not enough:
            assert row["bounded_slowdown_low"] is row["bounded_slowdown_high"] is None
            continue
        assert 1 <= row["bounded_slowdown_low"] <= row["bounded_slowdown"]
        mean = f"{row['bounded_slowdown']:,.2f} [{row['bounded_slowdown_low']:,.2f}, "
        assert all(mean in text for text in texts)
    assert not enough or all("[1.00, " in text for text in texts)


def test_a_guarded_line_is_what_the_guard_chose_for_each_seed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(TASK.spec.heuristics, "names", lambda: ("sjf", "packer"))
    specs = [
        heuristic_spec("sjf"),
        as_learned("good", "hold:8", "hold:8"),
        as_learned("mixed", "hold:8", "random"),
        as_learned("poor", "random", "packer"),
    ]
    rows = comparison.compare(
        EvaluationProtocol(TASK, num_jobsets=30, num_guard_jobsets=60, limits={}), specs, [1.1]
    )
    shown = {str(row["policy"]): row for row in rows}
    sjf = shown["sjf"]
    good, mixed, poor = rows[4:]
    assert good["policy"] == "guarded good -> policy"
    assert good["slowdown"] == shown["good"]["slowdown"] < sjf["slowdown"]
    assert mixed["policy"] == "guarded mixed -> policy 1, sjf 1"
    average = (float(shown["good"]["slowdown"]) + float(sjf["slowdown"])) / 2
    assert mixed["slowdown"] == pytest.approx(average)
    assert poor["policy"] == "guarded poor -> sjf"
    for end in ("", "_low", "_high"):
        assert poor[f"slowdown{end}"] == sjf[f"slowdown{end}"]
    assert [row["guard_used"] for row in (good, mixed, poor)] == [2, 1, 0]
    text = " ".join(format_rows(rows, wide=True).split())
    assert "guarded mixed (trained at 70%, 2 seeds) -> policy 1, sjf 1" in text
    assert "where 60 validation jobsets prove it better than the best heuristic" in text


def test_the_guard_decides_on_jobsets_that_nothing_is_tuned_or_measured_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seen: set[tuple[Split, int, int]] = set()

    def spy(workload, seed, split, indices):  # type: ignore[no-untyped-def]
        seen.add((split, indices.start, indices.stop))
        return sample_jobsets(workload, seed, split, indices)

    monkeypatch.setattr("cluster_env.task.sample_jobsets", spy)
    short = EvaluationProtocol(TASK, num_jobsets=5, num_guard_jobsets=30)
    comparison.compare(short, [as_learned("it", "sjf")], [1.1])
    tuning = protocol.NUM_TUNING_JOBSETS
    assert {part for part in seen if part[0] is not Split.HELD_OUT} == {
        (Split.VALIDATION, 0, tuning),
        (Split.VALIDATION, tuning, tuning + 30),
    }


def test_compare_adds_a_guarded_line_for_each_learned_policy(
    trained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tune_jobs.measuring.reporting.CALIBRATION_JOBSETS", 50)
    args = ("--policies", f"sjf,{trained}", "--jobsets", "10", "--guard", "--out", str(tmp_path))
    rows = json.loads(run(compare.command, *args, "--json").stdout)
    assert [row["key"] for row in rows] == ["sjf", "poor", "guarded poor"]
    assert rows[2]["guard_used"] == 0
    assert rows[2]["slowdown"] < rows[1]["slowdown"]
    assert (tmp_path / "comparison.png").read_bytes().startswith(b"\x89PNG")


def test_there_must_be_something_to_guard() -> None:
    with pytest.raises(InputError, match="a guard needs a learned policy"):
        run(compare.command, "--policies", "sjf", "--guard")


def test_guard_says_who_is_used_and_why(trained: Path, tmp_path: Path) -> None:
    args = (str(trained), "--jobsets", "20", "--set", "task.workload.load=0.9")
    text = decided(*args).stdout
    assert text.startswith("Load 90%: 20 validation jobsets; arrival window 12 steps")
    assert "The learned policy is not used: the mean slowdown of poor is" in text
    assert "the best heuristic (95% interval" in text
    assert "Deciding took" in text
    data = json.loads(decided(*args, "--json").stdout)
    assert not data["learned_is_used"]
    assert len(data["candidates"]) == 8  # all heuristics of the world, and the policy
    assert data["candidates"][-1]["policy"] == "poor"
    assert data["candidates"][-1]["difference_low"] > 0
    assert data["chosen"] == data["candidates"][0]["policy"]


def test_a_run_is_called_by_the_name_that_it_was_given(trained: Path, tmp_path: Path) -> None:
    shutil.copytree(trained, tmp_path / "mine")
    args = (str(tmp_path / "mine"), "--jobsets", "20", "--set", "task.workload.load=0.9")
    shown = decided(*args).stdout
    assert "the mean slowdown of mine is" in shown
    assert "poor" not in shown


def test_a_decision_can_be_kept_and_used(trained: Path, tmp_path: Path) -> None:
    file = tmp_path / "decision.json"
    text = decided(str(trained), "--jobsets", "20", "--out", str(tmp_path)).stdout
    assert f"Wrote {file}" in text
    chosen: Policy = load_decided(file)
    spec = json.loads(file.read_text())["use"]
    cluster = Cluster((4, 4), horizon=8, num_slots=3, backlog_view=6)
    assert chosen == get_heuristic(spec, DeepRM(cluster))
    file.write_text(file.read_text().replace(f'"{spec}"', '"policy"'))
    assert load_decided(file).name == "poor"
    file.write_text("[]")
    with pytest.raises(InputError, match="holds no decision of the guard"):
        load_decided(file)


def test_a_guard_decides_on_one_policy(tmp_path: Path) -> None:
    for seed in (0, 1):
        make_run(tmp_path / f"poor-{seed}", "name=poor", seed=seed)
    with pytest.raises(InputError, match=r"one policy at a time, but .* names 2, as poor-0 and"):
        decided(str(tmp_path / "poor-*"), "--jobsets", "4")


def test_strangers_to_a_log_are_judged_on_all_of_it_but_the_held_out_part(
    log: Path, tmp_path: Path
) -> None:
    """A policy that may have learned from the log is judged on its validation part alone."""
    on_log = (f"task.workload.trace={log}", "task.world.processors=32")
    task = load_config("hpc-smoke", [*on_log, "task.workload.window=9000"]).task.build()
    (stranger,) = load_runs(find_runs(["hpc-order"]), "argmax")
    config = stranger.config
    path = tmp_path / "run"
    began = config.training.model_copy(update={"start": tmp_path / "other"})
    knowing = config.model_copy(update={"task": TaskSection.of(task)})
    on_sites = config.training.model_copy(update={"family": "real-sites"})
    learned = [config.model_copy(update={"training": one}) for one in (began, on_sites)]
    others = [*learned, knowing]
    runs = [stranger, *(replace(stranger, path=path, config=one) for one in (config, *others))]
    whole = EvaluationProtocol(task, num_guard_jobsets=3)
    found = [with_guard_jobs(whole, learned_specs([one], "argmax")) for one in runs]
    assert [one.all_before for one in found] == [True, True, False, False, False]
    all_before, part = found[0], found[-1]
    assert all_before.num_disjoint is not None
    assert part.num_disjoint is not None
    assert all_before.num_disjoint == pytest.approx(4 * part.num_disjoint, abs=3)
    last = max(one.attributes["submit"].max() for one in all_before.guard_jobsets())
    begins = min(one.attributes["submit"].min() for one in all_before.held_out()[:50])
    assert last < begins
    both = with_guard_jobs(part, learned_specs([runs[0], runs[3]], "argmax"))
    assert not both.all_before


def test_the_guard_measures_what_a_warm_up_leaves(trained: Path) -> None:
    args = (str(trained), "--jobsets", "10", "--window", "40", "--json")
    every, some = (
        json.loads(decided(*args, "--warmup", warmup).stdout)["candidates"][-1]["mean"]
        for warmup in ("0", "10")
    )
    assert every != some
    text = decided(*args[:-1], "--warmup", "10").stdout
    assert "10 validation jobsets; jobs that arrive in steps 10 to 29 of 40" in text


@pytest.fixture
def gaps(tmp_path: Path) -> Path:
    """A trace of busy spells with long gaps, which long jobs that are put off wait for."""
    rng, lines = np.random.default_rng(0), ["arrival,duration,cpu,memory"]
    for spell in range(18):
        jobs = BimodalWorkload(load=0.7, window=300).sample(rng)
        for k in range(jobs.num_jobs):
            numbers = (400 * spell + jobs.arrival[k], jobs.duration[k], *jobs.demand[k])
            lines.append(",".join(map(str, numbers)))
    path = tmp_path / "gaps.csv"
    path.write_text("\n".join(lines) + "\n")
    return path


def test_a_rule_that_idles_the_site_is_never_chosen(gaps: Path, tmp_path: Path) -> None:
    """In short windows, keeping jobs back has the lowest slowdown by far."""
    site = ("task.world.cluster.capacity=[10, 10]", "task.world.cluster.horizon=20")
    policy = make_run(tmp_path / "poor", "name=poor", *site)
    args = (str(policy), "--jobsets", "20", "--json", "--set", f"task.workload.trace={gaps}")
    free = ("--limit", "utilization=off", "--limit", "wait=off", "--limit", "longest_wait=off")
    before = json.loads(decided(*args, *free, "--window", "30").stdout)
    assert before["chosen"].startswith("hold")
    for window in ((), ("--window", "30")):
        after = json.loads(decided(*args, *window).stdout)
        chosen = next(one for one in after["candidates"] if one["policy"] == after["chosen"])
        busiest = max(one["utilization"] for one in after["candidates"])
        assert chosen["utilization"] > 0.95 * busiest
        assert chosen["wait"] < 1.05 * min(one["wait"] for one in after["candidates"])
    assert not after["chosen"].startswith("hold")
    short = next(one for one in after["candidates"] if one["policy"] == before["chosen"])
    assert "mean utilization in the arrival window of 0.268 is more than 10%" in short["too_dear"]


def test_windows_of_a_trace_are_long_unless_somebody_says_how_long(gaps: Path) -> None:
    overrides = [f"task.workload.trace={gaps}"]
    config, warmup = choose_comparison(None, overrides, {}, [], None)
    workload: Any = config.task.build_workload()
    mean = workload.recorded.run.mean()
    assert workload.window - 2 * warmup >= 20 * mean
    assert warmup >= 4 * mean
    assert config.task.world.max_time >= 10 * workload.window
    for task_options, more in (({"window": "40"}, []), ({}, ["task.workload.window=40"])):
        config, warmup = choose_comparison(None, [*overrides, *more], task_options, [], None)
        assert (config.task.build_workload().window, warmup) == (40, 0)
    assert choose_comparison(None, overrides, {}, [], 7)[1] == 7
    assert choose_comparison(None, [], {}, [], None)[1] == 0


def test_the_report_says_the_limits_and_who_is_beyond_them(trained: Path) -> None:
    text = decided(str(trained), "--jobsets", "20", "--limit", "makespan=0.5").stdout
    lines = text.splitlines()
    assert lines[1].startswith("The learned policy is")  # the decision comes first
    (head,) = [line for line in lines if line.startswith("         policy")]
    assert head.split()[:6] == ["policy", "slowdown", "[95%]", "util", "wait", "longest"]
    assert max(map(len, lines)) <= 80
    (used,) = [line for line in lines if line.startswith("used ")]
    refused = [line for line in lines if line.startswith("refused ")]
    assert "!" not in used
    assert refused
    assert all("!" in line for line in refused)
    under = " ".join(text.split())
    assert (
        "the reference, by more than a limit: mean utilization in the arrival window 10%" in under
    )
    assert "mean makespan (steps) 50%" in under


@pytest.mark.parametrize("limit", ["wait", "wait=x", "wait=-1", "wayt=1"])
def test_a_limit_that_makes_no_sense_is_refused(trained: Path, limit: str) -> None:
    with pytest.raises(InputError, match=r"--limit takes|did you mean 'wait'"):
        decided(str(trained), "--limit", limit)
