#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Stops `kiln run` on a terminal while its line of progress is there.

    progress_terminal.py KILN

The line gets its end, and the signal ends the command.
"""
import os
import pathlib
import pty
import select
import signal
import subprocess
import sys
import time

KERNEL = pathlib.Path(__file__).parent / "kernels" / "spin.ptx"
WAIT_S = 60


def read(outer, seen, enough):
    end = time.monotonic() + WAIT_S
    while time.monotonic() < end and not enough(seen):
        if not select.select([outer], [], [], 0.1)[0]:
            continue
        try:
            more = os.read(outer, 65536)
        except OSError:
            break
        if not more:
            break
        seen += more
    return seen


def main():
    outer, inner = pty.openpty()
    process = subprocess.Popen(
        [sys.argv[1], "run", KERNEL, "--device", "soft", "--grid", "1",
         "--block", "1", "--out", "0=/dev/null:u32[1]"], stdin=inner,
        stdout=inner, stderr=inner)
    os.close(inner)
    seen = read(outer, b"", lambda text: b" ... " in text)
    process.send_signal(signal.SIGINT)
    code = process.wait(WAIT_S)
    seen = read(outer, seen, lambda text: False)
    if code != -signal.SIGINT or not seen.endswith(b" s\r\n"):
        sys.exit("exit code %d, and on the terminal: %r" % (code, seen))


main()
