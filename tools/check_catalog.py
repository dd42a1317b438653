#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Holds the catalog against real wheels and toolkits.

    check_catalog.py [--write] PATH...

    check_catalog.py --unseen PATH...

A PATH is a wheel, a folder of wheels, a site-packages folder, the root of a
toolkit or of a Debian system (tools/debs.py). Says, one finding a line:

  unnamed   a library, static library, bitcode or program that no row names
            and no `ignore` line of the catalog explains
  missing   a row says a given wheel owns it, but no file of it is there
  owner     a file's wheel is not among those that its row names
  needs     the file itself needs another library than its row says
  soname    the file's SONAME is not its name
  runpath   a wheel's library needs another of these, has no RUNPATH to find it
            by, and no `flaw` says so

With --write, corrects what can be derived (`needs` and `wheels`) in
src/locate/locate_catalog.txt; run tools/gen_catalog.py afterwards. With
--unseen, names the rows that no file of these places bears out. Exits
with 1 if anything was found, with 77 if there was nothing to look at.
"""

import fnmatch
import glob
import os
import re
import struct
import sys
import zipfile

import gen_catalog

# The C library's, and others' that no row should name.
SYSTEM = ("libc.so.*", "libm.so.*", "libdl.so.*", "librt.so.*",
          "libpthread.so.*", "libgcc_s.so.*", "libstdc++.so.*",
          "libutil.so.*", "ld-linux-*.so.*", "ld-linux.so.*", "libz.so.*",
          "libgomp.so.*", "libmpi.so.*", "libibverbs.so.*", "libmlx5.so.*",
          "librdmacm.so.*")


# ---- What an ELF file says ----

class Elf:
    """SONAME, NEEDED and RUNPATH of a 64-bit little-endian ELF file."""

    def __init__(self, data):
        self.soname, self.needed, self.runpath = None, [], None
        if data[:6] != b"\x7fELF\x02\x01":
            raise ValueError("no 64-bit ELF file")
        offset, = struct.unpack_from("<Q", data, 32)
        size, count = struct.unpack_from("<HH", data, 54)
        loads, dynamic = [], None
        for index in range(count):
            head = struct.unpack_from("<IIQQQQQQ", data, offset + index * size)
            if head[0] == 1:
                loads.append((head[3], head[2], head[5]))
            elif head[0] == 2:
                dynamic = (head[2], head[5])
        if dynamic:
            self.read_dynamic(data, dynamic, loads)

    def read_dynamic(self, data, dynamic, loads):
        pairs = list(struct.iter_unpack("<qQ", data[
            dynamic[0]:dynamic[0] + dynamic[1] // 16 * 16]))
        table = next(value for tag, value in pairs if tag == 5)
        start = next(at + table - address for address, at, length in loads
                     if address <= table < address + length)

        def text(value):
            end = data.index(b"\0", start + value)
            return data[start + value:end].decode()

        for tag, value in pairs:
            if tag == 0:
                break
            if tag == 1:
                self.needed.append(text(value))
            elif tag == 14:
                self.soname = text(value)
            elif tag in (15, 29):
                self.runpath = text(value)


# ---- Where files come from ----

class Place:
    """Files of one owner: a wheel's name and version, or a toolkit's root.

    `layout` is the catalog's list of folders that is meant."""

    def __init__(self, name, version, files, read, layout="wheel_dirs"):
        self.name, self.version, self.layout = name, version, layout
        self.files, self.read = files, read

    def __str__(self):
        return (self.name + " " + self.version).strip()


def normal(name):
    return re.sub(r"[-_.]+", "-", name).lower()


def read_file(path):
    with open(path, "rb") as file:
        return file.read()


def of_wheel(path):
    wheel = zipfile.ZipFile(path)
    name, version = os.path.basename(path).split("-")[:2]
    return Place(normal(name), version, wheel.namelist(), wheel.read)


def of_site(path):
    for record in sorted(glob.glob(os.path.join(path, "*.dist-info",
                                                "RECORD"))):
        info = os.path.basename(os.path.dirname(record))
        name, version = info[:-len(".dist-info")].rsplit("-", 1)
        with open(record, encoding="utf-8") as file:
            files = [line.split(",")[0] for line in file]
        yield Place(normal(name), version,
                    [name for name in files
                     if os.path.isfile(os.path.join(path, name))],
                    lambda name: read_file(os.path.join(path, name)))


def of_toolkit(path):
    files = []
    for folder, _, names in os.walk(path):
        if "dist-info" not in folder:
            files += [os.path.relpath(os.path.join(folder, name), path)
                      for name in names]
    return Place("", path, files,
                 lambda name: read_file(os.path.join(path, name)),
                 "toolkit_dirs")


DPKG = "var/lib/dpkg/info"


