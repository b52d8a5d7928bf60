"""The experiments that come with metasched: what commands ``metasched results`` gives for them."""

import re
from pathlib import Path

import pytest

from rllib_configs.config.loading import load_config
from tests.conftest import REPOSITORY
from tune_jobs import cli
from tune_jobs.experiments.calls import ALONE
from tune_jobs.experiments.checking import check_calls
from tune_jobs.experiments.definition import experiment_names, in_order, load_experiment
from tune_jobs.experiments.listing import list_calls
from tune_jobs.tables.frames import read_table
from tune_jobs.terminal.running import run

RECORDED = REPOSITORY / "tune_jobs" / "figures" / "recorded"


GIVEN = {
    name: {"logs": str(REPOSITORY)}
    for name in ("cunha", "graphs", "run-times", "sites", "site-adaptation")
}
"""Options of ``metasched results`` that an experiment needs, by its name."""


def calls_of(name, out, seeds=None):
    return list_calls(load_experiment(name), out, seeds, GIVEN.get(name, {}))


def shown(capsys, name, *args) -> list[str]:
    given = [word for key, text in GIVEN.get(name, {}).items() for word in (f"--{key}", text)]
    assert run(cli.metasched, ["results", name, *args, *given, "--dry-run"]) == 0
    return capsys.readouterr().out.splitlines()


# How many commands of each kind, counted by hand in the loops that drove the results before.
COUNTS = {
    "deeprm": {"train": 12, "figure": 3, "compare": 4},
    "ppo": {"train": 20, "figure": 5, "compare": 5, "join": 1},
    "generalist": {"train": 25, "figure": 1, "compare": 5, "join": 1},
    "objectives": {"train": 40, "figure": 2},
    "hpc-partitions": {"train": 5, "compare": 2, "join": 1},
    "hpc-sites": {"train": 15, "study": 3, "figure": 2},
    "operation": {"train": 8, "figure": 1},
    "cunha": {"train": 60, "figure": 9, "compare": 7, "join": 1},
    "demo": {"train": 5, "compare": 6, "join": 1},
    "sites": {"figure": 1},
    "graphs": {"train": 10, "compare": 1},
    "graph-shifts": {"train": 90, "compare": 6, "join": 2},
    "run-times": {"figure": 1},
    "users": {"train": 31, "study": 5, "figure": 3},
    "site-adaptation": {"train": 3, "figure": 1},
    "panda": {"train": 45, "figure": 7, "compare": 9, "join": 3},
    "utility": {"train": 20, "figure": 9},
    "panda-tenants": {"train": 40, "figure": 1, "compare": 2, "join": 1},
    "panda-deadlines": {"train": 40, "compare": 2, "join": 1},
    "adaptation": {"train": 70, "study": 12, "figure": 6},
    "adaptation-operation": {"train": 53, "study": 18, "figure": 8},
}

