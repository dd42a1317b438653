#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A run of CI is green only within its shares and with reasons for skips."""

import contextlib
import io
import os
import re
import tempfile
import time
import unittest
from unittest import mock

import tools_path
import check_parts
import ci_table
import measure
import skips

TABLE = """# parts
cheap  1.0  cpu    first
dear   1.0  cpu    second
fetch  1.0  net    third
links  2.0  later  more
"""


def outcome_of(part, cpu=6.0, ok=True, idle=0):
    outcome = check_parts.Outcome(part)
    outcome.ok = ok
    outcome.cost = measure.Cost(wall=cpu, cpu=cpu, idle=idle, speed=1)
    return outcome


class Judgement(unittest.TestCase):
    def setUp(self):
        self.parts = ci_table.read_parts(TABLE)
        self.wanted = check_parts.chosen_parts(self.parts, [])

    def judge(self, *outcomes):
        text = "\n".join(check_parts.summary_lines(self.parts, outcomes))
        return check_parts.is_green(self.parts, outcomes, self.wanted), text

    def test_all_within_their_shares(self):
        green, text = self.judge(*map(outcome_of, self.wanted))
        self.assertTrue(green)
        self.assertIn("kept for later    2.0  links 2", text)

    def test_a_share_that_is_exceeded_fails(self):
        outcomes = [outcome_of(part) for part in self.wanted]
        outcomes[1] = outcome_of(self.wanted[1], cpu=121.0)
        green, text = self.judge(*outcomes)
        self.assertFalse(green)
        self.assertIn("above its share", text)
        self.assertIn("Fix: make dear cheaper, or move what exceeds its share "
                      "to tools/full", text)

    def test_a_skip_without_a_reason_fails(self):
        outcomes = [outcome_of(part) for part in self.wanted]
        outcomes[0].skips = [skips.Skip("t", "", "")]
        green, text = self.judge(*outcomes)
        self.assertFalse(green)
        self.assertIn("skips without a reason", text)

    def test_a_part_that_fails_or_is_not_run(self):
        outcomes = [outcome_of(part) for part in self.wanted]
        self.assertFalse(self.judge(*outcomes[:2])[0])
        outcomes[0] = outcome_of(self.wanted[0], ok=False)
        self.assertFalse(self.judge(*outcomes)[0])

    def test_what_is_left_running_fails(self):
        outcomes = [outcome_of(part) for part in self.wanted]
        outcomes[2].leftovers = ["sleep"]
        green, text = self.judge(*outcomes)
        self.assertFalse(green)
        self.assertIn("left running: sleep", text)

    def test_shares_that_do_not_fit_fail(self):
        self.parts = ci_table.read_parts(TABLE.replace("1.0", "7.0"))
        self.wanted = check_parts.chosen_parts(self.parts, [])
        green, text = self.judge(*map(outcome_of, self.wanted))
        self.assertFalse(green)
        self.assertIn("over 15", text)


class Running(unittest.TestCase):
    def setUp(self):
        self.parts = ci_table.read_parts(TABLE)
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        for module, name, value in (
                (check_parts, "LOGS", folder.name),
                (measure, "yardstick", lambda: 1.0)):
            patch = mock.patch.object(module, name, value)
            patch.start()
            self.addCleanup(patch.stop)

    def run_with(self, **functions):
        with contextlib.redirect_stdout(io.StringIO()):
            return check_parts.run_all(
                self.parts[:2],
                find=lambda name: functions.get(name, lambda run: True))

    def test_each_part_runs_to_its_end(self):
        outcomes = self.run_with(cheap=lambda run: run.command("false") == 0)
        self.assertEqual([one.ok for one in outcomes], [False, True])

    def test_a_stopped_part_still_has_an_outcome(self):
        def stopped(run):
            raise KeyboardInterrupt
        outcomes = self.run_with(cheap=stopped)
        self.assertEqual(len(outcomes), 1)
        text = "\n".join(check_parts.summary_lines(self.parts, outcomes))
        self.assertIn("stopped", text)
        self.assertFalse(check_parts.is_green(self.parts, outcomes,
                                              self.parts[:2]))

    def test_what_needs_a_part_that_failed_is_not_run(self):
        ran = []
        with mock.patch.object(check_parts, "NEEDS", {"dear": "cheap"}):
            outcomes = self.run_with(cheap=lambda run: False, dear=ran.append)
            self.assertEqual((ran, [one.ok for one in outcomes]),
                             ([], [False, False]))
            self.assertIn("it needs the part cheap", outcomes[1].notes[0])
            text = "\n".join(check_parts.summary_lines(self.parts, outcomes))
            self.assertIn("failed; not run: it needs the part cheap", text)
            self.run_with(dear=ran.append)
            self.assertEqual(len(ran), 1)

    def test_a_build_that_fails_names_its_first_error(self):
        def builds(text):
            def part(run):
                run.command("echo", "old.c:1:1: error: of what ran before")
                return run.made("sh", "-c", "cat <<'E'; exit 1\n%s\nE" % text)
            return self.run_with(cheap=part)[0].notes
        self.assertEqual(
            builds("[1/2] one\na.c:3:4: error: bad word\nb.c:1: error: more"),
            ["first error: a.c:3:4: error: bad word"])
        self.assertEqual(
            builds("CMake Error at a.txt:1 (find):\n  no such package\n\nx"),
            ["first error: CMake Error at a.txt:1 (find): no such package"])
        self.assertEqual(builds("killed"), [])

    def test_a_part_is_timed(self):
        def burns(run):
            end = time.process_time() + 0.3
            while time.process_time() < end:
                pass
            return True
        self.assertGreater(self.run_with(cheap=burns)[0].minutes(), 0.05 / 60)


