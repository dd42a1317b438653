// SPDX-License-Identifier: Apache-2.0
//
// bench: pageable memory to the device and back through the dispatcher's pinned
// memory, by 1, 2, 4 and 8 threads that copy, the calling one among them; and
// the same bytes from and to pinned memory, which the device copies itself, in
// turns and in one process.
//
//   bench_staging            on the software device, a few MiB: that it runs
//   bench_staging cuda:0     1 GiB and 64 MiB. Fails where 1 GiB by 8 threads
//                            moves below 0.9 (up) or 0.85 (down) of pinned
//                            memory's speed
//
// All pages are touched before. An upload is timed until the device has all of
// it. Each figure is the median of the rounds, and so is each ratio, which is
// taken within a round. Exit code 77 where there is no such device, or fewer
// cores than threads.
#define _POSIX_C_SOURCE 200809L
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench_check.h"
#include "bench_report.h"
#include "dispatch/dispatch_inside.h"
#include "kiln/kiln.h"

enum {
  SKIPPED = 77,
  ROUNDS = 9,
  WAYS = 13,  // of which the first is pinned memory
  UP = 0,
  DOWN = 1,
  JUDGED = 4,  // by 8 threads
  THREADS = 8,
};

static const double kLimits[2] = {0.90, 0.85};

// Who copies. thread-compatible
typedef struct way_t {
  const char* name;
  uint32_t threads;  // in all; 0: nobody, the memory is pinned
  uint32_t chunks;
  uint32_t chunk_bytes;
  bool by_event;     // a download that returns before it is done
  bool past_caches;  // uploads too: pinned memory is written past them
} way_t;

static const way_t kWays[WAYS] = {
    {"pinned", 0, 8, 4 << 20, false, false},
    {"1 thread", 1, 8, 4 << 20, false, false},
    {"2 threads", 2, 8, 4 << 20, false, false},
    {"4 threads", 4, 8, 4 << 20, false, false},
    {"8 threads", 8, 8, 4 << 20, false, false},
    {"8 threads, by its event", 8, 8, 4 << 20, true, false},
    {"8 threads, past the caches", 8, 8, 4 << 20, false, true},
    {"8 threads, 4 chunks of 4 MiB", 8, 4, 4 << 20, false, false},
    {"8 threads, 8 chunks of 2 MiB", 8, 8, 2 << 20, false, false},
    {"8 threads, 4 chunks of 8 MiB", 8, 4, 8 << 20, false, false},
    {"8 threads, 8 chunks of 8 MiB", 8, 8, 8 << 20, false, false},
    {"9 threads", 9, 8, 4 << 20, false, false},
    {"16 threads", 16, 8, 4 << 20, false, false},
};

// one-thread
typedef struct job_t {
  kiln_device_t* device;
  kiln_dispatcher_t* dispatchers[WAYS];
  kiln_resident_t resident;
  char* from[2];  // pageable, pinned
  char* to[2];
  uint64_t bytes;
} job_t;

static double g_rate[2][WAYS][ROUNDS];
static double g_ratio[2][WAYS][ROUNDS];

// ---- One copy ----

static void move(const job_t* job, int way, int direction,
                 kiln_resident_t resident) {
  kiln_dispatcher_t* dispatcher = job->dispatchers[way];
  int kind = kWays[way].threads == 0;
  if (direction == UP) {
    bench_expect(kiln_resident_upload(dispatcher, NULL, resident, 0, job->bytes,
                                      job->from[kind]));
    bench_expect(kiln_dispatcher_synchronize(dispatcher));
    return;
  }
  kiln_resident_download_t one = {resident, 0, job->bytes, job->to[kind]};
  kiln_pending_t* pending = NULL;
  bench_expect(kiln_resident_download_many(
      dispatcher, NULL, &one, 1, kWays[way].by_event ? &pending : NULL));
  if (pending == NULL) return;
  bench_expect(kiln_pending_wait(pending, KILN_PENDING_FOREVER));
  kiln_pending_release(pending);
}

// Both ways, and whether what comes back is what went.
static void round_trip(const job_t* job, int way, double rates[2]) {
  kiln_dispatcher_t* dispatcher = job->dispatchers[way];
  kiln_resident_t resident;
  bench_expect(kiln_resident_allocate(dispatcher, job->bytes, &resident));
  for (int direction = UP; direction <= DOWN; direction++) {
    uint64_t start = bench_time_ns();
    move(job, way, direction, resident);
    uint64_t spent = bench_time_ns() - start;
    rates[direction] = (double)job->bytes / (double)(spent + 1);
  }
  bench_expect(kiln_resident_free(dispatcher, resident));
}

static void check(const job_t* job, int way) {
  double rates[2];
  int kind = kWays[way].threads == 0;
  memset(job->to[kind], 0, job->bytes);
  round_trip(job, way, rates);
  bench_need(memcmp(job->from[kind], job->to[kind], job->bytes) == 0,
             "what came back is not what went");
}

// ---- Measuring ----

static void measure(const job_t* job, int ways) {
  for (int way = 0; way < ways; way++) check(job, way);
  for (int round = 0; round < ROUNDS; round++) {
    for (int k = 0; k < ways; k++) {
      int way = (k + round) % ways;
      double rates[2];
      round_trip(job, way, rates);
      g_rate[UP][way][round] = rates[UP];
      g_rate[DOWN][way][round] = rates[DOWN];
    }
    for (int way = 0; way < ways; way++) {
      for (int d = 0; d < 2; d++) {
        g_ratio[d][way][round] = g_rate[d][way][round] / g_rate[d][0][round];
      }
    }
  }
}

