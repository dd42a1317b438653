// SPDX-License-Identifier: Apache-2.0
//
// graph: what is in a graph, as indices, and names as pictures show them.
#include "base/status_make.h"
#include "graph/graph_picture.h"

#include <string.h>

#include "base/alloc.h"
#include "base/sort.h"
#include "graph/graph_inside.h"

// ---- Text ----

// Bytes of the UTF-8 character at `text`, or 0 if it is none.
static size_t character_bytes(const unsigned char* text) {
  unsigned char c = text[0];
  size_t size = c < 0x80                ? 1
                : c >= 0xc2 && c < 0xe0 ? 2
                : c >= 0xe0 && c < 0xf0 ? 3
                : c >= 0xf0 && c < 0xf5 ? 4
                                        : 0;
  for (size_t i = 1; i < size; i++) {
    if ((text[i] & 0xc0) != 0x80) return 0;
  }
  bool is_wrong = (c == 0xe0 && text[1] < 0xa0) ||
                  (c == 0xed && text[1] >= 0xa0) ||  // half of a pair
                  (c == 0xf0 && text[1] < 0x90) ||
                  (c == 0xf4 && text[1] >= 0x90);
  return is_wrong ? 0 : size;
}

// `before` is put before '"' and '\\'; '&' becomes `amp`.
static void picture_add_escaped(kilni_base_str_t* out, const char* text,
                                const char* amp) {
  const unsigned char* at = (const unsigned char*)text;
  while (*at != 0) {
    size_t size = character_bytes(at);
    if (size == 0 || *at < 0x20 || *at == 0x7f) {
      kilni_base_str_add_char(out, '?');
      size = 1;
    } else if (*at == '&') {
      kilni_base_str_add_cstr(out, amp);
    } else {
      if (*at == '"' || *at == '\\') kilni_base_str_add_char(out, '\\');
      kilni_base_str_add(out, kilni_base_sv_make((const char*)at, size));
    }
    at += size;
  }
}

// Graphviz takes "&lt;" and the like for characters.
void kilni_graph_picture_add_dot(kilni_base_str_t* out, const char* text) {
  picture_add_escaped(out, text, "&amp;");
}

void kilni_graph_picture_add_json(kilni_base_str_t* out, const char* text) {
  picture_add_escaped(out, text, "&");
}

void kilni_graph_picture_add_name(kilni_base_str_t* out,
                                  const kiln_graph_node_t* node,
                                  uint32_t number) {
  const char* name = kiln_graph_node_name(node);
  if (name[0] != 0) {
    kilni_base_str_add_cstr(out, name);
  } else {
    kilni_base_str_addf(out, "%s %u",
                        kilni_graph_kind_name(kiln_graph_node_kind(node)),
                        (unsigned)number);
  }
}

// ---- Nodes and edges ----

// From node to index: by address, since nodes stay where they are.
typedef struct index_t {
  const kiln_graph_node_t** keys;
  uint32_t* values;
  size_t space;
} index_t;

static size_t picture_slot_of(const index_t* index,
                              const kiln_graph_node_t* node) {
  uint64_t hash = (uint64_t)(uintptr_t)node * 0x9e3779b97f4a7c15u;
  size_t at = (size_t)(hash >> 20) & (index->space - 1);
  while (index->keys[at] != NULL && index->keys[at] != node) {
    at = (at + 1) & (index->space - 1);
  }
  return at;
}

static void index_deinit(index_t* index, kiln_allocator_t allocator) {
  void* keys = (void*)index->keys;
  kilni_base_free_array(allocator, keys, index->space, sizeof(*index->keys));
  kilni_base_free_array(allocator, index->values, index->space,
                        sizeof(*index->values));
}

static kiln_status_t index_init(index_t* index,
                                const kilni_graph_picture_graph_t* graph) {
  memset(index, 0, sizeof(*index));
  size_t space = 16;
  while (space < 2 * (size_t)graph->node_count) space *= 2;
  void* keys = NULL;
  void* values = NULL;
  KILNI_RETURN_IF_ERROR(kilni_base_alloc_array(graph->allocator, space,
                                               sizeof(*index->keys), &keys));
  kiln_status_t status = kilni_base_alloc_array(
      graph->allocator, space, sizeof(*index->values), &values);
  if (!kiln_status_is_ok(status)) {
    kilni_base_free_array(graph->allocator, keys, space, sizeof(*index->keys));
    return status;
  }
  index->keys = keys;
  index->values = values;
  index->space = space;
  for (uint32_t i = 0; i < graph->node_count; i++) {
    size_t at = picture_slot_of(index, graph->nodes[i]);
    index->keys[at] = graph->nodes[i];
    index->values[at] = i;
  }
  return kiln_ok();
}

