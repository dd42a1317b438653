# SPDX-License-Identifier: Apache-2.0
"""tools: the parts of tools/full, and how each is run.

A part is a row of PARTS: its name, the minutes that it is expected to take on
four cores (60 at most: tests/tools), what it is, and the function that runs it.
It runs alone, from an empty build/full, on any machine that has its tools.
"""

import collections
import glob
import os
import re
import shutil
import subprocess
import sys
import time
import xml.etree.ElementTree

import check_parts
import measure
import skips

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
FOLDER = os.path.join(ROOT, "build/full")
PATIENCE = 30
FUZZ_RUNS = 1000000
MINUTES_MOST = 60
SKIP = 77
# Every fault point, every order, all of what CI samples.
EVERYTHING = {"KILN_FAULT_ALL": "1", "KILN_ORDERS_ROUNDS": "200"}
# No sanitizer sees into a driver. Another machine may have one.
NO_DRIVER = {"KILN_LIBCUDA": "/nonexistent/libcuda.so.1"}
LATE = "ran past %d minutes, three times what it should take"

Part = collections.namedtuple("Part", "name minutes what run")
# A preset, options of the configuration, and what ctest leaves out.
Build = collections.namedtuple("Build", "preset options selection")

NO_LAYOUT = ["-LE", "^layout$"]
CLANG = ["-DCMAKE_C_COMPILER=clang"]
BUILDS = {
    "gcc-release": Build("release", [], []),
    "gcc-debug": Build("debug", [], NO_LAYOUT),
    "clang-release": Build("clang", [], NO_LAYOUT),
    "gcc-asan": Build("asan", [], NO_LAYOUT),
    "clang-asan": Build("asan", CLANG, NO_LAYOUT),
    "gcc-tsan": Build("tsan", [], NO_LAYOUT),
    "clang-tsan": Build("tsan", CLANG, NO_LAYOUT),
}
# The targets that take long; what is in no list is fuzzed by `fuzz-readers`.
FUZZ = {
    "fuzz-device": ["fuzz_soft_run", "fuzz_soft_code", "fuzz_ptx"],
    "fuzz-programs": ["fuzz_program_text", "fuzz_program_canonical",
                      "fuzz_cli_graph", "fuzz_compat_check"],
    "fuzz-readers": None,
}
# Into how many processes the executions of a target are divided that takes
# many times as long as the others: a machine with many cores waits for it.
FUZZ_PROCESSES = {"fuzz_soft_run": 8, "fuzz_soft_code": 4, "fuzz_ptx": 4,
                  "fuzz_program_text": 6, "fuzz_program_canonical": 4,
                  "fuzz_cli_literal": 4, "fuzz_cli_source": 4,
                  "fuzz_library_patterns": 4, "fuzz_record": 4,
                  "fuzz_compat_check": 2}


class Late(Exception):
    """A part has had three times its minutes."""


class Outcome:
    """What a part says at its end."""

    def __init__(self):
        self.ok = False
        self.skipped = ""  # why all of it was
        self.result = ""
        self.reduced = ""  # what of it was left out, if asked
        self.details = []  # lines for the report
        self.skips = []


class Work:
    """One part while it runs: its log, its folder, its time."""

    def __init__(self, part, options):
        self.part = part
        self.options = options
        self.outcome = Outcome()
        self.jobs = options.jobs or measure.cores()
        self.log = os.path.join(FOLDER, part.name + ".txt")
        self.minutes = 3 * part.minutes * max(1, 4 / self.jobs)
        self.end = time.monotonic() + 60 * self.minutes
        os.makedirs(FOLDER, exist_ok=True)
        open(self.log, "w", encoding="utf-8").close()

    def run(self, *words, **variables):
        """The exit code of a command; its output is in the log."""
        code = measure.run([str(word) for word in words], self.log, cwd=ROOT,
                           limit=max(1, self.end - time.monotonic()),
                           **variables)
        if code == 124 and time.monotonic() >= self.end:
            raise Late(LATE % self.minutes)
        return code

    def last(self, pattern):
        """The last line of the log that matches; "" if none does."""
        with open(self.log, encoding="utf-8", errors="replace") as file:
            found = [line.strip() for line in file if re.search(pattern, line)]
        return found[-1] if found else ""

    def skip(self, why):
        self.outcome.skipped = why
        return self.outcome