# A line of each kind that names what is easily lost: what varies, several values, doubled braces.
LINES = {
    "demo": [
        "metasched compare --policies sjf,tetris,hold,R/demo-4 --at 0.7 --window 700 --warmup 100 "
        "--jobsets 300 --out R/figures/4",
        "metasched.join(tables='R/figures/{trained}/comparison.csv', by='trained=0,1,2,3,4,all', "
        "out='R/figures/demo.csv')",
    ],
    "deeprm": [
        "metasched train deeprm-released --set task.workload.load=1.1 "
        "--set evaluation.jobsets=1000 --set training.iterations=250 --seed 2 "
        "--run R/deeprm-1.1-2 --continue",
        "metasched figure deeprm-fig4 --runs 'R/*-*-*' --out R/figures",
        "metasched compare --policies 'fcfs,easy,sjf,tetris,hold,R/*-1.3-*' --at 1.3 "
        "--out R/figures/load-1.3",
    ],
    "ppo": [
        "metasched train deeprm-ppo --set task.world.rules=released "
        "--set task.workload.load=1.845 --set training.iterations=400 --seed 4 "
        "--run R/ppo-1.845-4 --continue",
    ],
    "generalist": [
        "metasched train deeprm-ppo --set task.world.rules=released "
        "--set task.workload.load=1.1 --set training.iterations=400 --seed 2 "
        "--run ppo/ppo-1.1-2 --continue",
        "metasched compare --policies 'R/gen-*,ppo/ppo-1.1-*' --at 1.1 --rules released "
        "--decode tuned --seed 2 --out R/figures/beside-1.1",
        "metasched.join(tables='R/figures/beside-{trained}/comparison.csv', "
        "by='trained=0.7,1.1,1.3,1.845', out='R/figures/deeprm-generalist-beside.csv')",
    ],
    "objectives": [
        "metasched train deeprm-ppo --set task.world.rules=released --set task.workload.load=1.1 "
        "--set task.objective=fair_slowdown --set training.iterations=120 --seed 0 "
        "--run R/obj-fair_slowdown-0 --continue",
    ],
    "hpc-partitions": [
        "metasched compare --policies 'saf:easy,sjf:skip,wspt:easy,unicep:easy,fcfs:easy,hpc-order,"
        "R/partitions-*' --config hpc-partitions --set task.workload.jobs=4096 "
        "--set task.world.max_wait=777600 --jobsets 60 --out R/figures/bound-777600",
    ],
    "hpc-sites": [
        "metasched.study(runs=('R/joint-0',), num_scratch=5, scratch_times=4, family='sites', "
        "num_tasks=16, task_seed=1, num_seeds=1, steps=(0, 1, 3, 8), num_held_out=40, "
        "rates=(0.25, 0.5, 1.0, 2.0), num_rate_tasks=6, out='R/adaptation')",
    ],
    "graphs": [
        "metasched compare --policies 'fifo,fair,weighted_fair,sjf_cp,R/graphs-*,R/limited-*' "
        "--set task.workload.jobs=200 --jobsets 10 --out R/figures",
    ],
    "graph-shifts": [
        "metasched train graphs --set name=adapted-20 --set 'task.world.durations=\"\"' "
        "--set task.workload.kind=shifted --set task.workload.jobs=60 --set training.jobsets=1 "
        "--set training.validation_jobsets=1 --set evaluation.every=0 "
        "--set evaluation.jobsets=10 "
        "--set resources.num_runners=0 --set task.workload.shift=sizes "
        "--set training.start=R/joint-3 --set training.episodes_per_jobset=5 "
        "--set training.step_size=0.2 --set training.validate_every=4 "
        "--set training.iterations=4 --seed 3 --run R/sizes-adapted-20-3 --continue",
        "metasched compare --policies 'fifo,fair,weighted_fair,R/joint-*,R/conditioned-*,"
        "R/shape-adapted-5-*,R/shape-adapted-20-*,R/shape-meta-5-*,R/shape-meta-20-*,"
        "R/shape-specialist-*' "
        "--set task.workload.shift=shape --jobsets 20 --out R/figures/shape",
        "metasched.join(tables='R/figures/{after}-adapted/comparison.csv', "
        "by='after=bursts,sizes,shape', out='R/figures/graph-shifts-adapted.csv')",
    ],
    "operation": [
        "metasched figure deeprm-windows --runs 'R/op-*,R/ppo-*' --decode argmax --jobsets 300 "
        "--out R/figures",
    ],
    "cunha": [
        "metasched train hpc-base --set name=hpc-options --set task.world.reward=options "
        "--set task.world.every_step=false --set evaluation.every=10 "
        "--set training.iterations=40 --seed 3 --run R/compact-options-15-3 --continue",
        f"metasched figure cunha-table5.8 --trace {REPOSITORY} --out R/figures",
    ],
    "run-times": [
        f"metasched figure run-times --trace {REPOSITORY} --out R/figures",
    ],
    "sites": [
        f"metasched figure sites --trace {REPOSITORY} --max-wait x2 --out R/figures",
    ],
    "users": [
        "metasched train hpc-maml --set training.family=users --set training.tasks=4 "
        "--set training.lr=1e-12 --set training.learn_rates=false --set evaluation.jobsets=20 "
        "--set resources.num_runners=0 --set training.iterations=1 --seed 0 --run R/start-0 "
        "--continue",
    ],
    "site-adaptation": [
        f"metasched figure site-adaptation --trace {REPOSITORY} --runs 'R/maml-*' "
        "--runs 'R/joint-*' --runs 'R/conditioned-*' --max-wait x2 --out R/figures",
    ],
    "panda": [
        "metasched compare --policies 'shortest_fit,best_fit,R/elastic-?' --jobsets 100 "
        "--decode argmax --set task.world.observed=16 --out R/figures/filter-16",
    ],
    "utility": [
        "metasched train accrual-ppo --set task.workload.rate=0.15 --set training.iterations=150 "
        "--seed 4 --run R/ppo-0.15-4 --continue",
        "metasched figure utility-values --rows R/figures/utility-fig2.csv --out R/figures",
        "metasched figure utility-learned --runs 'R/ppo-*' --decode argmax --seed 1 "
        "--out R/figures",
    ],
    "panda-tenants": [
        "metasched train panda-tenants --set name=search-tree --set training.advisor=tree "
        "--set training.iterations=25 --seed 2 --run R/search-tree-2 --continue",
        "metasched compare --policies 'best_fit,shortest_fit,earliest_finish,R/ppo-*-?' "
        "--jobsets 100 --decode argmax --seed 1 --out R/figures/ppo",
    ],
    "panda-deadlines": [
        "metasched train panda-tenants --set name=deadlines-tree --set training.advisor=tree "
        "--set 'task.objective=feedback(16)' --set task.workload.feedback=1.0 "
        "--set 'task.workload.tolerances=[1.0, 8.0, 1.0, 8.0]' "
        "--set training.iterations=25 --seed 2 --run R/deadlines-tree-2 --continue",
    ],
    "adaptation": [
        "metasched train deeprm-ppo --set task.world.rules=released "
        "--set training.skip_connection=true --set task.world.cluster.num_classes=3 "
        "--set training.iterations=440 --seed 2 --run R/classes-one-2 --continue",
        "metasched.study(runs=('deeprm/deeprm-0.7-*',), family='workloads', task_seed=1, "
        "steps=(0, 3, 10, 30), num_seeds=1, num_runners=2, out='R/adaptation')",
        "metasched.study(runs=('R/mixed-joint-0',), num_specialists=15, family='mixed', "
        "task_seed=1, num_seeds=1, num_rate_tasks=10, num_runners=2, out='R/adaptation')",
    ],
    "adaptation-operation": [
        "metasched.study(runs=('R/objectives-joint-*,R/objectives-start-*',), "
        "family='objectives-operation', num_scratch=1, task_seed=1, num_seeds=1, "
        "steps=(0, 1, 3), num_held_out=12, rate=0.5, keep='best', num_runners=2, out='R/best')",
    ],
}


