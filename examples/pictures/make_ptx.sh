#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# examples: makes the checked-in PTX from the kernels beside it, with nvcc of
# CUDA 13.0. Needed only when a kernel changes; running them needs no CUDA.
#
# `--fmad=false` keeps every float operation its own rounded one.
set -eu
cd "$(dirname "$0")"
for source in *.cu; do
  name=${source%.cu}
  nvcc -ptx -arch=sm_75 --fmad=false -o "$name.ptx.new" "$source"
  {
    echo "// SPDX-License-Identifier: Apache-2.0"
    echo "//"
    echo "// examples: made from $source by make_ptx.sh."
    cat "$name.ptx.new"
  } >"$name.ptx"
  rm -f "$name.ptx.new"
done