def build(work, folder, preset, options, targets=()):
    """Whether a build of a preset in a folder of build/full succeeds."""
    chosen = ["--target", *targets] if targets else []
    return work.run("cmake", "--preset", preset, "-B", folder, *options,
                    "-DKILN_TEST_PATIENCE=%d" % PATIENCE) == 0 and \
        work.run("cmake", "--build", folder, "-j", work.jobs, *chosen) == 0


def release_folder():
    return os.path.join(FOLDER, "gcc-release")


# ---- Builds and their tests ----

def run_ctest(work, folder, selection):
    """Runs tests of a build; the outcome gets their numbers and skips."""
    results = os.path.join(FOLDER, work.part.name + ".xml")
    sanitized = work.part.name.endswith(("-asan", "-tsan"))
    hidden = NO_DRIVER if sanitized and work.options.prepared else {}
    code = work.run(
        *check_parts.plain_addresses(), "ctest", "--test-dir", folder, "-j",
        work.jobs, "--output-on-failure", "--no-tests=error", "--output-junit",
        results, *check_parts.FULL_OUTPUT, *selection, **EVERYTHING,
        **hidden)
    try:
        found = skips.read_results(results)
    except (OSError, xml.etree.ElementTree.ParseError):
        work.outcome.result = "no results of ctest"
        return
    work.outcome.skips += found.skips
    work.outcome.result = "%d tests, %d failed" % (found.ran,
                                                   len(found.failed))
    if found.failed:
        work.outcome.result += ": " + skips.names_text(found.failed)
    work.outcome.ok = code == 0


def run_build(work):
    """One build and its whole suite, every fault point."""
    preset, options, selection = BUILDS[work.part.name]
    folder = os.path.join(FOLDER, work.part.name)
    shutil.rmtree(folder, ignore_errors=True)
    if "clang" in work.part.name and shutil.which("clang") is None:
        return work.skip("clang is not installed")
    if work.options.prepared:
        selection = NO_LAYOUT
    else:
        # Where it cannot, a test is a reported skip.
        work.run(sys.executable, "-B", "tools/wheels.py", "--dlpack",
                 "build/wheels")
    work.outcome.result = "not built"
    if build(work, folder, preset, options):
        run_ctest(work, folder, selection)
    return work.outcome


def run_kill(work):
    """Processes that are killed while they write, again and again."""
    names = ("fault_cache_kill", "unit_cache_share")
    if build(work, release_folder(), "release", [], names):
        run_ctest(work, release_folder(), [
            "-R", "^(%s)$" % "|".join(names), "--repeat", "until-fail:10"])
    return work.outcome


# ---- Programs ----

