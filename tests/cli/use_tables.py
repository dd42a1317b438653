# SPDX-License-Identifier: Apache-2.0
"""Tables of uses of the command, one a line, each run in a folder of its own.

A table has columns with " | " between; the last one is a shell command, or what
is to follow one. Lines that begin with # are remarks.
"""

import concurrent.futures
import contextlib
import os
import subprocess
import sys
import tempfile

import cli_data
import run_cases


def read_table(path):
    """Each row: the number of its line, and its three columns."""
    with open(path, encoding="utf-8") as file:
        return [(number, *line.rstrip("\n").split(" | ", 2))
                for number, line in enumerate(file, 1)
                if line.strip() and not line.startswith("#")]


def environment(kiln, caches):
    env = run_cases.clean_environment(kiln)
    kernels = env["K"]
    env["XDG_CACHE_HOME"] = caches
    env["G"] = os.path.join(kernels, "plain.graph")
    env["SCALE"] = "%s run %s/scale.ptx --device soft" % (kiln, kernels)
    env["RUN"] = env["SCALE"] + (" --arg n=4u32 --arg a=2f32 --in x=x.npy"
                                 " --in y=y.npy")
    return env


@contextlib.contextmanager
def place(kiln):
    """A folder with the data, and the environment of uses there."""
    with tempfile.TemporaryDirectory(prefix="kiln-use-") as folder, \
            tempfile.TemporaryDirectory(prefix="kiln-cache-") as caches:
        for name, content in cli_data.files().items():
            with open(os.path.join(folder, name), "wb") as file:
                file.write(content)
        os.mkdir(os.path.join(folder, "folder"))
        yield folder, environment(kiln, caches)


def run(command, folder, env):
    """Exit code, standard output and standard error."""
    done = subprocess.run(["sh", "-c", command], cwd=folder, env=env,
                          check=False, timeout=600, stdin=subprocess.DEVNULL,
                          capture_output=True)
    return (done.returncode, done.stdout,
            done.stderr.decode("utf-8", "replace"))


def main(look, words):
    """Looks at each row of the table that the arguments name: `look` returns
    the lines of a report, none if all holds."""
    kiln, rows = os.path.abspath(sys.argv[1]), read_table(sys.argv[2])
    bad = 0
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        for report in pool.map(lambda row: look(kiln, row), rows):
            bad += bool(report)
            for line in report:
                print(line.rstrip().replace("\n", "\n    "))
    print(words % (len(rows), bad))
    return 1 if bad else 0
