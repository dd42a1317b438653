// SPDX-License-Identifier: Apache-2.0
//
// dispatch: the door. Rooms above use pipelines as everybody does.
#ifndef KILN_SRC_DISPATCH_DISPATCH_H_
#define KILN_SRC_DISPATCH_DISPATCH_H_

#include "kiln/dispatch.h"
#include "kiln/pipeline.h"
#include "kiln/resident.h"
#include "kiln/sequence.h"
#include "kiln/telemetry.h"

#endif  // KILN_SRC_DISPATCH_DISPATCH_H_
