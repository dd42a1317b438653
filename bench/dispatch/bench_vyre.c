// SPDX-License-Identifier: Apache-2.0
//
// bench: the distinct kernels behind vyre's sixteen release workloads as
// programs (vyre/*.kiln), beside the same in plain C for one thread.
//
//   bench_vyre FOLDER [DEVICE [RECORDS]]
//
// FOLDER holds the programs. Inputs are made once, before anything is timed, by
// both sides from the same bytes; every output is compared whole. The time is
// the wall's: the output's reset (4 bytes where it is a count), one dispatch
// and 4 bytes read back, the inputs resident, and beside it the same with the
// whole output read back. Plain C is given the same inputs in memory and writes
// the same output. RECORDS is 1,048,576 unless it is given; it is also how many
// nodes the graph has. Exit code 77 where there is no such device; "soft"
// checks the programs without a GPU. docs/reference/vyre-workloads.md says
// more.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench_check.h"
#include "bench_report.h"
#include "kiln/kiln.h"
#include "vyre_plain.h"

enum {
  SKIPPED = 77,
  RECORDS = 1 << 20,
  MOST_INPUTS = 5,
  INPUTS_LINEAR = 256,
  GROUPS_LINEAR = INPUTS_LINEAR / 64,
  DEGREE = 4,  // edges of a node
  ROUNDS = 51,
  PLAIN_ROUNDS = 9,
  MOST_TEXT = 1 << 16,
};

// One workload with what it works on. one-thread
typedef struct job_t {
  uint32_t records;
  uint32_t inputs;
  uint32_t* in[MOST_INPUTS];
  uint32_t words[MOST_INPUTS];
  uint32_t* out;  // by plain C
  uint32_t* got;  // by the device
  uint32_t out_words;
} job_t;

// ---- Inputs ----

static uint32_t mix(uint32_t x) {
  x ^= x >> 16;
  x *= 0x7feb352du;
  x ^= x >> 15;
  x *= 0x846ca68bu;
  return x ^ x >> 16;
}

static uint32_t* take(uint32_t words) {
  uint32_t* memory = calloc(words > 0 ? words : 1, sizeof(*memory));
  bench_need(memory != NULL, "out of memory");
  return memory;
}

static uint32_t* input(job_t* job, uint32_t words) {
  uint32_t* memory = take(words);
  job->words[job->inputs] = words;
  job->in[job->inputs++] = memory;
  return memory;
}

static void output(job_t* job, uint32_t words) {
  job->out_words = words;
  job->out = take(words);
  job->got = take(words);
}

// Three masks, three of four bits set; every seventh record of the second has
// all.
static void make_masks(job_t* job) {
  for (uint32_t k = 0; k < 3; k++) {
    uint32_t* mask = input(job, job->records);
    for (uint32_t i = 0; i < job->records; i++) {
      mask[i] = mix(i * 3 + k) | mix(i * 5 + k + 77);
      if (k == 1 && i % 7 == 0) mask[i] = UINT32_MAX;
    }
  }
  output(job, 1);
}

static void make_scatter(job_t* job) {
  for (uint32_t k = 0; k < 2; k++) {
    uint32_t* word = input(job, job->records);
    for (uint32_t i = 0; i < job->records; i++) {
      word[i] = mix(i * 2 + k) % 3 != 0 ? mix(i + k) : 0;
    }
  }
  output(job, (job->records + 31) / 32);
}

static void make_metadata(job_t* job) {
  uint32_t* bytes = input(job, job->records);
  uint32_t* header = input(job, job->records);
  uint32_t* entropy = input(job, job->records);
  for (uint32_t i = 0; i < job->records; i++) {
    bytes[i] = 1024 + mix(i) % 131072;
    header[i] = mix(i + 1) % 5 == 0 ? 0x4550 : 0x464c457f;
    entropy[i] = 5000 + mix(i + 2) % 4500;
  }
  output(job, 1);
}

static void make_compaction(job_t* job) {
  uint32_t* flags = input(job, job->records);
  for (uint32_t i = 0; i < job->records; i++) flags[i] = mix(i) % 97 == 0;
  output(job, 1);
}

