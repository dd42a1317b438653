// SPDX-License-Identifier: Apache-2.0
//
// graph: graphs in DOT, ours and the driver's.
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "base/options.h"
#include "base/status_make.h"
#include "graph/graph_inside.h"
#include "graph/graph_picture.h"

enum {
  PATH_BYTES = (2 * KILNI_PICTURE_MAX_DEPTH + 2) * 12,
  INDENT_DEPTH = 10,  // deeper ones are not indented further
};

// The drawing in progress. one-thread
typedef struct drawing_t {
  kilni_base_str_t out;
  bool brief;
  // "_3_0_2": node 3, graph 0 in it, node 2 of that. The name of a node is "n"
  // and its path, of a frame "cluster" and its path.
  char path[PATH_BYTES];
  size_t path_size;
} drawing_t;

// Appends a number to the path; returns its previous size.
static size_t go_in(drawing_t* d, uint32_t number) {
  size_t size = d->path_size;
  int added =
      snprintf(d->path + size, sizeof(d->path) - size, "_%u", (unsigned)number);
  d->path_size = size + (size_t)added;
  return size;
}

static void go_out(drawing_t* d, size_t size) {
  d->path_size = size;
  d->path[size] = 0;
}

static void indent(drawing_t* d, uint32_t depth) {
  if (depth > INDENT_DEPTH) depth = INDENT_DEPTH;
  for (uint32_t i = 0; i <= depth; i++) kilni_base_str_add_cstr(&d->out, "  ");
}

// ---- Nodes ----

static void add_bytes(drawing_t* d, const kiln_graph_node_info_t* info) {
  kilni_base_str_addf(&d->out, "\\n%llu", (unsigned long long)info->bytes);
  if (info->rows > 1) {
    kilni_base_str_addf(&d->out, " x %llu", (unsigned long long)info->rows);
  }
  if (info->slices > 1) {
    kilni_base_str_addf(&d->out, " x %llu", (unsigned long long)info->slices);
  }
  kilni_base_str_add_cstr(&d->out, " bytes");
}

static void add_details(drawing_t* d, const kiln_graph_node_info_t* info) {
  const uint32_t* grid = info->grid;
  const uint32_t* block = info->block;
  switch (info->kind) {
    case KILN_GRAPH_KERNEL:
      kilni_base_str_add_cstr(&d->out, "\\n");
      kilni_graph_picture_add_dot(&d->out, info->kernel);
      kilni_base_str_addf(&d->out, "\\ngrid %u,%u,%u\\nblock %u,%u,%u", grid[0],
                          grid[1], grid[2], block[0], block[1], block[2]);
      if (info->shared_bytes != 0) {
        kilni_base_str_addf(&d->out, "\\nshared %u bytes", info->shared_bytes);
      }
      break;
    case KILN_GRAPH_FILL:
      kilni_base_str_addf(&d->out, "\\nwith 0x%0*x", (int)info->value_bytes * 2,
                          (unsigned)info->value);
      add_bytes(d, info);
      break;
    case KILN_GRAPH_COPY:
    case KILN_GRAPH_ALLOCATE:
      add_bytes(d, info);
      break;
    default:
      break;
  }
}

static const char* picture_dot_kind_of(const kiln_graph_node_info_t* info) {
  static const char* const CHOICES[] = {"if", "while", "switch"};
  if (info->kind == KILN_GRAPH_CONDITIONAL && info->condition <= 2) {
    return CHOICES[info->condition];
  }
  return kilni_graph_kind_name(info->kind);
}

static const char* look_of(uint32_t kind) {
  switch (kind) {
    case KILN_GRAPH_KERNEL:
      return "shape=box, style=\"filled,rounded\", fillcolor=\"#d5e8d4\"";
    case KILN_GRAPH_COPY:
    case KILN_GRAPH_FILL:
      return "shape=box, style=filled, fillcolor=\"#dae8fc\"";
    case KILN_GRAPH_ALLOCATE:
    case KILN_GRAPH_FREE:
      return "shape=cylinder, style=filled, fillcolor=\"#fff2cc\"";
    case KILN_GRAPH_CONDITIONAL:
      return "shape=diamond, style=filled, fillcolor=\"#ffe6cc\"";
    case KILN_GRAPH_HOST:
      return "shape=component";
    case KILN_GRAPH_EMPTY:
      return "shape=ellipse";
    default:
      return "shape=box";
  }
}

static void draw_node(drawing_t* d, const kiln_graph_node_t* node,
                      const kiln_graph_node_info_t* info, uint32_t depth) {
  const char* name = kiln_graph_node_name(node);
  indent(d, depth);
  kilni_base_str_addf(&d->out, "n%s [label=\"", d->path);
  if (name[0] != 0) {
    kilni_graph_picture_add_dot(&d->out, name);
    kilni_base_str_add_cstr(&d->out, "\\n");
  }
  kilni_base_str_add_cstr(&d->out, picture_dot_kind_of(info));
  if (!d->brief) add_details(d, info);
  kilni_base_str_addf(&d->out, "\", %s];\n", look_of(info->kind));
}