def program_steps(share, jobs):
    """(title, program, words, beginning of the line that says what came)."""
    whole = share == 1

    def some(count):
        return [] if whole else [str(max(1, count // share))]
    steps = [
        ("generated programs", "live_program_diff",
         ["soft", str(max(1, 10000 // share)), "1", "3000"], "evaluator"),
        ("each operator at each type", "live_program_diff",
         ["rows-soft", *some(1000)], "evaluator"),
        ("operators in operators", "live_program_diff",
         ["nests-soft", *some(4000)], "evaluator"),
        ("strict math, f64", "live_program_math",
         ["soft", "f64", str(max(1, 100000000 // share))], "POW")]
    # Every f32 takes as long as all else together.
    every = whole and jobs >= 16
    steps.append(("strict math, %sf32" % ("every " if every else ""),
                  "live_program_math",
                  ["soft", "f32"] + ([] if every else [
                      str(max(1, 100000000 // share))]), "INVERSE_SQRT"))
    return steps


def run_programs(work):
    """Generated programs and strict math on the software device."""
    share, folder = work.options.share, work.options.live_programs
    programs = ("live_program_diff", "live_program_math")
    if not folder:
        folder = os.path.join(release_folder(), "tests/live")
        if not build(work, release_folder(), "release", [], programs):
            work.outcome.result = "not built"
            return work.outcome
    if share != 1:
        work.outcome.reduced = "one part in %d" % share
    failed, said = [], work.outcome.details
    for title, program, words, line in program_steps(share, work.jobs):
        path = os.path.abspath(os.path.join(folder, program))
        if not os.path.exists(path) or work.run(path, *words) != 0:
            failed.append(title)
        said.append("%s: %s" % (title, work.last("^" + line) or "not run"))
    work.outcome.result = "; ".join(
        ["failed: " + ", ".join(failed)] if failed else
        ["%d kinds, none differs" % len(said)])
    work.outcome.ok = not failed
    return work.outcome


# ---- Fuzzing ----

def fuzz_names(part):
    """The targets of a part, from the sources of them."""
    listed = [name for names in FUZZ.values() for name in names or []]
    if FUZZ[part] is not None:
        return FUZZ[part]
    every = [name[:-2] for name in os.listdir(os.path.join(ROOT, "tests/fuzz"))
             if re.match(r"fuzz_\w+\.c$", name)]
    return sorted(set(every) - set(listed))


def fuzz_shares(names, runs):
    """(target, number, executions) of each process; together each target has
    `runs` executions."""
    shares = []
    for name in names:
        count = min(FUZZ_PROCESSES.get(name, 1), runs)
        shares += [(name, number, runs // count + (number <= runs % count))
                   for number in range(1, count + 1)]
    return shares


def fuzz_command(folder, programs, share):
    """One process; those of a target see what the others find."""
    name, number, runs = share
    short = name[len("fuzz_"):]
    fresh = os.path.join(folder, name)
    os.makedirs(fresh, exist_ok=True)
    words = os.path.join(ROOT, "tests/fuzz", short + ".dict")
    return [os.path.join(programs, name),
            *(["-dict=" + words] if os.path.exists(words) else []),
            "-runs=%d" % runs, "-seed=%d" % number, "-timeout=25",
            "-print_final_stats=1", "-artifact_prefix=%s." % fresh, fresh,
            os.path.join(ROOT, "tests/fuzz/corpus", short)]


def fuzz_log(folder, share):
    return os.path.join(folder, "%s.%d.txt" % share[:2])


def fuzz_all(work, folder, programs, names):
    """{name: exit code}, as many at a time as there are cores."""
    # Little freed memory kept back: pages that were never touched cost more.
    environment = {**os.environ, "ASAN_OPTIONS": ":".join(
        ["quarantine_size_mb=8", os.environ.get("ASAN_OPTIONS", "")])}
    waiting, running = fuzz_shares(names, work.options.fuzz_runs), {}
    # The long ones first: the last to begin is the last to end.
    waiting.sort(key=lambda share: share[0] not in FUZZ_PROCESSES)
    codes = dict.fromkeys(names, 0)
    while waiting or running:
        while waiting and len(running) < work.jobs:
            share = waiting.pop(0)
            with open(fuzz_log(folder, share), "w", encoding="utf-8") as file:
                running[share] = subprocess.Popen(
                    fuzz_command(folder, programs, share),
                    cwd=ROOT, stdout=file, stderr=file, env=environment)
        for share in [s for s, p in running.items() if p.poll() is not None]:
            code = running.pop(share).returncode
            codes[share[0]] = codes[share[0]] or code
            print("%s, process %d: exit %d" % (*share[:2], code), flush=True)
        if time.monotonic() >= work.end:
            raise Late(LATE % work.minutes)
        time.sleep(0.02)
    return codes


def was_the_machine(folder, programs, name):
    """Whether a target only ended because an input took too long that alone
    does not: the machine stood still, which says nothing of the target."""
    kept = glob.glob(os.path.join(folder, name + ".*-*"))
    if not kept or any(".timeout-" not in os.path.basename(path)
                       for path in kept):
        return False
    with open(os.path.join(folder, name + ".again.txt"), "w",
              encoding="utf-8") as log:
        code = subprocess.run(
            [os.path.join(programs, name), "-timeout=25", *kept],
            cwd=ROOT, stdout=log, stderr=log, check=False).returncode
    if code:
        return False
    for path in kept:
        os.unlink(path)
    return True


def fuzz_twice(work, folder, programs, names):
    """As fuzz_all; a target that the machine ended runs a second time."""
    codes = fuzz_all(work, folder, programs, names)
    again = [name for name, code in codes.items()
             if code and was_the_machine(folder, programs, name)]
    if again:
        work.outcome.details.append(
            "%s ran a second time: the input that took over 25 s takes none "
            "alone" % skips.names_text(again))
        codes.update(fuzz_all(work, folder, programs, again))
    return codes


def run_fuzz(work):
    """A million executions of each target of a part."""
    names = fuzz_names(work.part.name)
    folder = os.path.join(FOLDER, work.part.name)
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    programs = work.options.fuzz_programs
    if not programs:
        if shutil.which("clang") is None:
            return work.skip("clang is not installed")
        place = os.path.join(FOLDER, "fuzz")
        programs = os.path.join(place, "tests/fuzz")
        work.outcome.result = "not built"
        if not build(work, place, "fuzz", [], names):
            return work.outcome
    absent = [name for name in names
              if not os.path.exists(os.path.join(programs, name))]
    codes = fuzz_twice(work, folder, programs,
                       [name for name in names if name not in absent])
    bad = absent + sorted(name for name, code in codes.items() if code)
    work.outcome.ok = not bad
    work.outcome.result = "%d targets, %d executions each" % (
        len(names), work.options.fuzz_runs)
    if bad:
        work.outcome.result += "; failed: " + skips.names_text(bad)
    if work.options.fuzz_runs < FUZZ_RUNS:
        work.outcome.reduced = "%d executions of %d" % (
            work.options.fuzz_runs, FUZZ_RUNS)
    return work.outcome


# ---- Programs of their own ----

def run_linking(work):
    """Links by real libraries of three lines, with a report of its own."""
    targets = ("kiln_cli", "linking_cases", "linking_pairs")
    work.outcome.result = "not built"
    if not build(work, release_folder(), "release", [], targets):
        return work.outcome
    code = work.run("tools/linking", "--build", release_folder(), "--report",
                    os.path.join(FOLDER, "linking-matrix.md"))
    if code == SKIP:
        return work.skip(skip_reason(work))
    work.outcome.ok = code == 0
    work.outcome.result = work.last("^[0-9]+ cells") or "not run"
    return work.outcome


def skip_reason(work):
    return re.sub(r"^skip(ped)?: *", "", work.last(r"^skip(ped)?:")) or \
        "it did not say why"


def run_tool(*words):
    """A part that is one command; exit code 77 is a skip with its reason."""
    def run(work):
        code = work.run(*words)
        if code == SKIP:
            return work.skip(skip_reason(work))
        work.outcome.ok = code == 0
        work.outcome.result = "exit code %d" % code
        return work.outcome
    return run


def run_lint(work):
    code = work.run("tools/lint", "--all")
    if code == SKIP:
        return work.skip("no clang-tidy")
    work.outcome.ok = code == 0
    work.outcome.result = "nothing found" if code == 0 else \
        "findings: see the log"
    return work.outcome


PARTS = [
    Part("gcc-release", 15, "gcc, optimised, with the layout rules", run_build),
    Part("gcc-debug", 15, "gcc, not optimised", run_build),
    Part("clang-release", 15, "clang, optimised", run_build),
    Part("gcc-asan", 45, "address, undefined behaviour (gcc)", run_build),
    Part("clang-asan", 45, "address, undefined behaviour (clang)", run_build),
    Part("gcc-tsan", 60, "threads (gcc)", run_build),
    Part("clang-tsan", 60, "threads (clang)", run_build),
    Part("kill", 10, "processes killed while they write", run_kill),
    Part("programs", 20, "generated programs, strict math", run_programs),
    Part("fuzz-device", 50, "the PTX reader, the decoder, the engine",
         run_fuzz),
    Part("fuzz-programs", 30, "texts of programs, graphs, versions", run_fuzz),
    Part("fuzz-readers", 20, "every other target", run_fuzz),
    Part("linking", 20, "links by real libraries of three lines", run_linking),
    Part("lint", 40, "clang-tidy over every file", run_lint),
    Part("bare-debian", 40, "the README's commands on a bare Debian 12",
         run_tool("tools/bare_debian", "bookworm")),
    Part("bare-trixie", 40, "the README's commands on a bare Debian 13",
         run_tool("tools/bare_debian", "trixie")),
]
