# SPDX-License-Identifier: Apache-2.0
"""What cuda-pathfinder says of every name it knows, as JSON.

Runs in the environment that is asked about. Each library is loaded in a
process of its own (a fork), since what is loaded already changes the answer.
Prints {"version", "items": [{"kind", "name", "path", "via", "error",
"header"}]}; path is null where nothing was found, and the file that was
refused where one was found and does not load; header is the file that a folder
of headers must hold.
"""

import json
import os
import re
import sys
import warnings

warnings.simplefilter("ignore")

import cuda.pathfinder as pathfinder  # noqa: E402
from cuda.pathfinder._dynamic_libs.lib_descriptor import (  # noqa: E402
    LIB_DESCRIPTORS)
from cuda.pathfinder._headers.header_descriptor import (  # noqa: E402
    HEADER_DESCRIPTORS)


def item(kind, name, path=None, via=None, error=None, header=""):
    return {"kind": kind, "name": name, "path": path, "via": via,
            "error": error, "header": header}


def ask_lib(name):
    try:
        found = pathfinder.load_nvidia_dynamic_lib(name)
    except pathfinder.DynamicLibNotFoundError:
        return item("lib", name)
    except (RuntimeError, OSError) as error:
        refused = re.search(r"Failed to dlopen (\S+):", str(error))
        return item("lib", name, refused and refused.group(1), None,
                    str(error).split("\n")[0])
    return item("lib", name, found.abs_path, found.found_via)


def in_child(ask, name):
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.close(reader)
            with os.fdopen(writer, "w") as out:
                json.dump(ask(name), out)
        finally:
            os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as answer:
        text = answer.read()
    os.waitpid(child, 0)
    return json.loads(text) if text else item("lib", name, error="crashed")


def ask(kind, name):
    if kind == "header":
        found = pathfinder.locate_nvidia_header_directory(name)
        return item(kind, name, found and found.abs_path,
                    found and found.found_via,
                    header=HEADER_DESCRIPTORS[name].header_basename)
    if kind == "binary":
        return item(kind, name, pathfinder.find_nvidia_binary_utility(name))
    locate = (pathfinder.locate_static_lib if kind == "static"
              else pathfinder.locate_bitcode_lib)
    try:
        found = locate(name)
    except RuntimeError:
        return item(kind, name)
    return item(kind, name, found.abs_path, found.found_via)


def main():
    items = [in_child(ask_lib, name) for name in sorted(LIB_DESCRIPTORS)]
    for kind, names in (
            ("header", HEADER_DESCRIPTORS),
            ("static", pathfinder.SUPPORTED_STATIC_LIBS),
            ("bitcode", pathfinder.SUPPORTED_BITCODE_LIBS),
            ("binary", pathfinder.SUPPORTED_BINARY_UTILITIES)):
        items += [ask(kind, name) for name in sorted(names)]
    json.dump({"version": pathfinder.__version__, "items": items},
              sys.stdout)


main()