static void add_label(drawing_t* d, const kilni_graph_picture_edge_t* edge) {
  static const char* const PORTS[] = {"", "trigger", "start"};
  kilni_base_str_add_cstr(&d->out, "style=dashed, label=\"");
  if (edge->from_port <= KILN_GRAPH_PORT_START) {
    kilni_base_str_add_cstr(&d->out, PORTS[edge->from_port]);
  } else {
    kilni_base_str_addf(&d->out, "port %u", (unsigned)edge->from_port);
  }
  if (edge->to_port != 0) {
    kilni_base_str_addf(&d->out, " to port %u", (unsigned)edge->to_port);
  }
  if (edge->type == KILN_GRAPH_EDGE_PROGRAMMATIC) {
    kilni_base_str_add_cstr(&d->out, "\\nprogrammatic");
  } else if (edge->type != 0) {
    kilni_base_str_addf(&d->out, "\\ntype %u", (unsigned)edge->type);
  }
  kilni_base_str_add_cstr(&d->out, "\", ");
}

// An edge to or from a node with something inside touches its frame.
static void draw_edge(drawing_t* d, const kilni_graph_picture_graph_t* all,
                      const kilni_graph_picture_edge_t* edge, uint32_t depth) {
  bool from_frame = kiln_graph_node_inner_count(all->nodes[edge->from]) != 0;
  bool to_frame = kiln_graph_node_inner_count(all->nodes[edge->to]) != 0;
  bool plain = edge->from_port == 0 && edge->to_port == 0 && edge->type == 0;
  indent(d, depth);
  kilni_base_str_addf(&d->out, "n%s_%u -> n%s_%u", d->path,
                      (unsigned)edge->from, d->path, (unsigned)edge->to);
  if (plain && !from_frame && !to_frame) {
    kilni_base_str_add_cstr(&d->out, ";\n");
    return;
  }
  kilni_base_str_add_cstr(&d->out, " [");
  if (!plain) add_label(d, edge);
  if (from_frame) {
    kilni_base_str_addf(&d->out, "ltail=cluster%s_%u, ", d->path,
                        (unsigned)edge->from);
  }
  if (to_frame) {
    kilni_base_str_addf(&d->out, "lhead=cluster%s_%u, ", d->path,
                        (unsigned)edge->to);
  }
  kilni_base_str_add_cstr(&d->out, "weight=1];\n");
}

// ---- Graphs ----

static kiln_status_t draw_graph(drawing_t* d, kiln_graph_t* graph,
                                uint32_t depth);

static void add_body_label(drawing_t* d, const kiln_graph_node_info_t* info,
                           uint32_t index, uint32_t depth) {
  indent(d, depth);
  if (info->kind != KILN_GRAPH_CONDITIONAL) {
    kilni_base_str_add_cstr(&d->out, "label=\"\";\n");
  } else if (info->condition == KILN_GRAPH_IF) {
    kilni_base_str_addf(&d->out, "label=\"%s\";\n",
                        index == 0 ? "then" : "else");
  } else if (info->condition == KILN_GRAPH_SWITCH) {
    kilni_base_str_addf(&d->out, "label=\"%u\";\n", (unsigned)index);
  } else {
    kilni_base_str_add_cstr(&d->out, "label=\"body\";\n");
  }
}

// One graph inside of a node, in a frame of its own, which a dotted line from
// the node leads to.
static kiln_status_t draw_inner(drawing_t* d, kiln_graph_node_t* node,
                                const kiln_graph_node_info_t* info,
                                uint32_t index, uint32_t depth) {
  kiln_graph_t* graph = NULL;
  KILNI_RETURN_IF_ERROR(kiln_graph_node_inner(node, index, &graph));
  size_t outer = go_in(d, index);
  indent(d, depth);
  kilni_base_str_addf(&d->out, "subgraph cluster%s {\n", d->path);
  add_body_label(d, info, index, depth + 1);
  // An empty frame is not drawn.
  indent(d, depth + 1);
  kilni_base_str_addf(&d->out, "n%s [shape=point, style=invis];\n", d->path);
  kiln_status_t status = draw_graph(d, graph, depth + 1);
  kiln_graph_release(graph);
  indent(d, depth);
  kilni_base_str_add_cstr(&d->out, "}\n");
  indent(d, depth);
  kilni_base_str_addf(&d->out,
                      "n%.*s -> n%s [style=dotted, lhead=cluster%s];\n",
                      (int)outer, d->path, d->path, d->path);
  go_out(d, outer);
  return status;
}

