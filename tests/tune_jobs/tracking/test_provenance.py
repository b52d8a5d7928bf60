"""A run says which code made it."""

import subprocess
from pathlib import Path

import pytest

from tune_jobs.tracking.provenance import (
    command_line,
    git_commit,
    made_with,
    processor,
    provenance,
)


def git(folder: Path, *arguments: str) -> str:
    identity = ["-c", "user.name=a", "-c", "user.email=a@example.org"]
    done = subprocess.run(
        ["git", "-C", str(folder), *identity, *arguments], check=True, capture_output=True
    )
    return done.stdout.decode().strip()


def test_commit_and_whether_tracked_files_differ(tmp_path: Path) -> None:
    git(tmp_path, "init")
    (tmp_path / "code.py").write_text("a = 1")
    assert git_commit(tmp_path) is None  # nothing tracked, no commit
    git(tmp_path, "add", "code.py")
    git(tmp_path, "commit", "-m", "first")
    commit = git(tmp_path, "rev-parse", "HEAD")
    assert git_commit(tmp_path) == (commit, False)
    (tmp_path / "notes.txt").write_text("untracked files do not change the code")
    assert git_commit(tmp_path) == (commit, False)
    (tmp_path / "code.py").write_text("a = 2")
    assert git_commit(tmp_path) == (commit, True)


def test_no_commit_of_a_project_that_merely_contains_the_package(tmp_path: Path) -> None:
    git(tmp_path, "init")
    (tmp_path / "theirs.py").write_text("")
    git(tmp_path, "add", "theirs.py")
    git(tmp_path, "commit", "-m", "first")
    installed = tmp_path / "venv" / "package"
    installed.mkdir(parents=True)
    (installed / "ours.py").write_text("")
    assert git_commit(installed) is None


def test_no_commit_outside_a_repository_or_without_git(tmp_path: Path, monkeypatch) -> None:
    assert git_commit(tmp_path / "missing") is None
    monkeypatch.setenv("PATH", "")
    assert git_commit(Path(__file__).parent) is None


def test_the_command_can_be_pasted_and_holds_no_password() -> None:
    given = ["/opt/venv/bin/metasched", "train", "a b", "--uri", "http://me:secret@host:5000/x"]
    assert command_line(given) == "metasched train 'a b' --uri http://host:5000/x"


def test_versions_are_recorded_and_nothing_about_the_host() -> None:
    tags = provenance()
    assert {"version.python", "version.ray", "version.torch", "command"} <= tags.keys()
    assert tags["processor"] == processor() == made_with()["processor"]
    assert not any("host" in name or "user" in name for name in tags)


@pytest.mark.parametrize(
    ("said", "name"),
    [
        ("model name\t: Fast 9000\nflags\t\t: fpu avx avx2 avx512f\n", "Fast 9000, AVX-512"),
        (
            "cpu family\t: 25\nmodel\t\t: 17\nmodel name\t: Fast\nflags\t\t: fpu avx2\n",
            "Fast, family 25 model 17, AVX2",
        ),
        ("model name\t: Older\nflags\t\t: fpu avx avx2\n", "Older, AVX2"),
        ("model name\t: Oldest\nflags\t\t: fpu\n", "Oldest"),
    ],
)
def test_the_processor_is_named_with_its_model_and_vectors(
    said: str, name: str, monkeypatch
) -> None:
    monkeypatch.setattr(Path, "read_text", lambda *_, **__: said)
    assert processor.__wrapped__() == name


def test_a_processor_that_nobody_describes_has_some_name(monkeypatch) -> None:
    def missing(*_: object, **__: object) -> str:
        raise OSError

    monkeypatch.setattr(Path, "read_text", missing)
    assert processor.__wrapped__()
