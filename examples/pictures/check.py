#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares the pixels that run.sh made with expected.txt.

check.py FOLDER           compare
check.py FOLDER --write   write expected.txt anew

Reads PNG by itself, so that it also checks the command's writer; what is
hashed are height, width, channels and the pixels, not the compressed bytes,
which depend on the version of zlib.
"""

import hashlib
import os
import struct
import sys
import zlib

NAMES = ["gray.png", "blurred.png", "edges.png", "mandelbrot.png"]


def unfilter(kind, row, above, step):
    for i in range(len(row)):
        left = row[i - step] if i >= step else 0
        up = above[i]
        corner = above[i - step] if i >= step else 0
        if kind == 1:
            add = left
        elif kind == 2:
            add = up
        elif kind == 3:
            add = (left + up) // 2
        elif kind == 4:
            guess = left + up - corner
            near = [abs(guess - left), abs(guess - up), abs(guess - corner)]
            add = (left, up, corner)[near.index(min(near))]
        else:
            add = 0
        row[i] = (row[i] + add) & 255


def read_png(path):
    """Height, width, channels and pixels of an 8-bit PNG."""
    with open(path, "rb") as file:
        data = file.read()
    if data[:8] != b"\x89PNG\r\n\x1a\n":
        raise ValueError("%s: no PNG" % path)
    at, packed = 8, b""
    while at < len(data):
        size, kind = struct.unpack(">I4s", data[at:at + 8])
        body = data[at + 8:at + 8 + size]
        (crc,) = struct.unpack(">I", data[at + 8 + size:at + 12 + size])
        if zlib.crc32(kind + body) != crc:
            raise ValueError("%s: checksum of %s" % (path, kind))
        if kind == b"IHDR":
            width, height, depth, color, _, _, laced = struct.unpack(
                ">IIBBBBB", body)
        elif kind == b"IDAT":
            packed += body
        at += 12 + size
    channels = {0: 1, 2: 3, 4: 2, 6: 4}[color]
    if depth != 8 or laced:
        raise ValueError("%s: not 8 bits, or interlaced" % path)
    raw = zlib.decompress(packed)
    stride = width * channels
    above, pixels = bytearray(stride), bytearray()
    for y in range(height):
        start = y * (stride + 1)
        row = bytearray(raw[start + 1:start + 1 + stride])
        unfilter(raw[start], row, above, channels)
        pixels += row
        above = row
    return height, width, channels, bytes(pixels)


def line(folder, name):
    height, width, channels, pixels = read_png(os.path.join(folder, name))
    return "%s  %s %dx%dx%d" % (hashlib.sha256(pixels).hexdigest(), name,
                                height, width, channels)


def main():
    here = os.path.dirname(os.path.abspath(__file__))
    expected = os.path.join(here, "expected.txt")
    lines = [line(sys.argv[1], name) for name in NAMES]
    if "--write" in sys.argv[2:]:
        with open(expected, "w", encoding="ascii") as file:
            file.write("\n".join(lines) + "\n")
        return 0
    with open(expected, encoding="ascii") as file:
        wanted = file.read().splitlines()
    wrong = [got for got in lines if got not in wanted]
    for got in wrong:
        print("not as expected: " + got)
    return 1 if wrong or len(wanted) != len(lines) else 0


if __name__ == "__main__":
    sys.exit(main())
