#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Unpacks Debian's CUDA packages to try the search on.

    debs.py [--mirror URL] [--packages WORD]... [--whole GLOB]... FOLDER SUITE...

For each SUITE (bookworm, trixie) FOLDER/SUITE becomes the root of a system
that has the packages of Debian's source nvidia-cuda-toolkit, with the records
that dpkg would keep of them (var/lib/dpkg: status and a list for each). The
packages are unpacked, not installed: none of their programs is run, and each
is deleted once it is unpacked. Static libraries and the profilers' files above
a mebibyte are made of the right size and hollow, which saves gigabytes: the
search does not look inside them. Files whose names match a GLOB are whole:
--whole 'lib*_static.a' is for those that are linked (tests/install).
The archive is the one that this machine's apt uses, or --mirror.
With --packages only packages whose names contain one of the words. What is
there already is not fetched again.

Exits with 77, and the reason, where the packages cannot be had.
"""

import argparse
import fnmatch
import glob
import hashlib
import json
import lzma
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import urllib.error
import urllib.request

SKIP = 77
SOURCES = ("nvidia-cuda-toolkit", "nvidia-nccl")
# The driver's libraries, of its many packages.
DRIVER = ("libcuda1", "libnvidia-ml1")
# Big, and with nothing in them that a row of the catalog names.
LEFT_OUT = re.compile(r"-doc$|^nvidia-(openjdk|visual-profiler|fs-dkms|"
                      r"cuda-toolkit-gcc)|^gds-tools$")
HOLLOW = 1 << 20


def fetch(url):
    with urllib.request.urlopen(url, timeout=60) as answer:
        return answer.read()


def mirror_of_apt():
    """The archive that this machine's own apt takes packages from."""
    for path in sorted(glob.glob("/etc/apt/sources.list") +
                       glob.glob("/etc/apt/sources.list.d/*.sources") +
                       glob.glob("/etc/apt/sources.list.d/*.list")):
        with open(path, encoding="utf-8") as file:
            found = re.search(r"^(?:URIs:|deb)\s.*?(https?://\S*/debian)/?\s",
                              file.read(), re.M)
        if found:
            return found.group(1)
    return None


def stanzas(text):
    """The paragraphs of a control file: {field: text}, and as they are."""
    for block in text.split("\n\n"):
        fields = {}
        for line in block.split("\n"):
            if line[:1] not in (" ", "\t", "") and ":" in line:
                name, _, value = line.partition(":")
                fields[name] = value.strip()
        if "Package" in fields:
            yield fields, block.strip("\n")


def source_of(fields):
    return fields.get("Source", fields["Package"]).split(" ")[0]


def wanted(mirror, suite, words):
    for component in ("contrib", "non-free"):
        packed = fetch("%s/dists/%s/%s/binary-amd64/Packages.xz" % (
            mirror, suite, component))
        for fields, _ in stanzas(lzma.decompress(packed).decode()):
            name = fields["Package"]
            if (source_of(fields) in SOURCES or name in DRIVER) and not LEFT_OUT.search(name) and \
                    (not words or any(word in name for word in words)):
                yield fields


# ---- One package ----

def place_file(tar, member, target, hollow, whole):
    os.makedirs(os.path.dirname(target), exist_ok=True)
    if os.path.lexists(target):
        os.unlink(target)
    if member.issym():
        os.symlink(member.linkname, target)
        return
    with open(target, "wb") as file:
        kept = any(fnmatch.fnmatch(os.path.basename(target), glob_)
                   for glob_ in whole)
        if member.size > HOLLOW and not kept and (
                hollow or member.name.endswith(".a")):
            file.truncate(member.size)
        else:
            shutil.copyfileobj(tar.extractfile(member), file, 1 << 20)
    os.chmod(target, member.mode & 0o755)


