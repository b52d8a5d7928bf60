"""The spool keeps every record through crashes and full disks."""

import os
from pathlib import Path
from typing import Any

import pytest

from tune_jobs.tracking import spool as spool_module
from tune_jobs.tracking.spool import Spool


def tags(number: int) -> dict[str, Any]:
    return {"kind": "tags", "run": "r", "tags": {"n": str(number)}}


def numbers(spool: Spool, offset: int = 0) -> list[str | None]:
    return [record and record["tags"]["n"] for record, _ in spool.read(offset)]


def test_records_come_back_in_order_from_any_offset(tmp_path: Path) -> None:
    spool = Spool(tmp_path / "tracking")
    for number in range(5):
        spool.append(tags(number))
    offsets = [offset for _, offset in spool.read()]
    assert numbers(spool) == ["0", "1", "2", "3", "4"]
    assert numbers(spool, offsets[2]) == ["3", "4"]
    assert offsets[-1] == spool.path.stat().st_size
    assert spool.count(offsets[1]) == 3


def test_a_line_cut_short_by_a_crash_costs_only_itself(tmp_path: Path) -> None:
    spool = Spool(tmp_path)
    spool.append(tags(0))
    with spool.path.open("ab") as file:
        file.write(b'{"kind":"tags","run":"r","ta')
    assert numbers(spool) == ["0"]  # while it could still be being written
    after = Spool(tmp_path)
    after.append(tags(1))
    assert numbers(after) == ["0", None, "1"]
    assert after.count() == 2


@pytest.mark.parametrize("line", [b"[]", b'{"kind":"dance"}', b'{"kind":"tags"}', b"{}", b"7"])
def test_what_is_no_record_is_skipped(tmp_path: Path, line: bytes) -> None:
    (tmp_path / spool_module.SPOOL_FILE).write_bytes(line + b"\n")
    assert [record for record, _ in Spool(tmp_path).read()] == [None]


def test_finds_records_of_one_kind(tmp_path: Path) -> None:
    spool = Spool(tmp_path)
    assert spool.of_kind("open") == []
    spool.append({"kind": "open", "uri": None, "time": 1})
    spool.append(tags(0))
    assert [record["time"] for record in spool.of_kind("open")] == [1]


def test_a_full_disk_delays_records_and_loses_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spool = Spool(tmp_path)
    spool.append(tags(0))
    write = os.write

    def half_of_it(file: int, line: bytes) -> int:
        return write(file, line[: len(line) // 2])

    monkeypatch.setattr(os, "write", half_of_it)
    for number in (1, 2):
        with pytest.raises(OSError, match=r"only part"):
            spool.append(tags(number))
    monkeypatch.setattr(os, "write", write)
    spool.append(tags(3))
    assert [n for n in numbers(spool) if n] == ["0", "1", "2", "3"]
    assert spool.close() == 0


def test_memory_is_bounded_while_the_disk_is_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spool_module, "KEPT_IN_MEMORY", 2)
    (tmp_path / "tracking").write_text("a file where the folder should be")
    spool = Spool(tmp_path / "tracking")
    for number in range(2):
        with pytest.raises(OSError, match=r"tracking"):
            spool.append(tags(number))
    with pytest.raises(OverflowError):
        spool.append(tags(2))
    assert spool.close() == 2
    (tmp_path / "tracking").unlink()
    spool.append(tags(3))
    assert numbers(spool) == ["1", "2", "3"]  # the oldest was dropped, and no other
    assert spool.close() == 0
