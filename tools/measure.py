# SPDX-License-Identifier: Apache-2.0
"""tools: runs commands, and says what they cost.

Shares of CI are minutes of two cores. Wall time depends on who else uses the
machine and on how many cores it has, so a run is judged by what does not: the
CPU time of all its processes, halved. That alone would let a part sleep for
free, so on a machine of two cores what it left idle counts too: CPU time and
idle time together, halved, are the wall time less what others took. On more
cores idle time says nothing of what two would do.

A core may be slow, or share its execution units with a busy one. A yardstick, a
fixed piece of work, is timed before and after each part; where it takes longer
than on the cores that the shares were set on, CPU time is scaled down by as
much, to half at the most.
"""

import collections
import ctypes
import os
import random
import resource
import signal
import subprocess
import sys
import threading
import time
import zlib

# The yardstick's CPU seconds where the shares were set.
YARDSTICK_SECONDS = 0.22
TICKS = os.sysconf("SC_CLK_TCK")
GRACE = 5
PR_SET_CHILD_SUBREAPER = 36

Cost = collections.namedtuple("Cost", "wall cpu idle speed")


# ---- What a run costs ----

def cores():
    return len(os.sched_getaffinity(0))


def idle_seconds():
    """Idle time of the cores that this process may use, since the start of the
    machine; 0 where the system does not tell."""
    mine = {"cpu%d" % number for number in os.sched_getaffinity(0)}
    total = 0
    try:
        with open("/proc/stat", encoding="ascii") as file:
            for line in file:
                words = line.split()
                if words and words[0] in mine:
                    total += int(words[4]) + int(words[5])
    except (OSError, IndexError, ValueError):
        return 0.0
    return total / TICKS


def cpu_seconds():
    """Of this process and of all that it has waited for, theirs included."""
    return sum(usage.ru_utime + usage.ru_stime for usage in (
        resource.getrusage(resource.RUSAGE_SELF),
        resource.getrusage(resource.RUSAGE_CHILDREN)))


def yardstick():
    """How fast a core is now: 1 where the shares were set, less if slower."""
    text = random.Random(1).getrandbits(8 << 20).to_bytes(1 << 20, "little")
    text = text.translate(bytes(byte & 0x57 for byte in range(256)))
    started = time.process_time()
    for _ in range(3):
        zlib.compress(text, 6)
    return YARDSTICK_SECONDS / max(time.process_time() - started, 1e-6)


class Meter:
    """Runs from its making to cost()."""

    def __init__(self):
        self.speed = yardstick()
        self.wall = time.monotonic()
        self.cpu = cpu_seconds()
        self.idle = idle_seconds()

    def cost(self):
        wall = time.monotonic() - self.wall
        cpu, idle = cpu_seconds() - self.cpu, idle_seconds() - self.idle
        speed = (self.speed + yardstick()) / 2
        return Cost(wall, cpu, idle, min(1.0, max(0.5, speed)))


def judged_minutes(cost, waits_for_network=False, core_count=None):
    """The minutes of two cores that a cost stands for."""
    seconds = cost.cpu * cost.speed
    if (core_count or cores()) == 2 and not waits_for_network:
        seconds += cost.idle
    return seconds / 2 / 60


# ---- Processes, none of which outlives its part ----

def adopt_orphans():
    """A grandchild whose parent ends becomes a child of this process: it is
    counted, and end_leftovers() finds it."""
    try:
        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    except (OSError, AttributeError):
        pass  # then only those of the command's own group are ended


def children():
    """(process, its name) of each child of this process."""
    found = []
    for entry in os.listdir("/proc"):
        if not entry.isdigit():
            continue
        try:
            with open("/proc/%s/stat" % entry, encoding="utf-8",
                      errors="replace") as file:
                name, _, rest = file.read().partition("(")[2].rpartition(")")
        except OSError:
            continue
        if int(rest.split()[1]) == os.getpid():
            found.append((int(entry), name))
    return found


def reap():
    try:
        while os.waitpid(-1, os.WNOHANG)[0] != 0:
            pass
    except ChildProcessError:
        pass


def end_leftovers():
    """Ends what the commands before left running; the names of it. To be called
    when no command runs."""
    names = []
    for attempt in range(100):
        reap()
        left = children()
        if not left:
            break
        if attempt < 10:  # some are only about to end
            time.sleep(0.02)
            continue
        for process, name in left:
            names.append(name)
            try:
                os.kill(process, signal.SIGKILL)
            except ProcessLookupError:
                pass
        time.sleep(0.02)
    return sorted(set(names))


def end_group(process):
    """Ends a command and its group: asked first, then made to."""
    for number, patience in ((signal.SIGTERM, GRACE), (signal.SIGKILL, GRACE)):
        try:
            os.killpg(process.pid, number)
        except (ProcessLookupError, PermissionError):
            pass
        try:
            process.wait(patience)
        except subprocess.TimeoutExpired:
            continue


def stop_on_signals():
    """SIGTERM and SIGHUP end a run as Ctrl-C does: with a summary."""
    def stop(number, frame):
        raise KeyboardInterrupt
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, stop)


def run(words, log, limit=None, quiet=False, cwd=None, **variables):
    """Runs a command, its output to a file and the screen; its exit code, 124
    if it ran past its limit in seconds, 127 if there is no such command."""
    with open(log, "a", encoding="utf-8") as file:
        try:
            process = subprocess.Popen(
                words, cwd=cwd, stdin=subprocess.DEVNULL, text=True,
                stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                errors="replace", start_new_session=True,
                env={**os.environ, **variables})
        except OSError as error:
            print(error, file=file)
            print(error)
            return 127

        def copy():
            with process.stdout:
                for line in process.stdout:
                    file.write(line)
                    if not quiet:
                        sys.stdout.write(line)
                        sys.stdout.flush()
        reader = threading.Thread(target=copy, daemon=True)
        try:
            reader.start()
            code = process.wait(limit)
        except subprocess.TimeoutExpired:
            file.write("stopped after %g seconds\n" % limit)
            code = 124
        finally:
            # Whatever is still in the group would hold the pipe open.
            end_group(process)
            reader.join(GRACE)
    return code
