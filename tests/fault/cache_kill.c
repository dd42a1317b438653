// SPDX-License-Identifier: Apache-2.0
//
// fault: processes that are killed while they make and read one shared cache.
//
//   cache_kill [PROCESSES KILLS [SEED]]
//
// Each of PROCESSES is killed KILLS times and begun anew: by a timer, or by
// itself before, after or in the middle of a call on a file whose number comes
// from the seed. Then all run once more to their end. No wrong byte may be
// served, no entry be bad, nobody hang, and no temporary file be left after
// the next clean-up. Without arguments 4 and 10, or 8 and 200 where
// KILN_FAULT_ALL=1 asks for everything.
#define _GNU_SOURCE  // usleep, MAP_ANONYMOUS
#include <ftw.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/env.h"
#include "cache/cache.h"
#include "cache/cache_inside.h"
#include "kiln/cache.h"

enum {
  MAX_PROCESSES = 64,
  KEYS = 12,
  LEAST_BYTES = 200,
  MOST_BYTES = 60000,
  LAST_OPERATIONS = 200,
  HANG_S = 120,
};

// What all processes count in. thread-safe
typedef struct counts_t {
  atomic_uint_fast64_t operations, wrong, bad, made, hits, timeouts, errors,
      left;
} counts_t;

// When a process ends itself. one-thread
typedef struct plan_t {
  kilni_base_folder_calls_t system;
  uint64_t call;  // number of the call; 0: never
  uint64_t met;
  uint32_t where;  // 0: before it, 1: after it, 2: in the middle of a write
} plan_t;

static counts_t* g_counts;
static char g_folder[256];

// ---- Random numbers from a seed ----

static uint64_t next(uint64_t* state) {
  uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);
  z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
  z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
  return z ^ (z >> 31);
}

// ---- Calls that end the process ----

static bool is_last(void* user) {
  plan_t* plan = user;
  return ++plan->met == plan->call;
}

static void end_now(void) {
  (void)kill(getpid(), SIGKILL);
  for (;;) (void)pause();
}

#define CALL(name, parameters, arguments)    \
  static int k_##name parameters {           \
    plan_t* plan = user;                     \
    bool last = is_last(user);               \
    if (last && plan->where == 0) end_now(); \
    int code = plan->system.name arguments;  \
    if (last) end_now();                     \
    return code;                             \
  }

CALL(open, (void* user, int folder, const char* name, uint32_t how),
     (NULL, folder, name, how))
CALL(close, (void* user, int handle), (NULL, handle))
CALL(link, (void* user, int file, int folder, const char* name),
     (NULL, file, folder, name))
CALL(rename, (void* user, int folder, const char* from, const char* to),
     (NULL, folder, from, to))
CALL(remove, (void* user, int folder, const char* name), (NULL, folder, name))
CALL(lock, (void* user, int file, uint64_t offset, uint32_t what),
     (NULL, file, offset, what))

static int64_t k_write(void* user, int file, uint64_t offset, size_t size,
                       const void* data) {
  plan_t* plan = user;
  bool last = is_last(user);
  if (last && plan->where == 0) end_now();
  if (last && plan->where == 2) size /= 2;
  int64_t code = plan->system.write(NULL, file, offset, size, data);
  if (last) end_now();
  return code;
}

static kilni_base_folder_calls_t calls_of(plan_t* plan) {
  kilni_base_folder_calls_t calls = kilni_base_folder_calls_system();
  plan->system = calls;
  calls.open = k_open;
  calls.close = k_close;
  calls.link = k_link;
  calls.rename = k_rename;
  calls.remove = k_remove;
  calls.lock = k_lock;
  calls.write = k_write;
  calls.user = plan;
  return calls;
}

// ---- What is kept ----

// What is asked for: the key says all of the payload. one-thread
typedef struct want_t {
  uint32_t number;
  uint32_t make_us;
  uint8_t payload[MOST_BYTES];
  size_t size;
} want_t;

