#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# examples: a picture from nothing, and a photograph through a chain of kernels.
#
#   run.sh [KILN [FOLDER [OPTION...]]]
#
# KILN is the command (default: kiln), FOLDER where the pictures are written
# (default: .), OPTION what else `kiln run` shall be given, such as
# `--device soft`. Two of the kernels are programs of the library, two are PTX
# made from the .cu files here; with SOURCE=1 all four are CUDA C++, compiled by
# NVRTC. The pixels are the same.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
kiln=${1:-kiln}
out=${2:-.}
[ $# -gt 0 ] && shift
[ $# -gt 0 ] && shift
code=ptx
[ "${SOURCE:-0}" = 1 ] && code=cu
mkdir -p "$out"

# cat.png is 451 pixels wide and 300 high; the tiles are 16 by 16 threads.
w=451
h=300
tiles="29,19"

echo "mandelbrot: $out/mandelbrot.png"
if [ $code = ptx ]; then
  "$kiln" run lib:mandelbrot "$@" \
    --out picture="$out/mandelbrot.png:u8[$h,$w,3]" \
    --arg w=$w --arg h=$h --arg limit=200
else
  "$kiln" run "$here/mandelbrot.cu" "$@" \
    --out 0="$out/mandelbrot.png:u8[$h,$w,3]" \
    --arg 1=${w}i32 --arg 2=${h}i32 --arg 3=200i32 --grid $tiles --block 16,16
fi

echo "gray:       $out/gray.png"
"$kiln" run "$here/grayscale.$code" "$@" \
  --in 0="$here/cat.png" --out 1="$out/gray.png:u8[$h,$w]" \
  --arg "2=$((w * h))u32" --grid 529

echo "blurred:    $out/blurred.png"
if [ $code = ptx ]; then
  "$kiln" run lib:blur "$@" \
    --in picture="$out/gray.png" --out blurred="$out/blurred.png:@picture" \
    --arg w=$w --arg h=$h --arg channels=1
else
  "$kiln" run "$here/blur.cu" "$@" \
    --in 0="$out/gray.png" --out 1="$out/blurred.png:@0" \
    --arg 2=${w}i32 --arg 3=${h}i32 --grid $tiles --block 16,16
fi

echo "edges:      $out/edges.png"
"$kiln" run "$here/sobel.$code" "$@" \
  --in 0="$out/blurred.png" --out 1="$out/edges.png:@0" \
  --arg 2=${w}i32 --arg 3=${h}i32 --grid $tiles --block 16,16

echo
echo "The Mandelbrot set is $out/mandelbrot.png. The photograph is"
echo "$here/cat.png; its edges are $out/edges.png."
echo "Look at them with any viewer, such as: xdg-open $out/edges.png"
