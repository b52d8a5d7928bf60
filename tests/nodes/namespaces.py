"""Hosts that share nothing but a cable: network namespaces behind a switch of our own.

No packet leaves them. They have no route but to each other.
"""

import ctypes
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Self, TypeVar

from tests.nodes import switch
from tests.waiting import wait_for

CLONE_NEWNET = 0x40000000

T = TypeVar("T")

PROBE = """
import socket, sys, time
for _ in range(20):
    began = time.monotonic()
    with socket.socket() as probe:
        refused = probe.connect_ex((sys.argv[1], 9))
    assert refused == 111, refused
    print(time.monotonic() - began)
"""

# It waits for the end of its input, which comes also where the test is killed.
REMOVE = """
read _
for name; do
  while pids="$(ip netns pids "$name")" && [ -n "$pids" ]; do
    kill -9 $pids
    sleep 0.1
  done
  ip netns delete "$name"
done
"""


def missing() -> str:
    """What this machine lacks for namespaces that a switch joins; empty if nothing."""
    if sys.platform != "linux" or os.geteuid() != 0:
        return "network namespaces need root on Linux"
    if programs := [name for name in ("ip", "openssl") if shutil.which(name) is None]:
        return f"no {', '.join(programs)} on PATH (iproute2, openssl)"
    if not os.access("/dev/net/tun", os.R_OK | os.W_OK):
        return "no /dev/net/tun, which the switch makes its ports from"
    name = f"ms{os.getpid()}-try"
    tried = _run("ip", "netns", "add", name)
    if tried.returncode:
        return f"no network namespace can be made: {tried.stderr.strip()}"
    tap = _run("ip", "-n", name, "tuntap", "add", "mode", "tap", "name", "try")
    _run("ip", "netns", "delete", name)
    return f"no tap can be made: {tap.stderr.strip()}" if tap.returncode else ""


class Host:
    """One network namespace.

    Args:
        name: of the namespace.
        address: that it has in the network.
    """

    def __init__(self, name: str, address: str) -> None:
        self.name = name
        self.address = address

    def inside(self, *command: str) -> list[str]:
        """The command that runs another one in here."""
        return ["ip", "netns", "exec", self.name, *command]

    def call(self, function: Callable[[], T]) -> T:
        """What a function of this process returns, whose sockets are made in here."""
        with ThreadPoolExecutor(1, initializer=self._enter) as thread:
            return thread.submit(function).result()

    def _enter(self) -> None:
        """Moves the calling thread in here; Python 3.11 has no ``os.setns``."""
        with Path("/run/netns", self.name).open() as namespace:
            moved = ctypes.CDLL(None, use_errno=True).setns(namespace.fileno(), CLONE_NEWNET)
        if moved:
            raise OSError(ctypes.get_errno(), f"cannot enter {self.name}")

    def processes(self) -> list[int]:
        """All that runs in here."""
        return [int(pid) for pid in _run("ip", "netns", "pids", self.name).stdout.split()]

    def lose_power(self) -> None:
        """Ends it as a power cut does: others hear nothing of it, no connection is closed."""
        _ip("-n", self.name, "link", "set", "eth0", "down")
        self.end_processes()

    def give_power(self) -> None:
        """Joins it to the network again."""
        _ip("-n", self.name, "link", "set", "eth0", "up")

    def end_processes(self) -> None:
        """Kills all that runs in here."""
        for pid in self.processes():
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        wait_for(lambda: not self.processes(), f"the end of all processes of {self.name}", 30)

    def round_trips(self, other: "Host") -> list[float]:
        """Seconds that another host's refusal of a connection takes, several times."""
        command = self.inside(sys.executable, "-IS", "-c", PROBE, other.address)
        done = subprocess.run(command, capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stderr
        return [float(line) for line in done.stdout.split()]


class Network:
    """Several hosts behind a switch. Use it in a ``with`` statement.

    Args:
        num_hosts: how many.
        delay_s: from each host to each other.
        log: file for what the switch says.
    """

    def __init__(self, num_hosts: int, delay_s: float, log: Path) -> None:
        self._prefix = f"ms{os.getpid()}-"
        self._log = log
        self.delay_s = delay_s
        self._hub = f"{self._prefix}hub"  # where the switch runs, so that its taps begin there
        arguments = [self._prefix, str(num_hosts), str(delay_s)]
        program = [sys.executable, "-IS", str(Path(switch.__file__)), *arguments]
        self._command = ["ip", "netns", "exec", self._hub, *program]
        self._remover: subprocess.Popen[bytes] | None = None
        self._switch: subprocess.Popen[bytes] | None = None
        self.hosts = [
            Host(f"{self._prefix}{number}", f"10.77.0.{number + 1}") for number in range(num_hosts)
        ]

    def plain(self) -> set[tuple[str, str]]:
        """Senders and receivers, as ADDRESS:PORT, of what was not encrypted."""
        lines = [line.split() for line in self._log.read_text().splitlines()]
        return {(words[1], words[2]) for words in lines if words[0] == "plain"}

    def __enter__(self) -> Self:
        try:
            self._start()
        except BaseException:
            self._stop()
            raise
        return self

    def _start(self) -> None:
        names = [self._hub, *(host.name for host in self.hosts)]
        self._remover = subprocess.Popen(
            ["sh", "-c", REMOVE, "sh", *names], stdin=subprocess.PIPE, start_new_session=True
        )
        for name in names:
            _ip("netns", "add", name)
        with self._log.open("wb") as log:
            self._switch = subprocess.Popen(self._command, stdout=log, stderr=log)
        ready = b"ready\n"
        wait_for(lambda: ready in self._log.read_bytes(), "the switch's start", 60, self._switch)
        for host in self.hosts:
            _ip("-n", self._hub, "link", "set", host.name, "netns", host.name, "name", "eth0")
            _ip("-n", host.name, "address", "add", f"{host.address}/24", "dev", "eth0")
            _ip("-n", host.name, "link", "set", "eth0", "mtu", str(switch.MTU), "up")
            _ip("-n", host.name, "link", "set", "lo", "up")

    def __exit__(self, *error: object) -> None:
        self._stop()

    def _stop(self) -> None:
        if self._remover is not None:
            self._remover.communicate(timeout=60)
        if self._switch is not None:
            self._switch.wait(30)


def _ip(*arguments: str) -> None:
    done = _run("ip", *arguments)
    assert done.returncode == 0, f"ip {' '.join(arguments)}: {done.stderr}"


def _run(*command: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(command, capture_output=True, text=True, timeout=30)