static void expect(want_t* want) {
  uint64_t state = want->number;
  want->size = LEAST_BYTES + next(&state) % (MOST_BYTES - LEAST_BYTES);
  for (size_t i = 0; i < want->size; i++) {
    want->payload[i] = (uint8_t)(want->number * 31 + i * 7 + i / 255);
  }
}

static kiln_cache_key_t key_of(const want_t* want) {
  kiln_cache_key_t key = {
      "test", 1, 0, {(const uint8_t*)&want->number, sizeof(want->number)}};
  return key;
}

static kiln_status_t make(void* user, kiln_cache_output_t* out) {
  want_t* want = user;
  (void)usleep(want->make_us);
  atomic_fetch_add(&g_counts->made, 1);
  out->payload.data = want->payload;
  out->payload.size = want->size;
  return kiln_ok();
}

static void check(const want_t* want, const kiln_cache_entry_t* entry) {
  kiln_bytes_view_t payload = kiln_cache_entry_payload(entry);
  if (payload.size != want->size ||
      memcmp(payload.data, want->payload, want->size) != 0) {
    atomic_fetch_add(&g_counts->wrong, 1);
  }
}

static void end_status(kiln_status_t status) {
  if (kiln_status_is_ok(status)) return;
  atomic_fetch_add(&g_counts->errors, 1);
  kiln_status_free(status);
}

// ---- What a process does ----

static kiln_cache_t* create(plan_t* plan, bool named, bool tidies) {
  kiln_cache_options_t options = kiln_cache_options_default();
  kilni_base_env_t env;
  kiln_cache_t* cache = NULL;
  memset(&env, 0, sizeof(env));
  env.allocator = kiln_allocator_libc();
  options.directory = g_folder;
  options.disk = KILN_SWITCH_ON;
  // Little memory and little disk, so that both evict all the time; or so much
  // that nothing is tidied and what the dead left behind stays.
  options.memory_bytes = 2 * MOST_BYTES;
  options.disk_bytes =
      tidies ? (uint64_t)KEYS / 3 * MOST_BYTES : KILN_CACHE_UNLIMITED;
  end_status(kilni_cache_create(&options, &env, &cache));
  if (cache == NULL) return NULL;
  if (plan != NULL) cache->calls = calls_of(plan);
  atomic_store(&cache->needs_names, named);
  return cache;
}

static void take_stats(kiln_cache_t* cache) {
  kiln_cache_stats_t stats;
  kiln_cache_stats(cache, &stats);
  atomic_fetch_add(&g_counts->bad,
                   stats.corrupt + stats.foreign + stats.collisions);
  atomic_fetch_add(&g_counts->hits, stats.disk_hits);
  atomic_fetch_add(&g_counts->timeouts, stats.lock_timeouts);
  atomic_fetch_add(&g_counts->errors,
                   stats.read_failures + stats.store_failures);
}

static void operate(kiln_cache_t* cache, uint64_t* random, want_t* want,
                    bool tidies) {
  uint64_t choice = next(random) % 100;
  kiln_cache_entry_t* entry = NULL;
  want->number = (uint32_t)(next(random) % KEYS);
  want->make_us = (uint32_t)(next(random) % 300);
  expect(want);
  kiln_cache_key_t key = key_of(want);
  kiln_bytes_view_t payload = {want->payload, want->size}, none = {NULL, 0};
  if (choice < 70) {
    kiln_cache_request_t request = kiln_cache_request_default();
    request.key = key;
    request.make = make;
    request.user = want;
    end_status(kiln_cache_get_or_make(cache, &request, &entry, NULL));
    check(want, entry);
  } else if (choice < 80) {
    end_status(kiln_cache_get(cache, &key, &entry));
    if (entry != NULL) check(want, entry);
  } else if (choice < 90) {
    end_status(kiln_cache_put(cache, &key, none, payload, NULL));
  } else if (choice < 95) {
    end_status(kiln_cache_remove(cache, &key));
  } else if (choice < 98) {
    kiln_cache_report_t report;
    if (tidies) {
      end_status(kiln_cache_trim(cache, &report));
      atomic_fetch_add(&g_counts->left, report.temporaries);
    }
  } else {
    kiln_cache_report_t report;
    end_status(
        kiln_cache_walk(cache, KILN_CACHE_WALK_VERIFY, NULL, NULL, &report));
    atomic_fetch_add(&g_counts->bad, report.bad);
  }
  kiln_cache_entry_release(entry);
  atomic_fetch_add(&g_counts->operations, 1);
}

