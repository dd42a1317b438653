// SPDX-License-Identifier: Apache-2.0
//
// cli: fuzz target: graph files.
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "cli/graph_sketch.h"

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

static void check(const kilni_cli_sketch_t* sketch) {
  for (uint32_t i = 0; i < sketch->edge_count; i++) {
    const kilni_cli_graph_edge_t* edge = &sketch->edges[i];
    if (edge->from >= sketch->node_count || edge->to >= sketch->node_count ||
        sketch->nodes[edge->from].scope != sketch->nodes[edge->to].scope) {
      abort();
    }
  }
  for (uint32_t i = 0; i < sketch->node_count; i++) {
    const kilni_cli_graph_node_t* node = &sketch->nodes[i];
    uint32_t body = node->body;
    if (node->scope >= sketch->scope_count ||
        (size_t)node->argument + node->argument_count >
            sketch->argument_count) {
      abort();
    }
    for (uint32_t at = 0; at < node->body_count; at++) {
      if (body >= sketch->scope_count) abort();
      body = sketch->scopes[body].next;
    }
  }
  if (sketch->is_sequence && sketch->edge_count != 0) abort();
  for (uint32_t i = 0; i < sketch->node_count; i++) {
    const kilni_cli_graph_node_t* node = &sketch->nodes[i];
    bool is_repeat = node->kind == KILNI_CLI_GRAPH_REPEAT;
    if (is_repeat != (node->rounds != 0) ||
        (is_repeat && (!sketch->is_sequence || node->body_count != 1))) {
      abort();
    }
  }
  for (uint32_t i = 0; i < sketch->condition_count; i++) {
    if (sketch->conditions[i].user >= sketch->node_count ||
        sketch->nodes[sketch->conditions[i].user].other != i) {
      abort();
    }
  }
}

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  // A copy of exactly that size, so that a byte too far is seen.
  char* text = malloc(size == 0 ? 1 : size);
  if (text == NULL) return 0;
  if (size != 0) memcpy(text, data, size);
  kilni_cli_error_t error;
  memset(&error, 0, sizeof(error));
  kilni_cli_sketch_t sketch;
  if (kilni_cli_sketch_init(&sketch, "FILE", text, size, &error)) {
    check(&sketch);
  } else if (error.code == KILN_STATUS_OK || error.message[0] == 0 ||
             (error.fix[0] == 0 && error.code != KILN_STATUS_OUT_OF_MEMORY)) {
    abort();
  }
  kilni_cli_sketch_deinit(&sketch);
  free(text);
  return 0;
}
