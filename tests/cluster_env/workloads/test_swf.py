"""Job logs in SWF: what the world's files hold, what is refused, what comes back when written."""

import gzip
import json
from contextlib import suppress
from pathlib import Path
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cluster_env.core.errors import InputError
from cluster_env.workloads import swf as swf_reader
from cluster_env.workloads.swf import FIELDS, read_swf, write_swf
from tests.golden import stored

JOB = "1 0 -1 100 4 -1 -1 4 200 -1 1 7 1 -1 1 -1 -1 -1"


@pytest.fixture
def swf(golden: Path) -> Path:
    """Folder of the logs among the golden data; a test is skipped where it is absent."""
    return stored(golden / "traces" / "swf")


def log(folder: Path, *lines: str) -> Path:
    path = folder / "log.swf"
    path.write_text("\n".join(lines) + "\n")
    return path


def test_the_nasty_file_is_read_to_the_last_digit(swf: Path) -> None:
    expected = json.loads((swf / "nasty_expected.json").read_text())
    found = read_swf(swf / "nasty.swf")
    assert found.header == expected["header"]
    assert found.line.tolist() == [row["line"] for row in expected["rows"]]
    for k, row in enumerate(expected["rows"]):
        fields = row["fields"] + [-1] * (18 - len(row["fields"]))
        assert [found.columns[name][k] for name in FIELDS] == fields, row["remark"]


def test_compressed_it_is_the_same_file(swf: Path, tmp_path: Path) -> None:
    data = (swf / "nasty.swf").read_bytes()
    (tmp_path / "nasty.swf.gz").write_bytes(gzip.compress(data))
    (tmp_path / "no-suffix").write_bytes(gzip.compress(data))  # its first bytes tell
    plain = read_swf(swf / "nasty.swf")
    for name in ("nasty.swf.gz", "no-suffix"):
        found = read_swf(tmp_path / name)
        assert found.header == plain.header
        for field in FIELDS:
            np.testing.assert_array_equal(found.columns[field], plain.columns[field])


CELLS = st.one_of(
    st.integers(-(2**70), 2**70).map(str),
    st.floats().map(str),
    st.sampled_from(["", "-1", "0", "1e400", "1e18", "9" * 5000, "٣", "0x1", "1__0", "-0.5", ";"]),
)
PLAIN = {"whole": ("-1", "0", "+3", "007", "92605928607567", str(2**63 - 1), str(-(2**63)))}
PLAIN["any"] = (*PLAIN["whole"][:5], str(2**53 + 1), "12.5", "2e1", "-0.5", ".5", "5.", "1E-3")


@st.composite
def lines_of_jobs(draw: st.DrawFn) -> list[str]:
    """Lines of one length, most of them plain; sometimes another cell, or one more or less."""
    kinds = ["any" if name in swf_reader._WITH_FRACTIONS else "whole" for name in FIELDS] + ["any"]
    count, choice = draw(st.integers(17, 19)), Random(draw(st.integers(0, 10**6)))
    rows = [
        [choice.choice(PLAIN[kind]) for kind in kinds[:count]] for _ in range(choice.randint(1, 3))
    ]
    if draw(st.booleans()):
        rows[-1][choice.randrange(count)] = draw(CELLS)
    return [draw(st.sampled_from([" ", "\t", "   "])).join(row).strip() for row in rows]


@given(texts=lines_of_jobs())
@settings(max_examples=200)
def test_lines_that_are_read_at_once_are_those_that_are_read_one_by_one(texts: list[str]) -> None:
    at_once = swf_reader._at_once(texts)
    if at_once is None:  # a fifth of them
        return
    expected, bad = swf_reader._one_by_one(Path("log.swf"), [*range(len(texts))], texts)
    assert not bad
    for name in FIELDS:
        assert at_once[name].dtype == expected[name].dtype
        np.testing.assert_array_equal(at_once[name], expected[name], name)


