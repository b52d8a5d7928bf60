"""Workflows in WfFormat become stages."""

import json

import numpy as np
import pytest

from cluster_env.core.errors import InputError
from cluster_env.worlds.graphs.workflows import read_workflows
from cluster_env.worlds.graphs.workloads import WorkflowWorkload

# Two tasks of one kind, one that waits for both, and one beside them that lasts 4 s.
PARENTS = {"align_1": [], "align_2": [], "merge_3": ["align_1", "align_2"], "index_4": []}
SECONDS = {"align_1": 1.0, "align_2": 3.0, "merge_3": 5.0, "index_4": 4.0}


def old_form():
    tasks = [
        {"name": name, "parents": PARENTS[name], "runtimeInSeconds": SECONDS[name]}
        for name in PARENTS
    ]
    return {"name": "one", "workflow": {"tasks": tasks}}


def new_form():
    specified = [{"name": name, "id": name, "parents": PARENTS[name]} for name in PARENTS]
    run = [{"id": name, "runtimeInSeconds": SECONDS[name]} for name in PARENTS]
    parts = {"specification": {"tasks": specified}, "execution": {"tasks": run}}
    return {"name": "one", "schemaVersion": "1.5", "workflow": parts}


@pytest.mark.parametrize("form", [old_form, new_form])
def test_tasks_of_a_kind_and_depth_are_a_stage(form, tmp_path):
    (tmp_path / "one.json").write_text(json.dumps(form()))
    stages = read_workflows(str(tmp_path))
    assert stages.tasks.tolist() == [[2, 1, 1]]
    assert stages.time.tolist() == [[2000, 4000, 5000]]
    assert stages.parents.tolist() == [[0, 0, 1]]
    jobset = WorkflowWorkload(jobs=3, path=str(tmp_path)).sample(np.random.default_rng(0))
    assert jobset.duration.tolist() == [7000] * 3


def change(form, **changes):
    form["workflow"]["tasks"][0] |= changes
    return json.dumps(form)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[" * 10_000, "nested too deeply"),
        ("{}", "KeyError"),
        (change(old_form(), parents=["nobody"]), "nobody"),
        (change(old_form(), parents=["merge_3"]), "wait for it"),
        (change(old_form(), runtimeInSeconds=-1), "runs for -1 s"),
        (change(old_form(), runtimeInSeconds="long"), "long"),
    ],
)
def test_what_is_no_workflow_is_refused_in_a_sentence(text, words, tmp_path):
    (tmp_path / "one.json").write_text(text)
    with pytest.raises(InputError, match=words) as refusal:
        read_workflows(str(tmp_path / "one.json"))
    assert "\n" not in str(refusal.value)


def test_a_folder_without_workflows_and_a_missing_file_are_refused(tmp_path):
    for path, words in (
        (tmp_path, "holds no workflows"),
        (tmp_path / "one.json", "cannot be read"),
    ):
        with pytest.raises(InputError, match=words):
            read_workflows(str(path))
