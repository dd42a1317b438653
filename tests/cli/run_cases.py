#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the command and compares what it did with what a file expects.

run_cases.py KILN CASES

A file of cases is made of blocks. Each starts with `case: NAME`; the other
lines of a block are

  run: COMMAND      a shell command; $KILN is the command, $K the folder of
                    kernels, $ROOT the source tree. The folder it runs in is
                    fresh and holds the files of cli_data.py. Once a block.
  exit: N           the exit code (default 0)
  stdout: PATTERN   standard output, whole; several lines are several lines of
                    it. Shell patterns: * ? [...]. Default: nothing at all.
  stderr: PATTERN   a pattern that standard error has somewhere; several lines
                    are several patterns. Default: anything.
  quiet: yes        standard error is empty
  json: SCHEMA      standard output is JSON and fits docs/cli/SCHEMA.json; with
  has: PATH=VALUE   this in it, such as has: outputs.0.bytes=16
  same: A B         the two files hold the same
  made: A B ...     these files are there afterwards, and no others but the data
  within: S         it took at most S seconds
  skip-without: X   X is user (root may write all), nvrtc, nvjitlink, gpu,
                    graphviz or terminal; or several of these

Each case has a cache of its own, which is empty at first.

A case that is skipped says so; when all are, the exit code is 77.
"""

import fnmatch
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time

import cli_data
import json_schema

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
LISTS = {"stdout", "stderr", "has", "same"}
KEYS = LISTS | {"run", "exit", "json", "quiet", "made", "within", "case",
                "skip-without"}
# What the machine has must not change what a case sees.
DROPPED = ("CUDA_", "KILN_", "VIRTUAL_ENV", "CONDA_PREFIX", "LC_", "LANG")


def read_cases(path):
    """The blocks of a file, as dictionaries."""
    cases = []
    with open(path, encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            line = line.rstrip("\n")
            if not line.strip() or line.startswith("#"):
                continue
            key, colon, value = line.partition(":")
            if not colon or key not in KEYS:
                raise SystemExit("%s:%d: what is %r?" % (path, number, line))
            value = value[1:] if value.startswith(" ") else value
            if key == "case":
                cases.append({"case": value, "line": number})
            elif key in LISTS:
                cases[-1].setdefault(key, []).append(value)
            elif key in cases[-1]:
                raise SystemExit("%s:%d: %s twice" % (path, number, key))
            else:
                cases[-1][key] = value
    return cases


def lookup(value, path):
    for part in path.split("."):
        value = value[int(part)] if isinstance(value, list) else value[part]
    return value


def check_json(case, out):
    try:
        value = json.loads(out)
    except ValueError as error:
        yield "standard output is no JSON: %s" % error
        return
    path = os.path.join(ROOT, "docs", "cli", case["json"] + ".json")
    with open(path, encoding="utf-8") as file:
        yield from json_schema.problems(value, json.load(file))
    for wanted in case.get("has", []):
        key, _, text = wanted.partition("=")
        try:
            got = lookup(value, key)
        except (KeyError, IndexError, TypeError):
            yield "the JSON has no %s" % key
            continue
        got = got if isinstance(got, str) else json.dumps(got)
        if not fnmatch.fnmatchcase(got, text):
            yield "%s is %s, not %s" % (key, got, text)


def check_files(case, folder, data):
    for pair in case.get("same", []):
        a, b = pair.split()
        contents = []
        for name in (a, b):
            path = os.path.join(folder, name)
            try:
                with open(path, "rb") as file:
                    contents.append(file.read())
            except OSError as error:
                yield str(error)
        if len(contents) == 2 and contents[0] != contents[1]:
            yield "%s and %s differ" % (a, b)
    made = set(os.listdir(folder)) - set(data)
    if "made" in case and made != set(case["made"].split()):
        yield "files there afterwards: %s" % " ".join(sorted(made))
    for name, content in data.items():
        path = os.path.join(folder, name)
        if not os.path.exists(path):
            yield "%s is gone" % name


def problems(case, result, took, folder, data):
    out = result.stdout.decode("utf-8", "replace")
    err = result.stderr.decode("utf-8", "replace")
    if result.returncode != int(case.get("exit", 0)):
        yield "exit code %d, not %s" % (result.returncode, case.get("exit", 0))
    if "json" in case:
        yield from check_json(case, out)
    else:
        wanted = "".join(line + "\n" for line in case.get("stdout", []))
        if not fnmatch.fnmatchcase(out, wanted):
            yield "standard output is not as expected"
    for pattern in case.get("stderr", []):
        if not fnmatch.fnmatchcase(err, "*" + pattern + "*"):
            yield "standard error lacks %r" % pattern
    if "quiet" in case and err:
        yield "standard error is not empty"
    if took > float(case.get("within", 60)):
        yield "it took %.1f s" % took
    yield from check_files(case, folder, data)


def facts(kiln):
    return json.loads(subprocess.check_output([kiln, "doctor", "--json"],
                                              env=clean_environment(kiln)))


def has_nvrtc(kiln):
    return any(library["name"] == "nvrtc" and library["found"]
               for library in facts(kiln)["libraries"])


def has_nvjitlink(kiln):
    return subprocess.run([kiln, "find", "lib", "nvJitLink"], check=False,
                          stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                          env=clean_environment(kiln)).returncode == 0


def has_gpu(kiln):
    return any(device["kind"] == "cuda" for device in facts(kiln)["devices"])


def has_terminal():
    try:
        for end in os.openpty():
            os.close(end)
    except OSError:
        return False
    return True


def missing(need, kiln):
    if need == "user" and os.geteuid() == 0:
        return "root may write everywhere"
    if need == "nvrtc" and not has_nvrtc(kiln):
        return "there is no NVRTC on this machine"
    if need == "nvjitlink" and not has_nvjitlink(kiln):
        return "there is no nvJitLink on this machine"
    if need == "gpu" and not has_gpu(kiln):
        return "there is no GPU that works on this machine"
    if need == "graphviz" and shutil.which("dot") is None:
        return "there is no Graphviz on this machine"
    if need == "terminal" and not has_terminal():
        return "this machine hands out no pseudo-terminals"
    return None


def skipped(case, kiln):
    reasons = [missing(need, kiln)
               for need in case.get("skip-without", "").split()]
    return next((reason for reason in reasons if reason), None)


def clean_environment(kiln):
    env = {key: value for key, value in os.environ.items()
           if not key.startswith(DROPPED)}
    env.update(KILN=kiln, K=os.path.join(HERE, "kernels"), ROOT=ROOT)
    return env


def run_case(case, kiln):
    """None if the case holds, else the lines of its report."""
    data = cli_data.files()
    with tempfile.TemporaryDirectory(prefix="kiln-cli-") as folder, \
            tempfile.TemporaryDirectory(prefix="kiln-cache-") as caches:
        for name, content in data.items():
            with open(os.path.join(folder, name), "wb") as file:
                file.write(content)
        started = time.monotonic()
        result = subprocess.run(["sh", "-c", case["run"]], cwd=folder,
                                env={**clean_environment(kiln),
                                     "XDG_CACHE_HOME": caches}, check=False,
                                stdin=subprocess.DEVNULL,
                                stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, timeout=100)
        took = time.monotonic() - started
        lines = list(problems(case, result, took, folder, data))
    if not lines:
        return None
    return lines + ["run: " + case["run"],
                    "stdout: " + result.stdout.decode("utf-8", "replace"),
                    "stderr: " + result.stderr.decode("utf-8", "replace")]


def main():
    kiln, path = os.path.abspath(sys.argv[1]), sys.argv[2]
    bad = ran = 0
    for case in read_cases(path):
        reason = skipped(case, kiln)
        if reason:
            print("skipped: %s: %s" % (case["case"], reason))
            continue
        ran += 1
        report = run_case(case, kiln)
        if report:
            bad += 1
            print("FAILED: %s (%s:%d)" % (case["case"], path, case["line"]))
            for line in report:
                print("  " + line.rstrip("\n").replace("\n", "\n  "))
    print("%d cases, %d failed" % (ran, bad))
    return 1 if bad else 0 if ran else 77


if __name__ == "__main__":
    sys.exit(main())
