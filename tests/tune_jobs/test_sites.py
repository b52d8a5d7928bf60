"""Rules and policies on a folder of job logs: what is measured, kept, drawn and left out."""

import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from cluster_env.core.durations import duration
from cluster_env.core.errors import InputError
from cluster_env.core.schedule import Schedule
from cluster_env.evaluation import evaluate
from cluster_env.workloads.formats import read_log
from cluster_env.workloads.swf import write_swf
from cluster_env.worlds import get_heuristic, get_spec
from rllib_configs.config import extensions
from tests.conftest import REPOSITORY
from tests.golden import stored
from tests.tune_jobs.drawing import texts
from tests.tune_jobs.replaying.site_log import write_site_log
from tune_jobs import cli
from tune_jobs.experiments import record, running
from tune_jobs.experiments.tables import markdown_of
from tune_jobs.figures import registry
from tune_jobs.figures.registry import make_figure
from tune_jobs.figures.site_page import DEFAULT, page_of, read_sites, source_of
from tune_jobs.figures.sites import draw
from tune_jobs.recipes import site_units, sites
from tune_jobs.recipes.request import FigureRequest
from tune_jobs.recipes.site_leaderboard import ALL, PRICES, leaderboard
from tune_jobs.recipes.site_units import Contender, Unit, describe
from tune_jobs.replaying.choices import task_of_log
from tune_jobs.tables.frames import read_frame
from tune_jobs.terminal.progress import Progress
from tune_jobs.terminal.running import run

RECORDED = REPOSITORY / "tune_jobs" / "figures" / "recorded"
WEEK = 7 * 24 * 3600
FEW = ("fcfs:easy", "sjf:easy", "saf:strict")
SHIPPED = get_spec("hpc").training.policies
LEARNED = list(SHIPPED)