static bool comes_before(const void* left, const void* right) {
  const kilni_graph_picture_edge_t* a = left;
  const kilni_graph_picture_edge_t* b = right;
  if (a->from != b->from) return a->from < b->from;
  if (a->to != b->to) return a->to < b->to;
  return a->from_port < b->from_port;
}

static kiln_status_t take_edges(kilni_graph_picture_graph_t* out,
                                const kiln_graph_edge_t* edges,
                                uint32_t count) {
  index_t index;
  KILNI_RETURN_IF_ERROR(index_init(&index, out));
  for (uint32_t i = 0; i < count; i++) {
    kilni_graph_picture_edge_t* edge = &out->edges[i];
    edge->from = index.values[picture_slot_of(&index, edges[i].from)];
    edge->to = index.values[picture_slot_of(&index, edges[i].to)];
    edge->from_port = edges[i].from_port;
    edge->to_port = edges[i].to_port;
    edge->type = edges[i].type;
  }
  index_deinit(&index, out->allocator);
  // Drivers list edges in any order.
  kilni_base_sort(out->edges, count, sizeof(*out->edges), comes_before);
  return kiln_ok();
}

static kiln_status_t picture_read_edges(kiln_graph_t* graph,
                                        kilni_graph_picture_graph_t* out) {
  uint32_t count = 0;
  KILNI_RETURN_IF_ERROR(kiln_graph_edges(graph, 0, NULL, &count));
  if (count == 0) return kiln_ok();
  void* block = NULL;
  KILNI_RETURN_IF_ERROR(kilni_base_alloc_array(out->allocator, count,
                                               sizeof(*out->edges), &block));
  out->edges = block;
  out->edge_count = count;
  KILNI_RETURN_IF_ERROR(kilni_base_alloc_array(
      out->allocator, count, sizeof(kiln_graph_edge_t), &block));
  kiln_graph_edge_t* edges = block;
  uint32_t again = 0;
  kiln_status_t status = kiln_graph_edges(graph, count, edges, &again);
  if (kiln_status_is_ok(status)) {
    status = take_edges(out, edges, again < count ? again : count);
  }
  kilni_base_free_array(out->allocator, edges, count, sizeof(*edges));
  return status;
}

kiln_status_t kilni_graph_picture_read(kiln_graph_t* graph,
                                       kilni_graph_picture_graph_t* out) {
  memset(out, 0, sizeof(*out));
  out->allocator = kiln_graph_device(graph)->host->allocator;
  uint32_t count = 0;
  KILNI_RETURN_IF_ERROR(kiln_graph_nodes(graph, 0, NULL, &count));
  if (count == 0) return kiln_ok();
  void* block = NULL;
  KILNI_RETURN_IF_ERROR(kilni_base_alloc_array(out->allocator, count,
                                               sizeof(*out->nodes), &block));
  out->nodes = block;
  out->node_count = count;
  uint32_t again = 0;
  KILNI_RETURN_IF_ERROR(kiln_graph_nodes(graph, count, out->nodes, &again));
  return picture_read_edges(graph, out);
}

void kilni_graph_picture_deinit(kilni_graph_picture_graph_t* graph) {
  void* nodes = (void*)graph->nodes;
  kilni_base_free_array(graph->allocator, nodes, graph->node_count,
                        sizeof(*graph->nodes));
  kilni_base_free_array(graph->allocator, graph->edges, graph->edge_count,
                        sizeof(*graph->edges));
}

// ---- Out ----

kiln_status_t kilni_graph_picture_give(const kilni_base_str_t* text,
                                       kiln_write_fn_t write, void* user_data) {
  KILNI_RETURN_IF_ERROR(kilni_base_str_status(text));
  if (write(kilni_base_str_cstr(text), text->size, user_data)) return kiln_ok();
  return kilni_base_status_with_fix(
      KILNI_FAIL(IO_ERROR, "the writer did not accept all of %llu bytes",
                 (unsigned long long)text->size),
      "check why `write` failed; it returns true when it has written the text");
}
