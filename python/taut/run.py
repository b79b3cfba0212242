"""Starts a program with several processes: `python -m taut.run -n 4 --restarts 3 train.py`.

It calls the `mpiexec` of the Python environment, or of the system. A job that fails is started again, up to
`--restarts` times; a program that saves and resumes checkpoints goes on from the last one. The environment variable
`TAUT_RESTARTS` is the number of restarts so far.
"""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Sequence

_INSTALL = "install one with: pip install 'taut[mpi]' (or apt install mpich)"


def mpiexec() -> str:
    """The path of mpiexec: beside this Python, or in the PATH."""
    beside = os.path.join(os.path.dirname(sys.executable), "mpiexec")
    found = beside if os.access(beside, os.X_OK) else shutil.which("mpiexec")
    if found is None:
        raise FileNotFoundError(f"there is no mpiexec beside {sys.executable} or in the PATH; {_INSTALL}")
    return found


def is_open_mpi(launcher: str) -> bool:
    """Whether a launcher is that of Open MPI."""
    version = subprocess.run([launcher, "--version"], capture_output=True, text=True)
    return any(name in version.stdout + version.stderr for name in ("Open MPI", "OpenRTE", "prterun"))


def command(launcher: str, ranks: int, program: Sequence[str]) -> list[str]:
    """The command line that starts `ranks` processes."""
    options = []
    if is_open_mpi(launcher):
        options = ["--oversubscribe", "--bind-to", "none"]
        if hasattr(os, "geteuid") and os.geteuid() == 0:
            options.append("--allow-run-as-root")
    return [launcher, "-n", str(ranks), *options, sys.executable, *program]


def _run(line: Sequence[str], restart: int) -> tuple[int, bool]:
    """Runs the job; its exit code, and whether a signal asked to stop it."""
    stopped = []

    def stop(number: int, frame: object) -> None:
        stopped.append(number)
        # Ctrl-C reaches the launcher by itself: a terminal sends it to all processes of the job.
        if number == signal.SIGTERM:
            job.terminate()

    job = subprocess.Popen(line, env={**os.environ, "TAUT_RESTARTS": str(restart)})
    before = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        code = job.wait()
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    return (128 + stopped[0] if stopped else code), bool(stopped)


def main(arguments: Sequence[str] | None = None) -> int:
    """Parses the command line and runs the job; returns its exit code."""
    parser = argparse.ArgumentParser("python -m taut.run", description="Starts a program with several processes.")
    parser.add_argument("-n", "--ranks", type=int, required=True, help="the number of processes")
    parser.add_argument("--restarts", type=int, default=0, help="how often a failed job is started again")
    parser.add_argument("program", nargs=argparse.REMAINDER, help="the program and its arguments; -m for a module")
    given = parser.parse_args(arguments)
    if given.ranks < 1:
        parser.error(f"the number of processes must be >= 1, got {given.ranks}")
    if given.restarts < 0:
        parser.error(f"--restarts must be >= 0, got {given.restarts}")
    if not given.program:
        parser.error("the program is missing")
    try:
        line = command(mpiexec(), given.ranks, given.program)
    except FileNotFoundError as error:
        parser.error(str(error))
    code = 1
    for restart in range(given.restarts + 1):
        code, is_stopped = _run(line, restart)
        if code == 0 or is_stopped:
            break
        left = given.restarts - restart
        print(f"taut.run: the job ended with code {code}; restarts left: {left}", file=sys.stderr, flush=True)
    return code if code >= 0 else 128 - code


if __name__ == "__main__":
    sys.exit(main())