def of_debian(root):
    """All packages of one system, by the lists that dpkg keeps."""
    paths = set()
    for listed in glob.glob(os.path.join(root, DPKG, "*.list")):
        with open(listed, encoding="utf-8") as file:
            paths.update(line.strip("/\n") for line in file)
    files = [path for path in sorted(paths)
             if not os.path.isdir(os.path.join(root, path)) and
             os.path.lexists(os.path.join(root, path))]
    return Place("", "Debian " + os.path.basename(os.path.normpath(root)),
                 files, lambda name: read_file(os.path.join(root, name)),
                 "distribution_dirs")


def places(path):
    if path.endswith(".whl"):
        yield of_wheel(path)
    elif glob.glob(os.path.join(path, "*.whl")):
        for name in sorted(glob.glob(os.path.join(path, "*.whl"))):
            yield of_wheel(name)
    elif glob.glob(os.path.join(path, "*.dist-info")):
        yield from of_site(path)
    elif os.path.isdir(os.path.join(path, DPKG)):
        yield of_debian(path)
    elif os.path.isdir(os.path.join(path, "include")):
        yield of_toolkit(path)
    else:
        raise SystemExit(path + " is no wheel, no folder of wheels, no "
                         "site-packages, no toolkit and no Debian system")


# ---- The comparison ----

class Check:
    def __init__(self, rows, flaws, ignored):
        self.rows, self.ignored = rows, ignored
        self.flaws = {(flaw.distribution, flaw.file) for flaw in flaws}
        self.by_file = {(row.kind, name): row for row in rows
                        for name in row.texts_of("files")}
        self.stems = {name.split(".so")[0] for kind, name in self.by_file
                      if kind == "lib"}
        self.found = []           # findings
        self.seen = {}            # row -> {place: path}
        self.needs = {}           # row -> {name of a row it needs}
        self.owners = {}          # row -> {(wheel, major)}
        self.files = 0

    def say(self, what, text):
        self.found.append("%-8s %s" % (what, text))

    @staticmethod
    def kind(path):
        """The kind that a file would be of; None if it is of none."""
        folder, name = os.path.split(path)
        if re.search(r"\.so(\.\d+)*$", name):
            return "stub" if folder.endswith("/stubs") else "lib"
        if name.endswith(".a"):
            return "static"
        if name.endswith(".bc"):
            return "bitcode"
        return "binary" if os.path.basename(folder) == "bin" else None

    def place(self, place):
        for path in place.files:
            kind = self.kind(path)
            if kind:
                self.files += 1
                self.file(place, path, kind)
        for row in self.rows:
            if row.kind == "header":
                self.header(place, row)
            if place.name in row.texts_of("wheels") and \
                    place not in self.seen.get(row, ()) and \
                    row.name not in self.ignored:
                self.say("missing", "%s has no %s %s" % (
                    place, row.kind, row.name))

    @staticmethod
    def folders(row, place):
        out = row.texts_of(place.layout)
        return [name.replace("{target}", target).replace(
            "{multiarch}", multiarch) for name in out for target, multiarch in (
                ("x86_64-linux", "x86_64-linux-gnu"),
                ("sbsa-linux", "aarch64-linux-gnu"),
                ("aarch64-linux", "aarch64-linux-gnu"))]

    def header(self, place, row):
        for folder in self.folders(row, place):
            path = folder + "/" + row.texts_of("files")[0]
            if path in place.files:
                self.own(row, place, path)

    def own(self, row, place, path):
        self.seen.setdefault(row, {})[place] = path
        if place.name:
            major = re.search(r"-cu(\d+)$", place.name)
            self.owners.setdefault(row, set()).add(
                (place.name, int(major.group(1)) if major else 13))
            if place.name not in row.texts_of("wheels"):
                self.say("owner", "%s: %s %s names %s" % (
                    place, row.kind, row.name,
                    " ".join(row.texts_of("wheels")) or "no wheel"))

    def file(self, place, path, kind):
        folder, name = os.path.split(path)
        row = self.by_file.get((kind, name))
        if row is None and kind == "lib" and self.is_spelling(place, name):
            return
        if row is None or folder not in self.folders(row, place):
            if not any(fnmatch.fnmatch(path, pattern)
                       for pattern in self.ignored):
                self.say("unnamed", "%s: %s" % (place, path))
            return
        self.own(row, place, path)
        if kind == "lib":
            self.library(row, place, path)

    def is_spelling(self, place, name):
        """Another name of a library that a row has: the linker's, or with more
        numbers; of Debian's older releases, with another CUDA's."""
        stem = name.split(".so")[0]
        return not place.name and (
            name.endswith(".so") or place.layout == "distribution_dirs" and
            stem in self.stems)

    def library(self, row, place, path):
        elf = Elf(place.read(path))
        name = os.path.basename(path)
        if elf.soname != name and (elf.soname or "").split(".so")[0] != \
                name.split(".so")[0]:
            self.say("soname", "%s: %s calls itself %s" % (
                place, path, elf.soname))
        self.needed(row, place, path, elf)
        others = [soname for soname in elf.needed
                  if self.class_of(soname) in ("ctk", "other")]
        if place.name and others and not elf.runpath and \
                (place.name, name) not in self.flaws:
            self.say("runpath", "%s: %s does not find %s" % (
                place, path, " ".join(others)))

    def class_of(self, soname):
        row = self.by_file.get(("lib", soname))
        return row and row.class_word

    def needed(self, row, place, path, elf):
        for soname in elf.needed:
            other = self.by_file.get(("lib", soname))
            if other is not None:
                self.needs.setdefault(row, {}).setdefault(other.name, place)
            elif not self.is_spelling(place, soname) and not any(
                    fnmatch.fnmatch(soname, system) for system in SYSTEM):
                self.say("needs", "%s: %s needs %s, which no row has" % (
                    place, path, soname))

    def compare_needs(self):
        for row, needs in self.needs.items():
            have = set(row.texts_of("needs")) | set(row.texts_of("wants"))
            for name in sorted(set(needs) - have - self.driver()):
                self.say("needs", "%s: %s needs %s, its row does not say so" %
                         (needs[name], row.name, name))
        for row in self.seen:
            # Rows say what any release needs; a toolkit and a distribution are
            # one release.
            if row.kind != "lib" or not any(
                    place.name for place in self.seen[row]):
                continue
            for name in set(row.texts_of("needs")) - set(
                    self.needs.get(row, ())):
                if "%s>%s" % (row.name, name) not in self.ignored:
                    self.say("needs", "%s: its row says it needs %s, no file "
                             "does" % (row.name, name))

    def driver(self):
        return {row.name for row in self.rows if row.class_word == "driver"}


