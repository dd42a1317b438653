// SPDX-License-Identifier: Apache-2.0
//
// dispatch: the public header. Modules above use pipelines as users do, and may
// keep one to themselves.
#ifndef KILN_SRC_DISPATCH_DISPATCH_H_
#define KILN_SRC_DISPATCH_DISPATCH_H_

#include "kiln/dispatch.h"
#include "kiln/pipeline.h"
#include "kiln/resident.h"
#include "kiln/sequence.h"
#include "kiln/telemetry.h"

// To be called before the first use of a pipeline when the code that binds
// memory to it did not make it: an option of the pipeline then cannot repair a
// wrong binding, and no Fix names one.
void kilni_dispatch_pipeline_keep_options(kiln_pipeline_t* pipeline);

#endif  // KILN_SRC_DISPATCH_DISPATCH_H_
