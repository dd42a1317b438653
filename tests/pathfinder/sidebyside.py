#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Asks the real cuda-pathfinder and `kiln find` the same questions.

    sidebyside.py --kiln PROGRAM --environments FOLDER [--report FILE]

FOLDER is what tools/wheels.py made. In each environment, for every name that
cuda-pathfinder knows, both answers are compared: found or not, the path (with
links resolved) and the scope. Each difference must be explained by a line of
differences.txt, and each line must explain one; anything else fails. With
--report, what was compared is added to a page. With --clean, this machine's
own CUDA is hidden first (in a mount namespace, which takes root). With --debian
ROOT, which tools/debs.py made, the packages of ROOT are laid over this system
as well, and both are asked there without and with wheels. Exits with 77 where
there are no environments, or nothing can be hidden.
"""

import argparse
import collections
import concurrent.futures
import datetime
import fnmatch
import json
import os
import platform
import re
import shutil
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
SKIP = 77

# What cuda-pathfinder calls Kiln's scopes.
SCOPES = {
    "site-packages": ("wheel",),
    "conda": ("conda",),
    "CUDA_PATH": ("CUDA_PATH", "CUDA_HOME"),
    "system-search": ("loader",),
    "system-ctk-root": ("loader-root",),
    "supported_install_dir": ("distribution",),
    "CUDNN_PATH": ("product",),
    "NCCL_HOME": ("product",),
}
# Nothing of the caller's own environment may reach the two.
REMOVED = ("CUDA_PATH", "CUDA_HOME", "CONDA_PREFIX", "LD_LIBRARY_PATH",
           "VIRTUAL_ENV", "CUDNN_PATH", "NCCL_HOME", "LD_PRELOAD")

Difference = collections.namedtuple(
    "Difference", "what kind name environment via scope theirs ours")


def variables(environment):
    out = {key: value for key, value in os.environ.items()
           if key not in REMOVED and not key.startswith(("PYTHON", "KILN_"))}
    out.update(environment["variables"])
    # As its `activate` would.
    out["VIRTUAL_ENV"] = environment["venv"]
    return out


def run(command, environment):
    done = subprocess.run(command, env=variables(environment), text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          check=False, timeout=300,
                          cwd=environment["variables"].get("PWD", "/"))
    try:
        return json.loads(done.stdout)
    except ValueError:
        raise SystemExit("%s in %s: exit code %d, %s%s" % (
            command, environment["name"], done.returncode,
            done.stdout[-500:], done.stderr[-2000:])) from None


def ask(environment, kiln):
    python = os.path.join(environment["venv"], "bin", "python")
    theirs = run([python, "-I", "-B", os.path.join(HERE, "ask_pathfinder.py")],
                 environment)
    ours = run([kiln, "find", "--all", "--json"], environment)
    return theirs, ours


def same_file(path, other, header):
    """The same file; of two folders of headers, the same header in both."""
    return (os.path.realpath(os.path.join(path, header)) ==
            os.path.realpath(os.path.join(other, header)))


def compare(environment, theirs, ours):
    """The differences of one environment."""
    answers = {(item["kind"], item["name"]): item for item in ours["items"]}
    for item in theirs["items"]:
        key = item["kind"], item["name"]
        answer = answers.get(key)
        if answer is None:
            yield Difference("unknown", *key, environment["name"], "", "",
                             item["path"], None)
            continue
        path = answer["path"] if answer["found"] else None
        scope = answer["scope"] or "" if answer["found"] else ""
        via = item["via"] or ""
        if item["path"] is None and path is None:
            continue
        if item["path"] is None:
            what = "kiln-only"
        elif path is None:
            what = "pathfinder-only"
        elif not same_file(path, item["path"], item["header"]):
            what = "path"
        elif via in SCOPES and scope not in SCOPES[via]:
            what = "scope"
        else:
            continue
        yield Difference(what, *key, environment["name"], via, scope,
                         item["path"], path)


class Reason:
    """A line of differences.txt."""

    def __init__(self, line, number):
        cells = [cell.strip() for cell in line.split("|")]
        if len(cells) != 8:
            raise SystemExit("differences.txt:%d: not eight cells" % number)
        self.condition, self.reason = cells[6], cells[7]
        self.globs, self.number = cells[:6], number
        self.used = 0

    def explains(self, difference):
        return all(any(fnmatch.fnmatchcase(value, glob.strip())
                       for glob in globs.split(","))
                   for value, globs in zip(difference[:6], self.globs))


def read_reasons():
    with open(os.path.join(HERE, "differences.txt"),
              encoding="utf-8") as file:
        return [Reason(line, number) for number, line in enumerate(file, 1)
                if line.strip() and not line.startswith("#")]


def conditions(made):
    """What is true of this machine: not all differences show everywhere."""
    out = {"-", "all" if made["all"] else "small"}
    cache = subprocess.run(["/sbin/ldconfig", "-p"], stdout=subprocess.PIPE,
                           stderr=subprocess.DEVNULL, text=True, check=False)
    found = re.search(r"libcudart\.so\.\S+ .*=> (\S+)", cache.stdout)
    full = all(os.path.exists(os.path.join("/usr/local/cuda", name)) for name
               in ("bin/nvcc", "nvvm/libdevice", "include/cublas.h"))
    if found and full:
        out.add("loader")
        if os.path.islink(found.group(1)):
            out.add("linked")
    if full:
        out.add("local")
    return out


def title(hidden):
    if hidden is True:
        return "This machine, its own CUDA hidden"
    return "Debian %s's CUDA packages, laid over this machine" % hidden \
        if hidden else "This machine"


CONDA = """Conda environments are synthetic: prefixes laid out as the channel's file
lists say, with files from wheels in them. No conda archive could be reached,
so no package of conda's was ever unpacked."""


