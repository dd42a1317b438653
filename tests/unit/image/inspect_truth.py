#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares what `kiln inspect` reads in code files with what cuobjdump reads.

    inspect_truth.py KILN --recorded  the files of data/, against truth.json
    inspect_truth.py KILN --fresh     files compiled now, against cuobjdump
    inspect_truth.py --record         asks cuobjdump about data/ and writes
                                      truth.json

Exits with 77, and the reason, where a tool is absent.
"""

import glob
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
DATA = os.path.join(HERE, "data")
TRUTH = os.path.join(DATA, "truth.json")
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(HERE)))
SKIP = 77


def tool(name):
    """A tool on PATH, or among the wheels that tools/wheels.py laid out."""
    found = shutil.which(name)
    if found is None:
        for folder in glob.glob(os.path.join(ROOT, "build", "wheels", "*")):
            path = os.path.join(folder, "bin", name)
            if os.access(path, os.X_OK):
                return path
    return found


def need(name):
    path = tool(name)
    if path is None:
        print("skipped: no %s here" % name)
        sys.exit(SKIP)
    return path


# ---- cuobjdump's words ----

def attributes(text):
    """(name, value) of each attribute of a dumped section."""
    parts = re.split(r"\tAttribute:\s*(\S+)\n", text)[1:]
    return list(zip(parts[::2], parts[1::2]))


def numbers(text):
    # Behind the value stands the number of the next attribute.
    value = text.split("\n\t<")[0]
    return [int(x, 16) for x in re.findall(r"0x([0-9a-f]+)", value)]


def elf_facts(text):
    """What cuobjdump -elf says of one ELF file."""
    head = re.search(r"64bit elf: type=(\w+), abi=\d+, sm=(\w+)"
                     r"|64-bit ELF: type=(\w+), ABI=\d+, sm=(\w+)", text)
    kind = head.group(1) or head.group(3)
    sections = {}
    for row in re.findall(r"^ +[0-9a-f]+ +[0-9a-f]+ +([0-9a-f]+) .* (\.\S+)$",
                          text, re.M):
        sections[row[1]] = int(row[0], 16)
    dumps = dict(re.findall(
        r"^(\.nv\.info\S*)\n(.*?)(?=\n\n\n|\Z)", text, re.M | re.S))
    kernels = {}
    for section, body in dumps.items():
        if section == ".nv.info":
            continue
        name = section[len(".nv.info."):]
        kernel = {"params": {}, "code_bytes": sections.get(".text." + name),
                  "shared": sections.get(".nv.shared." + name, 0),
                  "bank": sections.get(".nv.constant0." + name)}
        if kernel["bank"] is None:
            continue  # a function
        explicit = False
        for attribute, value in attributes(body):
            if attribute.startswith("EIATTR_KPARAM_INFO"):
                at = {key: int(x, 16) for key, x in re.findall(
                    r"(Ordinal|Offset|Size)\s*: 0x([0-9a-f]+)", value)}
                kernel["params"][at["Ordinal"]] = [at["Offset"], at["Size"]]
            elif attribute == "EIATTR_MAX_THREADS":
                kernel["maximum_block"] = numbers(value)
            elif attribute == "EIATTR_REQNTID":
                kernel["required_block"] = numbers(value)
            elif attribute == "EIATTR_CTA_PER_CLUSTER":
                kernel["cluster"] = numbers(value)
            elif attribute == "EIATTR_EXPLICIT_CLUSTER":
                explicit = True
            elif attribute == "EIATTR_NUM_BARRIERS":
                kernel["barriers"] = numbers(value)[0]
            elif attribute == "EIATTR_MAXREG_COUNT":
                kernel["maximum_registers"] = numbers(value)[0]
        if not explicit and kernel.get("cluster") == [1, 1, 1]:
            del kernel["cluster"]
        kernel["params"] = [kernel["params"][i]
                            for i in sorted(kernel["params"])]
        kernels[name] = kernel
    keys = {"EIATTR_REGCOUNT": "registers", "EIATTR_FRAME_SIZE": "frame_bytes",
            "EIATTR_MIN_STACK_SIZE": "stack_bytes"}
    for attribute, value in attributes(dumps.get(".nv.info", "")):
        match = re.search(r"function: (\S+)\(0x[0-9a-f]+\)\s+.*: "
                          r"(?:0x([0-9a-f]+)|(\d+))", value)
        if attribute in keys and match and match.group(1) in kernels:
            kernels[match.group(1)][keys[attribute]] = (
                int(match.group(2), 16) if match.group(2)
                else int(match.group(3)))
    linked = kind in ("ET_EXEC", "2")
    return {"format": "cubin" if linked else "relocatable",
            "target": "sm_" + (head.group(2) or head.group(4)),
            "kernels": kernels}


def file_facts(cuobjdump, path):
    """The members of a file, in its order."""
    flags = [] if path.endswith(".cubin") else ["-all"]
    text = subprocess.run([cuobjdump, "-elf", *flags, path], text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                          check=False).stdout
    if path.endswith(".cubin"):
        return [elf_facts(text)]
    members = []
    for part in re.split(r"^Fatbin (?=\w+ code:)", text, flags=re.M)[1:]:
        kind = part.split()[0]
        arch = re.search(r"^arch = (\S+)", part, re.M).group(1)
        packed = re.search(r"^compressed", part, re.M) is not None
        member = {"format": {"ptx": "ptx", "nvvm": "ltoir"}.get(kind)}
        if kind == "elf":
            member = elf_facts(part)
        elif kind == "ptx":
            member["target"] = arch
            version = re.search(r"code version = \[(\d+),(\d+)\]", part)
            member["ptx_version"] = "%s.%s" % version.groups()
        member["packed"] = packed
        name = re.search(r"^identifier: (\S+)", part, re.M)
        if name:
            member["identifier"] = name.group(1)
        members.append(member)
    return members


# ---- The comparison ----

def inspect(kiln, path):
    done = subprocess.run([kiln, "inspect", "--json", path], text=True,
                          stdout=subprocess.PIPE, check=False)
    return json.loads(done.stdout)


def differ(where, what, told, wanted):
    if told == wanted:
        return []
    return ["%s: %s is %s, and cuobjdump says %s" % (where, what, told, wanted)]


def compare_kernel(where, got, shown, truth):
    """`got` is the kernel of a member; `shown` the one with parameters."""
    out = []
    reserved = got["reserved_shared_bytes"]
    out += differ(where, "shared_bytes", got["shared_bytes"] + reserved,
                  truth["shared"])
    out += differ(where, "bank", got["parameter_bank_bytes"], truth["bank"])
    out += differ(where, "code_bytes", got["code_bytes"], truth["code_bytes"])
    for key in ("registers", "frame_bytes", "stack_bytes",
                "maximum_registers"):
        if key in truth:
            # All ones: recursion, so that nobody knows.
            wanted = None if truth[key] == 0xffffffff else truth[key]
            out += differ(where, key, got[key], wanted)
    out += differ(where, "barriers", got["barriers"], truth.get("barriers", 0))
    if shown is None:
        return out
    out += differ(where, "params", [[p["offset"], p["bytes"]]
                                    for p in shown["params"]], truth["params"])
    for key, name in (("maximum_block", "maximum_block"),
                      ("required_block", "required_block"),
                      ("required_cluster", "cluster")):
        out += differ(where, key, shown[key], truth.get(name))
    return out


def compare(where, got, truth):
    if "error" in got:
        return ["%s: %s" % (where, got["error"]["message"])]
    out = differ(where, "members", len(got["members"]), len(truth))
    if out:
        return out
    seen = set()
    for i, (member, wanted) in enumerate(zip(got["members"], truth)):
        if "does not unpack" in (member["unread"] or ""):
            continue  # built without the library
        here = "%s, member %d" % (where, i)
        out += differ(here, "format", member["format"], wanted["format"])
        if "target" in wanted:
            # cuobjdump does not tell the suffix of a family.
            out += differ(here, "target", member["target"].rstrip("f"),
                          wanted["target"])
        if "packed" in wanted:
            out += differ(here, "packed", member["packing"] != "none",
                          wanted["packed"])
        if "ptx_version" in wanted:
            out += differ(here, "ptx_version", member["ptx_version"],
                          wanted["ptx_version"])
        if "identifier" in wanted:
            out += differ(here, "identifier", member["identifier"],
                          wanted["identifier"])
        names = {k["name"]: k for k in member["kernels"] or []}
        if "kernels" in wanted:
            out += differ(here, "kernels", sorted(names),
                          sorted(wanted["kernels"]))
            for name, truth_kernel in wanted["kernels"].items():
                if name not in names:
                    continue
                shown = None
                if name not in seen:
                    shown = next(k for k in got["kernels"]
                                 if k["name"] == name)
                out += compare_kernel("%s, %s" % (here, name), names[name],
                                      shown, truth_kernel)
        seen |= set(names)
    return out


# ---- The three uses ----

def data_files():
    ends = (".cubin", ".fatbin", ".object", ".library")
    return sorted(f for f in os.listdir(DATA) if f.endswith(ends))


def record():
    cuobjdump = need("cuobjdump")
    truth = {f: file_facts(cuobjdump, os.path.join(DATA, f))
             for f in data_files()}
    with open(TRUTH, "w", encoding="utf-8") as out:
        json.dump(truth, out, indent=1, sort_keys=True)
        out.write("\n")


def recorded(kiln):
    with open(TRUTH, encoding="utf-8") as file:
        truth = json.load(file)
    problems = [] if sorted(truth) == data_files() else [
        "truth.json is about other files: --record"]
    for name, wanted in truth.items():
        problems += compare(name, inspect(kiln, os.path.join(DATA, name)),
                            wanted)
    return problems, len(truth)


BUILDS = [("-cubin", ["-arch=sm_90"], ".cubin"),
          ("-cubin", ["-arch=sm_80", "-G"], ".cubin"),
          ("-cubin", ["-arch=sm_120", "-lineinfo"], ".cubin"),
          ("-cubin", ["-arch=sm_90", "-rdc=true"], ".cubin"),
          ("-fatbin", ["-gencode", "arch=compute_90a,code=[sm_90a,compute_90a]",
                       "-gencode", "arch=compute_75,code=sm_75"], ".fatbin"),
          ("-fatbin", ["-arch=sm_100", "-Xfatbin", "-compress-all", "-Xfatbin",
                       "-compress-mode=speed"], ".fatbin"),
          ("-c", ["-arch=sm_86", "-Xfatbin", "-compress-all"], ".o"),
          ("-lib", ["-arch=sm_90", "-rdc=true"], ".a")]


def fresh(kiln):
    nvcc, cuobjdump = need("nvcc"), need("cuobjdump")
    problems, count = [], 0
    with tempfile.TemporaryDirectory() as folder:
        for i, (kind, flags, end) in enumerate(BUILDS):
            path = os.path.join(folder, "fresh%d%s" % (i, end))
            done = subprocess.run(
                [nvcc, kind, *flags, os.path.join(DATA, "sample.cu"), "-o",
                 path], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                text=True, check=False)
            if done.returncode:
                print("not compiled here: %s %s: %s" % (
                    kind, " ".join(flags), done.stdout.strip()[:200]))
                continue
            count += 1
            problems += compare(" ".join([kind] + flags), inspect(kiln, path),
                                file_facts(cuobjdump, path))
    if count == 0:
        print("skipped: this nvcc compiles none of the samples")
        sys.exit(SKIP)
    return problems, count


def main():
    if sys.argv[1:] == ["--record"]:
        return record()
    problems, count = (fresh if "--fresh" in sys.argv else recorded)(
        sys.argv[1])
    for problem in problems:
        print(problem)
    print("%d files, %d differences" % (count, len(problems)))
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
