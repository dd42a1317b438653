// SPDX-License-Identifier: Apache-2.0
//
// graph: captures that branch: split and join.
//
// A branch is a stream that waits for the builder's and so is captured with it;
// a join is the reverse wait. When a split fails halfway, its existing branches
// are joined again at once, so that branches that no caller received do not
// spoil the capture.
#include "base/alloc.h"
#include "base/status_make.h"
#include "graph/graph_inside.h"
#include "kiln/capture.h"
#include "kiln/graph.h"

// The capture has the stream until it ends.
static kiln_status_t lend_stream(kilni_graph_capture_t* capture,
                                 kiln_stream_t* stream) {
  void* streams = capture->streams;
  kiln_status_t status = kilni_base_grow(
      capture->device->host->allocator, capture->stream_count + 1,
      sizeof(*capture->streams), &capture->stream_space, &streams);
  capture->streams = streams;
  KILNI_RETURN_IF_ERROR(status);
  kiln_stream_retain(stream);
  capture->streams[capture->stream_count++] = stream;
  return kiln_ok();
}

static kiln_status_t make_fork(kiln_graph_builder_t* builder,
                               kiln_graph_builder_t** out_fork) {
  kilni_graph_capture_t* capture = builder->capture;
  kiln_graph_builder_t* fork = NULL;
  KILNI_RETURN_IF_ERROR(kilni_graph_builder_make(
      builder->device, KILN_GRAPH_BUILDER_FORKED, NULL, &fork));
  kiln_status_t status = lend_stream(capture, fork->stream);
  if (kiln_status_is_ok(status)) {
    kilni_device_stream_set_idle(fork->stream, false);
    status = kiln_stream_wait_stream(fork->stream, builder->stream);
    if (!kiln_status_is_ok(status)) {
      kilni_device_stream_set_idle(fork->stream, true);
    }
  }
  if (!kiln_status_is_ok(status)) {
    kiln_graph_builder_release(fork);
    return status;
  }
  fork->state = KILN_GRAPH_BUILDER_CAPTURING;
  fork->capture = capture;
  kilni_graph_capture_retain(capture);
  fork->graph = builder->graph;
  kiln_graph_retain(fork->graph);
  capture->forks++;
  *out_fork = fork;
  return kiln_ok();
}

static kiln_status_t join_one(kiln_graph_builder_t* root,
                              kiln_graph_builder_t* fork) {
  kiln_status_t status = kiln_stream_wait_stream(root->stream, fork->stream);
  if (kiln_status_is_ok(status)) root->capture->forks--;
  return status;
}

static kiln_status_t undo_split(kiln_graph_builder_t* builder, uint32_t count,
                                kiln_graph_builder_t** forks,
                                kiln_status_t status) {
  for (uint32_t i = 0; i < count; i++) {
    kiln_status_t joined = join_one(builder, forks[i]);
    if (!kiln_status_is_ok(joined)) {
      status = KILNI_ANNOTATE(kilni_base_status_join(status, joined),
                              "a branch that was made stays unjoined: the "
                              "capture cannot end successfully");
    }
    kiln_graph_builder_release(forks[i]);
    forks[i] = NULL;
  }
  return status;
}

kiln_status_t kiln_graph_builder_split(kiln_graph_builder_t* builder,
                                       uint32_t count,
                                       kiln_graph_builder_t** out_forks) {
  KILNI_CHECK_ARGUMENT(out_forks != NULL, "out_forks");
  for (uint32_t i = 0; i + 1 < count && i + 1 < KILNI_GRAPH_BRANCHES; i++) {
    out_forks[i] = NULL;
  }
  KILNI_CHECK_ARGUMENT(builder != NULL, "builder");
  KILNI_RETURN_IF_ERROR(
      kilni_graph_builder_check_free(builder, "nothing can be split"));
  if (count < 2 || count > KILNI_GRAPH_BRANCHES) {
    return kilni_base_status_with_fix(
        KILNI_FAIL(INVALID_ARGUMENT, "a split into %u branches",
                   (unsigned)count),
        "split into 2 to %d", KILNI_GRAPH_BRANCHES);
  }
  for (uint32_t i = 0; i < count - 1; i++) {
    kiln_status_t status = make_fork(builder, &out_forks[i]);
    if (kiln_status_is_ok(status)) continue;
    status = undo_split(builder, i, out_forks, status);
    return KILNI_ANNOTATE(status, "splitting a graph builder");
  }
  return kiln_ok();
}

// ---- Join ----

static kiln_status_t not_joined(uint32_t index, const char* why) {
  return kilni_base_status_with_fix(
      KILNI_FAIL(INVALID_ARGUMENT, "`builders[%u]` %s", (unsigned)index, why),
      "join a builder with the forked ones that it was split into, each once");
}

static kiln_status_t check_join(kiln_graph_builder_t* const* builders,
                                uint32_t count, uint32_t* out_root) {
  *out_root = count;
  for (uint32_t i = 0; i < count; i++) {
    const kiln_graph_builder_t* builder = builders[i];
    if (builder == NULL) return not_joined(i, "is NULL");
    KILNI_RETURN_IF_ERROR(
        kilni_graph_builder_check_free(builder, "nothing can be joined"));
    if (builder->capture != builders[0]->capture) {
      return not_joined(i, "is of a different capture than the first");
    }
    for (uint32_t k = 0; k < i; k++) {
      if (builders[k] == builder) return not_joined(i, "is given twice");
    }
    if (builder->kind == KILN_GRAPH_BUILDER_FORKED) continue;
    if (*out_root != count) {
      return not_joined(i, "is a second builder that is not forked");
    }
    *out_root = i;
  }
  if (*out_root == count) *out_root = 0;
  return kiln_ok();
}

kiln_status_t kiln_graph_builder_join(kiln_graph_builder_t* const* builders,
                                      uint32_t count,
                                      kiln_graph_builder_t** out_root) {
  if (out_root != NULL) *out_root = NULL;
  KILNI_CHECK_ARGUMENT(builders != NULL, "builders");
  if (count < 2) {
    return kilni_base_status_with_fix(
        KILNI_FAIL(INVALID_ARGUMENT, "a join of %u builders", (unsigned)count),
        "join at least 2");
  }
  uint32_t root = 0;
  KILNI_RETURN_IF_ERROR(check_join(builders, count, &root));
  kiln_status_t status = kiln_ok();
  for (uint32_t i = 0; i < count; i++) {
    if (i == root) continue;
    kiln_status_t joined = join_one(builders[root], builders[i]);
    status = kilni_base_status_join(status, joined);
    // Also where it failed: it is of no further use.
    kiln_status_free(kiln_graph_builder_close(builders[i]));
  }
  if (!kiln_status_is_ok(status)) {
    return KILNI_ANNOTATE(status, "joining graph builders");
  }
  if (out_root != NULL) *out_root = builders[root];
  return kiln_ok();
}
