// SPDX-License-Identifier: Apache-2.0
//
// dispatch: the public header. Modules above use pipelines as everybody does,
// and may keep one to themselves.
#ifndef KILN_SRC_DISPATCH_DISPATCH_H_
#define KILN_SRC_DISPATCH_DISPATCH_H_

#include "kiln/dispatch.h"
#include "kiln/pipeline.h"
#include "kiln/resident.h"
#include "kiln/sequence.h"
#include "kiln/telemetry.h"

// To be called before the first use of a pipeline that whoever binds memory to
// it did not make: what is wrong with a binding is not repaired by an option of
// the pipeline then, and no Fix names one.
void kilni_dispatch_pipeline_keep_options(kiln_pipeline_t* pipeline);

#endif  // KILN_SRC_DISPATCH_DISPATCH_H_