def report(path, made, counts, reasons, version, hidden):
    lines = []
    if not os.path.exists(path):
        lines = ["# Side by side with cuda-pathfinder %s" % version, "",
                 CONDA, ""]
    lines += [
        "## " + title(hidden), "",
        "Written by `tests/pathfinder/sidebyside.py --report` on %s, %s, "
        "CPython %s, %s wheels." % (
            datetime.date.today(), platform.machine(),
            platform.python_version(), "all" if made["all"] else "the small"),
        "", "Every name that cuda-pathfinder knows was asked of both in "
        "each environment; *same* is the same answer (found or not, the file "
        "with links resolved, the scope).", "",
        "| environment | what it is | asked | found by both | same | "
        "explained |", "|---|---|---|---|---|---|"]
    for environment in made["environments"]:
        asked, found, differing = counts[environment["name"]]
        lines.append("| %s | %s | %d | %d | %d | %d |" % (
            environment["name"], environment["what"], asked, found,
            asked - differing, differing))
    lines += ["", "What differs, and why:", "",
              "| how often | what | kinds | names | why |",
              "|---|---|---|---|---|"]
    for reason in reasons:
        if reason.used:
            lines.append("| %d | %s | %s | %s | %s |" % (
                reason.used, reason.globs[0], reason.globs[1],
                reason.globs[2].replace("*", "any"), reason.reason))
    with open(path, "a", encoding="utf-8") as file:
        file.write("\n".join(lines) + "\n\n")


# Lays another system's packages over this one.
OVERLAY = """
root=$1
shift
mount --make-rprivate / || exit 77
for part in usr etc; do
  [ -d "$root/$part" ] || continue
  mount -t overlay overlay -o "lowerdir=$root/$part:/$part" "/$part" || exit 77
done
mkdir -p /var/lib/dpkg
mount --bind "$root/var/lib/dpkg" /var/lib/dpkg || exit 77
"""

# Hides toolkits and gives the loader a cache of its default folders alone.
CLEAN = """
mount --make-rprivate / || exit 77
for folder in /usr/local/cuda-* /opt/cuda /opt/nvidia; do
  [ -d "$folder" ] && { mount -t tmpfs none "$folder" || exit 77; }
done
/sbin/ldconfig -f /dev/null -C "$1" -X || exit 77
mount --bind "$1" /etc/ld.so.cache || exit 77
shift
exec "$@"
"""


