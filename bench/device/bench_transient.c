// SPDX-License-Identifier: Apache-2.0
//
// bench: blocks of a transient store against buffers that are made and ended
// each time, over a driver table that does nothing: what the library itself
// costs. Allocations and calls of the driver on the way are counted, and the
// program fails if there is one.
//
//   bench_transient              over the null provider, no GPU needed
//   bench_transient cuda:0       over a driver, against its own pool
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench_check.h"
#include "bench_report.h"
#include "bench_stage.h"
#include "kiln/kiln.h"

enum { PAIRS = 200000, ROUNDS = 15 };

static bench_stage_t g_stage;
static uint64_t g_calls;
static kiln_cuda_table_t g_under;

static kiln_cu_result_t count_alloc(kiln_cu_deviceptr_t* address, size_t bytes,
                                    kiln_cu_stream_t stream) {
  g_calls++;
  return g_under.cuMemAllocAsync(address, bytes, stream);
}

static kiln_cu_result_t count_free(kiln_cu_deviceptr_t address,
                                   kiln_cu_stream_t stream) {
  g_calls++;
  return g_under.cuMemFreeAsync(address, stream);
}

static kiln_cu_result_t count_ask(kiln_cu_stream_t stream,
                                  kiln_cu_capture_status_t* status) {
  g_calls++;
  return g_under.cuStreamIsCapturing(stream, status);
}

static kiln_cu_result_t count_exchange(kiln_cu_capture_mode_t* mode) {
  g_calls++;
  return g_under.cuThreadExchangeStreamCaptureMode(mode);
}

static kiln_cu_result_t count_current(kiln_cu_context_t* context) {
  g_calls++;
  return g_under.cuCtxGetCurrent(context);
}

// The best of the rounds, in nanoseconds for each pair.
static double time_store(kiln_transient_t* store, uint64_t bytes) {
  double best = 0;
  for (int round = 0; round < ROUNDS; round++) {
    uint64_t start = bench_time_ns();
    for (int i = 0; i < PAIRS; i++) {
      kiln_buffer_t* block = NULL;
      kiln_status_t status = kiln_transient_acquire(store, bytes, &block);
      if (status != NULL) bench_expect(status);
      kiln_buffer_release(block);
    }
    double each = (double)(bench_time_ns() - start) / PAIRS;
    if (round == 0 || each < best) best = each;
  }
  return best;
}

// Eight blocks at once, as a pipeline has them.
static double time_several(kiln_transient_t* store) {
  double best = 0;
  for (int round = 0; round < ROUNDS; round++) {
    uint64_t start = bench_time_ns();
    for (int i = 0; i < PAIRS / 8; i++) {
      kiln_buffer_t* blocks[8];
      for (uint64_t k = 0; k < 8; k++) {
        kiln_status_t status =
            kiln_transient_acquire(store, 700 * (k + 1), &blocks[k]);
        if (status != NULL) bench_expect(status);
      }
      for (int k = 0; k < 8; k++) kiln_buffer_release(blocks[k]);
    }
    double each = (double)(bench_time_ns() - start) / (PAIRS / 8 * 8);
    if (round == 0 || each < best) best = each;
  }
  return best;
}

static double time_buffers(kiln_stream_t* stream, uint64_t bytes) {
  kiln_buffer_options_t options = kiln_buffer_options_default();
  kiln_device_t* device = kiln_stream_device(stream);
  options.stream = stream;
  double best = 0;
  for (int round = 0; round < ROUNDS; round++) {
    uint64_t start = bench_time_ns();
    for (int i = 0; i < PAIRS / 20; i++) {
      kiln_buffer_t* buffer = NULL;
      kiln_status_t status =
          kiln_buffer_create(device, bytes, &options, &buffer);
      if (status != NULL) bench_expect(status);
      kiln_buffer_release(buffer);
    }
    double each = (double)(bench_time_ns() - start) / (PAIRS / 20);
    if (round == 0 || each < best) best = each;
  }
  return best;
}

// The driver's own pair, in its context, which is current.
static double time_driver(kiln_stream_t* stream, uint64_t bytes) {
  kiln_cu_stream_t handle = kiln_stream_handle(stream);
  double best = 0;
  for (int round = 0; round < ROUNDS; round++) {
    uint64_t start = bench_time_ns();
    for (int i = 0; i < PAIRS / 20; i++) {
      kiln_cu_deviceptr_t address = 0;
      kiln_cu_result_t result =
          g_under.cuMemAllocAsync(&address, (size_t)bytes, handle);
      if (result == KILN_CU_SUCCESS) {
        result = g_under.cuMemFreeAsync(address, handle);
      }
      bench_need(result == KILN_CU_SUCCESS, "the driver gave no memory");
    }
    double each = (double)(bench_time_ns() - start) / (PAIRS / 20);
    if (round == 0 || each < best) best = each;
  }
  return best;
}

int main(int argc, char** argv) {
  static bench_report_t report;
  bool real = argc > 1;
  kiln_stream_t* stream = NULL;
  kiln_transient_t* store = NULL;
  bench_stage_init(&g_stage);
  g_under = g_stage.stub;
  KILNI_CUDA_SET(&g_stage.stub, cuMemAllocAsync, count_alloc);
  KILNI_CUDA_SET(&g_stage.stub, cuMemFreeAsync, count_free);
  KILNI_CUDA_SET(&g_stage.stub, cuStreamIsCapturing, count_ask);
  KILNI_CUDA_SET(&g_stage.stub, cuThreadExchangeStreamCaptureMode,
                 count_exchange);
  KILNI_CUDA_SET(&g_stage.stub, cuCtxGetCurrent, count_current);
  if (!bench_stage_open(&g_stage, real ? argv[1] : NULL)) return BENCH_SKIPPED;
  if (real) g_under = g_stage.raw;
  kiln_device_t* device = g_stage.device;
  bench_expect(kiln_stream_create(device, NULL, &stream));
  bench_expect(kiln_transient_create(stream, NULL, &store));
  report.device = kiln_device_name(device);
  double raw = time_buffers(stream, 4096);
  double driver = real ? time_driver(stream, 4096) : 0;
  (void)time_store(store, 4096);
  (void)time_several(store);
  uint64_t allocations = g_stage.allocations;
  uint64_t calls = g_calls;
  bench_report_less(&report, "acquire and release 4 KiB", "ns",
                    time_store(store, 4096), "kiln_buffer_create and release",
                    raw);
  bench_report_less(&report, "acquire and release, eight sizes at once", "ns",
                    time_several(store), "kiln_buffer_create and release", raw);
  if (real) {
    bench_report_less(&report, "kiln_buffer_create and release 4 KiB", "ns",
                      raw, "cuMemAllocAsync and cuMemFreeAsync", driver);
  }
  bench_need(g_stage.allocations == allocations,
             "something was allocated on the way");
  bench_need(g_calls == calls, "the driver was called on the way");
  fprintf(stderr, "allocations on the way: 0, calls of the driver: 0%s\n",
          real ? " (not counted on a driver)" : "");
  kiln_transient_release(store);
  kiln_stream_release(stream);
  bench_report_print(&report);
  bench_stage_close(&g_stage);
  return 0;
}
