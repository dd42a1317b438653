#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Parts of tools/full: what is green, what resumes, what merges into one."""

import os
import shutil
import subprocess
import tempfile
import unittest

import tools_path  # noqa: F401
import full_parts
import full_report

NOW, BEFORE = "tree-now", "tree-before"
NAMES = ["first", "second", "third"]
PARTS = [full_parts.Part(name, 10, "what it is", None) for name in NAMES]
SOURCES = ["t", "", "KILN_SOURCES has no debs/trixie: CUDA packages"]


def state(name, tree=NOW, **more):
    return {"part": name, "commit": "c-" + tree, "tree": tree,
            "verdict": "green", "result": "9 tests, 0 failed", "reduced": "",
            "seconds": 60.0, "machine": "Linux, 4 cores", "tools": ["gcc 12"],
            "finished": "2026-01-01T00:00:00", "skips": [], **more}


class Folders(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = folder.name

    def folder(self, name, *states):
        path = os.path.join(self.root, name)
        for one in states:
            full_report.write_state(path, one)
        return path

    def merged(self, *folders, allow=False):
        states, tree = full_report.merge(folders, NAMES, NOW)
        return ([*full_report.problems(states, tree, allow)],
                "\n".join(full_report.report_lines(PARTS, states, tree,
                                                   "2026-01-01", allow)))


class Merging(Folders):
    def test_parts_of_two_machines(self):
        here = self.folder("here", state("first"), state("third"))
        there = self.folder("there", state("second", machine="Linux, 32 cores"))
        bad, text = self.merged(here, there)
        self.assertEqual(bad, [])
        self.assertIn("verdict: **green**", text)
        self.assertIn("32 cores", text)
        self.assertLess(len(text.split("\n")), 60)

    def test_a_part_that_was_not_run(self):
        bad, text = self.merged(self.folder("a", state("first"),
                                            state("third")))
        self.assertEqual(bad, ["second was not run"])
        self.assertIn("**not run**", text)
        self.assertIn("verdict: **not green**", text)

    def test_a_part_of_another_commit_is_noticed(self):
        folder = self.folder("a", state("first"), state("third"),
                             state("second", tree=BEFORE))
        bad, text = self.merged(folder)
        self.assertEqual(bad, ["second is of another commit"])
        self.assertIn("of another commit, c-tree-before: second", text)
        self.assertIn("verdict: **not green**", text)
        bad, text = self.merged(folder, allow=True)
        self.assertEqual(bad, [])
        self.assertIn("of another commit, c-tree-before: second", text)

    def test_all_of_one_other_commit(self):
        folder = self.folder("a", *[state(name, BEFORE) for name in NAMES])
        bad, text = self.merged(folder)
        self.assertEqual(bad, [])
        self.assertIn("commit c-tree-before", text)

    def test_a_failure_is_not_hidden_by_another_machine(self):
        green = self.folder("a", *map(state, NAMES))
        red = self.folder("b", state("second", verdict="not green"))
        self.assertEqual(self.merged(green, red)[0], ["second: not green"])
        older = self.folder("c", state("third", BEFORE, verdict="not green"))
        self.assertEqual(self.merged(green, older)[0], [])

    def test_a_skip_gives_way_to_a_run(self):
        here = self.folder("a", state("first"), state("second"),
                           state("third", verdict="skipped", result="no root"))
        self.assertEqual(self.merged(here)[0],
                         ["third: skipped: no root"])
        there = self.folder("b", state("third"))
        self.assertEqual(self.merged(here, there)[0], [])

    def test_files_that_are_no_states(self):
        folder = self.folder("a", *map(state, NAMES))
        for name, text in (("x.json", "{"), ("y.json", "[1]"),
                           ("z.json", '{"part": 1}')):
            with open(os.path.join(folder, name), "w",
                      encoding="utf-8") as file:
                file.write(text)
        # As one that was there when the folder was listed.
        os.symlink("gone", os.path.join(folder, "w.json"))
        self.assertEqual(self.merged(folder)[0], [])

    def test_skips_are_summed_up_by_reason(self):
        skip = ["contract_cuda", "", "no driver"]
        text = self.merged(self.folder(
            "a", state("first", skips=[skip, ["t", "case", "no strace"]]),
            state("second", skips=[skip]), state("third")))[1]
        self.assertIn("1 test and 1 case of others were skipped.", text)
        self.assertIn("| 1 | no driver | contract_cuda |", text)


class Verdicts(Folders):
    def test_a_source_that_is_missing_is_not_green(self):
        bad, text = self.merged(self.folder(
            "a", state("first", skips=[SOURCES]), state("second"),
            state("third")))
        self.assertEqual(bad, ["first: 1 tests lack KILN_SOURCES"])
        self.assertIn("verdict: **not green**", text)

    def test_a_skip_without_a_reason_is_not_green(self):
        one = state("first", skips=[["t", "", ""]])
        self.assertEqual([*full_report.why_not_green(one)],
                         ["skips without a reason: t"])

    def test_a_reduced_part_is_not_green(self):
        one = state("first", reduced="one part in 10")
        self.assertEqual([*full_report.why_not_green(one)],
                         ["reduced: one part in 10"])

    def test_what_resumes(self):
        self.assertTrue(full_report.is_done(state("first"), NOW))
        self.assertFalse(full_report.is_done(None, NOW))
        self.assertFalse(full_report.is_done(state("first", BEFORE), NOW))
        for more in ({"verdict": "not green"}, {"verdict": "skipped"},
                     {"skips": [SOURCES]}, {"leftovers": ["sleep"]}):
            self.assertFalse(full_report.is_done(state("first", **more), NOW))


class Trees(Folders):
    def write(self, path, text):
        path = os.path.join(self.root, path)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)

    def test_the_hash_is_of_what_is_tested(self):
        self.write("src/a.c", "int a;\n")
        first = full_report.tree_hash(self.root)
        for path in ("build/x", "build-old/x", "docs/evidence/full.md",
                     "tools/__pycache__/x.pyc", "out/y", "tests/layout/LINTED"):
            self.write(path, "x")
        self.assertEqual(full_report.tree_hash(self.root), first)
        self.write("src/build.c", "int b;\n")
        second = full_report.tree_hash(self.root)
        self.assertNotEqual(second, first)
        self.write("src/a.c", "int b;\n")
        self.assertNotEqual(full_report.tree_hash(self.root), second)

    def test_what_changed_between_commits(self):
        if shutil.which("git") is None:
            print("\nskip: git is not installed")
            return
        def git(*words):
            done = subprocess.run(
                ["git", "-c", "user.name=a", "-c", "user.email=a@b", *words],
                cwd=self.root, stdout=subprocess.PIPE, text=True, check=True)
            return done.stdout.strip()
        git("init", "-q")
        commits = []
        for name in ("one.c", "two.c"):
            self.write(name, "int x;\n")
            git("add", "-A")
            git("commit", "-qm", "x")
            commits.append(git("rev-parse", "HEAD"))
        self.assertEqual(full_report.changed_files(*commits, root=self.root),
                         "two.c")
        self.assertEqual(full_report.commit(self.root), commits[1])
        self.write("three.c", "")
        self.assertEqual(full_report.commit(self.root),
                         commits[1] + " with changes")
        self.write("build/commit.txt", "abc (travelled)\n")
        self.assertEqual(full_report.commit(self.root), "abc (travelled)")


if __name__ == "__main__":
    unittest.main()
