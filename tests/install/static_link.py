#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Links the real static libraries of a toolkit with what kiln config says.

Each library is taken whole (--whole-archive), so that every symbol that any
part of it needs must come from the flags, and the linker names what they lack.
Where the C library has its parts in one (pthreads and dl, in new ones), an
absent flag would not be noticed: what the library uses of them is read with nm
and compared with the flags as well."""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)),
                                "..", "support"))
import kiln_sources  # noqa: E402

# The Debian systems to look in where this machine has no such library.
SYSTEMS = ("debs/trixie", "debs/bookworm")

# Which flag stands for which symbols.
USES = {
    "-lpthread": r"pthread_(?!self$)|sem_(wait|post|init|timedwait)$",
    "-ldl": r"dl(open|sym|close|error|mopen|vsym)$",
    "-lrt": r"shm_(open|unlink)$|timer_(create|settime)$|mq_",
    "-lstdc++": r"_ZSt|_ZNSt|_ZNKSt|__gxx_personality|__cxa_(guard|throw)",
    "-lm": r"(exp|log|pow|sin|cos|tan|ceil|floor|fmod|ldexp)f?$",
}


def run(command):
    return subprocess.run(command, stdout=subprocess.PIPE, text=True,
                          stderr=subprocess.STDOUT, check=False)


def undefined(path):
    """The symbols that a library needs and does not have."""
    needs, has = set(), set()
    for line in run(["nm", path]).stdout.splitlines():
        words = line.split()
        if len(words) == 2 and words[0] in "Uw":
            needs.add(words[1])
        elif len(words) == 3:
            has.add(words[2])
    return needs - has


def problems(options, name, flags, archive, work):
    main = work + "/main.c"
    with open(main, "w", encoding="utf-8") as file:
        file.write("int main(void) { return 0; }\n")
    symbols = sorted(undefined(archive))
    # What nvcc's device link makes, which is no part of any library.
    made = ["-Wl,--defsym=%s=0" % symbol for symbol in symbols
            if symbol.startswith("__cudaRegisterLinkedBinary_")]
    result = run([options.cc, main, "-Wl,--whole-archive", archive,
                  "-Wl,--no-whole-archive", *made, *flags, "-o",
                  work + "/app"])
    if result.returncode != 0:
        yield "%s does not link:\n%s" % (name, result.stdout[:2000])
    for symbol in symbols:
        for flag, pattern in USES.items():
            if re.match(pattern, symbol) and flag not in flags:
                yield "%s needs %s, of %s" % (name, symbol, flag)


def places():
    """Options of kiln that name a place to look in: this machine as it is,
    then each Debian system that tools/debs.py unpacked, the newest first."""
    yield []
    for root in filter(None, map(kiln_sources.find, SYSTEMS)):
        yield ["--hermetic", "--sysroot", root]


def is_archive(path):
    """False of one that tools/debs.py has made hollow."""
    with open(path, "rb") as file:
        return file.read(8) in (b"!<arch>\n", b"!<thin>\n")


def ask(options, name):
    """The flags for a static library and its file; None where there is none."""
    for place in places():
        said = run([options.kiln, "config", "--libs", "--lines", *place,
                    "static:" + name])
        if said.returncode != 0:
            continue
        flags = said.stdout.splitlines()
        folders = [f[2:] for f in flags if f.startswith("-L")]
        files = [f[3:] for f in flags if f.startswith("-l:")]
        for folder in folders:
            path = os.path.join(folder, files[0]) if files else ""
            if os.path.exists(path) and is_archive(path):
                return flags, path
        if place:
            continue
        found = run([options.kiln, "find", "static", name, "--json"]).stdout
        return flags, re.search(r'"path": "([^"]+\.a)"', found).group(1)
    return None


def why_not():
    """Why a library is skipped that this machine has not."""
    why = kiln_sources.why_not(SYSTEMS[0])
    return why.replace(" no ", " none of the library in ") if \
        kiln_sources.find(SYSTEMS[0]) else why


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("kiln", "cc"):
        parser.add_argument("--" + name, required=True)
    parser.add_argument("names", nargs="+")
    options = parser.parse_args()
    if shutil.which("nm") is None:
        print("skipped: nm is not installed")
        return 77
    linked, bad = 0, []
    for name in options.names:
        said = ask(options, name)
        if said is None:
            print(why_not())
            continue
        flags, path = said
        work = tempfile.mkdtemp(prefix="kiln-static-")
        try:
            new = list(problems(options, name, flags, path, work))
        finally:
            shutil.rmtree(work)
        bad += new
        linked += 1
        print("%s: %s: %s" % (name, "FAILED" if new else "ok", " ".join(flags)))
    for line in bad:
        print(line)
    return 1 if bad else 0 if linked else 77


if __name__ == "__main__":
    sys.exit(main())