static kiln_status_t draw_all(drawing_t* d, kiln_graph_node_t* node,
                              uint32_t depth) {
  kiln_graph_node_info_t info;
  KILNI_RETURN_IF_ERROR(kiln_graph_node_describe(node, &info));
  uint32_t count = kiln_graph_node_inner_count(node);
  if (count == 0) {
    draw_node(d, node, &info, depth);
    return kiln_ok();
  }
  if (depth >= 2 * KILNI_PICTURE_MAX_DEPTH) {
    return kilni_base_status_with_fix(
        KILNI_FAIL(LIMIT_EXCEEDED, "graphs nested more than %d deep",
                   KILNI_PICTURE_MAX_DEPTH),
        "draw one of the inner graphs by itself (kiln_graph_node_inner)");
  }
  indent(d, depth);
  kilni_base_str_addf(&d->out, "subgraph cluster%s {\n", d->path);
  indent(d, depth + 1);
  kilni_base_str_add_cstr(&d->out,
                          "label=\"\"; style=rounded; color=\"#888888\";\n");
  draw_node(d, node, &info, depth + 1);
  kiln_status_t status = kiln_ok();
  for (uint32_t i = 0; i < count && kiln_status_is_ok(status); i++) {
    status = draw_inner(d, node, &info, i, depth + 1);
  }
  indent(d, depth);
  kilni_base_str_add_cstr(&d->out, "}\n");
  return status;
}

static kiln_status_t draw_graph(drawing_t* d, kiln_graph_t* graph,
                                uint32_t depth) {
  kilni_graph_picture_graph_t all;
  kiln_status_t status = kilni_graph_picture_read(graph, &all);
  for (uint32_t i = 0; i < all.node_count && kiln_status_is_ok(status); i++) {
    size_t outer = go_in(d, i);
    status = draw_all(d, all.nodes[i], depth);
    go_out(d, outer);
    if (kiln_status_is_ok(status)) status = kilni_base_str_status(&d->out);
  }
  for (uint32_t i = 0; i < all.edge_count && kiln_status_is_ok(status); i++) {
    draw_edge(d, &all, &all.edges[i], depth);
  }
  kilni_graph_picture_deinit(&all);
  return status;
}

// The whole text; `out` is ended by the caller.
static kiln_status_t picture_dot_draw(kiln_graph_t* graph,
                                      const kiln_graph_draw_options_t* options,
                                      drawing_t* d) {
  d->path[0] = 0;
  d->path_size = 0;
  d->brief = false;
  kilni_base_str_init(&d->out, graph->device->host->allocator,
                      KILNI_PICTURE_MAX_BYTES);
  kiln_graph_draw_options_t given;
  KILNI_RETURN_IF_ERROR(kilni_base_options_read(
      options, "kiln_graph_draw_options_t", sizeof(given), &given));
  KILNI_CHECK_ARGUMENT(given.brief <= KILN_SWITCH_ON, "options.brief");
  d->brief = given.brief == KILN_SWITCH_ON;
  kilni_base_str_add_cstr(&d->out, "digraph graph_ {\n  compound=true;\n");
  if (given.title != NULL) {
    kilni_base_str_add_cstr(&d->out, "  labelloc=t;\n  label=\"");
    kilni_graph_picture_add_dot(&d->out, given.title);
    kilni_base_str_add_cstr(&d->out, "\";\n");
  }
  kilni_base_str_add_cstr(&d->out,
                          "  node [fontname=\"sans-serif\", fontsize=11];\n"
                          "  edge [fontname=\"sans-serif\", fontsize=9];\n");
  KILNI_RETURN_IF_ERROR(draw_graph(d, graph, 0));
  kilni_base_str_add_cstr(&d->out, "}\n");
  return kilni_base_str_status(&d->out);
}

kiln_status_t kiln_graph_draw(kiln_graph_t* graph,
                              const kiln_graph_draw_options_t* options,
                              kiln_write_fn_t write, void* user_data) {
  KILNI_CHECK_ARGUMENT(graph != NULL, "graph");
  KILNI_CHECK_ARGUMENT(write != NULL, "write");
  KILNI_RETURN_IF_ERROR(kilni_graph_check(graph));
  drawing_t drawing;
  kiln_status_t status = picture_dot_draw(graph, options, &drawing);
  if (kiln_status_is_ok(status)) {
    status = kilni_graph_picture_give(&drawing.out, write, user_data);
  }
  kilni_base_str_deinit(&drawing.out);
  return status;
}

kiln_status_t kiln_graph_draw_file(kiln_graph_t* graph,
                                   const kiln_graph_draw_options_t* options,
                                   const char* path) {
  KILNI_CHECK_ARGUMENT(graph != NULL, "graph");
  KILNI_CHECK_ARGUMENT(path != NULL, "path");
  KILNI_RETURN_IF_ERROR(kilni_graph_check(graph));
  drawing_t drawing;
  kiln_status_t status = picture_dot_draw(graph, options, &drawing);
  if (kiln_status_is_ok(status)) {
    status = kilni_base_file_write(graph->device->host->allocator, path,
                                   kilni_base_str_cstr(&drawing.out),
                                   drawing.out.size);
  }
  kilni_base_str_deinit(&drawing.out);
  return status;
}