class Seed(unittest.TestCase):
    def test_without_git_there_is_a_seed(self):
        said = io.StringIO()
        with tempfile.TemporaryDirectory() as root, \
                mock.patch.object(check_parts, "ROOT", root), \
                mock.patch.dict(os.environ, PATH=root), \
                contextlib.redirect_stdout(said):
            os.environ.pop("KILN_TEST_SEED", None)
            self.assertEqual(check_parts.test_seed(), "0")
            os.mkdir(os.path.join(root, ".git"))
            self.assertEqual(check_parts.test_seed(), "0")
        self.assertIn("no git here", said.getvalue())


class Turns(unittest.TestCase):
    NAMES = ["t%d" % i for i in range(10, 30)]

    def waiting(self, seed, preset, known):
        outcome = check_parts.Outcome(None)
        run = mock.Mock(outcome=outcome)
        with mock.patch.dict(os.environ, KILN_TEST_SEED=str(seed)), \
                mock.patch.object(check_parts, "turn_names",
                                  return_value=[(name, name == "t10") for
                                                name in self.NAMES]), \
                mock.patch.object(check_parts.test_targets, "read_tests",
                                  return_value=known):
            choice = check_parts.with_turns(run, preset, (["-LE", "x"], "^$"))
        return choice, outcome.notes

    def test_each_test_has_its_turn(self):
        ran = []
        for seed in range(check_parts.TURNS["clang"]):
            choice, _ = self.waiting(seed, "clang", self.NAMES)
            self.assertEqual(choice[:3], ["-LE", "x", "-E"])
            ran += [name for name in self.NAMES
                    if not re.search(choice[3], name)]
        self.assertEqual(sorted(ran), self.NAMES[1:])
        for seed in range(check_parts.TURNS["asan"]):
            choice, _ = self.waiting(seed, "asan", self.NAMES)
            self.assertTrue(re.search(choice[3], "t10"))
        self.assertNotEqual(self.waiting(0, "asan", self.NAMES)[0],
                            self.waiting(0, "tsan", self.NAMES)[0])

    def test_a_name_that_is_no_test_is_found(self):
        choice, notes = self.waiting(0, "clang", self.NAMES[1:])
        self.assertIsNone(choice)
        self.assertIn("names what is no test: t10", notes[0])


class Targets(unittest.TestCase):
    def test_what_a_test_names_is_built(self):
        known = "a/tool: phony\na/kit/all: phony\na/loader/one: LINK\n" \
            "a/loader/two: LINK\na/other: LINK\n"
        with mock.patch.object(check_parts.test_targets.subprocess, "run") as \
                run:
            run.return_value.stdout = known
            named = lambda *words: sorted(check_parts.test_targets.targets_of(
                "/b", [["python3", *words]]))
            self.assertEqual(named("/b/a/tool"), ["a/tool"])
            self.assertEqual(named("/b/a/kit"), ["a/kit/all"])
            self.assertEqual(named("/b/a/loader"),
                             ["a/loader/one", "a/loader/two"])
            self.assertEqual(named("/b/a/gone", "/c/a/tool"), [])


class Tables(unittest.TestCase):
    def test_a_part_brings_what_it_needs(self):
        with open(os.path.join(tools_path.ROOT, "tools/ci_parts.txt"),
                  encoding="utf-8") as file:
            parts = ci_table.read_parts(file.read())
        self.assertEqual([one.name for one in check_parts.chosen_parts(
            parts, ["tests"])], ["build", "tests"])
        for part in parts:
            self.assertEqual(check_parts.function_of(part.name) is not None,
                             part.kind != "later", part.name)
        with self.assertRaises(SystemExit):
            check_parts.chosen_parts(parts, ["aarch64"])

    def test_lines_that_are_wrong(self):
        for text in ("a 1 cpu", "a much cpu x", "a 1 gpu x",
                     "a 1 cpu x\na 1 cpu x"):
            with self.assertRaises(ValueError):
                ci_table.read_parts(text)


if __name__ == "__main__":
    unittest.main()