def unpack(deb, root, hollow, whole):
    """The package's paths, as dpkg lists them."""
    paths = []
    with subprocess.Popen(["dpkg-deb", "--fsys-tarfile", deb],
                          stdout=subprocess.PIPE) as child:
        with tarfile.open(fileobj=child.stdout, mode="r|") as tar:
            for member in tar:
                name = os.path.normpath("/" + member.name)
                paths.append("/." if name == "/" else name)
                target = root + name
                if member.isdir():
                    os.makedirs(target, exist_ok=True)
                elif member.islnk():
                    os.link(os.path.normpath(root + "/" + member.linkname),
                            target)
                else:
                    place_file(tar, member, target, hollow, whole)
    if child.returncode:
        raise SystemExit("dpkg-deb cannot read " + deb)
    return paths


def record(root, fields, control, paths):
    """What dpkg would keep of it."""
    name = fields["Package"]
    if fields.get("Multi-Arch") == "same":
        name += ":" + fields["Architecture"]
    info = os.path.join(root, "var/lib/dpkg/info")
    os.makedirs(info, exist_ok=True)
    with open(os.path.join(info, name + ".list"), "w",
              encoding="utf-8") as file:
        file.write("".join(path + "\n" for path in paths))
    head, _, rest = control.partition("\n")
    with open(os.path.join(root, "var/lib/dpkg/status"), "a",
              encoding="utf-8") as file:
        file.write("%s\nStatus: install ok installed\n%s\n\n" % (head, rest))


def have(root, fields, mirror, whole):
    url = mirror + "/" + fields["Filename"]
    with tempfile.NamedTemporaryFile(dir=root, suffix=".deb") as deb:
        digest = hashlib.sha256()
        with urllib.request.urlopen(url, timeout=60) as answer:
            while True:
                piece = answer.read(1 << 20)
                if not piece:
                    break
                digest.update(piece)
                deb.write(piece)
        deb.flush()
        if digest.hexdigest() != fields["SHA256"]:
            raise SystemExit(url + " is not what the index says")
        control = subprocess.run(["dpkg-deb", "--field", deb.name],
                                 stdout=subprocess.PIPE, text=True,
                                 check=True).stdout.strip("\n")
        hollow = fields["Package"].startswith("nsight-")
        record(root, fields, control, unpack(deb.name, root, hollow, whole))


def alternatives(root):
    """update-alternatives' links, which no package's list has."""
    for name, target in (("usr/bin/nvcc",
                          "/usr/lib/nvidia-cuda-toolkit/bin/nvcc"),):
        path = os.path.join(root, name)
        if not os.path.lexists(path) and os.path.exists(root + target):
            os.makedirs(os.path.dirname(path), exist_ok=True)
            os.symlink(target, path)


def make(folder, suite, mirror, words, whole):
    root = os.path.join(folder, suite)
    done_path = root + ".json"
    done = []
    if os.path.exists(done_path):
        with open(done_path, encoding="utf-8") as file:
            done = json.load(file)
    else:
        shutil.rmtree(root, ignore_errors=True)
    os.makedirs(root, exist_ok=True)
    for fields in sorted(wanted(mirror, suite, words),
                         key=lambda fields: int(fields["Size"])):
        label = "%s %s" % (fields["Package"], fields["Version"])
        if label in done:
            continue
        print(suite, label, "%d MB" % (int(fields["Size"]) >> 20), flush=True)
        have(root, fields, mirror, whole)
        done.append(label)
        with open(done_path, "w", encoding="utf-8") as file:
            json.dump(done, file, indent=1)
    alternatives(root)
    return len(done)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--mirror", default=mirror_of_apt())
    parser.add_argument("--packages", action="append", default=[])
    parser.add_argument("--whole", action="append", default=[])
    parser.add_argument("folder")
    parser.add_argument("suites", nargs="+")
    options = parser.parse_args()
    if shutil.which("dpkg-deb") is None:
        print("skipped: there is no dpkg-deb")
        return SKIP
    if options.mirror is None:
        print("skipped: apt knows no archive of Debian; name one: --mirror")
        return SKIP
    for suite in options.suites:
        try:
            count = make(os.path.abspath(options.folder), suite,
                         options.mirror, options.packages, options.whole)
        except (urllib.error.URLError, TimeoutError, ConnectionError) as error:
            print("skipped: %s cannot be had: %s" % (suite, error))
            return SKIP
        print("%s: %d packages" % (suite, count))
    return 0


if __name__ == "__main__":
    sys.exit(main())