static void make_callgraph(job_t* job) {
  uint32_t nodes = job->records;
  uint32_t* first = input(job, nodes + 1);
  uint32_t edges = 0;
  for (uint32_t n = 0; n < nodes; n++) {
    first[n] = edges;
    edges += mix(n) % (2 * DEGREE + 1);
  }
  first[nodes] = edges;
  uint32_t* to = input(job, edges);
  uint32_t* kind = input(job, edges);
  for (uint32_t e = 0; e < edges; e++) {
    to[e] = mix(e + 5) % nodes;
    kind[e] = mix(e + 9);
  }
  uint32_t* frontier = input(job, (nodes + 31) / 32);
  for (uint32_t i = 0; i < (nodes + 31) / 32; i++) {
    frontier[i] = mix(i) & mix(i + 3) & mix(i + 4);
  }
  output(job, (nodes + 31) / 32);
}

static void make_filter(job_t* job) {
  uint32_t* tokens = input(job, job->records);
  uint32_t* scores = input(job, job->records);
  uint32_t* states = input(job, job->records);
  for (uint32_t i = 0; i < job->records; i++) {
    tokens[i] = mix(i ^ 0xa5a55a5au);
    scores[i] = 440 + (mix(i + 11) & 255);
    states[i] = mix(i * 17 + 3);
  }
  output(job, job->records);
}

static void make_routing(job_t* job) {
  uint32_t* signals = input(job, job->records);
  uint32_t* histories = input(job, job->records);
  uint32_t* thresholds = input(job, job->records);
  for (uint32_t i = 0; i < job->records; i++) {
    signals[i] = mix(i ^ 0x4d595df4u);
    histories[i] = mix(i * 31 + 7);
    thresholds[i] = 320 + (mix(i + 13) & 511);
  }
  output(job, job->records);
}

static uint32_t bits_of(float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof(bits));
  return bits;
}

// Small integers and powers of two: every sum is exact, in any order.
static void make_linear(job_t* job) {
  uint32_t n = job->records / INPUTS_LINEAR;
  uint32_t* x = input(job, INPUTS_LINEAR);
  uint32_t* weights = input(job, INPUTS_LINEAR / 8 * n);
  uint32_t* scales = input(job, GROUPS_LINEAR * n);
  uint32_t* zeros = input(job, GROUPS_LINEAR * n);
  uint32_t* bias = input(job, n);
  for (uint32_t k = 0; k < INPUTS_LINEAR; k++) x[k] = bits_of((float)(k % 17));
  for (uint32_t k = 0; k < INPUTS_LINEAR / 8 * n; k++) weights[k] = mix(k);
  for (uint32_t k = 0; k < GROUPS_LINEAR * n; k++) {
    static const float kScales[4] = {0.25f, 0.5f, 1.0f, 2.0f};
    scales[k] = bits_of(kScales[mix(k) & 3]);
    zeros[k] = mix(k + 1) & 7;
  }
  for (uint32_t o = 0; o < n; o++) bias[o] = bits_of((float)(o & 7));
  output(job, n);
}

// ---- The same in plain C ----

#define COUNTING(name)                                                        \
  static void plain_##name(const job_t* job) {                                \
    job->out[0] = vyre_##name((const uint32_t* const*)job->in, job->records); \
  }
#define WRITING(name)                                                     \
  static void plain_##name(const job_t* job) {                            \
    vyre_##name((const uint32_t* const*)job->in, job->records, job->out); \
  }
#define CLEARING(name)                                                    \
  static void plain_##name(const job_t* job) {                            \
    memset(job->out, 0, job->out_words * sizeof(*job->out));              \
    vyre_##name((const uint32_t* const*)job->in, job->records, job->out); \
  }
COUNTING(masks_all)
COUNTING(masks_window)
COUNTING(masks_quantified)
COUNTING(masks_killed)
COUNTING(metadata)
COUNTING(compaction)
CLEARING(scatter)
CLEARING(callgraph)
WRITING(filter)
WRITING(routing)

static void plain_linear(const job_t* job) {
  vyre_linear((const uint32_t* const*)job->in, INPUTS_LINEAR, job->out_words,
              job->out);
}

