// SPDX-License-Identifier: Apache-2.0
//
// dispatch: what was counted, read and begun anew.
#include <string.h>

#include "base/options.h"
#include "base/status_make.h"
#include "dispatch/pipeline_inside.h"
#include "table/nvtx_table.h"

// Copies what the caller's struct has space for, and keeps its size.
static kiln_status_t telemetry_hand_out(const void* ours, size_t our_size,
                                        const char* name, void* out) {
  uint32_t size = 0;
  memcpy(&size, out, sizeof(size));
  if (size < our_size) {
    return kilni_base_options_too_small(name, size, our_size);
  }
  // Fields of a newer Kiln are not known here.
  if (size > our_size) {
    memset((char*)out + our_size, 0, size - our_size);
  }
  memcpy((char*)out + sizeof(size), (const char*)ours + sizeof(size),
         our_size - sizeof(size));
  return kiln_ok();
}

static void telemetry_read_now(kiln_dispatcher_t* dispatcher,
                               kiln_telemetry_t* t) {
  kiln_dispatcher_counts_t now;
  kiln_dispatcher_counts(dispatcher, &now);
  t->resident_held_bytes = now.resident_bytes;
  t->resident_peak_bytes = now.resident_peak;
  t->resident_budget_bytes = now.resident_budget;
  t->resident_buffers = now.residents;
  t->staging_held_bytes = now.staging_bytes;
  t->transient_held_bytes = now.transient_bytes;
  t->transient_idle_bytes = now.transient_idle;
  t->streams_made = now.streams;
  t->pipelines_alive = now.pipelines;
  t->pendings_alive = now.pendings;
  if (dispatcher->cache == NULL) return;
  kiln_cache_stats_t cache;
  kiln_cache_stats(dispatcher->cache, &cache);
  t->cache_memory_hits = cache.memory_hits;
  t->cache_disk_hits = cache.disk_hits;
  t->cache_misses = cache.misses;
}

static void read_counters(const kilni_dispatch_counters_t* counters,
                          kiln_telemetry_t* t) {
  if (counters == NULL) return;
  t->enabled = 1;
  t->measured_device_max_ns =
      atomic_load_explicit(&counters->longest_ns, memory_order_relaxed);
#define READ(NAME, field, what) \
  t->field = kilni_dispatch_counters_read(counters, KILNI_COUNTER_##NAME);
  KILNI_TELEMETRY_COUNTERS(READ)
#undef READ
}

kiln_status_t kiln_telemetry_read(kiln_dispatcher_t* dispatcher,
                                  kiln_telemetry_t* out_telemetry) {
  KILNI_CHECK_ARGUMENT(out_telemetry != NULL, "out_telemetry");
  kiln_telemetry_t ours = kiln_telemetry_default();
  kiln_status_t status = telemetry_hand_out(&ours, sizeof(ours),
                                            "kiln_telemetry_t", out_telemetry);
  if (!kiln_status_is_ok(status)) return status;
  KILNI_CHECK_ARGUMENT(dispatcher != NULL, "dispatcher");
  telemetry_read_now(dispatcher, &ours);
  read_counters(dispatcher->counters, &ours);
  return telemetry_hand_out(&ours, sizeof(ours), "kiln_telemetry_t",
                            out_telemetry);
}

void kiln_telemetry_reset(kiln_dispatcher_t* dispatcher) {
  if (dispatcher == NULL) return;
  kilni_dispatch_counters_reset(dispatcher->counters);
}

kiln_status_t kiln_pipeline_trace(const kiln_pipeline_t* pipeline,
                                  kiln_pipeline_trace_t* out_trace) {
  KILNI_CHECK_ARGUMENT(out_trace != NULL, "out_trace");
  const kiln_pipeline_trace_t zero = kiln_pipeline_trace_default();
  KILNI_RETURN_IF_ERROR(telemetry_hand_out(&zero, sizeof(zero),
                                           "kiln_pipeline_trace_t", out_trace));
  KILNI_CHECK_ARGUMENT(pipeline != NULL, "pipeline");
  if (pipeline->dispatcher->counters == NULL) {
    return kilni_base_status_with_fix(
        KILNI_FAIL(INVALID_STATE, "the making of \"%s\" was not timed",
                   pipeline->label),
        "make its dispatcher with `telemetry`");
  }
  return telemetry_hand_out(&pipeline->trace, sizeof(pipeline->trace),
                            "kiln_pipeline_trace_t", out_trace);
}

// ---- Taking the times of a pipeline ----

void kilni_dispatch_trace_phase(kiln_pipeline_t* pipeline, uint32_t counter,
                                uint64_t* out_ns, uint64_t began) {
  *out_ns = kilni_dispatch_count_since(pipeline->dispatcher->counters, counter,
                                       began);
}

void kilni_dispatch_trace_code(kiln_pipeline_t* pipeline, uint64_t ptx_bytes,
                               uint64_t code_bytes) {
  kilni_dispatch_counters_t* counters = pipeline->dispatcher->counters;
  if (counters == NULL) return;
  pipeline->trace.ptx_bytes = ptx_bytes;
  pipeline->trace.code_bytes = code_bytes;
  kilni_dispatch_count(counters, KILNI_COUNTER_PTX_BYTES, ptx_bytes);
  kilni_dispatch_count(counters, KILNI_COUNTER_CODE_BYTES, code_bytes);
}

// ---- Ranges of a profiler ----

void kilni_dispatch_range_begin(const kiln_nvtx_table_t* ranges,
                                uint32_t category, const char* label) {
  kiln_nvtx_attributes_t attributes;
  memset(&attributes, 0, sizeof(attributes));
  attributes.version = KILN_NVTX_VERSION;
  attributes.size = (uint16_t)sizeof(attributes);
  attributes.category = category;
  attributes.message_type = KILN_NVTX_MESSAGE_ASCII;
  attributes.message = label;
  (void)ranges->nvtxDomainRangePushEx(ranges->domain, &attributes);
}

void kilni_dispatch_range_end(const kiln_nvtx_table_t* ranges) {
  (void)ranges->nvtxDomainRangePop(ranges->domain);
}
