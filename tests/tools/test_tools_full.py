#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""tools/full keeps what its parts say, and resumes what is not green."""

import argparse
import contextlib
import importlib.machinery
import importlib.util
import io
import os
import tempfile
import unittest
from unittest import mock

import tools_path
import full_parts
import full_report


def load():
    """tools/full as a module: its name has no ending."""
    path = os.path.join(tools_path.ROOT, "tools/full")
    loader = importlib.machinery.SourceFileLoader("full", path)
    module = importlib.util.module_from_spec(
        importlib.util.spec_from_loader("full", loader))
    loader.exec_module(module)
    return module


full = load()


class Runs(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.ran = []
        self.codes = {"first": 0, "second": 1, "third": 77}
        self.parts = [full_parts.Part(name, 1, "a plant", self.run_planted)
                      for name in self.codes]
        for module, name, value in (
                (full_parts, "FOLDER", folder.name),
                (full, "FOLDER", folder.name),
                (full_parts, "PARTS", self.parts),
                (full.measure, "yardstick", lambda: 1.0),
                (full_report, "tree_hash", lambda root="": "now")):
            patch = mock.patch.object(module, name, value)
            patch.start()
            self.addCleanup(patch.stop)

    def run_planted(self, work):
        self.ran.append(work.part.name)
        code = self.codes[work.part.name]
        return full_parts.run_tool(
            "sh", "-c", "echo skip: not root; exit %d" % code)(work)

    def run_all(self, resume=False):
        self.ran.clear()
        with contextlib.redirect_stdout(io.StringIO()) as said:
            full.run_parts(self.parts, argparse.Namespace(
                jobs=1, resume=resume))
            green = full.summary(self.parts)
        return green, said.getvalue()

    def test_states_say_what_came_of_each(self):
        green, said = self.run_all()
        self.assertFalse(green)
        self.assertEqual(self.ran, ["first", "second", "third"])
        states = {one["part"]: one
                  for one in full_report.read_states(self.folder)}
        self.assertEqual([states[name]["verdict"] for name in self.codes],
                         ["green", "not green", "skipped"])
        self.assertIn("skipped: not root", said)

    def test_what_is_green_is_not_run_again(self):
        self.run_all()
        self.codes.update(second=0, third=0)
        green, said = self.run_all(resume=True)
        self.assertEqual(self.ran, ["second", "third"])
        self.assertTrue(green)
        self.assertIn("first: green already", said)

    def test_what_is_green_of_another_tree_is_run_again(self):
        self.run_all()
        with mock.patch.object(full_report, "tree_hash", lambda: "later"):
            self.run_all(resume=True)
        self.assertEqual(self.ran, ["first", "second", "third"])

    def test_a_part_that_is_stopped_leaves_a_state(self):
        def stopped(work):
            raise KeyboardInterrupt
        self.parts[0] = full_parts.Part("first", 1, "a plant", stopped)
        green, said = self.run_all()
        self.assertEqual(self.ran, [])
        self.assertFalse(green)
        self.assertIn("stopped", said)

    def test_a_report_of_two_folders(self):
        self.codes.update(second=0, third=0)
        self.run_all()
        other = os.path.join(self.folder, "other")
        os.makedirs(other)
        os.rename(self.folder + "/third.json", other + "/third.json")
        report = os.path.join(self.folder, "report.md")
        options = argparse.Namespace(report=report, allow_other_commits=False)
        with contextlib.redirect_stdout(io.StringIO()):
            self.assertFalse(full.merge(options, [self.folder]))
            self.assertTrue(full.merge(options, [self.folder, other]))
        with open(report, encoding="utf-8") as file:
            self.assertIn("verdict: **green**", file.read())


if __name__ == "__main__":
    unittest.main()