static const struct {
  const char* name;  // of the file
  const char* of;    // vyre's numbers
  void (*make)(job_t* job);
  void (*plain)(const job_t* job);
  bool clears;  // the output is zero before
} kWorkloads[] = {
    {"masks_all", "01 03 08 09 10 11", make_masks, plain_masks_all, true},
    {"masks_window", "05", make_masks, plain_masks_window, true},
    {"masks_quantified", "06", make_masks, plain_masks_quantified, true},
    {"masks_killed", "07", make_masks, plain_masks_killed, true},
    {"scatter", "02", make_scatter, plain_scatter, true},
    {"metadata", "04", make_metadata, plain_metadata, true},
    {"compaction", "12", make_compaction, plain_compaction, true},
    {"callgraph", "13", make_callgraph, plain_callgraph, true},
    {"filter", "14", make_filter, plain_filter, false},
    {"routing", "15", make_routing, plain_routing, false},
    {"linear", "16", make_linear, plain_linear, false},
};
enum { WORKLOADS = sizeof(kWorkloads) / sizeof(kWorkloads[0]) };

// ---- On a device ----

// one-thread
typedef struct world_t {
  kiln_dispatcher_t* dispatcher;
  kiln_pipeline_t* pipeline;
  kiln_prepared_t* prepared;
  kiln_resident_t residents[MOST_INPUTS + 1];
  uint32_t count;
  bool clears;
} world_t;

static kiln_program_t* read_program(const char* folder, const char* name) {
  static char text[MOST_TEXT];
  char path[1024];
  snprintf(path, sizeof(path), "%s/%s.kiln", folder, name);
  FILE* file = fopen(path, "rb");
  if (file == NULL) fprintf(stderr, "%s: cannot be opened\n", path);
  bench_need(file != NULL, "a program is missing");
  kiln_string_view_t view = {text, fread(text, 1, sizeof(text), file)};
  fclose(file);
  kiln_program_t* program = NULL;
  bench_expect(kiln_program_parse(view, NULL, NULL, &program));
  return program;
}

static void load(world_t* world, const char* folder, int which,
                 const job_t* job) {
  kiln_binding_t bindings[MOST_INPUTS + 1];
  kiln_dispatcher_t* d = world->dispatcher;
  kiln_program_t* program = read_program(folder, kWorkloads[which].name);
  bench_expect(kiln_pipeline_create(d, program, NULL, &world->pipeline));
  kiln_program_release(program);
  world->count = job->inputs + 1;
  world->clears = kWorkloads[which].clears;
  for (uint32_t i = 0; i < world->count; i++) {
    bool in = i < job->inputs;
    uint64_t bytes = 4 * (uint64_t)(in ? job->words[i] : job->out_words);
    bench_expect(kiln_resident_allocate(d, bytes, &world->residents[i]));
    if (in) {
      bench_expect(kiln_resident_upload(d, NULL, world->residents[i], 0, bytes,
                                        job->in[i]));
    }
    bindings[i] = kiln_bind_resident(world->residents[i]);
  }
  bench_expect(kiln_pipeline_prepare(world->pipeline, bindings, world->count,
                                     NULL, &world->prepared));
  bench_expect(kiln_dispatcher_synchronize(d));
}

static void unload(world_t* world) {
  kiln_prepared_release(world->prepared);
  kiln_pipeline_release(world->pipeline);
  for (uint32_t i = 0; i < world->count; i++) {
    bench_expect(kiln_resident_free(world->dispatcher, world->residents[i]));
  }
}

// Reset, dispatch, and so many bytes of the output read back.
static void run(world_t* world, uint64_t bytes, void* to) {
  kiln_resident_t out = world->residents[world->count - 1];
  if (world->clears) {
    kiln_resident_range_t all = {0, 0};
    bench_expect(kiln_resident_fill(world->dispatcher, NULL, out, all, 0, 4));
  }
  bench_expect(kiln_prepared_run(world->prepared, NULL));
  bench_expect(
      kiln_resident_download(world->dispatcher, NULL, out, 0, bytes, to));
}

// ---- Measuring ----

static double time_device(world_t* world, uint64_t bytes, void* to) {
  double spent[ROUNDS];
  run(world, bytes, to);
  for (int i = 0; i < ROUNDS; i++) {
    uint64_t start = bench_time_ns();
    run(world, bytes, to);
    spent[i] = (double)(bench_time_ns() - start) / 1000;
  }
  return bench_median(spent, ROUNDS);
}

