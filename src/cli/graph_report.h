// SPDX-License-Identifier: Apache-2.0
//
// cli: the output of `kiln graph`: a table, or JSON.
#ifndef KILN_SRC_CLI_GRAPH_REPORT_H_
#define KILN_SRC_CLI_GRAPH_REPORT_H_

#include <jansson.h>

#include "cli/cli_output.h"
#include "cli/graph_job.h"

// A file that was written, and its contents. one-thread
typedef struct kilni_cli_graph_written_t {
  const char* what;    // "svg", "dot", "driver-dot", "trace", "buffer"
  const char* buffer;  // its name, or NULL
} kilni_cli_graph_written_t;

// The result as docs/cli/graph.json has it; NULL without memory.
json_t* kilni_cli_graph_json(const kilni_cli_graph_job_t* job,
                             const kilni_cli_graph_written_t* written,
                             const kilni_cli_output_t* outputs, size_t count);

// The table.
void kilni_cli_graph_print(FILE* out, const kilni_cli_graph_job_t* job);

#endif  // KILN_SRC_CLI_GRAPH_REPORT_H_
