#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""tools: an archive whose hidden symbols are exported.

    export_hidden.py ARCHIVE OUT

Writes OUT, a copy of the static library ARCHIVE in which every hidden ELF
symbol has default visibility. The tests' shared library is linked from it:
libkiln's own objects, compiled once and as they are shipped, with the inside
of the library in sight. A shared library cannot export what its objects hide,
and neither ld nor objcopy changes a symbol's visibility.
"""
import os
import struct
import sys

MAGIC = b"!<arch>\n"
HEADER = 60  # bytes before each member of an archive
SHT_SYMTAB = 2
SYMBOL = 24  # bytes of an Elf64_Sym; st_other is the sixth
STV_HIDDEN = 2
# st_other: the visibility is in the low two bits.
EXPORT = bytes(byte & ~3 if byte & 3 == STV_HIDDEN else byte
               for byte in range(256))


def fail(text):
    sys.exit("export_hidden.py: " + text)


def export_object(data, start, name):
    """Rewrites the global symbols of the ELF object at `start` in place."""
    if data[start:start + 6] != b"\x7fELF\x02\x01":
        fail("%s is no 64-bit little-endian ELF object" % name)
    table, = struct.unpack_from("<Q", data, start + 40)
    size, count = struct.unpack_from("<HH", data, start + 58)
    for at in range(start + table, start + table + size * count, size):
        kind, = struct.unpack_from("<I", data, at + 4)
        if kind != SHT_SYMTAB:
            continue
        offset, length, _, first_global = struct.unpack_from(
            "<QQII", data, at + 24)
        others = slice(start + offset + first_global * SYMBOL + 5,
                       start + offset + length, SYMBOL)
        data[others] = data[others].translate(EXPORT)


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    with open(sys.argv[1], "rb") as file:
        data = bytearray(file.read())
    if data[:len(MAGIC)] != MAGIC:
        fail("%s is no static library" % sys.argv[1])
    at = len(MAGIC)
    while at < len(data):
        name = data[at:at + 16].decode("latin-1").strip()
        length = int(data[at + 48:at + 58])
        # "/" is the index of symbols, "//" holds long names.
        if name not in ("/", "//", "/SYM64/"):
            export_object(data, at + HEADER, name)
        at += HEADER + length + (length & 1)
    # In one step, so that an interrupted build leaves no half an archive.
    with open(sys.argv[2] + ".part", "wb") as file:
        file.write(data)
    os.replace(sys.argv[2] + ".part", sys.argv[2])


if __name__ == "__main__":
    main()
