#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Bad uses of the command, by a table: what each is answered.

    bad_uses.py KILN TABLE

The table says of each line what must hold: bad_uses.txt has the rules. Besides
those, no use may end by a signal or take longer than a minute.
"""

import concurrent.futures
import fnmatch
import hashlib
import os
import re
import subprocess
import sys
import tempfile

import cli_data
import run_cases

NOTE = re.compile(r"kiln: (grid|device|warning|block|note):|$")


def read_table(path):
    rows = []
    with open(path, encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            if line.startswith("#") or not line.strip():
                continue
            code, pattern, command = line.rstrip("\n").split(" | ", 2)
            rows.append((number, int(code), pattern, command))
    return rows


def make_folder(folder):
    for name, content in cli_data.files().items():
        with open(os.path.join(folder, name), "wb") as file:
            file.write(content)
    os.mkdir(os.path.join(folder, "folder"))


def listing(folder):
    """Every path below a folder, with what is in it."""
    found = {}
    for at, folders, names in os.walk(folder):
        for name in folders:
            found[os.path.join(at, name)] = "folder"
        for name in names:
            path = os.path.join(at, name)
            with open(path, "rb") as file:
                found[path] = hashlib.sha256(file.read()).hexdigest()
    return found


def environment(kiln, caches):
    env = run_cases.clean_environment(kiln)
    kernels = env["K"]
    env["XDG_CACHE_HOME"] = caches
    env["G"] = os.path.join(kernels, "plain.graph")
    env["SCALE"] = "%s run %s/scale.ptx --device soft" % (kiln, kernels)
    env["RUN"] = env["SCALE"] + (" --arg n=4u32 --arg a=2f32 --in x=x.npy"
                                 " --in y=y.npy")
    return env


def first_line(text):
    """The first line of the error: no note, and not the help above it."""
    lines = [line for line in text.split("\n") if not NOTE.match(line)]
    said = [line for line in lines if "error" in line]
    return (said or lines or [""])[0]


def run_row(kiln, row):
    """The lines of a report; none if all holds."""
    number, code, pattern, command = row
    with tempfile.TemporaryDirectory(prefix="kiln-bad-") as folder, \
            tempfile.TemporaryDirectory(prefix="kiln-cache-") as caches:
        make_folder(folder)
        before = listing(folder)
        done = subprocess.run(["sh", "-c", command], cwd=folder, check=False,
                              env=environment(kiln, caches), timeout=60,
                              stdin=subprocess.DEVNULL, capture_output=True)
        after = listing(folder)
    err = done.stderr.decode("utf-8", "replace")
    wrong = []
    if done.returncode != code:
        wrong.append("exit code %d, not %d" % (done.returncode, code))
    if not fnmatch.fnmatchcase(first_line(err), pattern):
        wrong.append("the first line is not like %s" % pattern)
    if not re.search(r"^\s*Fix: \S", err, re.M):
        wrong.append("there is no Fix")
    if done.stdout:
        wrong.append("there is something on standard output")
    if before != after:
        wrong.append("left behind or changed: %s" % " ".join(sorted(
            os.path.basename(path) for path in set(before) ^ set(after)
            | {p for p in before if before[p] != after.get(p)})))
    if not wrong:
        return []
    return ["FAILED: line %d: %s" % (number, command)] + wrong + [err.rstrip()]


def main():
    kiln, table = os.path.abspath(sys.argv[1]), sys.argv[2]
    rows = read_table(table)
    bad = 0
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        for report in pool.map(lambda row: run_row(kiln, row), rows):
            bad += bool(report)
            for line in report:
                print(line.replace("\n", "\n    "))
    print("%d bad uses, %d answered wrongly" % (len(rows), bad))
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
