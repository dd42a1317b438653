// SPDX-License-Identifier: Apache-2.0
//
// graph: what pictures and traces share; private to the module.
#ifndef KILN_SRC_GRAPH_GRAPH_PICTURE_H_
#define KILN_SRC_GRAPH_GRAPH_PICTURE_H_

#include "base/str.h"
#include "kiln/picture.h"

enum {
  KILNI_PICTURE_MAX_BYTES = 64 << 20,  // of one picture or trace
  KILNI_PICTURE_MAX_DEPTH = 64,        // graphs inside of each other
};

// Adds text as it is written between the quotes of a DOT label, and of a JSON
// string. Control characters and bytes that are not UTF-8 become '?'.
void kilni_graph_picture_add_dot(kilni_base_str_t* out, const char* text);
void kilni_graph_picture_add_json(kilni_base_str_t* out, const char* text);

// What a node is called: its name, or kind and number. In `out`, ended by the
// caller.
void kilni_graph_picture_add_name(kilni_base_str_t* out,
                                  const kiln_graph_node_t* node,
                                  uint32_t number);

// All nodes of a graph, and all its edges as indices of these, sorted by where
// they begin and end. one-thread
typedef struct kilni_graph_picture_edge_t {
  uint32_t from;
  uint32_t to;
  uint32_t from_port;
  uint32_t to_port;
  uint32_t type;
} kilni_graph_picture_edge_t;

// one-thread
typedef struct kilni_graph_picture_graph_t {
  kiln_allocator_t allocator;
  kiln_graph_node_t** nodes;
  kilni_graph_picture_edge_t* edges;
  uint32_t node_count;
  uint32_t edge_count;
} kilni_graph_picture_graph_t;

// Ended by deinit, also after a failure.
kiln_status_t kilni_graph_picture_read(kiln_graph_t* graph,
                                       kilni_graph_picture_graph_t* out);
void kilni_graph_picture_deinit(kilni_graph_picture_graph_t* graph);

// Gives the text to a writer, or to a file.
kiln_status_t kilni_graph_picture_give(const kilni_base_str_t* text,
                                       kiln_write_fn_t write, void* user_data);

#endif  // KILN_SRC_GRAPH_GRAPH_PICTURE_H_
