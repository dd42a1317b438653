#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The comparison itself, over made-up answers: it must see what differs."""

import contextlib
import io
import json
import os
import stat
import struct
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path[:0] = [HERE, os.path.join(ROOT, "tools")]
sys.dont_write_bytecode = True

import check_catalog  # noqa: E402
import gen_catalog  # noqa: E402
import sidebyside  # noqa: E402


def theirs(kind, name, path=None, via=None, header=""):
    return {"kind": kind, "name": name, "path": path, "via": via,
            "error": None, "header": header}


def ours(kind, name, path=None, scope=None):
    return {"kind": kind, "name": name, "found": path is not None,
            "path": path, "scope": scope}


class World(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def write(self, path, text=""):
        path = os.path.join(self.folder, path)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        return path

    def program(self, path, answer):
        """A program that prints an answer, whatever it is asked."""
        path = self.write(path, "#!/bin/sh\ncat <<'END'\n%s\nEND\n" %
                          json.dumps(answer))
        os.chmod(path, stat.S_IRWXU)
        return path


class Compare(World):
    def whats(self, they, we):
        return [one.what for one in sidebyside.compare(
            {"name": "e"}, {"items": [they]}, {"items": [we] if we else []})]

    def test_same_answers_do_not_differ(self):
        path = self.write("lib/libx.so")
        self.assertEqual(self.whats(theirs("lib", "x", path, "site-packages"),
                                    ours("lib", "x", path, "wheel")), [])
        self.assertEqual(self.whats(theirs("lib", "x"), ours("lib", "x")), [])

    def test_found_by_one_alone(self):
        path = self.write("lib/libx.so")
        self.assertEqual(self.whats(theirs("lib", "x"),
                                    ours("lib", "x", path, "system")),
                         ["kiln-only"])
        self.assertEqual(self.whats(theirs("lib", "x", path, "conda"),
                                    ours("lib", "x")), ["pathfinder-only"])

    def test_another_file_differs_and_a_link_does_not(self):
        path, other = self.write("a/libx.so"), self.write("b/libx.so")
        link = os.path.join(self.folder, "c")
        os.symlink("a", link)
        they = theirs("lib", "x", path, "conda")
        self.assertEqual(self.whats(they, ours("lib", "x", other, "conda")),
                         ["path"])
        self.assertEqual(self.whats(they, ours(
            "lib", "x", os.path.join(link, "libx.so"), "conda")), [])

    def test_headers_are_compared_by_their_file(self):
        self.write("a/x.h")
        os.makedirs(os.path.join(self.folder, "b"))
        os.symlink("../a/x.h", os.path.join(self.folder, "b", "x.h"))
        folder = os.path.join(self.folder, "a")
        linked = os.path.join(self.folder, "b")
        self.assertEqual(self.whats(
            theirs("header", "x", folder, "conda", "x.h"),
            ours("header", "x", linked, "conda")), [])
        self.write("d/x.h")
        self.assertEqual(self.whats(
            theirs("header", "x", folder, "conda", "x.h"),
            ours("header", "x", os.path.join(self.folder, "d"), "conda")),
            ["path"])

    def test_another_scope_differs(self):
        path = self.write("lib/libx.so")
        self.assertEqual(self.whats(
            theirs("lib", "x", path, "site-packages"),
            ours("lib", "x", path, "loader")), ["scope"])

    def test_a_name_that_kiln_lacks_differs(self):
        self.assertEqual(self.whats(theirs("lib", "x"), None), ["unknown"])


class Whole(World):
    """The program from its arguments to its exit code."""

    def run_it(self, they, we, reasons):
        self.program("venv/bin/python", {"version": "0", "items": they})
        kiln = self.program("kiln", {"items": we})
        self.write("environments.json", json.dumps({
            "all": False, "environments": [{
                "name": "e", "what": "w", "variables": {},
                "venv": os.path.join(self.folder, "venv"), "wheels": []}]}))
        self.write("differences.txt", reasons)
        before, sidebyside.HERE = sidebyside.HERE, self.folder
        argv, sys.argv = sys.argv, ["sidebyside.py", "--kiln", kiln,
                                    "--environments", self.folder]
        out = io.StringIO()
        try:
            with contextlib.redirect_stdout(out):
                return sidebyside.main(), out.getvalue()
        finally:
            sidebyside.HERE, sys.argv = before, argv

    def test_equal_answers_pass(self):
        code, _ = self.run_it([theirs("lib", "x")], [ours("lib", "x")], "")
        self.assertEqual(code, 0)

    def test_a_difference_fails_until_it_is_explained(self):
        answers = [theirs("lib", "x")], [ours("lib", "x", "/x", "system")]
        code, out = self.run_it(*answers, "")
        self.assertEqual(code, 1)
        self.assertIn("unexplained: kiln-only: lib x in e", out)
        code, _ = self.run_it(
            *answers, "kiln-only | lib | x | * | * | system | - | because\n")
        self.assertEqual(code, 0)

    def test_an_explanation_of_something_else_does_not_count(self):
        code, _ = self.run_it(
            [theirs("lib", "x")], [ours("lib", "x", "/x", "system")],
            "kiln-only | lib | x | * | * | conda | maybe | because\n")
        self.assertEqual(code, 1)

    def test_an_idle_explanation_fails(self):
        line = "path | lib | x | * | * | * | %s | because\n"
        answers = [theirs("lib", "x")], [ours("lib", "x")]
        code, out = self.run_it(*answers, line % "-")
        self.assertEqual(code, 1)
        self.assertIn("differences.txt:1 explains nothing", out)
        self.assertEqual(self.run_it(*answers, line % "maybe")[0], 0)
        self.assertEqual(self.run_it(*answers, line % "small")[0], 1)
        self.assertEqual(self.run_it(*answers, line % "all")[0], 0)


class Catalog(World):
    """tools/check_catalog.py sees what a catalog lacks."""

    ROWS = """
lib x ctk
  summary: a library
  files: libx.so.1
  wheels: 13=nvidia-x
  wheel_dirs: 13=nvidia/cu13/lib
  %s
lib y ctk
  summary: another
  files: liby.so.1

flaw f nvidia-f ==1
  file: libx.so.1
"""

    @staticmethod
    def elf(soname, needed, runpath="$ORIGIN"):
        """The least that is an ELF file with a dynamic section."""
        strings, places = b"\0", {}
        for text in [soname, runpath] + needed:
            places[text] = len(strings)
            strings += text.encode() + b"\0"
        pairs = [(14, places[soname])] + [(1, places[one]) for one in needed]
        if runpath:
            pairs.append((29, places[runpath]))
        at = 64 + 2 * 56
        size = 16 * (len(pairs) + 2)
        pairs += [(5, at + size), (0, 0)]
        head = b"\x7fELF\x02\x01\x01".ljust(16, b"\0") + struct.pack(
            "<HHIQQQIHHHHHH", 3, 62, 1, 0, 64, 0, 0, 64, 56, 2, 0, 0, 0)
        end = at + size + len(strings)
        head += struct.pack("<IIQQQQQQ", 1, 4, 0, 0, 0, end, end, 4096)
        head += struct.pack("<IIQQQQQQ", 2, 4, at, at, at, size, size, 8)
        return head + b"".join(struct.pack("<qQ", *pair)
                               for pair in pairs) + strings

    def check(self, files, extra="tags: a", ignored=(), name="nvidia-x"):
        path = self.write("catalog.txt", self.ROWS % extra)
        check = check_catalog.Check(*gen_catalog.read(path), ignored)
        check.place(check_catalog.Place(name, "1", list(files), files.get))
        check.compare_needs()
        return [line.split()[0] for line in check.found]

    def test_a_wheel_as_its_row_says(self):
        self.assertEqual(self.check({
            "nvidia/cu13/lib/libx.so.1": self.elf("libx.so.1", ["libc.so.6"])
        }), [])

    def test_what_no_row_names(self):
        files = {"nvidia/cu13/lib/libx.so.1": self.elf("libx.so.1", []),
                 "nvidia/cu13/lib/libz.so.1": b"",
                 "nvidia/cu13/bin/tool": b"",
                 "nvidia/elsewhere/libx.so.1": b""}
        self.assertEqual(self.check(files), ["unnamed"] * 3)
        self.assertEqual(self.check(files, ignored=[
            "*/libz.so.*", "*/tool", "nvidia/elsewhere/*"]), [])

    def test_what_a_wheel_lacks(self):
        self.assertEqual(self.check({}), ["missing"])

    def test_the_owner(self):
        files = {"nvidia/cu13/lib/libx.so.1": self.elf("libx.so.1", [])}
        self.assertEqual(self.check(files, name="nvidia-z"), ["owner"])

    def test_needs_both_ways(self):
        files = {"nvidia/cu13/lib/libx.so.1":
                 self.elf("libx.so.1", ["liby.so.1"])}
        self.assertEqual(self.check(files), ["needs"])
        self.assertEqual(self.check(files, "needs: y"), [])
        self.assertEqual(self.check(files, "wants: y"), [])
        files["nvidia/cu13/lib/libx.so.1"] = self.elf("libx.so.1", [])
        self.assertEqual(self.check(files, "needs: y"), ["needs"])
        self.assertEqual(self.check(files, "needs: y", ["x>y"]), [])
        files["nvidia/cu13/lib/libx.so.1"] = self.elf("libx.so.1",
                                                      ["libq.so.3"])
        self.assertEqual(self.check(files), ["needs"])

    def test_a_library_that_cannot_find_another(self):
        files = {"nvidia/cu13/lib/libx.so.1":
                 self.elf("libx.so.1", ["liby.so.1"], "")}
        self.assertEqual(self.check(files, "needs: y"), ["runpath"])
        self.assertEqual(self.check(
            files, "wheels: 13=nvidia-f\n  needs: y", name="nvidia-f"), [])

    def test_the_soname(self):
        self.assertEqual(self.check({
            "nvidia/cu13/lib/libx.so.1": self.elf("libother.so.1", [])
        }), ["soname"])

    def test_a_bad_catalog_is_refused(self):
        for line in ("needs: q", "needs: x", "flags: q", "colour: red",
                     "workarounds: q", "files: liby.so.1"):
            with self.assertRaises(gen_catalog.Bad):
                self.check({}, line)


if __name__ == "__main__":
    unittest.main()
