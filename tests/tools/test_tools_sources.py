#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A test that needs what CI cannot fetch skips, and says what is missing."""

import os
import subprocess
import sys
import tempfile
import unittest

import tools_path
import kiln_sources

TOOL = os.path.join(tools_path.ROOT, "tests/support/kiln_sources.py")
NAME = "debs/trixie"


def ask(folder, *words):
    environment = {**os.environ, "KILN_SOURCES": folder}
    done = subprocess.run([sys.executable, "-B", TOOL, *words], text=True,
                          stdout=subprocess.PIPE, env=environment, check=False)
    return done.returncode, done.stdout.strip()


class Sources(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def test_without_it_a_skip_says_what_it_is(self):
        for folder in (self.folder, "", "/nowhere"):
            code, text = ask(folder, NAME, "--", "echo", "{%s}" % NAME)
            self.assertEqual(code, 77)
            self.assertTrue(text.startswith(
                "skip: KILN_SOURCES has no debs/trixie: CUDA packages"), text)

    def test_with_it_the_command_is_told_where(self):
        path = os.path.join(self.folder, NAME)
        os.makedirs(path)
        self.assertEqual(ask(self.folder, NAME, "--", "echo",
                             "--root={%s}" % NAME), (0, "--root=" + path))

    def test_the_exit_code_is_the_commands(self):
        os.makedirs(os.path.join(self.folder, NAME))
        self.assertEqual(ask(self.folder, NAME, "--", "sh", "-c", "exit 5")[0],
                         5)

    def test_what_is_used_is_described(self):
        names = kiln_sources.described()
        for folder, _, files in os.walk(os.path.join(tools_path.ROOT,
                                                     "tests")):
            for file in files:
                if file != "CMakeLists.txt":
                    continue
                with open(os.path.join(folder, file),
                          encoding="utf-8") as lists:
                    text = lists.read()
                for words in text.split("kiln_source_test(")[1:]:
                    for name in words.partition("SOURCES")[2].partition(
                            "COMMAND")[0].replace("${suite}", "trixie").split():
                        self.assertIn(name, names)


if __name__ == "__main__":
    unittest.main()