@pytest.mark.parametrize("name", COUNTS)
def test_an_experiment_gives_the_commands_that_made_the_recorded_results(name, capsys):
    lines = shown(capsys, name, "--out", "R")
    kinds = [re.split(r"[ .(]", line)[1] for line in lines]
    assert {kind: kinds.count(kind) for kind in kinds} == COUNTS[name]
    assert len(set(lines)) == len(lines)
    for line in LINES[name]:
        assert line in lines


def test_every_experiment_is_tested_and_listed_with_a_line_about_it(capsys):
    assert experiment_names() == sorted(COUNTS)
    for words in ([], ["--dry-run"]):
        assert run(cli.metasched, ["results", *words]) == 0
        listed = capsys.readouterr().out
        for name in experiment_names():
            assert re.search(rf"^{name} +\w", listed, re.MULTILINE)
    assert re.search(r"^all .*in about 1\d\d minutes", listed, re.MULTILINE)


def test_all_results_are_made_one_after_the_other_and_it_says_how_far_it_is(capsys):
    lines = shown(capsys, "all", "--out", "R")
    heads = [line for line in lines if line.startswith("# ")]
    minutes = {name: load_experiment(name).minutes for name in in_order()}
    assert [line.split()[1].rstrip(":") for line in heads] == in_order()
    own = [name for name in COUNTS if not load_experiment(name).with_all]
    assert {"adaptation-operation", "cunha", "sites", "utility"} <= set(own)
    assert set(in_order()) == set(COUNTS) - set(own)
    assert f"1 of {len(minutes)} results" in heads[0]
    assert f"of the {sum(minutes.values())} minutes that are left" in heads[0]
    assert f"{minutes[in_order()[-1]]} of the {minutes[in_order()[-1]]} minutes" in heads[-1]
    given = sum(sum(COUNTS[name].values()) for name in in_order())
    assert len(lines) - len(heads) == given
    assert "metasched compare --policies 'R/generalist/gen-*,R/ppo/ppo-0.7-*'" in "".join(lines)


