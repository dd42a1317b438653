#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""tools: runs the parts of CI, each within its share: tools/check [PART...].

The parts and their shares stand in tools/ci_parts.txt. Each runs to its end; a
part that fails, that costs more than its share or that skips a test without
saying why makes the run fail. `tools/check PART...` runs some alone, and first
what they need. What is left out or sampled here, tools/full does whole.
"""

import argparse
import os
import re
import subprocess
import sys
import xml.etree.ElementTree

import ci_table
import measure
import skips
import test_targets

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
LOGS = os.path.join(ROOT, "build/check")
NO_CLANG_TIDY = 77
CPU = "/proc/cpuinfo"
# Of the tests in tools/ci_turns.txt, one in so many runs in a build; which one,
# KILN_TEST_SEED says.
TURNS = {"clang": 10, "asan": 12, "tsan": 12}
# How tools that build say what is wrong.
ERROR = re.compile(r"(\b(fatal )?error: |^CMake Error|undefined reference to "
                   r"|multiple definition of |^ninja: )")
FULL_OUTPUT = ["--test-output-size-passed", "100000000",
               "--test-output-size-failed", "100000000"]

# What a part needs that another has made.
NEEDS = {"layout": "build", "tests": "build", "install": "build",
         "wheels": "build", "lint": "build"}

# Tests of the release build that have a part of their own.
APART = "^(layout|install|pathfinder|slow|wheels)$"
# The layout, installations, comparisons and fault sweeps are the same of any
# compiler, as is what others' tools say.
CLANG_TESTS = (["-LE", "^(fault|layout|install|pathfinder|slow|wheels)$"],
               "^(linking_|truth_missing|truth_ptxas|truth_program"
               "|inspect_truth_fresh)")
# What is live needs a GPU: the release build reports it as skipped.
ASAN_TESTS = (["-LE", "^(fault|layout|install|live|slow)$"],
              "^(linking_files|inspect_truth_fresh|truth_missing)$")
TSAN_TESTS = (["-L", "^threads$"], "^$")


class Outcome:
    """What came of one part."""

    def __init__(self, part):
        self.part = part
        self.ok = False
        self.stopped = False
        self.cost = None
        self.notes = []  # of tests and of what else happened
        self.skips = []
        self.leftovers = []

    def minutes(self):
        return measure.judged_minutes(self.cost, self.part.kind == "net")

    def verdicts(self):
        """Why it is not green; nothing if it is."""
        if self.stopped:
            yield "stopped"
        elif not self.ok:
            yield "failed"
        if self.minutes() > self.part.minutes:
            yield "above its share"
        if skips.unexplained(self.skips):
            yield "skips without a reason"
        if self.leftovers:
            yield "left running: " + ", ".join(self.leftovers)


class Run:
    """The commands of one part; `outcome` takes what they say."""

    def __init__(self, outcome):
        self.outcome = outcome
        self.log = os.path.join(LOGS, outcome.part.name + ".txt")
        self.jobs = str(measure.cores())
        os.makedirs(LOGS, exist_ok=True)
        open(self.log, "w", encoding="utf-8").close()

    def command(self, *words):
        return measure.run(words, self.log, cwd=ROOT)

    def made(self, *words):
        """A command that builds: where it fails, its first error is noted."""
        start = os.path.getsize(self.log)
        if self.command(*words) == 0:
            return True
        self.outcome.notes += first_error(self.log, start)
        return False

    def configure(self, preset, *options):
        return self.made("cmake", "--preset", preset, *options)

    def build(self, preset, *targets):
        chosen = ["--target", *targets] if targets else []
        return self.made("cmake", "--build", "--preset", preset, "-j",
                         self.jobs, *chosen)

    def build_for(self, preset, choice):
        """Only what a choice of tests needs."""
        found = subprocess.run(
            [sys.executable, "-B", "tools/test_targets.py", "build/" + preset,
             *choice], cwd=ROOT, stdout=subprocess.PIPE, text=True,
            check=False)
        return found.returncode == 0 and self.build(
            preset, *found.stdout.split())

    def test(self, preset, choice):
        results = os.path.join(LOGS, self.outcome.part.name + ".xml")
        if os.path.exists(results):
            os.unlink(results)
        code = self.command(
            *plain_addresses(), "ctest", "--preset", preset, "-j", self.jobs,
            "--no-tests=error", "--output-junit", results, *FULL_OUTPUT,
            *choice)
        try:
            found = skips.read_results(results)
        except (OSError, xml.etree.ElementTree.ParseError):
            self.outcome.notes.append("no results of ctest")
            return False
        self.outcome.skips += found.skips
        self.outcome.notes.append("%d tests, %d failed" % (
            found.ran, len(found.failed)))
        self.outcome.notes += ["failed: " + name for name in found.failed]
        return code == 0


def first_error(log, start):
    """The first error in what a log has from `start` on; nothing if none is
    known as one."""
    with open(log, encoding="utf-8", errors="replace") as file:
        file.seek(start)
        lines = file.read().splitlines()
    for at, line in enumerate(lines):
        if ERROR.search(line):
            # CMake says where on one line, and what on a later one.
            more = [] if "error: " in line else [
                one.strip() for one in lines[at + 1:at + 4] if one.strip()]
            return ["first error: " + " ".join(
                [line.strip(), *more[:line.startswith("CMake")]])]
    return []


def plain_addresses():
    """The thread sanitizer of older compilers cannot live with wide address
    space randomisation."""
    words = ["setarch", os.uname().machine, "-R"]
    try:
        done = subprocess.run([*words, "true"], check=False,
                              stderr=subprocess.DEVNULL)
    except OSError:
        return []
    return words if done.returncode == 0 else []


def sanitized():
    """Under a sanitizer the lanes of AVX-512 take long to build; a CPU that
    has it not runs none of them."""
    options = ["-DKILN_BUILD_BENCH=OFF"]
    try:
        with open(CPU, encoding="ascii", errors="replace") as file:
            has = re.search(r"\bavx512bw\b", file.read())
    except OSError:
        has = None
    return options if has else [*options, "-DKILN_SOFT_AVX512=OFF"]


# ---- The parts, each by the name that the table has ----

def part_bootstrap(run):
    """What tools/check has done already: without it nothing is here."""
    return run is not None


def part_build(run):
    return run.configure("release") and run.build("release")


def part_layout(run):
    return run.test("release", ["-L", "^layout$"])


def part_tests(run):
    return run.test("release", ["-LE", APART])


def part_install(run):
    return run.test("release", ["-L", "^install$"])


def part_wheels(run):
    return run.test("release", ["-L", "^(pathfinder|wheels)$"])


def part_lint(run):
    code = run.command("tools/lint")
    if code == NO_CLANG_TIDY:
        run.outcome.skips.append(skips.Skip("lint", "", "no clang-tidy"))
    return code in (0, NO_CLANG_TIDY)


def with_turns(run, preset, choice):
    """A choice of tests without those whose turn it is not; the builds have
    different turns of one commit. None if the list names what is no test."""
    labels, without = choice
    slow = turn_names()
    names = [name for name, _ in slow]
    known = test_targets.read_tests(os.path.join(ROOT, "build", preset))
    unknown = [name for name in names if name not in known]
    if unknown:
        run.outcome.notes.append("tools/ci_turns.txt names what is no test: " +
                                 ", ".join(unknown))
        return None
    seed = int(os.environ.get("KILN_TEST_SEED", "0")) + [*TURNS].index(preset)
    waiting = [name for at, (name, only_full) in enumerate(slow)
               if only_full or (at + seed) % TURNS[preset]]
    return [*labels, "-E", "%s|^(%s)$" % (without, "|".join(waiting))]


def turn_names():
    """(test, whether only tools/full and the release build run it)"""
    with open(os.path.join(ROOT, "tools/ci_turns.txt"),
              encoding="utf-8") as file:
        rows = [line.split() for line in file
                if line.strip() and not line.startswith("#")]
    return [(row[0], row[1:] == ["full"]) for row in rows]


def part_clang(run):
    if not (run.configure("clang") and run.build("clang")):
        return False
    choice = with_turns(run, "clang", CLANG_TESTS)
    return choice is not None and run.test("clang", choice)


def sanitizer(run, preset, tests):
    if not run.configure(preset, *sanitized()):
        return False
    choice = with_turns(run, preset, tests)
    return choice is not None and run.build_for(preset, choice) and \
        run.test(preset, choice)


def part_asan(run):
    return sanitizer(run, "asan", ASAN_TESTS)


def part_tsan(run):
    return sanitizer(run, "tsan", TSAN_TESTS)


def function_of(name):
    return globals().get("part_" + name.replace("-", "_"))


# ---- A run of several ----

def chosen_parts(parts, names):
    """The parts to run, in the table's order, with what they need."""
    runnable = [part for part in parts if part.kind != "later"]
    unknown = set(names) - {part.name for part in runnable}
    if unknown:
        raise SystemExit("tools/check: there is no part %s\nFix: one of %s" % (
            ", ".join(sorted(unknown)),
            ", ".join(part.name for part in runnable)))
    wanted = set(names) | {NEEDS[name] for name in names if name in NEEDS}
    return [part for part in runnable if not names or part.name in wanted]