// `operations` 0: until it is killed.
static void live(uint64_t seed, plan_t* plan, uint64_t operations) {
  static want_t want;
  uint64_t random = seed;
  uint64_t done = 0;
  while (operations == 0 || done < operations) {
    bool named = next(&random) % 2 == 0;
    bool tidies = next(&random) % 32 == 0;
    kiln_cache_t* cache = create(plan, named, tidies);
    if (cache == NULL) break;
    uint64_t stay = 1 + next(&random) % 40;
    for (uint64_t i = 0; i < stay; i++, done++) {
      operate(cache, &random, &want, tidies);
    }
    take_stats(cache);
    kiln_cache_release(cache);
  }
  _exit(operations == 0 ? 1 : 0);
}

// ---- Their parent ----

// A process that runs. one-thread
typedef struct process_t {
  pid_t id;
  uint32_t kills;
  uint64_t begun_ns;
  uint64_t until_ns;  // 0: it ends by itself
} process_t;

static void begin(process_t* process, uint64_t seed, uint64_t operations) {
  uint64_t random = seed;
  plan_t plan;
  memset(&plan, 0, sizeof(plan));
  uint64_t kind = next(&random) % 4;
  process->begun_ns = kilni_base_time_ns();
  process->until_ns = 0;
  if (operations == 0 && kind == 3) {
    process->until_ns = process->begun_ns + next(&random) % UINT64_C(30000000);
  } else if (operations == 0) {
    plan.call = 1 + next(&random) % 400;
    plan.where = (uint32_t)kind;
  }
  process->id = fork();
  if (process->id == 0) live(seed, &plan, operations);
}

// False: something is wrong with it.
static bool attend(process_t* process, bool* out_ended, bool last) {
  int code = 0;
  uint64_t now = kilni_base_time_ns();
  *out_ended = false;
  if (process->until_ns != 0 && now >= process->until_ns) {
    (void)kill(process->id, SIGKILL);
  }
  if (waitpid(process->id, &code, WNOHANG) == process->id) {
    *out_ended = true;
    process->id = 0;
    if (last) return WIFEXITED(code) && WEXITSTATUS(code) == 0;
    process->kills++;
    return WIFSIGNALED(code) && WTERMSIG(code) == SIGKILL;
  }
  if (now - process->begun_ns < HANG_S * UINT64_C(1000000000)) return true;
  fprintf(stderr, "process %d hangs\n", (int)process->id);
  return false;
}

static bool run_all(uint32_t count, uint32_t kills, uint64_t seed) {
  static process_t processes[MAX_PROCESSES];
  bool good = true;
  bool last = kills == 0;
  uint32_t running = count;
  for (uint32_t i = 0; i < count; i++) {
    processes[i].kills = 0;
    begin(&processes[i], seed + i, last ? LAST_OPERATIONS : 0);
  }
  while (running > 0 && good) {
    for (uint32_t i = 0; i < count && good; i++) {
      bool ended;
      if (processes[i].id == 0) continue;
      good = attend(&processes[i], &ended, last);
      if (!ended) continue;
      if (last || processes[i].kills >= kills) {
        running--;
      } else {
        begin(&processes[i],
              seed + i + (uint64_t)processes[i].kills * UINT64_C(1000003), 0);
      }
    }
    (void)usleep(300);
  }
  for (uint32_t i = 0; i < count; i++) {
    if (processes[i].id == 0) continue;
    (void)kill(processes[i].id, SIGKILL);
    (void)waitpid(processes[i].id, NULL, 0);
  }
  return good;
}

