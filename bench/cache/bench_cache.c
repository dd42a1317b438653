// SPDX-License-Identifier: Apache-2.0
//
// bench: what the cache takes: a hit in memory and on disk, a publication, and
// many threads that want what one of them makes.
//
//   bench_cache [FOLDER]
//
// FOLDER is where a folder for the cache is made, by default TMPDIR or /tmp.
// The baselines are the bars that Kiln sets itself (50 and 200 microseconds for
// 100 KiB), and the plain system calls for the same bytes. The exit code is 1
// where a median is over its bar, which means something on a quiet machine.
#define _GNU_SOURCE  // usleep
#include <fcntl.h>
#include <ftw.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bench_check.h"
#include "bench_report.h"
#include "kiln/cache.h"

enum {
  PAYLOAD_BYTES = 100 * 1024,
  KEY_BYTES = 4096,
  MEMORY_RUNS = 20001,
  DISK_RUNS = 1001,
  MAKE_US = 20000,
  THREADS = 8,
};

static const double kLimitMemory = 50;  // microseconds
static const double kLimitDisk = 200;
static int g_over;  // bars that were not met

static uint8_t g_payload[PAYLOAD_BYTES];
static uint8_t g_key[KEY_BYTES];
static char g_top[256];
static char g_folder[320];

static double microseconds(uint64_t start) {
  return (double)(bench_time_ns() - start) / 1000.0;
}

static void hold_to(const char* what, double value, double bar) {
  if (value < bar) return;
  fprintf(stderr, "%s: %.1f us, over the bar of %.0f us\n", what, value, bar);
  g_over++;
}

// ---- The cache ----

static kiln_cache_t* create(uint32_t memory) {
  kiln_cache_options_t options = kiln_cache_options_default();
  kiln_cache_t* cache = NULL;
  options.directory = g_folder;
  options.disk = KILN_SWITCH_ON;
  options.memory = memory;
  bench_expect(kiln_cache_create(&options, &cache));
  return cache;
}

static kiln_cache_key_t key_of(uint32_t number) {
  kiln_cache_key_t key = {"cubin", 1, 0, {g_key, KEY_BYTES}};
  memcpy(g_key, &number, sizeof(number));
  return key;
}

static void put(kiln_cache_t* cache, uint32_t number) {
  kiln_cache_key_t key = key_of(number);
  kiln_bytes_view_t none = {NULL, 0}, payload = {g_payload, PAYLOAD_BYTES};
  bench_expect(kiln_cache_put(cache, &key, none, payload, NULL));
}

static void get(kiln_cache_t* cache, uint32_t number) {
  kiln_cache_key_t key = key_of(number);
  kiln_cache_entry_t* entry = NULL;
  bench_expect(kiln_cache_get(cache, &key, &entry));
  bench_need(kiln_cache_entry_payload(entry).size == PAYLOAD_BYTES, "no hit");
  kiln_cache_entry_release(entry);
}

// ---- The same bytes by hand ----

static void path_of(uint32_t number, char out[400]) {
  snprintf(out, 400, "%s/plain-%u", g_top, number);
}

static void plain_write(uint32_t number) {
  char path[400], temporary[420];
  path_of(number, path);
  snprintf(temporary, sizeof(temporary), "%s.tmp", path);
  int file = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  bench_need(file >= 0, "no file");
  bench_need(write(file, g_payload, PAYLOAD_BYTES) == PAYLOAD_BYTES,
             "no write");
  close(file);
  bench_need(rename(temporary, path) == 0, "no rename");
}

static void plain_read(uint32_t number) {
  char path[400];
  struct stat info;
  path_of(number, path);
  int file = open(path, O_RDONLY | O_CLOEXEC);
  bench_need(file >= 0 && fstat(file, &info) == 0, "no file");
  uint8_t* bytes = malloc((size_t)info.st_size);
  bench_need(bytes != NULL, "no memory");
  bench_need(read(file, bytes, (size_t)info.st_size) == info.st_size,
             "no read");
  close(file);
  free(bytes);
}

// ---- The rows ----

static void bench_memory(bench_report_t* report) {
  static double times[MEMORY_RUNS];
  kiln_cache_t* cache = create(KILN_SWITCH_ON);
  put(cache, 0);
  for (int i = 0; i < MEMORY_RUNS; i++) {
    uint64_t start = bench_time_ns();
    get(cache, 0);
    times[i] = microseconds(start);
  }
  double hit = bench_median(times, MEMORY_RUNS);
  bench_report_less(report, "hit in memory, 100 KiB, key of 4 KiB", "us", hit,
                    "limit", kLimitMemory);
  hold_to("a hit in memory", hit, kLimitMemory);
  kiln_cache_release(cache);
}

