#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What a search asks of the system, counted by strace.

usage: check_calls.py PROGRAM [KILN [--alone]]

No path is asked about twice, no file is read twice, no other program is run,
and a second search of everything asks nothing. The same of the command KILN,
which reads versions, too; --alone: it has its libraries inside, so that it
starts with the C library alone. Exits with 77 without strace.
"""

import collections
import os
import re
import shutil
import subprocess
import sys
import tempfile

# The call, the folder that the path is relative to, the path, the rest.
CALL = re.compile(r'^(?:\d+\s+)?(\w+)\((?:(?:AT_FDCWD|\d+)<([^>]*)>, )?'
                  r'"((?:[^"\\]|\\.)*)"(.*)')


# Asked about twice at most: as a piece of the catalog and as what tells the
# version of another.
EVIDENCE = re.compile(r"/libnvrtc-builtins\.so\.[0-9.]+$|/targets$"
                      r"|/conda-meta$")


# What is inside the command, or opened when it is called.
INSIDE = re.compile(r"/lib(m|z|jansson|png\d*|zstd|lz4)\.so")


def trace(program, arguments, environment):
    """The calls of a run that name a path: (call, path, rest)."""
    with tempfile.NamedTemporaryFile("r") as log:
        run = subprocess.run(
            ["strace", "-f", "-y", "-o", log.name, "-s", "4096", program,
             *arguments],
            env=environment, check=False, stderr=subprocess.PIPE,
            stdout=subprocess.DEVNULL)
        if run.returncode != 0:
            print("strace: %s" % run.stderr.decode(errors="replace").strip())
            return None
        lines = log.read().splitlines()
    calls = []
    for match in map(CALL.match, lines):
        if match:
            call, folder, path, rest = match.groups()
            if path:
                path = os.path.join(folder or "/", path)
            calls.append((call, path, rest))
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
    os.symlink("lib64", root + "/kit/lib")
    open(root + "/kit/lib64/libcufft.so.12", "w").close()
    os.makedirs(root + "/kit/include")
    with open(root + "/kit/include/cuda.h", "w", encoding="ascii") as file:
        file.write("#define CUDA_VERSION 13000\n")
    # A library that says nothing itself has an owner that does.
    os.makedirs(site + "nvidia_cuda_runtime-13.0.96.dist-info")
    with open(site + "nvidia_cuda_runtime-13.0.96.dist-info/RECORD", "w",
              encoding="ascii") as file:
        file.write("nvidia/cu13/lib/libcudart.so.13,,\n"
                   "nvidia/cu13/include/cuda_runtime.h,,\n")


def after_start(calls):
    """Without the loader's own calls, which come before the program's."""
    start = max(i for i, call in enumerate(calls)
                if "libc.so" in call[1] or call[0] == "execve")
    return calls[:1] + calls[start + 1:]


def opened(calls):
    return [path for call, path, rest in calls
            if call in ("open", "openat", "openat2") and "= -1" not in rest
        and "O_PATH" not in rest]  # which reads nothing


def problems_of(what, calls, loaders=""):
    asked = collections.Counter(
        path for call, path, _ in calls
        if call in ("stat", "newfstatat", "lstat", "statx") and path != "")
    reads = collections.Counter(opened(calls))
    programs = sum(call == "execve" for call, _, _ in calls)
    # By whatever name: /usr/local/cuda is most often a link.
    lists = collections.Counter(
        os.path.realpath(path) for call, path, rest in calls
        if "O_DIRECTORY" in rest and "O_PATH" not in rest
        and "= -1" not in rest)
    for path, count in lists.items():
        if count > 1:
            yield "%s: %s is listed %d times" % (what, path, count)
    for path, count in asked.items():
        if count > (2 if EVIDENCE.search(path) else 1):
            yield "%s: %d stats of %s" % (what, count, path)
    # The loader looks into what it takes by a folder, and so does the search;
    # what that file says of its version is read by somebody else.
    for path, count in reads.items():
        if count > (2 if loaders and path.startswith(loaders) else 1):
            yield "%s: %s is opened %d times" % (what, path, count)
    if programs != 1:
        yield "%s: %d programs are run" % (what, programs)


def main():
    if shutil.which("strace") is None:
        print("skipped: strace is not installed")
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
            result = trace(program, [what], environment)
            if result is None:
                print("skipped: strace may not watch here")
                return 77
            calls, counts[what] = result
            if what != "nothing":
                found += problems_of(what, after_start(calls))
        for arguments in (["find", "lib", "cudart"], ["find", "--all"],
                          ["find", "--all", "--verify"]):
            if len(sys.argv) < 3:
                break
            what = "kiln " + " ".join(arguments)
            result = trace(sys.argv[2], arguments, environment)
            calls, counts[what] = result
            found += problems_of(what, after_start(calls),
                                 root + "/kit/lib64/")
            if sys.argv[3:] == ["--alone"]:
                found += ["%s: opens %s" % (what, path)
                          for path in opened(calls) if INSIDE.search(path)]
            print("%-26s %5d calls" % (what, counts[what]))
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
