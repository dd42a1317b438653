# SPDX-License-Identifier: Apache-2.0
"""The data files that every case of tests/cli finds in its folder."""

import struct
import zlib


def npy(descr, shape, payload, version=1):
    text = "{'descr': '%s', 'fortran_order': False, 'shape': (%s), }" % (
        descr, "".join("%d," % n for n in shape))
    size = struct.pack("<H" if version == 1 else "<I", len(text))
    return (b"\x93NUMPY" + bytes([version, 0]) + size + text.encode() +
            payload)


def _chunk(kind, data):
    return (struct.pack(">I", len(data)) + kind + data +
            struct.pack(">I", zlib.crc32(kind + data)))


def png(width, height, color, rows, depth=8):
    raw = b"".join(b"\0" + row for row in rows)
    head = struct.pack(">IIBBBBB", width, height, depth, color, 0, 0, 0)
    return (b"\x89PNG\r\n\x1a\n" + _chunk(b"IHDR", head) +
            _chunk(b"IDAT", zlib.compress(raw)) + _chunk(b"IEND", b""))


def floats(*values):
    return struct.pack("<%df" % len(values), *values)


def files():
    """Name to content."""
    x = floats(1, 2, 3, 4)
    y = floats(10, 20, 30, 40)
    good_png = png(2, 2, 2, [b"abcdef", b"ghijkl"])
    return {
        "x.npy": npy("<f4", [4], x),
        "y.npy": npy("<f4", [4], y),
        "x.bin": x,
        "y.bin": y,
        # 2 * x + y
        "sum.bin": floats(12, 24, 36, 48),
        "empty.bin": b"",
        "odd.bin": b"12345",
        "gray.pgm": b"P5 2 2 255\nabcd",
        "color.ppm": b"P6 2 2 255\nabcdefghijkl",
        "color.png": good_png,
        "sevens.bin": b"\x07" * 12,
        # what must be refused
        "short.npy": npy("<f4", [5], x),
        "long.npy": npy("<f4", [3], x),
        "cut.npy": npy("<f4", [4], x)[:30],
        "big-endian.npy": npy(">f4", [4], x),
        "not.npy": b"hello, world",
        "cut.png": good_png[:50],
        "not.png": b"hello, world",
        "deep.png": png(1, 1, 0, [b"ab"], depth=16),
        "cut.pgm": b"P5 2 2 255\nabc",
        "deep.pgm": b"P5 1 1 65535\nab",
        "not.pgm": b"hello, world",
        # what its name does not say
        "bare": npy("<f4", [4], x),
        "bare-picture": good_png,
        "arrays.npz": b"PK\x03\x04\x14\0" + bytes(26) + b"x.npy",
        "photo.jpg": b"\xff\xd8\xff\xe0\0\x10JFIF\0" + bytes(21),
        "packed.bin": b"\x1f\x8b\x08\0" + bytes(28),
        "data.csv": b"1,2\n3,4\n",
        "data.json": b"[1, 2, 3, 4]\n\n\n\n",
        "sound.wav": b"RIFF" + bytes(12),
        "not.ptx": b"hello, world\n",
        "nul.ptx": b".version 7.0\n\0.target sm_70\n",
        "empty.ptx": b"",
        # an ELF file for machine 190, a GPU, and nothing in it
        "cubin.cubin": (b"\x7fELF\x02\x01\x01\x33\x07" + bytes(7) +
                        b"\x02\x00\xbe\x00" + bytes(44)),
        "image.fatbin": b"\x50\xed\x55\xba\x01\x00\x10\x00" + bytes(56),
        "program.kiln": b"program\n",
    }
