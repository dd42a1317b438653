#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What a search asks of the system, counted by strace.

usage: check_calls.py PROGRAM

No path is asked about twice, no file is read twice, no other program is run,
and a second search of everything asks nothing. Exits with 77 without strace.
"""

import collections
import os
import re
import shutil
import subprocess
import sys
import tempfile

CALL = re.compile(r'^(?:\d+\s+)?(\w+)\((?:AT_FDCWD, )?"((?:[^"\\]|\\.)*)"(.*)')


def trace(program, what, environment):
    """The calls of a run that name a path: (call, path, rest)."""
    with tempfile.NamedTemporaryFile("r") as log:
        run = subprocess.run(
            ["strace", "-f", "-o", log.name, "-s", "4096", program, what],
            env=environment, check=False, stderr=subprocess.PIPE)
        if run.returncode != 0:
            print("strace: %s" % run.stderr.decode(errors="replace").strip())
            return None
        lines = log.read().splitlines()
    calls = [match.groups() for match in map(CALL.match, lines) if match]
    return calls, len(lines)


def make_tree(root):
    site = root + "/env/lib/python3.11/site-packages/"
    for name in ("nvidia/cu13/lib/libnvrtc.so.13",
                 "nvidia/cu13/lib/libcudart.so.13",
                 "nvidia/cu13/include/cuda_runtime.h",
                 "nvidia/cuda_cccl/include/cuda/std/version",
                 "nvidia/cudnn/lib/libcudnn.so.9"):
        os.makedirs(os.path.dirname(site + name), exist_ok=True)
        open(site + name, "w").close()
    with open(root + "/env/pyvenv.cfg", "w", encoding="utf-8") as file:
        file.write("home = /usr/bin\nversion = 3.11.7\n")
    os.makedirs(root + "/kit/lib64")
    open(root + "/kit/lib64/libcufft.so.12", "w").close()


def problems_of(what, calls):
    asked = collections.Counter(
        path for call, path, _ in calls
        if call in ("stat", "newfstatat", "lstat", "statx") and path != "")
    opened = collections.Counter(
        path for call, path, rest in calls
        if call in ("open", "openat") and "= -1" not in rest)
    programs = sum(call == "execve" for call, _, _ in calls)
    for path, count in asked.items():
        if count > 1:
            yield "%s: %d stats of %s" % (what, count, path)
    for path, count in opened.items():
        if count > 1:
            yield "%s: %s is opened %d times" % (what, path, count)
    if programs != 1:
        yield "%s: %d programs are run" % (what, programs)


def main():
    if shutil.which("strace") is None:
        print("strace is not installed")
        return 77
    program = sys.argv[1]
    found = []
    with tempfile.TemporaryDirectory() as root:
        make_tree(root)
        environment = {"PATH": "/usr/bin:/bin",
                       "VIRTUAL_ENV": root + "/env",
                       "CUDA_PATH": root + "/kit",
                       "LD_LIBRARY_PATH": root + "/kit/lib64"}
        counts = {}
        for what in ("nothing", "one", "all", "twice"):
            result = trace(program, what, environment)
            if result is None:
                print("strace may not watch here")
                return 77
            calls, counts[what] = result
            if what != "nothing":
                # The loader's own calls come before the program's.
                start = max(i for i, call in enumerate(calls)
                            if "libc.so" in call[1] or call[0] == "execve")
                found += problems_of(what, calls[:1] + calls[start + 1:])
    for what in ("one", "all", "twice"):
        print("%-6s %5d calls" % (what, counts[what] - counts["nothing"]))
    if counts["twice"] - counts["all"] > 8:  # the heap may grow
        found.append("a second search of everything takes %d calls"
                     % (counts["twice"] - counts["all"]))
    if counts["one"] - counts["nothing"] > 40:
        found.append("one search takes %d calls"
                     % (counts["one"] - counts["nothing"]))
    for problem in found:
        print(problem)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