// ---- Afterwards ----

static bool clean_up(void) {
  kiln_cache_t* cache = create(NULL, false, true);
  kiln_cache_report_t first, second, verified;
  end_status(kiln_cache_trim(cache, &first));
  atomic_fetch_add(&g_counts->left, first.temporaries);
  end_status(kiln_cache_trim(cache, &second));
  end_status(
      kiln_cache_walk(cache, KILN_CACHE_WALK_VERIFY, NULL, NULL, &verified));
  kiln_cache_release(cache);
  printf("left over: %" PRIu64 " temporary files, after the clean-up %" PRIu64
         "; entries %" PRIu64 ", bad %" PRIu64 "\n",
         first.temporaries, second.temporaries, verified.entries, verified.bad);
  (void)fflush(stdout);
  return second.temporaries == 0 && verified.bad == 0 && first.failures == 0;
}

static int remove_one(const char* path, const struct stat* info, int kind,
                      struct FTW* place) {
  (void)info, (void)kind;
  if (place->level == 1 && strncmp(path + place->base, "tmp-", 4) == 0) {
    fprintf(stderr, "%s is left\n", path);
    atomic_fetch_add(&g_counts->errors, 1);
  }
  return remove(path);
}

static bool report(uint32_t count, uint32_t kills) {
  printf("%u processes, each killed %u times: %" PRIu64 " operations, %" PRIu64
         " made, %" PRIu64 " read from disk\n",
         count, kills, (uint64_t)g_counts->operations, (uint64_t)g_counts->made,
         (uint64_t)g_counts->hits);
  printf("wrong %" PRIu64 ", bad %" PRIu64 ", waited in vain %" PRIu64
         ", errors %" PRIu64 "\n",
         (uint64_t)g_counts->wrong, (uint64_t)g_counts->bad,
         (uint64_t)g_counts->timeouts, (uint64_t)g_counts->errors);
  // The dead do leave files behind: else nothing was tried.
  printf("temporary files of the dead, removed: %" PRIu64 "\n",
         (uint64_t)g_counts->left);
  bool tried = kills < 200 || g_counts->left > 0;
  return tried && g_counts->wrong == 0 && g_counts->bad == 0 &&
         g_counts->timeouts == 0 && g_counts->errors == 0 &&
         g_counts->hits > 0 && g_counts->made > 0;
}

static uint32_t number_of(int argc, char** argv, int index, uint32_t fallback) {
  return argc > index ? (uint32_t)strtoul(argv[index], NULL, 10) : fallback;
}

int main(int argc, char** argv) {
  const char* all = getenv("KILN_FAULT_ALL");
  bool full = all != NULL && strcmp(all, "1") == 0;
  uint32_t count = number_of(argc, argv, 1, full ? 8 : 4);
  uint32_t kills = number_of(argc, argv, 2, full ? 200 : 10);
  uint64_t seed = number_of(argc, argv, 3, 1);
  char top[] = "/tmp/kiln-cache-kill-XXXXXX";
  if (count == 0 || count > MAX_PROCESSES || mkdtemp(top) == NULL) return 2;
  snprintf(g_folder, sizeof(g_folder), "%s/cache", top);
  g_counts = mmap(NULL, sizeof(*g_counts), PROT_READ | PROT_WRITE,
                  MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (g_counts == MAP_FAILED) return 2;
  bool good = run_all(count, kills, seed << 20);
  good = clean_up() && good;
  good = good && run_all(count, 0, (seed << 20) + 500);
  good = clean_up() && good;
  (void)nftw(top, remove_one, 16, FTW_DEPTH | FTW_PHYS);
  good = report(count, kills) && good;
  printf(good ? "good\n" : "NOT GOOD\n");
  return good ? 0 : 1;
}