static bool report(const job_t* job, bench_report_t* out, int ways,
                   bool judged) {
  static const char* const kWords[2] = {"up", "down"};
  bool good = true;
  for (int d = 0; d < 2; d++) {
    double pinned = bench_median(g_rate[d][0], ROUNDS);
    for (int way = 0; way < ways; way++) {
      char name[BENCH_NAME_BYTES];
      double ratio = bench_median(g_ratio[d][way], ROUNDS);
      snprintf(name, sizeof(name), "%s %llu MiB, %s", kWords[d],
               (unsigned long long)(job->bytes >> 20), kWays[way].name);
      bench_report_more(out, name, "GB/s", bench_median(g_rate[d][way], ROUNDS),
                        way == 0 ? NULL : "pinned", pinned);
      if (way == 0) continue;
      out->rows[out->count - 1].ratio = ratio;
      if (way != JUDGED || !judged) continue;
      bool holds = ratio >= kLimits[d];
      good = good && holds;
      fprintf(stderr, "bar: %s by 8 threads at least %.2f of pinned: %.4f %s\n",
              kWords[d], kLimits[d], ratio, holds ? "holds" : "DOES NOT HOLD");
    }
  }
  return good;
}

// ---- Making ----

// No option of a dispatcher says it: it has to be shown what it costs.
static void write_past_caches(job_t* job, const way_t* way,
                              kiln_dispatcher_t* dispatcher) {
  kilni_dispatch_staging_options_t options = {
      (uint64_t)way->chunks * way->chunk_bytes, way->chunk_bytes, way->threads,
      1, NULL};
  kilni_dispatch_staging_destroy(dispatcher->staging);
  bench_expect(kilni_dispatch_staging_create(job->device, &options,
                                             &dispatcher->staging));
}

static void make(job_t* job, int ways, uint64_t most) {
  for (int way = 0; way < ways; way++) {
    kiln_dispatcher_options_t options = kiln_dispatcher_options_default();
    options.copy_threads = kWays[way].threads;
    options.staging_chunk_bytes = kWays[way].chunk_bytes;
    options.staging_bytes =
        (uint64_t)kWays[way].chunks * kWays[way].chunk_bytes;
    bench_expect(
        kiln_dispatcher_create(job->device, &options, &job->dispatchers[way]));
    if (kWays[way].past_caches) {
      write_past_caches(job, &kWays[way], job->dispatchers[way]);
    }
    bench_expect(kiln_dispatcher_warm(job->dispatchers[way]));
  }
  for (int kind = 0; kind < 2; kind++) {
    job->from[kind] = malloc(most);
    job->to[kind] = malloc(most);
    bench_need(job->from[kind] != NULL && job->to[kind] != NULL,
               "not enough memory");
    for (uint64_t i = 0; i < most; i++) {
      job->from[kind][i] = (char)(i * 2654435761u >> 24);
    }
    memset(job->to[kind], 1, most);
  }
  bench_expect(kiln_resident_pin(job->dispatchers[0], job->from[1], most));
  bench_expect(kiln_resident_pin(job->dispatchers[0], job->to[1], most));
}

static void release(job_t* job, int ways) {
  bench_expect(kiln_resident_unpin(job->dispatchers[0], job->from[1]));
  bench_expect(kiln_resident_unpin(job->dispatchers[0], job->to[1]));
  for (int way = 0; way < ways; way++) {
    kiln_dispatcher_release(job->dispatchers[way]);
  }
  for (int kind = 0; kind < 2; kind++) {
    free(job->from[kind]);
    free(job->to[kind]);
  }
  kiln_device_release(job->device);
}

int main(int argc, char** argv) {
  static bench_report_t out;
  static job_t job;
  bool real = argc > 1;
  const uint64_t kBytes[2] = {real ? 1 << 30 : 8 << 20,
                              real ? 64 << 20 : 1 << 20};
  kiln_runtime_t* runtime = NULL;
  bench_expect(kiln_runtime_create(NULL, &runtime));
  kiln_status_t status =
      kiln_runtime_open_device(runtime, real ? argv[1] : "soft", &job.device);
  if (!kiln_status_is_ok(status)) {
    printf("no device: %s\n", kiln_status_message(status));
    kiln_status_free(status);
    kiln_runtime_release(runtime);
    return SKIPPED;
  }
  long cores = sysconf(_SC_NPROCESSORS_ONLN);
  int ways = real ? WAYS : JUDGED + 3;
  out.device = kiln_device_name(job.device);
  make(&job, ways, kBytes[0]);
  bool good = true;
  for (int i = 0; i < 2; i++) {
    job.bytes = kBytes[i];
    measure(&job, ways);
    bool judged = real && i == 0 && cores > THREADS;
    good = report(&job, &out, ways, judged) && good;
  }
  bench_report_print(&out);
  release(&job, ways);
  kiln_runtime_release(runtime);
  if (real && cores <= THREADS) {
    printf("%ld cores are too few for %d threads: not judged\n", cores,
           (int)THREADS);
    return SKIPPED;
  }
  return good ? 0 : 1;
}
