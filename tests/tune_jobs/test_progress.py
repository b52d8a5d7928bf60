"""Progress and stop requests."""

import fcntl
import io
import os
import re
import signal
import struct
import termios
import threading

import pytest

from tune_jobs.terminal.progress import Progress, duration
from tune_jobs.terminal.signals import StopRequest


def test_a_log_gets_a_line_now_and_then_and_all_that_is_said():
    stream = io.StringIO()
    seconds = iter(range(100))
    progress = Progress(stream, line_every_s=3, clock=lambda: float(next(seconds)))
    progress.start(100, done=10)
    for done in range(11, 17):
        progress.step(done, f"reward {done}")
    progress.say("evaluated")
    progress.close()
    assert stream.getvalue().splitlines() == [
        "11/100  reward 11",
        "14/100  reward 14  1:26 min left",
        "evaluated",
    ]


def test_a_terminal_gets_a_bar_and_lines_above_it():
    stream = io.StringIO()
    progress = Progress(stream, interactive=True)
    progress.start(4)
    progress.step(4, "reward -3.0")
    progress.say("evaluated")
    progress.close()
    assert "100%" in stream.getvalue()
    assert "4/4" in stream.getvalue()
    assert "reward -3.0" in stream.getvalue()
    assert "evaluated\n" in stream.getvalue()


@pytest.mark.parametrize("interactive", [True, False])
def test_what_takes_long_between_two_steps_is_shown_on_a_terminal_alone(interactive):
    stream, now = io.StringIO(), [0.0]
    progress = Progress(stream, interactive, clock=lambda: now[0])
    for took_s in (1.0, 8.0):  # the first is not worth a bar
        progress.aside(0, 4, "validation")
        for done in range(1, 5):
            now[0] += took_s / 4
            progress.aside(done, 4, "validation")
    progress.close()
    assert re.findall(r"(\d/\d) validation", stream.getvalue()) == (
        ["1/4", "2/4", "3/4", "4/4"] if interactive else []
    )


def test_a_bar_of_80_columns_keeps_its_time_left():
    reader, terminal = os.openpty()
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    seconds = iter(range(0, 100, 20))
    with open(terminal, "w") as stream:
        progress = Progress(stream, clock=lambda: float(next(seconds)))
        progress.start(1000)
        for done in (10, 20):
            progress.step(done, "load 110%: a policy with a name that needs more than half a line")
        progress.close()
        stream.write("the end")
        stream.flush()
        written = b""
        while not written.endswith(b"the end"):  # a terminal hands on what it has by now
            written += os.read(reader, 10_000)
    os.close(reader)
    text = re.sub(r"\x1b\[[\d;?]*[A-Za-z]", "", written.decode())
    shown = text.replace("\n", "\r").split("\r")
    assert max(map(len, shown)) <= 80
    assert any("32:40 min left" in line and "load 110%: a pol" in line for line in shown)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.2, "0 s"), (59.4, "59 s"), (60, "1:00 min"), (3599, "59:59 min"), (7500, "2:05 h")],
)
def test_durations_read_well(seconds, text):
    assert duration(seconds) == text


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_the_first_signal_is_noted_and_the_second_interrupts(number, status):
    announced = []
    before = signal.getsignal(number)
    with StopRequest(announced.append) as stop:
        assert not stop
        assert stop.exit_status == 0
        os.kill(os.getpid(), number)
        assert stop
        assert stop.exit_status == status
        assert announced == [signal.Signals(number).name]
        with pytest.raises((KeyboardInterrupt, SystemExit)):
            os.kill(os.getpid(), number)
    assert signal.getsignal(number) is before


def test_in_a_thread_nothing_is_noted_and_nothing_breaks():
    seen = []

    def work() -> None:
        with StopRequest(seen.append) as stop:
            seen.append(bool(stop))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert seen == [False]
