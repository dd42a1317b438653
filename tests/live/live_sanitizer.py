#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""tests: programs that use a GPU, under compute-sanitizer.

    live_sanitizer.py COMMAND...

Each command is one argument, a program and its words, and is run with all
processes that it starts. memcheck must say of itself that it looked, and that it found nothing.
Exit code 77 without compute-sanitizer, without a GPU, or where it refuses the
GPU.
"""
import concurrent.futures
import os
import re
import shlex
import shutil
import subprocess
import sys

SKIP = 77
MEMCHECK = ["compute-sanitizer", "--tool", "memcheck", "--target-processes",
            "all", "--error-exitcode", "99", "--report-api-errors", "no"]
REFUSALS = ("Device not supported", "Unable to initialize", "not supported on",
            "Target application terminated before first instrumented")


def run(command):
    # memcheck lets calls wait for what is under way: a stage that needs work to
    # be under way skips itself.
    done = subprocess.run(command, capture_output=True, text=True, check=False,
                          errors="replace",
                          env={**os.environ, "KILN_TEST_CALLS_WAIT": "1"})
    return done.returncode, done.stdout + done.stderr


def main():
    if shutil.which(MEMCHECK[0]) is None:
        print("skipped: there is no compute-sanitizer")
        sys.exit(SKIP)
    faults = 0
    looked = 0
    commands = [shlex.split(words) for words in sys.argv[1:]]
    # Side by side: every process takes seconds to begin.
    with concurrent.futures.ThreadPoolExecutor(len(commands)) as pool:
        answers = list(pool.map(
            lambda words: run(MEMCHECK + words), commands))
    for words, (code, text) in zip(commands, answers):
        program = " ".join(words)
        counts = [int(n) for n in
                  re.findall(r"ERROR SUMMARY: (\d+) error", text)]
        refusal = next((word for word in REFUSALS if word in text), None)
        if code == SKIP:
            print(f"skipped: {program}: no GPU")
            continue
        if refusal is not None and sum(counts) == 0:
            print(f"skipped: {program}: compute-sanitizer refuses the GPU: "
                  f"{refusal}")
            continue
        looked += 1
        good = code == 0 and counts and sum(counts) == 0
        print(f"{'ok' if good else 'not ok'} {program}: exit {code}, "
              f"{len(counts)} processes looked at, {sum(counts)} errors")
        if not good:
            faults += 1
            print("\n".join(text.splitlines()[-60:]))
    if looked == 0:
        sys.exit(SKIP)
    sys.exit(1 if faults else 0)


if __name__ == "__main__":
    main()
