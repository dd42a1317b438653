// SPDX-License-Identifier: Apache-2.0
//
// cli: a graph file that begins with `sequence`, on a device.
#ifndef KILN_SRC_CLI_GRAPH_SEQUENCE_H_
#define KILN_SRC_CLI_GRAPH_SEQUENCE_H_

#include "cli/graph_job.h"
#include "kiln/sequence.h"

// Makes the pipelines, if there are none, and a replay of the whole file. The
// caller owns `*out_replay`.
bool kilni_cli_sequence_build(kilni_cli_graph_job_t* job,
                              kiln_replay_t** out_replay,
                              kilni_cli_error_t* error);

// The outcome of the finished run: a trap, an exceeded limit.
bool kilni_cli_sequence_ended(kilni_cli_graph_job_t* job,
                              kilni_cli_error_t* error);

void kilni_cli_sequence_close(kilni_cli_graph_job_t* job);

#endif  // KILN_SRC_CLI_GRAPH_SEQUENCE_H_