def cost_text(outcome):
    cost = outcome.cost
    return "%.2f of %.1f min (wall %.2f, CPU %.2f, speed %.2f)" % (
        outcome.minutes(), outcome.part.minutes, cost.wall / 60,
        cost.cpu / 60, cost.speed)


def run_part(part, function, before=None):
    """The outcome of one part; `before` is a cost that it has already."""
    outcome = Outcome(part)
    print("\n== %s: %s" % (part.name, part.what), flush=True)
    meter = measure.Meter()
    try:
        outcome.ok = bool(function(Run(outcome)))
    except KeyboardInterrupt:
        outcome.stopped = True
    outcome.leftovers = measure.end_leftovers()
    outcome.cost = before or meter.cost()
    print("== %s took %s" % (part.name, cost_text(outcome)), flush=True)
    return outcome


def not_run(part, need):
    """The outcome of a part that has not what it needs."""
    outcome = Outcome(part)
    outcome.notes.append("not run: it needs the part %s, which failed" % need)
    outcome.cost = measure.Cost(0.0, 0.0, 0.0, 1)
    print("\n== %s: %s" % (part.name, outcome.notes[0]), flush=True)
    return outcome


def run_all(parts, find=function_of, bootstrap=None):
    """Outcomes of the parts, up to one that was stopped."""
    outcomes = []
    for part in parts:
        need = NEEDS.get(part.name)
        if any(one.part.name == need and not one.ok for one in outcomes):
            outcomes.append(not_run(part, need))
            continue
        outcomes.append(run_part(
            part, find(part.name),
            bootstrap if part.name == "bootstrap" else None))
        if outcomes[-1].stopped:
            break
    return outcomes