def in_clean_machine(environments, debian):
    """The same command where there is no CUDA, or Debian's; its exit code."""
    command = [sys.executable, *(arg for arg in sys.argv if arg != "--clean"),
               "--hidden"]
    cache = os.path.join(environments, "ld.so.cache")
    script, given = CLEAN, [cache]
    if debian:
        script, given = OVERLAY + CLEAN, [os.path.abspath(debian), cache]
    done = subprocess.run(["unshare", "--mount", "sh", "-c", script, "sh",
                           *given, *command], check=False)
    if done.returncode == SKIP:
        print("skipped: nothing can be hidden here")
    return SKIP if done.returncode == 127 else done.returncode


def over_debian(made, suite):
    """The environments to ask about where a system has Debian's packages."""
    by_name = {one["name"]: one for one in made["environments"]}
    out = []
    for name, like, what, variables in (
            ("packages", "empty", "its CUDA packages", {}),
            ("cu13", "cu13", "the same and wheels of CUDA 13.0", {}),
            ("cu12", "cu12", "the same and wheels of CUDA 12.9", {}),
            ("usr", "empty", "CUDA_PATH is /usr", {"CUDA_PATH": "/usr"})):
        out.append(dict(by_name[like], name=suite + "-" + name, what="%s: %s" % (
            suite, what), variables=variables))
    return out


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--kiln", required=True)
    parser.add_argument("--environments", required=True)
    parser.add_argument("--report")
    parser.add_argument("--clean", action="store_true")
    parser.add_argument("--debian", metavar="ROOT")
    parser.add_argument("--hidden", action="store_true",
                        help="said by --clean to itself")
    parser.add_argument("--verbose", action="store_true")
    options = parser.parse_args()
    listed = os.path.join(options.environments, "environments.json")
    if not os.path.exists(listed):
        print("skipped: no environments (tools/wheels.py makes them)")
        return SKIP
    if options.debian and not os.path.isdir(options.debian):
        print("skipped: there is no folder " + options.debian)
        return SKIP
    if (options.clean or options.debian) and not options.hidden:
        if os.geteuid() != 0 or shutil.which("unshare") is None:
            print("skipped: hiding this machine's CUDA takes root and unshare")
            return SKIP
        return in_clean_machine(os.path.abspath(options.environments),
                                options.debian)
    with open(listed, encoding="utf-8") as file:
        made = json.load(file)
    suite = os.path.basename(os.path.normpath(options.debian or ""))
    if options.debian:
        made["environments"] = over_debian(made, suite)
    reasons = read_reasons()
    kiln = os.path.abspath(options.kiln)
    counts, unexplained, compared = {}, [], 0
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        answers = list(pool.map(lambda one: ask(one, kiln),
                                made["environments"]))
    for environment, (theirs, ours) in zip(made["environments"], answers):
        differing = list(compare(environment, theirs, ours))
        found = sum(item["path"] is not None for item in theirs["items"])
        found -= sum(one.what == "pathfinder-only" for one in differing)
        compared += len(theirs["items"])
        counts[environment["name"]] = (len(theirs["items"]), found,
                                       len(differing))
        for one in differing:
            by = [reason for reason in reasons if reason.explains(one)]
            if by:
                by[0].used += 1
            else:
                unexplained.append(one)
            if options.verbose:
                print(by[0].number if by else "-", *one)
    for one in unexplained:
        print("unexplained: %s: %s %s in %s: pathfinder %s (%s), kiln %s (%s)"
              % (one.what, one.kind, one.name, one.environment, one.theirs,
                 one.via or "-", one.ours, one.scope or "-"))
    holds = {suite} if options.debian else conditions(made)
    idle = [reason for reason in reasons if not reason.used and
            reason.condition in holds]
    for reason in idle:
        print("differences.txt:%d explains nothing: %s" % (reason.number,
                                                           reason.reason))
    if options.report:
        report(options.report, made, counts, reasons,
               answers[0][0]["version"], suite or options.hidden)
    print("%d environments, %d answers compared, %d explained, %d not, "
          "%d idle lines" % (
              len(answers), compared, sum(reason.used for reason in reasons),
              len(unexplained), len(idle)))
    return 1 if unexplained or idle else 0


if __name__ == "__main__":
    sys.exit(main())