def test_plain_logs_are_read_at_once_and_others_are_read_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A fraction where none belongs, as `4.0` processors, costs time and nothing else."""
    lines = [JOB, JOB.replace(" 100 4 ", " 90.5 8 ")]
    asked = []
    found = swf_reader._one_by_one
    monkeypatch.setattr(swf_reader, "_one_by_one", lambda *of: asked.append(of) or found(*of))
    plain = read_swf(log(tmp_path, *lines)).columns["processors"]
    assert not asked
    other = read_swf(log(tmp_path, lines[0], lines[1].replace(" 8 ", " 8.0 "))).columns
    assert len(asked) == 1
    assert plain.tolist() == other["processors"].tolist() == [4, 8]


def test_users_keep_their_numbers_however_large(swf: Path) -> None:
    jobs = read_swf(swf / "nasty.swf").jobs()
    assert jobs.names["user"].tolist() == [1, 2, 3, 92605928607567]
    assert jobs.names["user"][jobs.ids["user"]].tolist() == [1, 2, 92605928607567, 3, 3, 3, 3]


@pytest.mark.parametrize(
    ("header", "processors", "epoch"),
    [
        (("; MaxProcs: 64",), 64, None),
        ((";MaxNodes:32",), 32, None),
        ((";   MaxNodes:   32", "; MaxProcs: 64 (all)"), 64, None),
        (("; MaxProcs: -1", "; MaxNodes: 8"), 8, None),
        (("; MaxProcs: unknown",), None, None),
        (("; maxprocs: 64",), None, None),
        (("; UnixStartTime: 749458803", "; MaxProcs: 128"), 128, 749458803),
        (("; UnixStartTime: soon",), None, None),
        (("; Note: MaxProcs: 999",), None, None),
    ],
)
def test_headers_are_read_in_all_their_forms(
    tmp_path: Path, header: tuple[str, ...], processors: int | None, epoch: int | None
) -> None:
    found = read_swf(log(tmp_path, *header, JOB))
    assert (found.processors, found.epoch) == (processors, epoch)
    assert found.jobs().num_jobs == 1


def test_recorded_waits_are_known_where_all_are(tmp_path: Path) -> None:
    waited = JOB.replace("1 0 -1 ", "1 0 30 ")
    assert read_swf(log(tmp_path, JOB, waited)).jobs().wait is None
    jobs = read_swf(log(tmp_path, waited, waited.replace("1 0 30 ", "2 5 7.5 "))).jobs()
    assert jobs.wait is not None
    assert jobs.wait.tolist() == [30, 8]


def test_the_nasty_file_says_what_was_dropped_and_why(swf: Path) -> None:
    jobs = read_swf(swf / "nasty.swf").jobs()
    assert jobs.processors == 64
    assert jobs.submit.tolist() == [0, 6, 7, 20, 20, 21, 22]  # ties in the order of the file
    assert jobs.line.tolist() == [6, 12, 10, 14, 17, 15, 16]
    assert jobs.demand[:, 0].tolist() == [4, 2, 8, 128, 1, 1, 1]
    assert jobs.run.tolist() == [100, 11, 50, 30, 30, 30, 30]  # fractions are rounded up
    assert jobs.estimate.tolist() == [200, 9, 200, 30, 30, 30, 30]  # one without a limit
    assert [(one.reason, one.count, one.line) for one in jobs.dropped] == [
        ("has no run time above 0", 2, 7),
        ("asks for no processor", 1, 11),
    ]
    fitting = jobs.that_fit((64,), "the machine")
    assert fitting.dropped[-1].line == 14
    assert fitting.num_jobs == 6


@pytest.mark.parametrize("name", ["nasa_first5000", "lcg_first3000", "theta_train"])
def test_real_logs_have_the_recorded_fields(swf: Path, name: str) -> None:
    found = read_swf(swf / f"{name}.swf.gz")
    with np.load(swf / f"{name}_fields.npz") as expected:
        table = np.stack([found.columns[field] for field in FIELDS], axis=1)
        np.testing.assert_array_equal(table, expected["fields"])


def test_size_estimate_and_times_come_from_their_fields(tmp_path: Path) -> None:
    path = log(
        tmp_path,
        "; MaxProcs: -1",
        "; MaxNodes: 64",
        "1 9.5 -1 10.2 3 -1 -1 8 60 -1 1 70 1 -1 1 -1 -1 -1",
        "2 4 -1 20 -1 -1 -1 2 -1 -1 1 50 1 -1 1 -1 -1 -1",  # allocation and limit are missing
        "3 9.5 -1 30 5 -1 -1 5 30 -1 1 70 1 -1 1 -1 -1 -1",
    )
    jobs = read_swf(path).jobs()
    assert jobs.processors == 64
    assert jobs.submit.tolist() == [4, 9, 9]  # the second and third as they stand in the file
    assert jobs.line.tolist() == [4, 3, 5]
    assert jobs.run.tolist() == [20, 11, 30]
    assert jobs.estimate.tolist() == [60, 60, 30]
    assert jobs.demand[:, 0].tolist() == [2, 3, 5]
    assert jobs.ids["user"].tolist() == [0, 1, 1]
    assert jobs.dropped == ()


def test_what_cannot_run_is_dropped_for_its_first_reason_and_counted(tmp_path: Path) -> None:
    path = log(
        tmp_path,
        JOB,
        JOB.replace(" 100 4 ", " 0 0 ").replace("-1 4 200", "-1 0 200"),
        JOB.replace(" 100 4 ", " 7 0 ").replace("-1 4 200", "-1 0 200"),
        JOB.replace("1 0 -1", "1 -5 -1"),
        JOB.replace("200", str(2**31)),
    )
    jobs = read_swf(path).jobs()
    assert jobs.num_jobs == 1
    assert [(one.reason, one.count, one.line) for one in jobs.dropped] == [
        ("has no run time above 0", 1, 2),
        ("asks for no processor", 1, 3),
        ("was submitted before the log begins", 1, 4),
        ("has a number that is too large", 1, 5),
    ]


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("1 2 3", "line 2: a job has 18 numbers, but 3 stand here"),
        (JOB.replace("100", "1h40"), "line 2: run must be a number, not '1h40'"),
        (JOB.replace("100", "nan"), "line 2: run must be a number, not 'nan'"),
        (JOB.replace(" 7 ", " 7.5 "), "line 2: user must be a whole number, not '7.5'"),
        (JOB.replace(" 7 ", " 1" + "0" * 19 + " "), "line 2: user must be a whole number"),
        (JOB.replace("100", "1_0"), "line 2: run must be a number, not '1_0'"),
    ],
)
def test_what_is_wrong_is_named_by_file_line_and_field(
    tmp_path: Path, line: str, words: str
) -> None:
    path = log(tmp_path, "; MaxProcs: 8", line)
    with pytest.raises(InputError) as found:
        read_swf(path)
    assert words in str(found.value)
    assert str(path) in str(found.value)
    assert "\n" not in str(found.value)


def test_a_log_without_a_usable_job_is_refused_with_the_reasons(tmp_path: Path) -> None:
    path = log(tmp_path, JOB.replace("100", "0"), JOB.replace(" 4 ", " 0 "))
    with pytest.raises(InputError, match=r"2 rows 1 has no run time above 0; 1 asks for no"):
        read_swf(path).jobs()


def test_a_machine_smaller_than_every_job_is_refused(tmp_path: Path) -> None:
    jobs = read_swf(log(tmp_path, JOB)).jobs()
    with pytest.raises(InputError, match=r"all 1 jobs .* the smallest asks for 4 processors"):
        jobs.that_fit((2,), "the machine")


def test_broken_files_are_refused(tmp_path: Path) -> None:
    broken = tmp_path / "log.swf.gz"
    broken.write_bytes(gzip.compress(JOB.encode())[:-9])
    for path in (broken, tmp_path / "missing.swf", tmp_path):
        with pytest.raises(InputError, match="cannot read the log"):
            read_swf(path)


@pytest.mark.parametrize("name", ["log.swf", "log.swf.gz"])
def test_what_is_written_comes_back(tmp_path: Path, name: str) -> None:
    jobs = read_swf(log(tmp_path, JOB, JOB.replace("1 0 ", "9 3 "))).jobs()
    columns = {"submit": jobs.submit, "run": jobs.run, "processors": jobs.demand[:, 0]}
    write_swf(tmp_path / name, {**columns, "requested_time": jobs.estimate}, {"MaxProcs": 8})
    again = read_swf(tmp_path / name).jobs()
    assert again.processors == 8
    for column in ("submit", "run", "estimate", "demand"):
        np.testing.assert_array_equal(getattr(again, column), getattr(jobs, column))


@given(st.binary(max_size=300))
def test_no_bytes_make_it_fail_otherwise(tmp_path_factory: pytest.TempPathFactory, data) -> None:
    path = tmp_path_factory.mktemp("fuzz") / "log.swf"
    path.write_bytes(data)
    with suppress(InputError):
        read_swf(path).jobs()


@given(st.lists(st.lists(CELLS, min_size=16, max_size=20), max_size=4))
def test_no_numbers_make_it_fail_otherwise(
    tmp_path_factory: pytest.TempPathFactory, table: list[list[str]]
) -> None:
    path = tmp_path_factory.mktemp("fuzz") / "log.swf"
    path.write_text("\n".join(" ".join(row) for row in table), encoding="utf-8")
    with suppress(InputError):
        read_swf(path).jobs().jobset()


def test_parts_of_an_execution_count_with_the_line_of_the_whole_job(tmp_path: Path) -> None:
    def part(job: int, run: int, status: int) -> str:
        return f"{job} 0 5 {run} 4 -1 -1 4 900 -1 {status} 7 1 -1 1 -1 -1 -1"

    lines = [part(1, 300, 1), part(1, 100, 2), part(1, 200, 3), part(2, 60, 0), part(2, 60, 4)]
    jobs = read_swf(log(tmp_path, *lines, part(3, 40, 2))).jobs()
    assert sorted(jobs.run.tolist()) == [40, 60, 300]
    assert [(one.reason, one.count, one.line) for one in jobs.dropped] == [
        ("is a part (status 2, 3 or 4) of a job that counts as a whole", 3, 2)
    ]
    assert [(one.what, one.line) for one in jobs.noticed] == [
        ("is a part (status 2, 3 or 4) of a job without a line of its own", 6)
    ]
    assert jobs.rows == 6


def test_preceding_jobs_and_think_times_are_noticed_where_they_are_ignored(tmp_path: Path) -> None:
    lines = [JOB, JOB.replace("-1 -1 -1", "-1 1 0"), JOB.replace("-1 -1 -1", "-1 2 60")]
    jobs = read_swf(log(tmp_path, *lines)).jobs()
    assert jobs.num_jobs == 3
    assert [(one.what, one.count, one.line) for one in jobs.noticed] == [
        ("names a job that it came after (fields 17, 18): arrives as recorded", 2, 2)
    ]


def odd_limits() -> list[tuple[str, str]]:
    """Lines with limits of 10 to 3,000 s, one of 20 years, and none."""
    limits = [*(10 * k for k in range(1, 301)), 630_720_000, -1]
    return [(JOB, f" {limit} ") for limit in [*limits[:-1], *[3000] * 5, limits[-1]]]


def test_a_missing_limit_is_the_longest_of_the_log_or_what_is_said(tmp_path: Path) -> None:
    path = log(tmp_path, JOB, JOB.replace(" 200 ", " -1 "), JOB.replace(" 200 ", " 50 "))
    assert read_swf(path).jobs().estimate.tolist() == [200, 200, 50]
    odd = log(tmp_path, *(line.replace(" 200 ", limit) for line, limit in odd_limits()))
    assert read_swf(odd).jobs().estimate.tolist()[-1] == 3000  # one of years among hundreds
    path = log(tmp_path, JOB, JOB.replace(" 200 ", " -1 "), JOB.replace(" 200 ", " 50 "))
    assert read_swf(path).jobs("run-time").estimate.tolist() == [200, 100, 50]
    found = read_swf(path).jobs("7000")
    assert found.estimate.tolist() == [200, 7000, 50]
    (noticed,) = found.noticed
    assert noticed.what == "has no time limit (no limit recorded): 7,000 s count"
    assert (noticed.count, noticed.line) == (1, 2)
