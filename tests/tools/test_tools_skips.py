#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Skips and their reasons are read from what ctest and the tests say."""

import os
import subprocess
import tempfile
import unittest

import tools_path
import skips

CMOCKA = """[==========] suite: Running 3 test(s).
[ RUN      ] first
[       OK ] first
[ RUN      ] second
skipped: root may write everywhere
[  SKIPPED ] second
[ RUN      ] third
%s[  SKIPPED ] third
[==========] suite: 3 test(s) run.
[  SKIPPED ] suite: 2 test(s), listed below:
[  SKIPPED ] second
[  SKIPPED ] third

 2 SKIPPED TEST(S)
"""
TAP = """ok 1 - life
ok 2 - green_life # SKIP no multiprocessors to set apart
ok 3 - braces_are_skipped_whole
"""
LISTS = """cmake_minimum_required(VERSION 3.22)
project(planted NONE)
enable_testing()
add_test(NAME runs COMMAND sh -c "echo fine")
add_test(NAME told COMMAND sh -c "echo skip: no nvcc; exit 77")
add_test(NAME untold COMMAND sh -c "echo something; exit 77")
add_test(NAME broken COMMAND sh -c "exit 1")
add_test(NAME matched COMMAND sh -c "echo skip: no ptxas")
add_test(NAME absent COMMAND ${CMAKE_CURRENT_BINARY_DIR}/not-built)
set_tests_properties(told untold PROPERTIES SKIP_RETURN_CODE 77)
set_tests_properties(matched PROPERTIES
  SKIP_REGULAR_EXPRESSION "skip: no ptxas")
"""


class Reasons(unittest.TestCase):
    def test_a_whole_skip_says_why(self):
        for text in ("skip: no nvcc", "skipped: no nvcc", "rule: skip: no nvcc",
                     "1..0 # SKIP no nvcc", "words before\nskip: no nvcc\n"):
            self.assertEqual(skips.skips_of("t", text, True),
                             [skips.Skip("t", "", "no nvcc")])

    def test_a_whole_skip_without_a_reason_is_found(self):
        found = skips.skips_of("t", "strace is not here\n", True)
        self.assertEqual(skips.unexplained(found), ["t"])
        self.assertIn("gave no reason", "\n".join(skips.summary(found)))

    def test_cases_of_cmocka(self):
        found = skips.skips_of("t", CMOCKA % "no files without names\n", False)
        self.assertEqual(found, [
            skips.Skip("t", "second", "root may write everywhere"),
            skips.Skip("t", "third", "no files without names")])
        found = skips.skips_of("t", CMOCKA % "", False)
        self.assertEqual(skips.unexplained(found), ["t: third"])

    def test_a_program_all_of_whose_cases_are_skipped(self):
        found = skips.skips_of("t", CMOCKA % "no cuda.h\n", True)
        self.assertEqual(found,
                         [skips.Skip("t", "", "root may write everywhere")])

    def test_cases_of_tap(self):
        self.assertEqual(skips.skips_of("t", TAP, False), [skips.Skip(
            "t", "green_life", "no multiprocessors to set apart")])
        found = skips.skips_of("t", "ok 1 - life # SKIP\n", False)
        self.assertEqual(skips.unexplained(found), ["t: life"])

    def test_words_that_are_no_skips(self):
        text = "[ RUN      ] a\n[       OK ] a\nskipping white space\n"
        self.assertEqual(skips.skips_of("t", text, False), [])

    def test_a_part_of_a_test_that_ran(self):
        found = skips.skips_of("t", "skip: 58 files, no NVRTC 12.9\n", False)
        self.assertEqual([one.case for one in found], ["(in part)"])
        self.assertEqual(skips.unexplained(found), [])

    def test_folders_of_this_machine_are_left_out(self):
        text = "skip: nothing below %s/build/wheels" % tools_path.ROOT
        self.assertEqual(skips.skips_of("t", text, True)[0].reason,
                         "nothing below build/wheels")


class Summaries(unittest.TestCase):
    def test_one_line_for_each_reason(self):
        found = [skips.Skip("b", "", "no GPU"), skips.Skip("a", "", "no GPU"),
                 skips.Skip("a", "", "no GPU"),  # of another build
                 skips.Skip("c", "one", "no strace")]
        self.assertEqual(skips.summary(found), [
            "Skipped: 2 tests and 1 case of others", "   2  no GPU: a, b",
            "   1  no strace: c: one"])
        self.assertEqual(skips.summary([]), ["Skipped: nothing"])

    def test_many_names_are_cut(self):
        found = [skips.Skip("t%d" % i, "", "no GPU") for i in range(9)]
        self.assertEqual(skips.summary(found)[1],
                         "   9  no GPU: t0, t1, t2, t3, t4 and 4 more")


class WithCtest(unittest.TestCase):
    def test_what_ctest_writes(self):
        with tempfile.TemporaryDirectory() as folder:
            with open(folder + "/CMakeLists.txt", "w",
                      encoding="utf-8") as file:
                file.write(LISTS)
            results = os.path.join(folder, "results.xml")
            for words in (["cmake", "-S", folder, "-B", folder + "/b"],
                          ["ctest", "--test-dir", folder + "/b",
                           "--output-junit", results]):
                subprocess.run(words, stdout=subprocess.DEVNULL, check=False,
                               stderr=subprocess.DEVNULL)
            found = skips.read_results(results)
        self.assertEqual(found.failed, ["broken", "absent"])
        self.assertEqual(found.ran, 3)
        self.assertEqual(found.skips, [
            skips.Skip("told", "", "no nvcc"), skips.Skip("untold", "", ""),
            skips.Skip("matched", "", "no ptxas")])


if __name__ == "__main__":
    unittest.main()
