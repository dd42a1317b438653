#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# pkg-config: build.sh OUT [OPTION OF kiln config]...
#
# `kiln config --pc` writes the file that a toolkit's packages rarely have, and
# that wheels never have.
set -eu
here=$(dirname "$0")
out=$1
shift
"${KILN:-kiln}" config --pc --rpath "$@" nvrtc >"$out/cuda-nvrtc.pc"
flags=$(PKG_CONFIG_PATH=$out pkg-config --cflags --libs cuda-nvrtc)
eval "${CC:-cc} \"\$here/../nvrtc_version.c\" -o \"\$out/nvrtc_version\" $flags"