static void bench_disk(bench_report_t* report) {
  static double hits[DISK_RUNS], plain_hits[DISK_RUNS];
  static double puts[DISK_RUNS], plain_puts[DISK_RUNS], misses[DISK_RUNS];
  kiln_cache_t* cache = create(KILN_SWITCH_OFF);
  for (uint32_t i = 0; i < DISK_RUNS; i++) {
    kiln_cache_key_t key = key_of(i);
    kiln_cache_entry_t* entry = NULL;
    uint64_t start = bench_time_ns();
    bench_expect(kiln_cache_get(cache, &key, &entry));
    misses[i] = microseconds(start);
    start = bench_time_ns();
    put(cache, i);
    puts[i] = microseconds(start);
    start = bench_time_ns();
    plain_write(i);
    plain_puts[i] = microseconds(start);
    start = bench_time_ns();
    get(cache, i);
    hits[i] = microseconds(start);
    start = bench_time_ns();
    plain_read(i);
    plain_hits[i] = microseconds(start);
  }
  double hit = bench_median(hits, DISK_RUNS);
  bench_report_less(report, "miss on disk", "us",
                    bench_median(misses, DISK_RUNS), NULL, 0);
  bench_report_less(report, "hit on disk, 100 KiB", "us", hit, "limit",
                    kLimitDisk);
  hold_to("a hit on disk", hit, kLimitDisk);
  bench_report_less(report, "hit on disk, 100 KiB, verified", "us", hit,
                    "open, fstat, malloc, read",
                    bench_median(plain_hits, DISK_RUNS));
  bench_report_less(report, "publication, 100 KiB", "us",
                    bench_median(puts, DISK_RUNS), "open, write, rename",
                    bench_median(plain_puts, DISK_RUNS));
  kiln_cache_release(cache);
}

static kiln_status_t make(void* user, kiln_cache_output_t* out) {
  (void)user;
  (void)usleep(MAKE_US);
  out->payload.data = g_payload;
  out->payload.size = PAYLOAD_BYTES;
  return kiln_ok();
}

static void* want(void* user) {
  static const uint32_t number = 1000000;
  uint8_t bytes[KEY_BYTES];
  kiln_cache_request_t request = kiln_cache_request_default();
  kiln_cache_entry_t* entry = NULL;
  memset(bytes, 0, sizeof(bytes));
  memcpy(bytes, &number, sizeof(number));
  request.key = (kiln_cache_key_t){"cubin", 1, 0, {bytes, KEY_BYTES}};
  request.make = make;
  bench_expect(kiln_cache_get_or_make(user, &request, &entry, NULL));
  kiln_cache_entry_release(entry);
  return NULL;
}

static void bench_contended(bench_report_t* report) {
  kiln_cache_t* cache = create(KILN_SWITCH_ON);
  pthread_t threads[THREADS];
  uint64_t start = bench_time_ns();
  for (int i = 0; i < THREADS; i++) {
    bench_need(pthread_create(&threads[i], NULL, want, cache) == 0,
               "no thread");
  }
  for (int i = 0; i < THREADS; i++) (void)pthread_join(threads[i], NULL);
  double time = microseconds(start);
  kiln_cache_stats_t stats;
  kiln_cache_stats(cache, &stats);
  bench_need(stats.made == 1, "made more than once");
  bench_report_less(report, "8 threads want what takes 20 ms to make", "us",
                    time, "each makes it", (double)MAKE_US * THREADS);
  kiln_cache_release(cache);
}

static int remove_one(const char* path, const struct stat* info, int kind,
                      struct FTW* place) {
  (void)info, (void)kind, (void)place;
  return remove(path);
}

int main(int argc, char** argv) {
  static bench_report_t report;
  const char* where = getenv("TMPDIR");
  if (where == NULL || where[0] != '/') where = "/tmp";
  if (argc > 1) where = argv[1];
  snprintf(g_top, sizeof(g_top), "%.200s/kiln-bench-cache-XXXXXX", where);
  bench_need(mkdtemp(g_top) != NULL, "no folder");
  snprintf(g_folder, sizeof(g_folder), "%s/cache", g_top);
  for (size_t i = 0; i < PAYLOAD_BYTES; i++) {
    g_payload[i] = (uint8_t)(i * 31 + i / 251);
  }
  report.device = "none";
  bench_memory(&report);
  bench_disk(&report);
  bench_contended(&report);
  (void)nftw(g_top, remove_one, 16, FTW_DEPTH | FTW_PHYS);
  bench_report_print(&report);
  return g_over == 0 ? 0 : 1;
}
