#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The search of the scope `loader` beside the system's own loader.

    check_loader.py FOLDER LIBRARY

FOLDER holds programs and modules linked in every way (loader_main.c,
loader_module.c). Each is copied into a made-up tree and run there: it prints
what Kiln finds and what a dlopen of the same name in the same object takes.
Both must be the same file, and the one that the case expects. Exits with 77
where the loader is not glibc's.
"""

import os
import platform
import shutil
import struct
import subprocess
import sys
import tempfile

NAME = "libcufile.so.0"
WAYS = ("none", "rpath", "runpath")
ANY = "any"
SKIP = 77


def write(path, data):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as file:
        file.write(data)
    os.chmod(path, 0o755)


class Tree:
    """A temporary folder with copies of what was built."""

    def __init__(self, built, library):
        self.root = os.path.realpath(tempfile.mkdtemp(prefix="kiln-loader-"))
        self.built = built
        with open(library, "rb") as file:
            self.library = file.read()

    def put(self, folder, library=None):
        write(os.path.join(self.root, folder, NAME), library or self.library)

    def other_machine(self, word_size):
        """The same library for a machine that is not this one."""
        data = bytearray(self.library)
        if word_size:
            data[4] = 1
        else:
            struct.pack_into("<H", data, 18, 8)  # MIPS
        return bytes(data)

    def copy(self, name, folder):
        target = os.path.join(self.root, folder, name)
        os.makedirs(os.path.dirname(target), exist_ok=True)
        shutil.copy2(os.path.join(self.built, name), target)
        return target

    def ask(self, command, variable=None):
        env = {"PATH": os.environ.get("PATH", "")}
        if variable is not None:
            env["LD_LIBRARY_PATH"] = variable.replace("@", self.root)
        done = subprocess.run(command, env=env, cwd="/", text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              check=False, timeout=60)
        lines = done.stdout.split()
        if done.returncode or len(lines) != 2:
            raise SystemExit("%s: exit code %d\n%s" % (
                command, done.returncode, done.stdout + done.stderr))
        return lines


class Cases:
    def __init__(self, built, library):
        self.built, self.library = built, library
        self.count, self.failed = 0, 0

    def tree(self):
        return Tree(self.built, self.library)

    def expect(self, what, tree, answers, folder):
        """`folder`: where it must be; ANY: somewhere; None: or nowhere."""
        kiln, loader = answers
        self.count += 1
        good = kiln == loader or kiln != "-" and loader != "-" and \
            os.path.realpath(kiln) == os.path.realpath(loader)
        if folder == ANY:
            good = good and kiln != "-"
        elif folder is not None:
            good = good and os.path.realpath(kiln) == os.path.realpath(
                os.path.join(tree.root, folder, NAME))
        if not good:
            self.failed += 1
            print("%s: kiln %s, the loader %s, expected %s" % (
                what, kiln, loader, folder))

    # ---- Where paths are written ----

    def objects(self):
        """Program and module, each with no, an old and a new path."""
        for program in WAYS:
            for module in WAYS:
                for linked in (True, False):
                    self.object_pair(program, module, linked)

    def object_pair(self, program, module, linked):
        # Each path has a folder of its own, so that the answer tells which it
        # was; taking the winner away shows the next.
        tree = self.tree()
        name = "loader_%s_%s_%s" % ("linked" if linked else "opens", program,
                                    module)
        if linked:
            command = [tree.copy(name, "bin")]
        else:
            command = [tree.copy("loader_opens_%s" % program, "bin")]
        command.append(tree.copy("libloader_module_%s.so" % module, "mod"))
        folders = ["bin/of-program", "mod/of-module", "variable"]
        for folder in folders:
            tree.put(folder)
        left = set(folders)
        wanted = self.order(program, module, linked)
        for folder in wanted + [None]:
            answers = tree.ask(command, "@/variable:@/mod")
            what = "program %s, module %s, %s" % (
                program, module, "linked" if linked else "opened")
            self.expect(what, tree, answers, folder)
            if folder is None:
                break
            left.remove(folder)
            shutil.rmtree(os.path.join(tree.root, folder))
        shutil.rmtree(tree.root)

    @staticmethod
    def order(program, module, linked):
        """What ld.so(8) says of a dlopen in the module."""
        del linked  # the program's own counts for what it opened, too
        out = []
        if module == "rpath":
            out.append("mod/of-module")
        if program == "rpath" and module != "runpath":
            out.append("bin/of-program")
        out.append("variable")
        if module == "runpath":
            out.append("mod/of-module")
        return out

    # ---- What paths may say ----

    def variable(self, what, value, put, expected):
        tree = self.tree()
        command = [tree.copy("loader_opens_none", "bin"),
                   tree.copy("libloader_module_none.so", "mod")]
        for folder in put:
            tree.put(folder)
        self.expect(what, tree, tree.ask(command, value), expected)
        shutil.rmtree(tree.root)

    def tokens(self):
        lib = "lib64"
        for folder in ("lib/" + platform.machine() + "-linux-gnu", "lib64",
                       "lib"):
            if os.path.exists("/" + folder + "/libc.so.6"):
                lib = folder
                break
        for brace in ("$%s", "${%s}"):
            for token, folder in (("ORIGIN", "bin/x"), ("LIB", "t/%s/x" % lib)):
                start = "" if token == "ORIGIN" else "@/t/"
                self.variable(token, start + brace % token + "/x", [folder],
                              folder)
            self.variable("two", "@/t/" + brace % "LIB" + "/" +
                          brace % "LIB", ["t/%s/%s" % (lib, lib)],
                          "t/%s/%s" % (lib, lib))
            # The same folder whatever the loader makes of it.
            self.variable(
                "PLATFORM", "@/t/" + brace % "PLATFORM" + ":@/rest",
                ["t/haswell", "t/xeon_phi", "t/" + platform.machine()], ANY)
        self.variable("no token", "@/$NONE:@/$LIBS:@/${LIB:@/$", ["$LIBS"],
                      "$LIBS")
        self.variable("semicolon", "@/a;@/b", ["b"], "b")
        self.variable("a dollar at the end", "@/a$", ["a$"], "a$")

    def levels(self):
        hwcaps = ["glibc-hwcaps/x86-64-v%d" % level for level in (2, 3, 4)]
        for put in ([0], [1], [2], [0, 1], [0, 1, 2], []):
            folders = ["a/" + hwcaps[i] for i in put]
            self.variable("levels %s" % put, "@/a:@/b", folders + ["b"], ANY)
            self.variable("levels %s, plain" % put, "@/a:@/b",
                          folders + ["a", "b"], ANY)
        # The first folder's plain file comes before the second's levels.
        self.variable("two folders", "@/a:@/b",
                      ["a", "b/" + hwcaps[0], "b/" + hwcaps[1]], "a")
        if platform.machine() == "x86_64":
            self.variable("level 2", "@/a", ["a", "a/" + hwcaps[0]],
                          "a/" + hwcaps[0] if self.has_level_2() else "a")
        self.variable("an unknown level", "@/a",
                      ["a", "a/glibc-hwcaps/x86-64-v1",
                       "a/glibc-hwcaps/x86-64-v9"], "a")

    @staticmethod
    def has_level_2():
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            text = file.read()
        return " sse4_2" in text and " popcnt" in text

    def other_machines(self):
        for word_size in (True, False):
            tree = self.tree()
            command = [tree.copy("loader_opens_none", "bin"),
                       tree.copy("libloader_module_none.so", "mod")]
            tree.put("a", tree.other_machine(word_size))
            tree.put("b")
            self.expect("another machine", tree,
                        tree.ask(command, "@/a:@/b"), "b")
            shutil.rmtree(tree.root)


def main():
    if platform.libc_ver()[0] != "glibc":
        print("skipped: the loader is not glibc's")
        return SKIP
    cases = Cases(*sys.argv[1:])
    cases.objects()
    cases.tokens()
    cases.levels()
    cases.other_machines()
    print("%d cases, %d wrong" % (cases.count, cases.failed))
    return 1 if cases.failed or cases.count < 70 else 0


if __name__ == "__main__":
    sys.exit(main())