def table_lines(parts, outcomes):
    """Each part's time beside its share."""
    yield "%-14s %6s %7s %7s %7s  %s" % ("part", "share", "judged", "wall",
                                         "CPU", "verdict")
    sums = [0.0] * 4
    for one in outcomes:
        row = (one.part.minutes, one.minutes(), one.cost.wall / 60,
               one.cost.cpu / 60)
        sums = [a + b for a, b in zip(sums, row)]
        verdict = "; ".join(one.verdicts()) or "green"
        yield "%-14s %6.1f %7.2f %7.2f %7.2f  %s" % (
            one.part.name, *row, "; ".join([verdict, *one.notes[:1]]))
        for note in one.notes[1:]:
            yield "%45s  %s" % ("", note)
    yield "%-14s %6.1f %7.2f %7.2f %7.2f  minutes of two cores" % (
        "together", *sums)
    kept = [part for part in parts if part.kind == "later"]
    if kept:
        yield "%-14s %6.1f  %s" % (
            "kept for later", sum(part.minutes for part in kept),
            ", ".join("%s %g" % (part.name, part.minutes) for part in kept))


def summary_lines(parts, outcomes):
    """The report of a run: times, skips, and what to do."""
    yield from table_lines(parts, outcomes)
    yield ""
    yield from skips.summary([one for outcome in outcomes
                              for one in outcome.skips])
    for one in outcomes:
        if one.minutes() > one.part.minutes:
            yield ("Fix: make %s cheaper, or move what exceeds its share to "
                   "tools/full (CONTRIBUTING.md)" % one.part.name)
    yield from ("Fix: " + text for text in ci_table.over_budget(parts))


def is_green(parts, outcomes, wanted):
    return len(outcomes) == len(wanted) and not any(
        [*one.verdicts()] for one in outcomes) and not [
            *ci_table.over_budget(parts)]


def bootstrap_cost():
    """What tools/check has spent before this program took its place, which has
    the same process number and so the same account."""
    try:
        wall = max(0.0, float(os.environ["KILN_CHECK_BOOTSTRAP"]))
    except (KeyError, ValueError):
        wall = 0.0
    return measure.Cost(wall, measure.cpu_seconds(), 0, 1)


def test_seed():
    """Where a test samples, each commit takes the next share."""
    count = ""
    if os.path.exists(os.path.join(ROOT, ".git")):
        try:
            count = subprocess.run(
                ["git", "rev-list", "--count", "HEAD"], cwd=ROOT,
                stdout=subprocess.PIPE, text=True, check=False,
                stderr=subprocess.DEVNULL).stdout.strip()
        except OSError:
            print("tools/check: no git here, so the samples are those of "
                  "KILN_TEST_SEED=0", flush=True)
    return os.environ.get("KILN_TEST_SEED") or count or "0"


def keep_to_two_cores():
    """The shares are of two cores. What four do at once costs more CPU time,
    so that CI, whose verdict counts, uses two of those it has."""
    if os.environ.get("CI"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:2])


def main():
    keep_to_two_cores()
    bootstrap = bootstrap_cost()
    parser = argparse.ArgumentParser(
        prog="tools/check", description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", metavar="PART")
    options = parser.parse_args()
    with open(os.path.join(ROOT, "tools/ci_parts.txt"),
              encoding="utf-8") as file:
        parts = ci_table.read_parts(file.read())
    wanted = chosen_parts(parts, options.parts)
    os.environ["KILN_TEST_SEED"] = test_seed()
    measure.adopt_orphans()
    measure.stop_on_signals()
    outcomes = run_all(wanted, bootstrap=bootstrap)
    print("\n== Summary")
    print("\n".join(summary_lines(parts, outcomes)))
    print("KILN_TEST_SEED=" + os.environ["KILN_TEST_SEED"])
    green = is_green(parts, outcomes, wanted)
    print("All green." if green else "Not green: " + ", ".join(
        [one.part.name for one in outcomes if [*one.verdicts()]] +
        [part.name + " (not run)" for part in wanted[len(outcomes):]]))
    return 0 if green else 1


if __name__ == "__main__":
    sys.exit(main())
