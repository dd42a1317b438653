// SPDX-License-Identifier: Apache-2.0
//
// cli: the output of `kiln graph`: a table, or JSON.
#include "cli/graph_report.h"
#include "kiln/picture.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { PATH_BYTES = KILNI_CLI_GRAPH_MAX_DEPTH * 72 * 64 };

// A walk over all nodes, those of named graphs once per use. one-thread
typedef struct walk_t {
  const kilni_cli_graph_job_t* job;
  void (*visit)(struct walk_t* walk, uint32_t node);
  void* user;
  uint32_t at;  // the next slice
  bool has_slice;
  uint32_t slice;
  char path[PATH_BYTES];
} walk_t;

// Slices come in the order of the walk, but some nodes have none.
static void find_slice(walk_t* w) {
  kiln_graph_slice_t slice;
  w->has_slice = false;
  if (w->job->times.runs == 0) return;
  uint32_t count = w->job->times.slice_count;
  for (uint32_t i = 0; i < count; i++) {
    uint32_t index = (w->at + i) % count;
    kiln_status_t status = kiln_graph_trace_slice(w->job->trace, index, &slice);
    bool same = kiln_status_is_ok(status) && strcmp(slice.name, w->path) == 0;
    kiln_status_free(status);
    if (!same) continue;
    w->has_slice = true;
    w->slice = index;
    w->at = index + 1;
    return;
  }
}

// Named graphs nest at most 1024 deep, but the walk goes no deeper than a path
// has space for.
static void walk_scope(walk_t* w, uint32_t scope, size_t size, bool timed) {
  const kilni_cli_sketch_t* k = w->job->sketch;
  for (uint32_t i = 0; i < k->node_count; i++) {
    const kilni_cli_graph_node_t* node = &k->nodes[i];
    if (node->scope != scope) continue;
    int added = snprintf(w->path + size, sizeof(w->path) - size, "%s%s",
                         size == 0 ? "" : "/", node->name.text);
    if (added < 0 || (size_t)added >= sizeof(w->path) - size) return;
    w->has_slice = false;
    if (timed && node->kind != KILNI_CLI_GRAPH_EMPTY) find_slice(w);
    w->visit(w, i);
    uint32_t body = node->body;
    for (uint32_t at = 0; at < node->body_count; at++) {
      walk_scope(w, body, size + (size_t)added,
                 timed && node->kind == KILNI_CLI_GRAPH_CHILD);
      body = k->scopes[body].next;
    }
    w->path[size] = 0;
  }
}

static void graph_report_walk(walk_t* w, const kilni_cli_graph_job_t* job,
                              void (*visit)(walk_t* walk, uint32_t node),
                              void* user) {
  w->job = job;
  w->visit = visit;
  w->user = user;
  w->at = 0;
  w->path[0] = 0;
  walk_scope(w, 0, 0, true);
}

// ---- JSON ----

static json_t* graph_report_dims_json(const uint32_t dims[3]) {
  return json_pack("[I,I,I]", (json_int_t)dims[0], (json_int_t)dims[1],
                   (json_int_t)dims[2]);
}

static json_t* graph_report_text_json(const char* text) {
  json_t* made = json_string(text);
  return made != NULL ? made : json_string_nocheck("?");  // no UTF-8
}

static void graph_report_add_number(json_t* object, const char* key,
                                    uint64_t value) {
  (void)json_object_set_new(object, key, json_integer((json_int_t)value));
}

static void visit_json(walk_t* w, uint32_t index) {
  const kilni_cli_graph_job_t* job = w->job;
  const kilni_cli_graph_node_t* node = &job->sketch->nodes[index];
  json_t* object = json_pack("{s:s,s:s,s:I}", "name", w->path, "kind",
                             kilni_cli_graph_kind_word(node->kind), "line",
                             (json_int_t)node->name.line);
  const kilni_cli_graph_launch_t* launch = &job->launches[index];
  if (launch->kernel != NULL) {
    (void)json_object_set_new(
        object, "kernel",
        graph_report_text_json(kiln_kernel_name(launch->kernel)));
    (void)json_object_set_new(object, "grid",
                              graph_report_dims_json(launch->grid));
    (void)json_object_set_new(object, "block",
                              graph_report_dims_json(launch->block));
  }
  if (w->has_slice) {
    graph_report_add_number(object, "start_ns", job->times.start_ns[w->slice]);
    graph_report_add_number(object, "elapsed_ns",
                            job->times.slice_ns[w->slice]);
  }
  (void)json_array_append_new(w->user, object);
}