static double time_plain(const job_t* job, int which) {
  double spent[PLAIN_ROUNDS];
  for (int i = 0; i < PLAIN_ROUNDS; i++) {
    uint64_t start = bench_time_ns();
    kWorkloads[which].plain(job);
    spent[i] = (double)(bench_time_ns() - start) / 1000;
  }
  return bench_median(spent, PLAIN_ROUNDS);
}

static bool same(const job_t* job, int which) {
  uint32_t set = 0;
  for (uint32_t i = 0; i < job->out_words; i++) {
    set += job->out[i] != 0;
    if (job->out[i] == job->got[i]) continue;
    printf("%s: word %u is %u, and %u in plain C\n", kWorkloads[which].name,
           (unsigned)i, (unsigned)job->got[i], (unsigned)job->out[i]);
    return false;
  }
  // Nothing would be compared with nothing.
  if (set == 0) printf("%s: all zero\n", kWorkloads[which].name);
  return set != 0;
}

static bool one(world_t* world, const char* folder, int which, uint32_t records,
                bool times, bench_report_t* report) {
  static char names[WORKLOADS][3][BENCH_NAME_BYTES];
  job_t job = {.records = records};
  kWorkloads[which].make(&job);
  load(world, folder, which, &job);
  uint64_t bytes = 4 * (uint64_t)job.out_words;
  kWorkloads[which].plain(&job);
  run(world, bytes, job.got);
  bool good = same(&job, which);
  if (times) {
    double plain = time_plain(&job, which);
    uint32_t word = 0;
    char(*name)[BENCH_NAME_BYTES] = names[which];
    snprintf(name[0], sizeof(name[0]), "vyre %s (%s): plain C",
             kWorkloads[which].name, kWorkloads[which].of);
    snprintf(name[1], sizeof(name[1]), "vyre %s (%s)", kWorkloads[which].name,
             kWorkloads[which].of);
    snprintf(name[2], sizeof(name[2]), "vyre %s (%s), all read back",
             kWorkloads[which].name, kWorkloads[which].of);
    bench_report_less(report, name[0], "us", plain, NULL, 0);
    bench_report_less(report, name[1], "us", time_device(world, 4, &word),
                      name[0], plain);
    bench_report_less(report, name[2], "us", time_device(world, bytes, job.got),
                      name[0], plain);
  }
  unload(world);
  for (uint32_t i = 0; i < job.inputs; i++) free(job.in[i]);
  free(job.out);
  free(job.got);
  return good;
}

int main(int argc, char** argv) {
  static bench_report_t report;
  kiln_runtime_t* runtime = NULL;
  kiln_device_t* device = NULL;
  world_t world;
  memset(&world, 0, sizeof(world));
  if (argc < 2) {
    fprintf(stderr, "bench_vyre FOLDER [DEVICE [RECORDS]]\n");
    return 2;
  }
  const char* name = argc > 2 ? argv[2] : "cuda:0";
  uint32_t records =
      argc > 3 ? (uint32_t)strtoul(argv[3], NULL, 10) : (uint32_t)RECORDS;
  bench_need(records >= 1024 && records <= 1u << 26, "RECORDS: 1024 to 2^26");
  bench_expect(kiln_runtime_create(NULL, &runtime));
  kiln_status_t status = kiln_runtime_open_device(runtime, name, &device);
  if (!kiln_status_is_ok(status)) {
    printf("no device: %s\n", kiln_status_message(status));
    kiln_status_free(status);
    kiln_runtime_release(runtime);
    return SKIPPED;
  }
  bool times = kiln_device_info(device)->kind != KILN_DEVICE_KIND_SOFT;
  report.device = kiln_device_name(device);
  bench_expect(kiln_dispatcher_create(device, NULL, &world.dispatcher));
  bench_expect(kiln_dispatcher_warm(world.dispatcher));
  bool good = true;
  for (int i = 0; i < WORKLOADS; i++) {
    good = one(&world, argv[1], i, records, times, &report) && good;
  }
  if (times) bench_report_print(&report);
  printf("%d programs give what plain C gives: %s\n", WORKLOADS,
         good ? "yes" : "NO");
  kiln_dispatcher_release(world.dispatcher);
  kiln_device_release(device);
  kiln_runtime_release(runtime);
  return good ? 0 : 1;
}
