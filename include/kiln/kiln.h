// SPDX-License-Identifier: Apache-2.0
//
// runtime: every public header of Kiln.
#ifndef KILN_KILN_H_
#define KILN_KILN_H_

#include "kiln/allocator.h"
#include "kiln/api.h"
#include "kiln/cache.h"
#include "kiln/capture.h"
#include "kiln/code.h"
#include "kiln/compat.h"
#include "kiln/compile.h"
#include "kiln/device.h"
#include "kiln/dlpack.h"
#include "kiln/graph.h"
#include "kiln/green.h"
#include "kiln/image.h"
#include "kiln/launch.h"
#include "kiln/link.h"
#include "kiln/locate.h"
#include "kiln/log.h"
#include "kiln/managed.h"
#include "kiln/memory.h"
#include "kiln/module.h"
#include "kiln/peer.h"
#include "kiln/picture.h"
#include "kiln/pool.h"
#include "kiln/probe.h"
#include "kiln/program.h"
#include "kiln/program_builder.h"
#include "kiln/program_operators.h"
#include "kiln/runtime.h"
#include "kiln/soft.h"
#include "kiln/status.h"
#include "kiln/stream.h"
#include "kiln/tensor.h"
#include "kiln/texture.h"
#include "kiln/toolkit.h"
#include "kiln/version.h"
#include "kiln/virtual.h"
#include "kiln/watch.h"

#endif  // KILN_KILN_H_