@pytest.mark.parametrize("name", ["hpc", "hpc-limits"])
def test_results_of_what_is_gone_say_which_commit_recorded_them(name, capsys):
    assert run(cli.metasched, ["results", name, "--dry-run"]) == 2
    assert f"'{name}' was removed: commit c7fb3903 recorded" in capsys.readouterr().err


def test_all_results_take_three_hours():
    assert sum(load_experiment(name).minutes for name in in_order()) <= 180


@pytest.mark.parametrize("name", COUNTS)
def test_training_comes_before_what_uses_the_runs(name, tmp_path):
    kinds = [call.name for call in calls_of(name, tmp_path)]
    assert kinds == sorted(kinds, key=lambda kind: kind != "train")


@pytest.mark.parametrize("name", ["panda", "panda-tenants", "panda-deadlines"])
def test_what_is_joined_are_the_tables_of_the_commands_before(name, tmp_path):
    small = ["--policies", "sjf", "--jobsets", "2", "--window", "8", "--out", str(tmp_path)]
    assert run(cli.metasched, ["compare", *small]) == 0
    of_comparisons = read_table(tmp_path / "comparison.csv", ())[0]
    written = set()
    for call in list_calls(load_experiment(name), tmp_path, seeds=[0]):
        if call.name == "join":
            (tables,), (by,), (out,) = (call.texts(key) for key in ("tables", "by", "out"))
            column, _, values = by.partition("=")
            joined = {tables.replace(f"{{{column}}}", value) for value in values.split(",")}
            assert joined <= written
            # As many as calls with such a folder: none is left out.
            begin, _, end = tables.partition(f"{{{column}}}")
            assert joined == {one for one in written if one.startswith(begin) and one.endswith(end)}
            header = (RECORDED / Path(out).name).read_text().partition(",")[0]
            assert header == column
            assert column not in of_comparisons
        elif call.name == "compare":
            written.add(f"{call.texts('out')[0]}/comparison.csv")


@pytest.mark.parametrize("name", COUNTS)
def test_everything_that_an_experiment_names_exists(name, tmp_path):
    calls = calls_of(name, tmp_path)
    check_calls(calls, tmp_path)
    for call in calls:
        if call.name in ALONE or not call.is_typed:
            continue
        # The line that is shown means the same to the program.
        command = cli.metasched.get_command(None, call.name)
        context = command.make_context(call.name, list(call.words[1:]))
        assert call.values().items() <= context.params.items()
        if call.run:
            config = load_config(call.texts("config")[0], call.texts("set"))
            assert config.training.iterations == call.num_iterations


def test_seeds_replace_those_of_all_runs(capsys):
    lines = [line for line in shown(capsys, "adaptation", "--seeds", "7") if " train " in line]
    assert len(lines) == 18
    assert all("--seed 7 " in line for line in lines)
    assert "runs/results/adaptation/one-7" in " ".join(lines)
