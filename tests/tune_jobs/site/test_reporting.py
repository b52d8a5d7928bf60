"""The commands `shadow` and `steer` from their options to their exit status."""

import json
import os

import pytest

from tune_jobs import cli

JOBS = "arrival,duration,processors,estimate\n0,600,8,900\n0,900,16,1200\n10,60,4,120\n"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "jobs.csv").write_text(JOBS)
    return tmp_path


def metasched(*words):
    return cli.run(cli.metasched, words)


def test_a_simulated_site_is_steered_to_its_end_and_decided_anew(folder, capsys):
    site = ("--simulate", "jobs.csv", "--processors", "16", "--speed", "3000", "--tick", "0.05")
    assert metasched("steer", "sjf:easy", "--act", *site, "--out", "steer.jsonl") == 0
    said, summary = capsys.readouterr().err.splitlines()
    assert said == "metasched: a job that waits longer than 5 d goes first (--max-wait)"
    assert json.loads(summary)["started"] == 3
    assert metasched("steer", "sjf:easy", "--repeat", "steer.jsonl") == 0
    assert "decisions are bit-identical" in capsys.readouterr().out
    text = (folder / "steer.jsonl").read_text()
    (folder / "steer.jsonl").write_text(text.replace('"why":"policy"', '"why":"chance"'))
    assert metasched("shadow", "sjf:easy", "--repeat", "steer.jsonl") == 1


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("shadow", "sjf:easy"), "squeue is not on PATH"),
        (("shadow", "slj:easy"), "unknown policy or run directory 'slj:easy'"),
        (("steer",), "name the policy that steers"),
        (("steer", "sjf:easy", "--max-wait", "x2"), "a time is 0 or a number with s, m, h or d"),
        (("steer", "sjf:easy", "--act"), "steer does not run as root"),
        (("steer", "sjf:easy", "--tick", "300"), "--watchdog must be longer than --tick"),
        (("steer", "sjf:easy", "--processors", "9"), "add --simulate"),
        (("steer", "sjf:easy", "--repeat", "jobs.csv"), "line 1 of jobs.csv is no line"),
        (("steer", "sjf:easy", "--repeat", "none.jsonl"), "cannot be read as a journal"),
    ],
)
def test_what_cannot_be_done_is_said_in_a_line_with_status_2(
    words, said, folder, capsys, monkeypatch
):
    monkeypatch.setenv("PATH", str(folder))
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    assert metasched(*words) == 2
    line = capsys.readouterr().err
    assert said in line
    assert line.count("\n") == 1
