#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What a build of Kiln makes: by itself the libraries and the command, with no
test, no benchmark, no Python and no error made of a warning; in another
project's build the libraries alone, and nothing of Kiln's is installed with
that project. Builds are configured and not made; the targets and flags are read
from CMake's file API."""

import argparse
import json
import os
import shlex
import shutil
import subprocess
import sys
import tempfile

PARENT = """cmake_minimum_required(VERSION 3.22)
project(parent LANGUAGES C)
add_subdirectory("%s" kiln)
add_executable(app app.c)
target_link_libraries(app PRIVATE kiln::kiln)
add_executable(app_static app.c)
target_link_libraries(app_static PRIVATE kiln::kiln_static)
install(TARGETS app)
"""
# What a user's machine need not have.
ABSENT = ["-DCMAKE_DISABLE_FIND_PACKAGE_Python3=ON",
          "-DCMAKE_DISABLE_FIND_PACKAGE_Python=ON"]


def run(*command):
    result = subprocess.run(command, stdout=subprocess.PIPE, text=True,
                            stderr=subprocess.STDOUT, check=False)
    if result.returncode != 0:
        raise SystemExit("%s\n%s" % (shlex.join(command), result.stdout))
    return result.stdout


def expect(condition, what):
    if not condition:
        raise SystemExit("not so: " + what)


def load(path):
    with open(path, encoding="utf-8") as file:
        return json.load(file)


class Build:
    """A configured build, as CMake's file API describes it."""

    def __init__(self, options, source, folder, *settings):
        query = os.path.join(folder, ".cmake/api/v1/query/codemodel-v2")
        os.makedirs(os.path.dirname(query))
        open(query, "w", encoding="utf-8").close()
        run(options.cmake, "-S", source, "-B", folder,
            "-DCMAKE_C_COMPILER=" + options.cc, *ABSENT, *settings)
        self.reply = os.path.join(folder, ".cmake/api/v1/reply")
        model = load(os.path.join(self.reply, next(
            name for name in os.listdir(self.reply)
            if name.startswith("codemodel-v2"))))
        self.configuration = model["configurations"][0]
        self.targets = {
            one["name"]: load(os.path.join(self.reply, one["jsonFile"]))
            for one in self.configuration["targets"]}

    def programs(self):
        return {name for name, target in self.targets.items()
                if target["type"] == "EXECUTABLE"}

    def flags(self):
        """Every word that a compiler is called with."""
        return {word for target in self.targets.values()
                for group in target.get("compileGroups", [])
                for part in group.get("compileCommandFragments", [])
                for word in part["fragment"].split()}

    def installed(self):
        return {name for name, target in self.targets.items()
                if "install" in target}


def check_alone(options, work):
    build = Build(options, options.source, os.path.join(work, "alone"))
    expect(build.programs() == {"kiln_cli"},
           "the programs are %s" % sorted(build.programs()))
    expect("-Werror" not in build.flags(), "a warning is no error")
    expect({"kiln_cli", "kiln_shared", "kiln_static"} <= build.installed(),
           "installed are %s" % sorted(build.installed()))
    expect(build.configuration["name"] == "Release",
           "the build is %s" % build.configuration["name"])


def check_inside(options, work):
    parent = os.path.join(work, "parent")
    os.makedirs(parent)
    with open(os.path.join(parent, "CMakeLists.txt"), "w",
              encoding="utf-8") as file:
        file.write(PARENT % options.source)
    with open(os.path.join(parent, "app.c"), "w", encoding="utf-8") as file:
        file.write("int main(void) { return 0; }\n")
    build = Build(options, parent, os.path.join(work, "inside"))
    expect(build.programs() == {"app", "app_static"},
           "the programs are %s" % sorted(build.programs()))
    expect("-Werror" not in build.flags(), "a warning is no error")
    expect(build.installed() == {"app"},
           "installed are %s" % sorted(build.installed()))
    expect(build.configuration["name"] == "",
           "the parent's build type is changed")
    # Each is there for who asks.
    asked = Build(options, parent, os.path.join(work, "asked"),
                  "-DKILN_BUILD_CLI=ON", "-DKILN_INSTALL=ON",
                  "-DKILN_WERROR=ON")
    expect({"kiln_cli", "kiln_shared"} <= asked.installed(),
           "installed are %s" % sorted(asked.installed()))
    expect("-Werror" in asked.flags(), "KILN_WERROR makes errors")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("source", "cc", "cmake"):
        parser.add_argument("--" + name, required=True)
    options = parser.parse_args()
    work = tempfile.mkdtemp(prefix="kiln-options-")
    try:
        check_alone(options, work)
        check_inside(options, work)
    finally:
        shutil.rmtree(work)
    return 0


if __name__ == "__main__":
    sys.exit(main())