static json_t* edges_json(const kilni_cli_sketch_t* k) {
  json_t* list = json_array();
  for (uint32_t i = 0; i < k->edge_count; i++) {
    (void)json_array_append_new(
        list,
        json_pack("{s:s,s:s,s:I}", "from", k->nodes[k->edges[i].from].name.text,
                  "to", k->nodes[k->edges[i].to].name.text, "line",
                  (json_int_t)k->edges[i].at.line));
  }
  return list;
}

static json_t* written_json(const kilni_cli_graph_written_t* written,
                            const kilni_cli_output_t* outputs, size_t count) {
  json_t* list = json_array();
  for (size_t i = 0; i < count; i++) {
    json_t* object = json_pack("{s:s,s:o,s:I}", "what", written[i].what, "file",
                               graph_report_text_json(outputs[i].path), "bytes",
                               (json_int_t)outputs[i].content.size);
    if (written[i].buffer != NULL) {
      (void)json_object_set_new(object, "buffer",
                                graph_report_text_json(written[i].buffer));
    }
    (void)json_array_append_new(list, object);
  }
  return list;
}

json_t* kilni_cli_graph_json(const kilni_cli_graph_job_t* job,
                             const kilni_cli_graph_written_t* written,
                             const kilni_cli_output_t* outputs, size_t count) {
  walk_t w;
  json_t* nodes = json_array();
  graph_report_walk(&w, job, visit_json, nodes);
  json_t* object =
      json_pack("{s:o,s:s,s:o,s:o,s:I,s:o}", "file",
                graph_report_text_json(job->sketch->file), "device",
                job->session.device_name, "nodes", nodes, "edges",
                edges_json(job->sketch), "runs", (json_int_t)job->times.runs,
                "outputs", written_json(written, outputs, count));
  if (object != NULL && job->times.runs != 0) {
    graph_report_add_number(object, "elapsed_ns", job->times.elapsed_ns);
    graph_report_add_number(object, "launch_ns", job->times.launch_ns);
    graph_report_add_number(object, "traced_ns", job->times.traced_ns);
  }
  return object;
}

// ---- The table ----

static void visit_print(walk_t* w, uint32_t index) {
  const kilni_cli_graph_job_t* job = w->job;
  const kilni_cli_graph_node_t* node = &job->sketch->nodes[index];
  FILE* out = w->user;
  (void)fprintf(out, "%-24s %-9s", w->path,
                kilni_cli_graph_kind_word(node->kind));
  if (w->has_slice) {
    (void)fprintf(out, " %10.1f %10.1f",
                  (double)job->times.start_ns[w->slice] * 1e-3,
                  (double)job->times.slice_ns[w->slice] * 1e-3);
  } else if (job->times.runs != 0) {
    (void)fprintf(out, " %10s %10s", "-", "-");
  }
  const kilni_cli_graph_launch_t* launch = &job->launches[index];
  if (launch->kernel != NULL) {
    const uint32_t* g = launch->grid;
    const uint32_t* b = launch->block;
    (void)fprintf(out,
                  " %s grid %" PRIu32 ",%" PRIu32 ",%" PRIu32 " block %" PRIu32
                  ",%" PRIu32 ",%" PRIu32,
                  kiln_kernel_name(launch->kernel), g[0], g[1], g[2], b[0],
                  b[1], b[2]);
  }
  (void)fputc('\n', out);
}

void kilni_cli_graph_print(FILE* out, const kilni_cli_graph_job_t* job) {
  walk_t w;
  const kilni_cli_graph_times_t* t = &job->times;
  (void)fprintf(out, "%-24s %-9s", "node", "kind");
  if (t->runs != 0) (void)fprintf(out, " %10s %10s", "start us", "time us");
  (void)fputc('\n', out);
  graph_report_walk(&w, job, visit_print, out);
  if (t->runs == 0) return;
  (void)fprintf(out,
                "\n%s on %s, median of %" PRIu32
                " runs: %.1f us, of which the launch takes %.1f us here; "
                "%.1f us with the records that time the nodes\n",
                job->sketch->file, job->session.device_name, t->runs,
                (double)t->elapsed_ns * 1e-3, (double)t->launch_ns * 1e-3,
                (double)t->traced_ns * 1e-3);
}