def write_log(path: Path, num_jobs: int, weeks: float, *, processors: int = 16) -> Path:
    """Jobs of five users who ask for three times what they need, at any load."""
    rng = np.random.default_rng(num_jobs)
    submit = np.sort(rng.integers(0, int(weeks * WEEK), num_jobs))
    submit[0] = 0
    durations = np.clip(np.exp(rng.normal(7.5, 1.5, num_jobs)), 10, 100_000).astype(int)
    columns = {"submit": submit, "run": durations, "requested_time": 3 * durations}
    columns |= {"user": rng.integers(0, 5, num_jobs)}
    columns["processors"] = rng.choice([1, 2, 4, 8, processors], num_jobs)
    write_swf(path, columns, {"MaxProcs": processors})
    return path


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two logs, a broken one, an empty one, and what is no log at all."""
    path = tmp_path_factory.mktemp("logs")
    write_log(path / "kth-sp2-part.swf.gz", 900, 3.2)
    write_site_log(path / "calm.csv", 60)
    (path / "broken.swf").write_text("; MaxProcs: 4\nno log at all\n")
    (path / "empty.swf").write_text("")
    (path / "notes.json").write_text('{"jobs": 3}')
    (path / ".hidden").write_text("x")
    (path / "below").mkdir()
    return path


@pytest.fixture(autouse=True)
def in_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "num_local_cpus", lambda: 1)
    monkeypatch.setattr(sites, "RULES", FEW)
    monkeypatch.setattr(sites, "BY_PREDICTIONS", FEW[:1])


def make(folder: Path, out: Path, **said: object) -> Path:
    options = {"traces": [folder], **said}
    make_figure("sites", FigureRequest(progress=Progress(), **options), out)  # type: ignore[arg-type]
    return out / "sites.csv"


@pytest.fixture(scope="module")
def made(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("made")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(registry, "num_local_cpus", lambda: 1)
        patch.setattr(sites, "RULES", FEW)
        patch.setattr(sites, "BY_PREDICTIONS", FEW[:1])
        make(folder, out)
    return out


def test_each_log_has_a_row_of_each_rule_and_shipped_policy(made: Path) -> None:
    rows = read_sites(made / "sites.csv")
    assert list(zip(rows["log"], rows["policy"], strict=True)) == [
        (log, policy)
        for log in ("calm", "kth-sp2-part")
        for policy in (*FEW, f"{FEW[0]} (predicted)", *LEARNED)
    ]
    assert set(rows["policy"][rows["learned"] == "True"]) == set(LEARNED)
    assert rows["size_from"].tolist() == ["log"] * (len(rows) // 2) + ["header"] * (len(rows) // 2)


def test_what_is_no_log_is_named_with_the_reason(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    make(folder, tmp_path)
    said = capsys.readouterr().err
    assert "broken.swf is left out: broken.swf, line 2: " in said
    assert "empty.swf is left out: empty.swf holds no job" in said
    assert "notes.json is left out: notes.json is JSON without a list of jobs" in said
    assert "hidden" not in said
    assert "below" not in said
    assert str(folder) not in said


def schedule_of(path: Path, rule: str, max_wait: int, *overrides: str) -> Schedule:
    task, _, _ = task_of_log(path, overrides, {"max-wait": f"{max_wait}s"}, guess=True)
    jobset = task.workload.recorded.jobset()  # type: ignore[attr-defined]
    return evaluate(get_heuristic(rule, task.world), [jobset], task.world)


def slowdowns(schedule: Schedule) -> list[float]:
    waits = (schedule.start - schedule.arrival).tolist()
    return [
        max((wait + length) / max(length, 10), 1.0)
        for wait, length in zip(waits, schedule.duration.tolist(), strict=True)
    ]


def test_a_rule_with_predicted_run_times_is_no_reference(folder: Path, made: Path) -> None:
    rows = read_sites(made / "sites.csv")
    assert not rows["best_rule"].str.endswith("(predicted)").any()
    row = rows[(rows["log"] == "kth-sp2-part") & (rows["policy"] == f"{FEW[0]} (predicted)")].iloc[
        0
    ]
    path, bound = folder / "kth-sp2-part.swf.gz", int(float(row["max_wait"]))
    schedule = schedule_of(path, FEW[0], bound, "task.world.run_times=mixed")
    assert row["bounded_slowdown"] == pytest.approx(np.mean(slowdowns(schedule)))


def test_prices_are_those_of_plain_loops_over_the_jobs(folder: Path, made: Path) -> None:
    path = folder / "kth-sp2-part.swf.gz"
    rows = read_sites(made / "sites.csv").set_index(["log", "policy"])
    row = rows.loc[("kth-sp2-part", "sjf:easy")]
    schedule = schedule_of(path, "sjf:easy", int(row["max_wait"]))
    waits = sorted((schedule.start - schedule.arrival).tolist())
    assert row["longest_wait"] == waits[-1]
    assert row["mean_wait"] == pytest.approx(sum(waits) / len(waits))
    place = 0.95 * (len(waits) - 1)  # between two waits, as numpy's quantiles are
    below, part = int(place), place - int(place)
    p95 = waits[below] * (1 - part) + waits[below + 1] * part
    assert row["wait_95"] == pytest.approx(p95)
    users: dict[int, list[float]] = {}
    ids = read_log(path).ids["user"]
    for job, slowdown in zip(schedule.job.tolist(), slowdowns(schedule), strict=True):
        users.setdefault(int(ids[job]), []).append(slowdown)
    means = [sum(some) / len(some) for some in users.values()]
    assert row["users"] == len(means) == 5
    assert row["user_slowdown"] == pytest.approx(sum(means) / len(means))
    wide = [
        slowdown
        for slowdown, demand in zip(slowdowns(schedule), schedule.demand[:, 0], strict=True)
        if demand > 4
    ]
    assert row["bounded_slowdown_wide"] == pytest.approx(sum(wide) / len(wide))
    assert row["overdue"] == sum(wait > row["max_wait"] for wait in waits)


def weekly(path: Path, rule: str, max_wait: int) -> list[float]:
    schedule = schedule_of(path, rule, max_wait)
    weeks: dict[int, list[float]] = {}
    for at, slowdown in zip(schedule.arrival.tolist(), slowdowns(schedule), strict=True):
        weeks.setdefault(at // WEEK, []).append(slowdown)
    return [sum(weeks[week]) / len(weeks[week]) for week in sorted(weeks)]


def test_ratios_are_geometric_means_over_weeks_to_the_best_rule(folder: Path, made: Path) -> None:
    rows = read_sites(made / "sites.csv").set_index(["log", "policy"]).loc["kth-sp2-part"]
    bound = int(rows["max_wait"].iloc[0])
    logs = {rule: np.log(weekly(folder / "kth-sp2-part.swf.gz", rule, bound)) for rule in FEW}
    best = min(FEW, key=lambda rule: float(logs[rule].mean()))
    assert set(rows["best_rule"]) == {best}
    for rule in FEW:
        assert rows["ratio"][rule] == pytest.approx(np.exp((logs[rule] - logs[best]).mean()))
        assert rows["ratio_low"][rule] <= rows["ratio"][rule] <= rows["ratio_high"][rule]
    assert rows["weeks"].iloc[0] == logs[best].size == 4
    whole = rows["bounded_slowdown"][list(FEW)]
    np.testing.assert_allclose(rows["ratio_whole"], rows["bounded_slowdown"] / whole.min())
    weeks = read_frame(made / "sites-weeks.csv", ("log",), ("week", "jobs", "sjf:easy"))
    own = weeks[weeks["log"] == "kth-sp2-part"]
    np.testing.assert_allclose(np.log(own["sjf:easy"]), logs["sjf:easy"], atol=1e-3)
    assert own["jobs"].sum() == rows["jobs"].iloc[0] == 900


def student(values: np.ndarray) -> tuple[float, float]:
    interval = stats.t.interval(0.95, values.size - 1, values.mean(), stats.sem(values))
    return float(np.exp(interval[0])), float(np.exp(interval[1]))


def test_the_leaderboard_has_three_references(folder: Path, made: Path) -> None:
    rows = read_sites(made / "sites.csv").set_index(["log", "policy"]).loc["kth-sp2-part"]
    bound, best = int(rows["max_wait"].iloc[0]), rows["best_rule"].iloc[0]
    logs = {rule: np.log(weekly(folder / "kth-sp2-part.swf.gz", rule, bound)) for rule in FEW}
    past = min(FEW, key=lambda rule: float(logs[rule][:2].mean()))
    over = ("over_best", "over_fixed", "over_past", "over_past_low", "over_past_high")
    names = (*over, "over_best_logs_low", "wait_95", "rank", "logs")
    board = read_frame(made / "sites-leaderboard.csv", ("log", "policy", "past_rule"), names)
    of_log = board[board["log"] == "kth-sp2-part"].set_index("policy")
    assert set(of_log["past_rule"]) == {past}
    for rule in FEW:
        assert of_log["over_fixed"][rule] == pytest.approx(
            np.exp((logs[rule] - logs["fcfs:easy"]).mean()), rel=1e-3
        )
        later = (logs[rule] - logs[past])[2:]
        assert of_log["over_past"][rule] == pytest.approx(np.exp(later.mean()), rel=1e-3)
        if rule != past:
            ends = (of_log["over_past_low"][rule], of_log["over_past_high"][rule])
            assert ends == pytest.approx(student(later), rel=1e-3)
        wait_95 = rows["wait_95"][rule] / rows["wait_95"][best]
        assert of_log["wait_95"][rule] == pytest.approx(wait_95)


def test_ranks_are_shared_where_intervals_overlap() -> None:
    """Two busy logs of four weeks: b is twice a, c is like b with noise, and d lacks a log."""
    columns = {"a": [2.0] * 8, "b": [4.0] * 8, "c": [4.0, 3.0, 5.0, 4.1] * 2}
    weeks = pd.DataFrame({"log": ["x"] * 4 + ["y"] * 4, "week": [1, 2, 3, 4] * 2, **columns})
    weeks = weeks.assign(jobs=[5, 5, 5, 5] * 2, d=[1.0] * 4 + [np.nan] * 4)
    weeks["fcfs:easy"] = 8.0
    prices = dict.fromkeys((*PRICES, "utilization"), 1.0)
    head = {"kind": "busy", "best_rule": "a", **prices}
    rows = pd.DataFrame(
        {"log": log, "policy": name, "ratio": ratio, "ratio_low": low, "ratio_high": high, **head}
        for log in ("x", "y")
        for name, ratio, low, high in (
            *(("a", 1, 1, 1), ("b", 2, 1.9, 2.1), ("c", 2.02, 1.6, 2.6)),
            *(("fcfs:easy", 4, 3.9, 4.1), ("d", 0.5, 0.4, 0.6)),
        )
        if (log, name) != ("y", "d")
    )
    board = pd.DataFrame(leaderboard(rows, weeks, ["a", "b", "fcfs:easy"]))
    over = board[board["log"] == ALL].set_index("policy")
    ranks = {"a": 1, "b": 2, "c": 2, "fcfs:easy": 4}
    assert over["rank"].dropna().to_dict() == ranks
    assert list(over.index) == [*ranks, "d"]  # who lacks a log has no rank
    assert over["logs"].to_dict() == {"a": 2, "b": 2, "c": 2, "fcfs:easy": 2, "d": 1}
    assert set(board["past_rule"].dropna()) == {"a"}
    assert over["over_past"]["b"] == over["over_best"]["b"] == pytest.approx(2)
    # Two logs that agree: no variance between them, and that of weeks is half as wide.
    assert over["over_best_logs_low"]["b"] == pytest.approx(2)
    half = np.log(2 / 1.9) / np.sqrt(2)
    assert over["over_best_low"]["b"] == pytest.approx(2 * np.exp(-half))


def test_the_bound_is_twice_the_longest_wait_in_the_earlier_half(folder: Path, made: Path) -> None:
    path = folder / "kth-sp2-part.swf.gz"
    task, jobs, _ = task_of_log(path, [], {}, guess=True)
    half = jobs.submit < jobs.submit[0] + jobs.span // 2
    jobset = jobs.select(half).jobset()
    schedule = evaluate(get_heuristic("fcfs:easy", task.world), [jobset], task.world)
    longest = int((schedule.start - schedule.arrival).max())
    assert longest > 0
    rows = read_sites(made / "sites.csv")
    assert set(rows["max_wait"][rows["log"] == "kth-sp2-part"]) == {2 * longest}


@pytest.mark.parametrize(("said", "seconds"), [("0", 0), ("5d", 432_000)])
def test_another_bound_holds_for_all_logs(
    said: str, seconds: int, folder: Path, tmp_path: Path
) -> None:
    table = make(folder, tmp_path, task_options={"max-wait": said})
    rows = read_sites(table)
    assert set(rows["max_wait"]) == {seconds}
    assert f"--max-wait {said}" in page_of(table)


def read_all(folder: Path) -> dict[str, str]:
    """All that is made but seconds of CPU, which no two calls share."""
    names = ("sites.csv", "sites-weeks.csv", "sites-leaderboard.csv", "sites.md", "sites.jsonl")
    texts = {name: (folder / name).read_text() for name in names}
    return {name: re.sub(r'"cpu_s": [\d.]+|(?m:  \d+$)', "", text) for name, text in texts.items()}


@pytest.mark.integration
def test_other_processes_give_the_same_digits(
    folder: Path, made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(registry, "num_local_cpus", lambda: 2)
    make(folder, tmp_path)
    assert read_all(tmp_path) == read_all(made)


def counted(monkeypatch: pytest.MonkeyPatch, most: int = 1000) -> list[Unit]:
    """Units that are worked out from now on; after so many the process is stopped."""
    found: list[Unit] = []
    find = Unit.find

    def counting(unit: Unit) -> site_units.Found:
        if len(found) == most:
            raise KeyboardInterrupt
        found.append(unit)
        return find(unit)

    monkeypatch.setattr(Unit, "find", counting)
    return found


def test_a_call_that_was_stopped_goes_on_where_it_was(
    folder: Path, made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    num_units = 5 + 2 * (len(FEW) + 1 + len(LEARNED))  # files to describe, and replays
    half = num_units // 2
    with monkeypatch.context() as patch:
        counted(patch, half)
        with pytest.raises(KeyboardInterrupt):
            make(folder, tmp_path)
    assert not (tmp_path / "sites.csv").exists()
    with (tmp_path / "sites.jsonl").open("a") as kept:
        kept.write('{"key": "cut o\n')  # as a crash of the machine may leave it
    with monkeypatch.context() as patch:
        rest = counted(patch)
        make(folder, tmp_path)
    assert len(rest) == num_units - half
    assert read_all(tmp_path) == read_all(made)
    with monkeypatch.context() as patch:
        again = counted(patch)
        make(folder, tmp_path)
        assert not again
        make(folder, tmp_path, task_options={"max-wait": "3d"})  # nothing is known of it
    assert len(again) == num_units


def test_what_a_unit_rests_on_is_its_key(folder: Path, tmp_path: Path) -> None:
    shipped = SHIPPED[DEFAULT]
    copy = tmp_path / "mine"
    copy.mkdir()
    for path in shipped.glob("*"):
        (copy / path.name).write_bytes(path.read_bytes())
    unit = Unit(folder / "calm.csv", "ab", contender=Contender("mine", copy))
    before = unit.key()
    assert Unit(tmp_path / "renamed.csv", "ab", contender=unit.contender).key() == before
    (copy / "weights.json").write_text((copy / "weights.json").read_text() + " ")
    assert unit.key() != before
    others = [Unit(unit.path, "cd"), Unit(unit.path, "ab"), Unit(unit.path, "ab", ("a=1",))]
    others += [Unit(unit.path, "ab", options={"processors": "4"})]
    assert len({before, *(other.key() for other in others)}) == 5


def test_who_says_how_large_a_machine_is_goes_before_the_log(folder: Path, tmp_path: Path) -> None:
    rows = read_sites(make(folder, tmp_path, task_options={"processors": "calm=64"}))
    sizes = dict(zip(rows["log"], rows["processors"], strict=True))
    assert sizes == {"calm": 64, "kth-sp2-part": 16}
    assert "--processors calm=64" in page_of(tmp_path / "sites.csv")


def test_a_machine_that_could_never_keep_up_is_asked_for(tmp_path: Path) -> None:
    """No header, no waits, and the largest job has a tenth of the processors that are needed."""
    lines = [f"{10 * k},1000,1000,10" for k in range(200)]
    path = tmp_path / "crowded.csv"
    path.write_text("\n".join(["arrival,duration,estimate,processors", *lines, ""]))
    reason = describe(Unit(path, "ab", options={"max-wait": "x2"}))["reason"]
    assert "would be 10045%" in reason
    assert "--processors NAME=N" in reason
    found = describe(Unit(path, "ab", options={"max-wait": "x2", "processors": "2000"}))
    assert found["processors"] == 2000


@pytest.mark.parametrize(
    ("said", "message"),
    [
        ({"task_options": {"processors": "nowhere=4"}}, "names 'nowhere', but there is no such"),
        ({"task_options": {"processors": "calm=many"}}, "takes NAME=N,... or a number"),
        ({"task_options": {"max-wait": "soon"}}, "none of 5 files is a job log that can be"),
        ({"traces": []}, "a folder of them, with --trace"),
        ({"runs": ["no-such-run"]}, "no-such-run"),
    ],
)
def test_what_cannot_be_meant_is_refused(
    said: dict[str, object], message: str, folder: Path, tmp_path: Path
) -> None:
    with pytest.raises(InputError, match=message):
        make(folder, tmp_path, **said)
    assert not (tmp_path / "sites.csv").exists()


def test_a_folder_without_any_log_gives_status_2(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "broken.swf").write_text("no log\n")
    args = ["figure", "sites", "--trace", str(tmp_path / "logs"), "--out", str(tmp_path / "out")]
    assert run(cli.metasched, args) == 2
    error = capsys.readouterr().err
    assert "broken.swf is left out" in error
    assert "none of 1 files is a job log that can be played" in error
    assert not (tmp_path / "out" / "sites.csv").exists()


def test_the_figure_shows_each_log_and_policy(made: Path) -> None:
    shown = texts(draw(made / "sites.csv"))
    for word in (*FEW, *LEARNED, "calm (", "kth-sp2-part (", "intervals over weeks"):
        assert word in shown


def test_the_page_has_prices_digests_and_where_the_log_is(folder: Path, made: Path) -> None:
    page = (made / "sites.md").read_text()
    rows = read_sites(made / "sites.csv")
    for sha256 in set(rows["sha256"]):
        assert f"  {sha256}\n" in page
    assert re.search(r"^kth-sp2-part +KTH-SP2-1996 +900 +\d+% ", page, re.MULTILINE)
    assert re.search(r"^calm +unknown +60 ", page, re.MULTILINE)
    archive = "[Parallel Workloads Archive](https://www.cs.huji.ac.il/labs/parallel/workload/)"
    assert f"- {archive}: acknowledge" in page
    best = rows["best_rule"].iloc[-1]
    own = rows[rows["log"] == "kth-sp2-part"].set_index("policy").loc[[best, DEFAULT]]
    line = next(line for line in page.splitlines() if re.match(rf"kth-sp2-part +{best} ", line))
    assert f" {own['ratio'].iloc[1]:.2f} [" in line
    assert line.endswith(f" {', '.join(map(duration, own['longest_wait']))}")
    assert str(folder) not in page
    tables = markdown_of(made / "sites.csv")
    assert tables.count("| `saf:strict` |") == 2


@pytest.mark.parametrize(
    ("file", "log"),
    [
        ("thetagpu-2023.swf.gz", "ThetaGPU"),
        ("theta-2022.swf", "Theta"),
        ("KTH-SP2-1996-2.1-cln.swf.gz", "KTH-SP2-1996"),
        ("mine.swf", None),
    ],
)
def test_a_log_is_known_by_how_its_file_is_called(file: str, log: str | None) -> None:
    source = source_of(file)
    assert (source.log if source else None) == log


def results(*args: str) -> int:
    return run(cli.metasched, ["results", *args])


@pytest.fixture
def inside(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Calls are made in this process, at a commit that holds all files; their lines."""
    lines: list[str] = []
    made = record.provenance()
    monkeypatch.setattr(record, "provenance", lambda: {**made, "git.dirty": "no"})

    def carry_out(calls: dict[str, record.Call], at_once: int = 1) -> int:
        lines.extend(map(str, calls.values()))
        return next((status for call in calls.values() if (status := call.carry_out())), 0)

    monkeypatch.setattr(running, "carry_out_all", carry_out)
    return lines