def read_ignored():
    with open(os.path.join(gen_catalog.ROOT, gen_catalog.SOURCE),
              encoding="utf-8") as file:
        return [re.match(r"ignore (?:need |missing )?([^:]+)", line).group(1)
                for line in file if line.startswith("ignore ")]


# ---- Corrections ----

def corrected(check, row):
    """{key: value} of lines that real files say better."""
    out = {}
    if row in check.needs or row in check.seen and row.kind == "lib":
        needs = set(check.needs.get(row, ())) - check.driver()
        needs |= {name for name in row.texts_of("needs")
                  if "%s>%s" % (row.name, name) in check.ignored}
        order = [name for name in row.texts_of("needs") if name in needs]
        order += sorted(needs - set(order))
        out["needs"] = " ".join(order)
        out["wants"] = " ".join(name for name in row.texts_of("wants")
                                if name not in needs)
    wheels = set(check.owners.get(row, ()))
    if wheels:
        named = {text for text, _ in row.lists["wheels"]}
        old = list(row.lists["wheels"])
        old += sorted((wheel for wheel in wheels if wheel[0] not in named),
                      key=lambda wheel: (-wheel[1], wheel[0]))
        out["wheels"] = " ".join("%d=%s" % (major, name) if major else name
                                 for name, major in old)
    return out


def write(check):
    path = os.path.join(gen_catalog.ROOT, gen_catalog.SOURCE)
    by_name = {(row.kind, row.name): row for row in check.rows}
    with open(path, encoding="utf-8") as file:
        blocks = file.read().split("\n\n")
    for index, block in enumerate(blocks):
        words = block.split("\n")[0].split()
        row = by_name.get(tuple(words[:2]))
        if row is None:
            continue
        lines = block.split("\n")
        for key, value in corrected(check, row).items():
            at = [i for i, line in enumerate(lines)
                  if line.startswith("  %s:" % key)]
            new = ["  %s: %s" % (key, value)] if value else []
            if at:
                lines[at[0]:at[0] + 1] = new
            else:
                lines += new
        blocks[index] = "\n".join(lines)
    with open(path, "w", encoding="utf-8") as file:
        file.write("\n\n".join(blocks).rstrip("\n") + "\n")


def main():
    args = [arg for arg in sys.argv[1:] if arg not in ("--write", "--unseen")]
    if not args or args[0].startswith("-"):
        print(__doc__.strip())
        return 2
    if not any(os.path.exists(path) and (os.path.isfile(path) or
                                         os.listdir(path)) for path in args):
        print("skipped: nothing there (tools/wheels.py fetches wheels)")
        return 77
    rows, flaws = gen_catalog.read()
    check = Check(rows, flaws, read_ignored())
    count = 0
    for path in args:
        for place in places(path):
            check.place(place)
            count += 1
    check.compare_needs()
    if "--unseen" in sys.argv[1:]:
        for row in rows:
            if row not in check.seen:
                print("unseen   %s %s" % (row.kind, row.name))
        check.found.clear()
    for line in sorted(set(check.found)):
        print(line)
    print("%d wheels and toolkits, %d files, %d of %d rows seen, %d findings"
          % (count, check.files, len(check.seen), len(rows),
             len(set(check.found))))
    if "--write" in sys.argv[1:]:
        write(check)
    return 1 if check.found else 0


if __name__ == "__main__":
    sys.exit(main())
