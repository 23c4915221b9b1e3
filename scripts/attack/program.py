"""A process under attack: started, watched, killed, waited for."""

import os
import pathlib
import select
import signal
import subprocess
import time
from typing import NamedTuple

# More processes than cores, in containers, as root: Open MPI 4 reads the OMPI variables, Open MPI 5
# those of PRTE. A thread a process, and none that starts itself anew to set GOMP_SPINCOUNT; memory that
# begins as zeros (meson would fill it).
ENVIRONMENT = {
    "OMP_NUM_THREADS": "1", "GOMP_SPINCOUNT": "1000", "MALLOC_PERTURB_": "0",
    "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "OMPI_MCA_rmaps_base_oversubscribe": "1", "OMPI_MCA_hwloc_base_binding_policy": "none",
    "OMPI_MCA_btl_vader_single_copy_mechanism": "none", "OMPI_MCA_mpi_yield_when_idle": "1",
    "PRTE_ALLOW_RUN_AS_ROOT": "1", "PRTE_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe",
    "PRTE_MCA_hwloc_default_binding_policy": "none"}


class Ended(NamedTuple):
    code: int  # of the exit; -N for signal N
    output: str  # standard output and standard error

    @property
    def killed(self):
        return self.code == -signal.SIGKILL


class Hangs(Exception):
    """A process that did not end within its time."""


class Process:
    """A command in a session of its own, so that none of its processes is overlooked."""

    def __init__(self, words, folder, environment=None, stdout=None):
        self.log = pathlib.Path(folder) / "output.txt"
        with self.log.open("wb") as log:
            self.popen = subprocess.Popen(
                words, cwd=folder, env={**os.environ, **ENVIRONMENT, **(environment or {})},
                stdin=subprocess.DEVNULL, stdout=log if stdout is None else stdout, stderr=log,
                start_new_session=True)
        self.descriptor = os.pidfd_open(self.popen.pid)

    def wait(self, seconds):
        """Whether it has ended, after at most `seconds`."""
        if self.descriptor is None:
            return True
        ready, _, _ = select.select([self.descriptor], [], [], max(0, seconds))
        return bool(ready)

    def wait_until(self, condition, seconds=60):
        """Asks without pause whether condition() holds; false where the process ended before."""
        end = time.monotonic() + seconds
        while not condition():
            if self.wait(0):
                return False
            if time.monotonic() > end:
                raise Hangs(f"the process did not come so far within {seconds} s")
        return True

    def send(self, number):
        """A signal to the process that was started; none where it has ended."""
        if not self.wait(0):
            os.kill(self.popen.pid, number)

    def members(self):
        """Its process and all that came of it and live, {id: name}."""
        found = {}
        for entry in os.listdir("/proc"):
            if not entry.isdigit():
                continue
            try:
                text = pathlib.Path("/proc", entry, "stat").read_text()
            except OSError:  # ended since
                continue
            name, fields = text[text.index("(") + 1:text.rindex(")")], text[text.rindex(")"):].split()
            if int(fields[4]) == self.popen.pid and fields[1] != "Z":
                found[int(entry)] = name
        return found

    def kill(self):
        """kill -9 of all of its processes, and of those that they start meanwhile."""
        while members := self.members():
            for process in members:
                kill_one(process)

    def left_alone(self, launcher, seconds=10, limit=120):
        """Whether all of its processes end but `launcher`, which does not within `seconds`, and is killed."""
        until, since = time.monotonic() + limit, None
        while not self.wait(0.05) and time.monotonic() < until:
            if set(self.members().values()) != {launcher}:
                since = None
            elif since is None:
                since = time.monotonic()
            elif time.monotonic() > since + seconds:
                self.kill()
                return True
        return False

    def running(self):
        """Whether `end` has not been called."""
        return self.descriptor is not None

    def end(self, seconds=120):
        """How it ended. Hangs where it does not, or where a process of it stays; none is left."""
        late = not self.wait(seconds)
        until = time.monotonic() + 20
        while not late and self.members() and time.monotonic() < until:
            time.sleep(0.01)
        left = self.members()
        self.kill()
        code = self.popen.wait()
        os.close(self.descriptor)
        self.descriptor = None
        if left:
            raise Hangs(f"{', '.join(left.values())} did not end within {seconds} s, with the output\n" +
                        self.log.read_text(errors="replace"))
        return Ended(code, self.log.read_text(errors="replace"))


def kill_one(process):
    """kill -9; nothing where it has ended."""
    try:
        os.kill(process, signal.SIGKILL)
    except ProcessLookupError:
        pass


def ignored_signals_obeyed():
    """Started under nohup or in the background of a script this process ignores some signals, and so
    would all that it starts. A handler, unlike ignoring, does not pass to a started program."""
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM, signal.SIGUSR1):
        if signal.getsignal(number) == signal.SIG_IGN:
            signal.signal(number, lambda *_: None)
