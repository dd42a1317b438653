#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""live: record what a GPU answers to every form (tests/truth).

    live_truth.py --truth build/release/tests/truth/truth --into FOLDER

Leaves in FOLDER: report.txt (what the software device answers otherwise, with
inputs, and how far floats are apart), families.tar.xz (the files
that belong into tests/truth/data; with --unless tests/truth/data only the
families that are not there yet) and binades-N.tar (every answer of the
approximate units over whole binades, each file compressed; truth_binades.h
says how they are written, `--unpack FILE` prints one as numbers). Needs no
toolkit. Exit code 77 without a GPU.
"""
import argparse
import io
import lzma
import multiprocessing
import pathlib
import struct
import subprocess
import sys
import tarfile
import tempfile
import time

PART_BYTES = 15 << 20  # of one file that comes back
PARTS = 4


def compressed(path):
    filters = [{"id": lzma.FILTER_LZMA2, "preset": 4, "lc": 0, "lp": 0,
                "pb": 0}]
    return path.name + ".xz", lzma.compress(path.read_bytes(),
                                            filters=filters)


def add_bytes(archive, name, data):
    info = tarfile.TarInfo(name)
    info.size = len(data)
    archive.addfile(info, io.BytesIO(data))


def pack_binades(folder, into):
    """The most telling first, until there is no more room."""
    files = sorted(folder.glob("*.d2"))
    left_out = []
    parts, part, used = [], None, PART_BYTES
    with multiprocessing.Pool() as pool:
        for name, data in pool.imap(compressed, files):
            if used + len(data) + 4096 > PART_BYTES:
                if len(parts) == PARTS:
                    left_out.append(name)
                    continue
                if part is not None:
                    part.close()
                parts.append(into / f"binades-{len(parts) + 1}.tar")
                part = tarfile.open(parts[-1], "w")
                used = 10240
            add_bytes(part, name, data)
            used += len(data) + 1024
    if part is not None:
        part.close()
    return len(files), left_out


def unpack(path):
    """The 2^23 answers of a file of binades."""
    data = lzma.decompress(path.read_bytes()) if path.suffix == ".xz" \
        else path.read_bytes()
    last = step = at = 0
    while at < len(data):
        if data[at] == 255:
            answer, = struct.unpack_from("<I", data, at + 1)
            at += 5
        else:
            second = (data[at] >> 1) ^ -(data[at] & 1)
            answer = (last + step + second) & 0xffffffff
            at += 1
        step = (answer - last) & 0xffffffff
        last = answer
        yield answer


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--truth", type=pathlib.Path)
    parser.add_argument("--into", type=pathlib.Path)
    parser.add_argument("--soft", action="store_true",
                        help="ask the software device, to try this out")
    parser.add_argument("--only")
    parser.add_argument("--unless", type=pathlib.Path,
                        help="record only what this folder has no answers to")
    parser.add_argument("--no-binades", action="store_true")
    parser.add_argument("--unpack", type=pathlib.Path)
    arguments = parser.parse_args()
    if arguments.unpack:
        for answer in unpack(arguments.unpack):
            print(f"{answer:08x}")
        return 0
    if not arguments.truth or not arguments.into:
        parser.error("--truth and --into are needed")
    arguments.into.mkdir(parents=True, exist_ok=True)
    more = (["--soft"] if arguments.soft else []) + (
        ["--only", arguments.only] if arguments.only else [])
    unless = ["--unless", arguments.unless] if arguments.unless else []
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        start = time.monotonic()
        with open(arguments.into / "report.txt", "w",
                  encoding="utf-8") as report:
            code = subprocess.run(
                [arguments.truth, "record", folder, "--beside", *more, *unless],
                stdout=report, stderr=subprocess.STDOUT,
                check=False).returncode
        text = (arguments.into / "report.txt").read_text(
            encoding="utf-8", errors="replace").splitlines()
        print("\n".join(text[:2] + text[-3:]))
        print(f"record: exit {code}, {time.monotonic() - start:.0f} s")
        if code != 0:
            return code
        with tarfile.open(arguments.into / "families.tar.xz",
                          "w:xz") as archive:
            for path in sorted(folder.glob("*.truth")):
                archive.add(path, path.name)
                print(f"{path.name}: {path.stat().st_size} bytes")
        if arguments.no_binades:
            return code
        start = time.monotonic()
        code = subprocess.run([arguments.truth, "binades", folder, *more],
                              check=False).returncode
        count, left_out = pack_binades(folder, arguments.into)
        print(f"binades: exit {code}, {count} files, left out "
              f"{' '.join(left_out) or 'none'}, "
              f"{time.monotonic() - start:.0f} s")
    return code


if __name__ == "__main__":
    sys.exit(main())
