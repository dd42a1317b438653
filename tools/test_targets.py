#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""tools: what has to be built for some of the tests.

    test_targets.py BUILD [-L REGEX] [-LE REGEX] [-E REGEX]

Prints the targets of a configured BUILD that the tests of this choice name, in
their commands and variables; the options mean what they mean to ctest. A
test that needs a program without naming it says so with add_dependencies: else
it fails where only these are built.
"""
import argparse
import os
import re
import subprocess
import sys

WORD = re.compile(r'"((?:[^"\\]|\\.)*)"|\[=*\[(.*?)\]=*\]|([^\s"()]+)')


def words(text):
    for match in WORD.finditer(text):
        yield re.sub(r"\\(.)", r"\1",
                     next(part for part in match.groups() if part is not None))


def read_tests(build):
    """{name: (labels, words of its command and variables)}"""
    tests = {}
    for folder, folders, files in os.walk(build):
        folders[:] = [one for one in folders if one != "CMakeFiles"]
        if "CTestTestfile.cmake" not in files:
            continue
        path = os.path.join(folder, "CTestTestfile.cmake")
        with open(path, encoding="utf-8") as file:
            lines = file.read().splitlines()
        for line in lines:
            call, _, rest = line.partition("(")
            if call not in ("add_test", "set_tests_properties"):
                continue
            name, *rest = words(rest.rstrip(")"))
            labels, named = tests.setdefault(name, (set(), set()))
            if call == "add_test":
                named.update(rest)
                continue
            for key, value in zip(rest[1::2], rest[2::2]):
                if key == "LABELS":
                    labels.update(value.split(";"))
                elif key == "ENVIRONMENT":
                    named.update(one.partition("=")[2]
                                 for one in value.split(";"))
    return tests


def chosen(options, name, labels):
    def has(pattern):
        return any(re.search(pattern, label) for label in labels)
    return not ((options.only and not has(options.only)) or
                (options.without and has(options.without)) or
                (options.unless and re.search(options.unless, name)))


def targets_of(build, lists):
    """The targets of a build that the lists of words name."""
    known = subprocess.run(
        ["ninja", "-C", build, "-t", "targets", "all"], check=True,
        stdout=subprocess.PIPE, text=True).stdout.splitlines()
    known = {line.rpartition(":")[0] for line in known}
    found = set()
    for named in lists:
        for word in named:
            target = os.path.relpath(word, build) if word.startswith(
                build + os.sep) else ""
            whole = {target, target + "/all"} & known
            # A folder that is named: all that is built in it.
            if target and not whole:
                whole = {one for one in known
                         if one.startswith(target + os.sep)}
            found.update(whole)
    return found


def main():
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build")
    parser.add_argument("-L", dest="only")
    parser.add_argument("-LE", dest="without")
    parser.add_argument("-E", dest="unless")
    options = parser.parse_args()
    build = os.path.abspath(options.build)
    tests = read_tests(build)
    found = targets_of(build, [
        named for name, (labels, named) in tests.items()
        if chosen(options, name, labels)])
    if not found:
        print("test_targets.py: no test of this choice", file=sys.stderr)
        return 1
    print("\n".join(sorted(found)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
