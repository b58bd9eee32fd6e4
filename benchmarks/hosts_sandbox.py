"""Sandbox hosts beside podman's, in one run: create, run a command, remove.

    .venv/bin/python benchmarks/hosts_sandbox.py [--rounds N]

Prints medians in milliseconds and their ratios, then fifty hosts at once and three hosts in one
network. Fails when podman is missing or any ratio is below 5.

Needs, on Debian: apt-get install podman crun busybox-static
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from opsdrill.hosts.driver import DriverContext
from opsdrill.hosts.drivers.sandbox.driver import SandboxDriver
from opsdrill.model.host import Command
from opsdrill.model.scenario import HostSpec

WANTED_RATIO = 5.0
STEPS = ("create", "command", "remove")
Figures = dict[str, list[float]]


class Podman:
    """Podman with its own storage, in a mount namespace where control groups are version 2.

    Args:
        folder: for storage and image; removed by the caller.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        inside = ["unshare", "-m"] if os.geteuid() == 0 else []
        self._shell = subprocess.Popen(
            [*inside, "bash"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        if inside and not Path("/sys/fs/cgroup/cgroup.controllers").exists():
            self._do("umount -R /sys/fs/cgroup && mount -t cgroup2 none /sys/fs/cgroup")
        self._do(f"export TMPDIR={folder}")
        self._podman(f"import {self._image()} bench:1")

    def create(self) -> None:
        self._podman(
            "run -d --name bench --cgroups=disabled --network=none --ulimit nofile=1024:1024"
            " --ulimit nproc=512:512 bench:1 /bin/sleep 1000"
        )

    def command(self) -> None:
        self._podman("exec bench /bin/sh -c true")

    def remove(self) -> None:
        self._podman("rm -f -t 0 bench")

    def close(self) -> None:
        self._do(f"podman --root {self._folder}/s --runroot {self._folder}/r rm -fa -t 0", 0, 125)
        self._do(f"umount -R {self._folder}/s/overlay", 0, 1, 32)
        if self._shell.stdin is not None:
            self._shell.stdin.close()
        self._shell.wait()

    def _image(self) -> Path:
        """A root file system of one static program, so that starting it costs podman least."""
        tree = self._folder / "tree" / "bin"
        tree.mkdir(parents=True)
        shutil.copy("/bin/busybox", tree / "busybox")
        for name in ("sh", "true", "sleep"):
            (tree / name).symlink_to("busybox")
        image = self._folder / "image.tar"
        subprocess.run(["tar", "-C", tree.parent, "-cf", image, "."], check=True)
        return image

    def _podman(self, rest: str) -> None:
        self._do(f"podman --root {self._folder}/s --runroot {self._folder}/r {rest}")

    def _do(self, text: str, *allowed: int) -> None:
        assert self._shell.stdin is not None
        assert self._shell.stdout is not None
        self._shell.stdin.write(f"{text} >{self._folder}/log 2>&1 </dev/null; echo $?\n")
        self._shell.stdin.flush()
        status = self._shell.stdout.readline().strip()
        if int(status or "255") not in (allowed or (0,)):
            log = (self._folder / "log").read_text(errors="replace")
            raise SystemExit(f"podman failed ({status}): {text}\n{log}")


def timed(work: Callable[[], object]) -> float:
    """Milliseconds that a call takes."""
    started = time.perf_counter()
    work()
    return (time.perf_counter() - started) * 1000


async def sandbox_round(driver: SandboxDriver, number: int) -> tuple[float, float, float]:
    """Milliseconds to create a host, run a command on it, remove it."""
    moments = [time.perf_counter()]
    fleet = await driver.provision(f"r{number}", [HostSpec(name="web-01")])
    moments.append(time.perf_counter())
    answer = await fleet.hosts["web-01"].run(Command(run="true"))
    moments.append(time.perf_counter())
    await fleet.release()
    moments.append(time.perf_counter())
    assert answer.exit_code == 0, answer
    one, two, three = ((after - before) * 1000 for before, after in itertools.pairwise(moments))
    return one, two, three


async def many(driver: SandboxDriver, count: int, *, together: bool) -> float:
    """Milliseconds to make `count` hosts at once: in one network, or each alone."""
    names = [HostSpec(name=f"web-{number}") for number in range(count)]
    started = time.perf_counter()
    if together:
        fleets = [await driver.provision("many", names)]
    else:
        runs = (driver.provision(f"m{n}", [name]) for n, name in enumerate(names))
        fleets = list(await asyncio.gather(*runs))
    passed = (time.perf_counter() - started) * 1000
    for fleet in fleets:
        await fleet.release()
    return passed


async def measure(folder: Path, rounds: int) -> tuple[Figures, Figures]:
    """Both in turns, so that what else the machine does hits both."""
    ours: Figures = {step: [] for step in STEPS}
    theirs: Figures = {step: [] for step in STEPS}
    driver = SandboxDriver(DriverContext(folder / "state", {"size": "16M"}))
    podman = Podman(folder)
    try:
        await sandbox_round(driver, -1)  # starts the fork server
        for number in range(rounds):
            for step, figure in zip(STEPS, await sandbox_round(driver, number), strict=True):
                ours[step].append(figure)
            for step in STEPS:
                theirs[step].append(timed(getattr(podman, step)))
        await many(driver, 2, together=True)
        three = statistics.median([await many(driver, 3, together=True) for _ in range(5)])
        fifty = statistics.median([await many(driver, 50, together=False) for _ in range(3)])
        print(f"three hosts in one network {three:8.1f} ms")
        print(f"fifty hosts at once        {fifty:8.1f} ms")
    finally:
        podman.close()
        await driver.close()
    return ours, theirs


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=15)
    rounds = parser.parse_args().rounds
    for program in ("podman", "busybox"):
        if shutil.which(program) is None:
            print(f"{program} is missing: apt-get install podman crun busybox-static")
            return 1
    folder = Path(tempfile.mkdtemp(prefix="opsdrill-bench-"))
    try:
        ours, theirs = asyncio.run(measure(folder, rounds))
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    worst = float("inf")
    print(f"{'median ms':12}{'sandbox':>10}{'podman':>10}{'ratio':>8}")
    for step in STEPS:
        mine, peer = statistics.median(ours[step]), statistics.median(theirs[step])
        worst = min(worst, peer / mine)
        print(f"{step:12}{mine:10.2f}{peer:10.2f}{peer / mine:8.1f}")
    if worst < WANTED_RATIO:
        print(f"too slow: a ratio below {WANTED_RATIO:g}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