def test_results_of_a_folder_are_made_again_only_when_a_log_has_changed(
    folder: Path, tmp_path: Path, inside: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    logs = tmp_path / "logs"
    logs.mkdir()
    write_log(logs / "first.swf", 80, 2)
    args = ("sites", "--logs", str(logs), "--out", str(tmp_path / "out"), "--max-wait", "2d")
    assert [results(*args) for _ in range(2)] == [0, 0]
    line = f"metasched figure sites --trace {logs} --max-wait 2d --out {tmp_path}/out/figures"
    assert inside == [line]
    page = (tmp_path / "out" / "results.md").read_text()
    assert "first: 80 jobs, 2 weeks, bound 2 d:" in page
    write_log(logs / "second.swf", 70, 2)
    units = counted(monkeypatch)
    assert results(*args) == 0
    assert len(inside) == 2
    assert {unit.path.name for unit in units} == {"second.swf"}
    another = extensions.Extension("json", "another-package 0.1.0", ())
    monkeypatch.setattr(extensions, "found", [*extensions.found, another])
    assert [results(*args) for _ in range(2)] == [0, 0]
    assert len(inside) == 3


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (("sites",), "these results need --logs"),
        (("sites", "--logs", "no/such/folder"), "no/such/folder"),
        (("deeprm", "--policies", "runs/mine"), "do not use --policies"),
        (("all", "--max-wait", "5d"), "--max-wait is for one experiment"),
    ],
)
def test_options_of_results_are_refused_where_nothing_uses_them(
    args: Sequence[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert results(*args, "--dry-run") == 2
    error = capsys.readouterr().err
    assert message in error


def test_all_that_is_said_reaches_the_figure(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    args = ("--policies", DEFAULT, "--processors", "calm=64", "--processors", "a=3")
    assert results("sites", "--logs", str(folder), "--out", "R", *args, "--dry-run") == 0
    assert capsys.readouterr().out.splitlines() == [
        f"metasched figure sites --trace {folder} --runs {DEFAULT} --max-wait x2 "
        "--processors calm=64,a=3 --out R/figures"
    ]


def test_files_of_the_traces_that_are_no_logs_are_left_out(golden: Path) -> None:
    traces = stored(golden.parent / "traces")
    names = [
        path
        for pattern in ("alibaba-*", "*.json.gz", "*.npz", "README.md")
        for path in traces.glob(pattern)
    ]
    assert len(names) > 3
    for path in names:
        assert path.name in describe(Unit(path, "ab", options={"max-wait": "x2"}))["reason"]


def test_a_real_log_has_the_facts_that_are_known_of_it(golden: Path) -> None:
    path = stored(golden.parent / "traces" / "thetagpu-2023.swf.gz")
    found = describe(Unit(path, "ab", options={"max-wait": "x2"}))
    assert (found["jobs"], found["processors"], found["users"]) == (22_605, 24, 52)
    assert round(found["days"]) == 308
    assert found["load"] == pytest.approx(0.34, abs=0.005)
    assert sum(found["week_jobs"]) == 22_605


def test_the_recorded_page_is_that_of_the_recorded_table() -> None:
    assert (RECORDED / "sites.md").read_text() == page_of(RECORDED / "sites.csv")
    assert (RECORDED / "sites.png").stat().st_size < 250_000
