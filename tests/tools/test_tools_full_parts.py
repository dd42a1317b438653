#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The parts of tools/full: within an hour each, and they cover everything."""

import argparse
import contextlib
import io
import os
import tempfile
import time
import unittest
from unittest import mock

import tools_path
import full_parts


def options_of(**more):
    return argparse.Namespace(**{
        "jobs": 2, "prepared": True, "share": 1, "live_programs": None,
        "fuzz_programs": None, "fuzz_runs": full_parts.FUZZ_RUNS, **more})


class Parts(unittest.TestCase):
    def test_each_takes_an_hour_at_most(self):
        for part in full_parts.PARTS:
            self.assertLessEqual(part.minutes, full_parts.MINUTES_MOST)
        names = [part.name for part in full_parts.PARTS]
        self.assertEqual(len(set(names)), len(names))

    def test_clangs_sanitizers_take_the_whole_suite(self):
        build = full_parts.BUILDS["clang-asan"]
        self.assertEqual(build.selection, full_parts.NO_LAYOUT)
        self.assertIn("-DCMAKE_C_COMPILER=clang", build.options)
        self.assertEqual(full_parts.EVERYTHING["KILN_FAULT_ALL"], "1")

    def test_every_fuzz_target_is_in_one_part(self):
        names = [name for part in full_parts.FUZZ
                 for name in full_parts.fuzz_names(part)]
        folder = os.path.join(tools_path.ROOT, "tests/fuzz")
        targets = [name[:-2] for name in os.listdir(folder)
                   if name.startswith("fuzz_") and name.endswith(".c")]
        self.assertEqual(sorted(names), sorted(targets))
        self.assertLessEqual(set(full_parts.FUZZ_PROCESSES), set(targets))

    def test_processes_of_a_target_share_its_executions(self):
        names = [*full_parts.FUZZ_PROCESSES, "fuzz_elf"]
        for runs in (1, 7, 100, full_parts.FUZZ_RUNS):
            shares = full_parts.fuzz_shares(names, runs)
            self.assertEqual(len({share[:2] for share in shares}), len(shares))
            for name in names:
                mine = [share[2] for share in shares if share[0] == name]
                self.assertEqual(sum(mine), runs)
                self.assertGreater(min(mine), 0)


class Working(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        place = mock.patch.object(full_parts, "FOLDER", folder.name)
        place.start()
        self.addCleanup(place.stop)
        screen = contextlib.redirect_stdout(io.StringIO())
        screen.__enter__()
        self.addCleanup(screen.__exit__, None, None, None)

    def work(self, run, minutes=10, **options):
        part = full_parts.Part("planted", minutes, "a plant", run)
        return full_parts.Work(part, options_of(**options))

    def tool(self, script):
        work = self.work(None)
        return full_parts.run_tool("sh", "-c", script)(work)

    def test_a_tool_that_skips_says_why(self):
        self.assertEqual(self.tool("echo skip: not root; exit 77").skipped,
                         "not root")
        self.assertEqual(self.tool("exit 77").skipped, "it did not say why")

    def test_a_tool_that_works_or_fails(self):
        self.assertTrue(self.tool("exit 0").ok)
        self.assertFalse(self.tool("exit 1").ok)

    def test_a_part_that_is_late_is_ended(self):
        work = self.work(None)
        work.end = time.monotonic() + 0.2
        with self.assertRaises(full_parts.Late):
            work.run("sleep", "60")

    def fuzz(self, script):
        programs = os.path.join(self.folder, "programs")
        os.makedirs(programs)
        for name in full_parts.FUZZ["fuzz-device"]:
            path = os.path.join(programs, name)
            with open(path, "w", encoding="utf-8") as file:
                file.write("#!/bin/sh\n" + script)
            os.chmod(path, 0o755)
        part = full_parts.Part("fuzz-device", 10, "a plant", None)
        return full_parts.run_fuzz(full_parts.Work(part, options_of(
            fuzz_programs=programs)))

    def test_fuzzing_by_programs_of_elsewhere(self):
        self.assertTrue(self.fuzz("exit 0\n").ok)

    def test_a_finding_is_named(self):
        outcome = self.fuzz("case $0 in *ptx) exit 77;; esac\n")
        self.assertFalse(outcome.ok)
        self.assertIn("failed: fuzz_ptx", outcome.result)

    # Ends its first run for an input that took too long; ALONE is the exit code
    # for that input alone.
    LATE_ONCE = """
        for word; do case $word in
          -artifact_prefix=*) prefix=${word#*=};;
          *.timeout-1) exit ALONE;;
        esac; done
        test -e "$prefix"seen && exit 0
        touch "$prefix"seen "$prefix"KIND-1
        exit 70
    """

    def late_once(self, kind, alone):
        return self.fuzz(self.LATE_ONCE.replace("KIND", kind).replace(
            "ALONE", str(alone)))

    def test_a_machine_that_stood_still_is_no_finding(self):
        outcome = self.late_once("timeout", 0)
        self.assertTrue(outcome.ok, outcome.result)
        self.assertIn("ran a second time", outcome.details[-1])

    def test_an_input_that_is_slow_alone_is_one(self):
        self.assertFalse(self.late_once("timeout", 70).ok)

    def test_nor_is_a_crash_tried_again(self):
        self.assertFalse(self.late_once("crash", 0).ok)


if __name__ == "__main__":
    unittest.main()
