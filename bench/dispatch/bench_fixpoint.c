// SPDX-License-Identifier: Apache-2.0
//
// bench: rounds until nothing changes: one cooperative launch of a program
// beside cooperative kernels written by hand that do the same round, and a
// WHILE node beside a bare one by the driver's own calls.
//
//   bench_fixpoint cuda:0     each way in turns, to its end. Fails above 1.1
//                             times the better one of two kernels written by
//                             hand for the same blocks, or above 1.05 times the
//                             bare WHILE node
//   bench_fixpoint soft       that all of them do the same; nothing is judged
//
// Exit code 77 where there is no such device.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench_check.h"
#include "bench_report.h"
#include "bench_stage.h"
#include "kiln/kiln.h"

enum {
  BLOCK = 256,
  WIDE = 1024,
  HANDS = 3,
  WAYS = 7,
  MEASURED = 31,
  MAX_ARGUMENTS = 16,
  HAND_WORDS = 16,
};

static const char kProgram[] =
    "program countdown(x: inout u32[], changed: inout u32[1])\n"
    "  work length(x) block 256\n"
    "{ let i = global_id.x; let v = x[i];\n"
    "  if v > 0 { x[i] = v - 1; if v > 1 { changed[0] = 1; } } }\n";

// As one would write it: a counter of blocks that only grows, and three flags
// that take turns.
static const char kFlags[] =
    "extern \"C\" __global__ void hand(unsigned* x, unsigned n,\n"
    "                                unsigned* words, unsigned limit) {\n"
    "  __shared__ unsigned more;\n"
    "  unsigned round = 0;\n"
    "  do {\n"
    "    int changed = 0;\n"
    "    for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < n;\n"
    "         i += gridDim.x * blockDim.x) {\n"
    "      unsigned v = x[i];\n"
    "      if (v > 0) { x[i] = v - 1; if (v > 1) changed = 1; }\n"
    "    }\n"
    "    changed = __syncthreads_or(changed);\n"
    "    if (threadIdx.x == 0) {\n"
    "      unsigned* flags = words + 4;\n"
    "      unsigned now, want = gridDim.x * (round + 1);\n"
    "      if (changed) flags[round % 3] = 1;\n"
    "      if (blockIdx.x == 0) flags[(round + 1) % 3] = 0;\n"
    "      asm volatile(\"red.release.gpu.global.add.u32 [%0], 1;\"\n"
    "                   :: \"l\"(words) : \"memory\");\n"
    "      do {\n"
    "        asm volatile(\"ld.acquire.gpu.global.u32 %0, [%1];\"\n"
    "                     : \"=r\"(now) : \"l\"(words) : \"memory\");\n"
    "      } while (now < want);\n"
    "      more = *(volatile unsigned*)(flags + round % 3);\n"
    "    }\n"
    "    __syncthreads();\n"
    "    round++;\n"
    "  } while (more && round < limit);\n"
    "  if (blockIdx.x == 0 && threadIdx.x == 0) words[8] = round;\n"
    "}\n";

// As one would write it who counts accesses: the flag travels with the counter,
// in one of three words that take turns, and one block alone waits for nobody.
static const char kPacked[] =
    "extern \"C\" __global__ void hand(unsigned* x, unsigned n,\n"
    "                                unsigned* words, unsigned limit) {\n"
    "  unsigned round = 0, slot = 0;\n"
    "  int more;\n"
    "  do {\n"
    "    int changed = 0;\n"
    "    for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < n;\n"
    "         i += gridDim.x * blockDim.x) {\n"
    "      unsigned v = x[i];\n"
    "      if (v > 0) { x[i] = v - 1; if (v > 1) changed = 1; }\n"
    "    }\n"
    "    more = __syncthreads_or(changed);\n"
    "    if (gridDim.x > 1) {\n"
    "      int mine = 0;\n"
    "      unsigned next = slot == 2 ? 0 : slot + 1;\n"
    "      if (threadIdx.x == 0) {\n"
    "        unsigned now, add = more ? 65537u : 1u;\n"
    "        if (blockIdx.x == 0) words[next] = 0;\n"
    "        asm volatile(\"red.release.gpu.global.add.u32 [%0], %1;\"\n"
    "                     :: \"l\"(words + slot), \"r\"(add) : \"memory\");\n"
    "        do {\n"
    "          asm volatile(\"ld.acquire.gpu.global.u32 %0, [%1];\"\n"
    "                       : \"=r\"(now) : \"l\"(words + slot) : "
    "\"memory\");\n"
    "        } while ((now & 65535) != gridDim.x);\n"
    "        mine = now >> 16 != 0;\n"
    "      }\n"
    "      more = __syncthreads_or(mine);\n"
    "      slot = next;\n"
    "    }\n"
    "    round++;\n"
    "  } while (more && round < limit);\n"
    "  if (blockIdx.x == 0 && threadIdx.x == 0) words[8] = round;\n"
    "}\n";

// A kernel written by hand. thread-safe
//
// `blocks`: of a multiprocessor, at most; 0: as many as it holds.
static const struct {
  const char* source;
  uint32_t threads;
  uint32_t blocks;
} kHands[HANDS] = {{kFlags, BLOCK, 0}, {kPacked, BLOCK, 0}, {kPacked, WIDE, 1}};

static const char kSet[] =
    ".version 7.0\n.target sm_70\n.address_size 64\n"
    ".extern .func cudaGraphSetConditional(.param .b64 handle,\n"
    "  .param .b32 value);\n"
    ".visible .entry again(.param .u64 handle, .param .u64 flag) {\n"
    "  .reg .b32 %r<2>;\n  .reg .b64 %d<3>;\n"
    "  ld.param.u64 %d1, [handle];\n  ld.param.u64 %d2, [flag];\n"
    "  cvta.to.global.u64 %d2, %d2;\n"
    "  ld.global.u32 %r1, [%d2];\n  st.global.u32 [%d2], 0;\n"
    "  {\n  .param .b64 a0;\n  .param .b32 a1;\n"
    "  st.param.b64 [a0], %d1;\n  st.param.b32 [a1], %r1;\n"
    "  call.uni cudaGraphSetConditional, (a0, a1);\n  }\n  ret;\n}\n";

// What the ways work on. one-thread
typedef struct job_t {
  const kiln_cuda_table_t* cu;  // the driver itself
  kiln_device_t* device;
  kiln_dispatcher_t* dispatcher;
  kiln_pipeline_t* pipeline;
  kiln_stream_t* stream;
  kiln_resident_t x, changed, words;
  uint64_t addresses[3];
  uint32_t n;
  uint32_t rounds;
  kiln_sequence_t* sequences[3];  // by strategy, from COOPERATIVE on
  kiln_cu_module_t modules[2];    // the program, `again`
  kiln_cu_module_t hand_modules[HANDS];
  kiln_cu_function_t hands[HANDS];  // NULL: there is no compiler
  uint32_t hand_blocks[HANDS];
  kiln_cu_graph_exec_t loop;
} job_t;

#define CU(call) bench_need((call) == KILN_CU_SUCCESS, #call)

// ---- The ways ----

static void launch_hand(job_t* job, int which) {
  uint32_t limit = 2 * job->rounds;
  void* arguments[] = {&job->addresses[0], &job->n, &job->addresses[2], &limit};
  CU(job->cu->cuLaunchCooperativeKernel(
      job->hands[which], job->hand_blocks[which], 1, 1, kHands[which].threads,
      1, 1, 0, kiln_stream_handle(job->stream), arguments));
}

static void by_flags(job_t* job) {
  launch_hand(job, 0);
}

static void by_packed(job_t* job) {
  launch_hand(job, 1);
}

static void by_wide(job_t* job) {
  launch_hand(job, 2);
}

static void by_bare_loop(job_t* job) {
  CU(job->cu->cuGraphLaunch(job->loop, kiln_stream_handle(job->stream)));
}

static void by_cooperative(job_t* job) {
  bench_expect(kiln_sequence_run(job->sequences[0], job->stream, NULL));
}

static void by_while(job_t* job) {
  bench_expect(kiln_sequence_run(job->sequences[1], job->stream, NULL));
}

static void by_poll(job_t* job) {
  bench_expect(kiln_sequence_run(job->sequences[2], job->stream, NULL));
}

enum { COOPERATIVE = HANDS, BARE = HANDS + 1 };

static const struct {
  const char* name;
  void (*run)(job_t* job);
  int beside;    // the way that it is judged by; COOPERATIVE: the best by hand
  double limit;  // 0: not judged
} kWays[WAYS] = {
    {"by hand, flags apart", by_flags, 0, 0},
    {"by hand, flag in the counter", by_packed, 0, 0},
    {"by hand, a block of 1,024 each", by_wide, 0, 0},
    {"fixpoint, COOPERATIVE", by_cooperative, 0, 1.1},
    {"bare WHILE node", by_bare_loop, BARE, 0},
    {"fixpoint, WHILE", by_while, BARE, 1.05},
    {"fixpoint, POLL", by_poll, BARE, 0},
};

// ---- Making ----

static void make_sequences(job_t* job) {
  const kiln_binding_t bindings[] = {kiln_bind_resident(job->x),
                                     kiln_bind_resident(job->changed)};
  for (uint32_t i = 0; i < 3; i++) {
    kiln_fixpoint_options_t options = kiln_fixpoint_options_default();
    kiln_sequence_t* s = NULL;
    options.strategy = KILN_FIXPOINT_COOPERATIVE + i;
    options.limit = 2 * job->rounds;
    options.flag = bindings[1];
    bench_expect(kiln_sequence_create(job->dispatcher, NULL, &s));
    bench_expect(kiln_sequence_begin_fixpoint(s, &options, NULL));
    bench_expect(
        kiln_sequence_add_dispatch(s, job->pipeline, bindings, 2, NULL, NULL));
    bench_expect(kiln_sequence_end_body(s));
    bench_expect(kiln_sequence_finish(s));
    job->sequences[i] = s;
  }
}

static void make_hand(job_t* job, kiln_compiler_t* compiler, int which) {
  kiln_compile_options_t options = kiln_compile_options_default();
  kiln_string_view_t view = {kHands[which].source,
                             strlen(kHands[which].source)};
  kiln_compile_result_t* result = NULL;
  const kiln_device_info_t* info = kiln_device_info(job->device);
  uint32_t threads = kHands[which].threads, limit = kHands[which].blocks;
  char arch[32];
  int each = 0;
  (void)snprintf(arch, sizeof(arch), "compute_%u%u",
                 (unsigned)info->compute_major, (unsigned)info->compute_minor);
  options.arch = arch;
  bench_expect(kiln_compiler_compile(compiler, view, &options, &result));
  kiln_bytes_view_t image = kiln_code_bytes(kiln_compile_result_code(result));
  char* text = calloc(1, image.size + 1);
  bench_need(text != NULL, "out of memory");
  memcpy(text, image.data, image.size);
  CU(job->cu->cuModuleLoadData(&job->hand_modules[which], text));
  free(text);
  CU(job->cu->cuModuleGetFunction(&job->hands[which], job->hand_modules[which],
                                  "hand"));
  kiln_compile_result_release(result);
  CU(job->cu->cuOccupancyMaxActiveBlocksPerMultiprocessor(
      &each, job->hands[which], (int)threads, 0));
  if (limit == 0 || limit > (uint32_t)each) limit = (uint32_t)each;
  uint32_t most = limit * info->multiprocessors;
  job->hand_blocks[which] = (job->n + threads - 1) / threads;
  if (job->hand_blocks[which] > most) job->hand_blocks[which] = most;
}

// The arguments of the program's kernel, launched once.
static void make_values(job_t* job, uint64_t values[MAX_ARGUMENTS],
                        void* list[MAX_ARGUMENTS]) {
  kiln_program_code_t* code = kiln_pipeline_code(job->pipeline);
  kiln_program_parameter_t p;
  for (uint32_t i = 0; kiln_program_code_parameter(code, i, &p); i++) {
    bench_need(i < MAX_ARGUMENTS, "more arguments than there is space for");
    values[i] = p.index == 0 ? job->n : 1;
    if (p.kind == KILN_PROGRAM_PARAMETER_ADDRESS) {
      values[i] = job->addresses[p.index];
    }
    list[i] = &values[i];
  }
}

static void make_loop(job_t* job) {
  kiln_program_code_t* code = kiln_pipeline_code(job->pipeline);
  const kiln_cuda_table_t* cu = job->cu;
  kiln_cu_function_t round = NULL, again = NULL;
  kiln_cu_graph_t graph = NULL;
  kiln_cu_graph_node_t node = NULL, last = NULL;
  kiln_cu_graph_condition_t handle = 0;
  kiln_cu_graph_instantiate_t params = {0, NULL, NULL, 0};
  kiln_cu_graph_node_params_t loop;
  uint64_t values[MAX_ARGUMENTS];
  void* list[MAX_ARGUMENTS];
  const uint64_t work[3] = {job->n, 1, 1};
  uint32_t grid[3];
  CU(cu->cuModuleLoadData(&job->modules[0], kiln_program_code_text(code).data));
  CU(cu->cuModuleGetFunction(&round, job->modules[0],
                             kiln_program_code_entry(code)));
  CU(cu->cuModuleLoadData(&job->modules[1], kSet));
  CU(cu->cuModuleGetFunction(&again, job->modules[1], "again"));
  CU(cu->cuGraphCreate(&graph, 0));
  CU(cu->cuGraphConditionalHandleCreate(&handle, graph,
                                        kiln_device_context(job->device), 1,
                                        KILN_CU_GRAPH_COND_ASSIGN_DEFAULT));
  memset(&loop, 0, sizeof(loop));
  loop.type = KILN_CU_GRAPH_NODE_TYPE_CONDITIONAL;
  loop.of.conditional.handle = handle;
  loop.of.conditional.type = KILN_CU_GRAPH_COND_TYPE_WHILE;
  loop.of.conditional.count = 1;
  loop.of.conditional.context = kiln_device_context(job->device);
  CU(cu->cuGraphAddNode(&node, graph, NULL, NULL, 0, &loop));
  make_values(job, values, list);
  kiln_program_code_grid(code, work, grid);
  const kiln_cu_kernel_node_t body = {round, grid[0], 1,    1,    BLOCK, 1,
                                      1,     0,       list, NULL, NULL,  NULL};
  CU(cu->cuGraphAddKernelNode(&node, loop.of.conditional.graphs[0], NULL, 0,
                              &body));
  void* set[] = {&handle, &job->addresses[1]};
  const kiln_cu_kernel_node_t end = {again, 1, 1,   1,    1,    1,
                                     1,     0, set, NULL, NULL, NULL};
  CU(cu->cuGraphAddKernelNode(&last, loop.of.conditional.graphs[0], &node, 1,
                              &end));
  CU(cu->cuGraphInstantiateWithParams(&job->loop, graph, &params));
  CU(cu->cuGraphDestroy(graph));
}

static void prepare(job_t* job, kiln_compiler_t* compiler) {
  bench_expect(kiln_resident_allocate(job->dispatcher, job->n * 4ull, &job->x));
  bench_expect(kiln_resident_allocate(job->dispatcher, 4, &job->changed));
  bench_expect(
      kiln_resident_allocate(job->dispatcher, HAND_WORDS * 4, &job->words));
  const kiln_resident_t all[] = {job->x, job->changed, job->words};
  for (int i = 0; i < 3; i++) {
    bench_expect(
        kiln_resident_address(job->dispatcher, all[i], &job->addresses[i]));
  }
  make_sequences(job);
  for (int i = 0; compiler != NULL && i < HANDS; i++) {
    make_hand(job, compiler, i);
  }
  make_loop(job);
}

static void release(job_t* job) {
  for (int i = 0; i < 3; i++) kiln_sequence_release(job->sequences[i]);
  (void)job->cu->cuGraphExecDestroy(job->loop);
  for (int i = 0; i < 2; i++) {
    (void)job->cu->cuModuleUnload(job->modules[i]);
  }
  for (int i = 0; i < HANDS; i++) {
    if (job->hands[i] == NULL) continue;
    (void)job->cu->cuModuleUnload(job->hand_modules[i]);
    job->hands[i] = NULL;
  }
  bench_expect(kiln_resident_free(job->dispatcher, job->x));
  bench_expect(kiln_resident_free(job->dispatcher, job->changed));
  bench_expect(kiln_resident_free(job->dispatcher, job->words));
}

// ---- Measuring ----

// One run of a way, from the same start, in microseconds.
static double run(job_t* job, int way) {
  kiln_resident_range_t all = {0, 0};
  kiln_dispatcher_t* d = job->dispatcher;
  bench_expect(kiln_resident_fill(d, job->stream, job->x, all, job->rounds, 4));
  bench_expect(kiln_resident_fill(d, job->stream, job->changed, all, 0, 4));
  bench_expect(kiln_resident_fill(d, job->stream, job->words, all, 0, 4));
  bench_expect(kiln_stream_synchronize(job->stream));
  uint64_t start = bench_time_ns();
  kWays[way].run(job);
  bench_expect(kiln_stream_synchronize(job->stream));
  return (double)(bench_time_ns() - start) / 1000;
}

static void check(job_t* job, int way) {
  uint32_t ends[2] = {7, 7};
  bench_expect(kiln_resident_download(job->dispatcher, job->stream, job->x, 0,
                                      4, &ends[0]));
  bench_expect(kiln_resident_download(job->dispatcher, job->stream, job->x,
                                      4 * (job->n - 1), 4, &ends[1]));
  bench_need(ends[0] == 0 && ends[1] == 0, kWays[way].name);
}

static bool has(const job_t* job, int way) {
  return way >= HANDS || job->hands[way] != NULL;
}

static double g_spent[WAYS][MEASURED];

static void measure(job_t* job) {
  for (int round = -2; round < MEASURED; round++) {
    for (int k = 0; k < WAYS; k++) {
      int way = (k + round + 2) % WAYS;
      if (!has(job, way)) continue;
      double took = run(job, way);
      check(job, way);
      if (round >= 0) g_spent[way][round] = took;
    }
  }
}

// Of two ways, by the rounds in which both were run.
static double ratio_of(int way, int beside) {
  double ratios[MEASURED];
  for (int i = 0; i < MEASURED; i++) {
    ratios[i] = g_spent[way][i] / g_spent[beside][i];
  }
  return bench_median(ratios, MEASURED);
}

// The better one of those with the program's block. The wide one is told, not
// judged: fewer blocks meet sooner, and a program says what its block is.
static int best_hand(void) {
  return ratio_of(COOPERATIVE, 1) > ratio_of(COOPERATIVE, 0) ? 1 : 0;
}

static double each_of(const job_t* job, int way) {
  double sorted[MEASURED];
  memcpy(sorted, g_spent[way], sizeof(sorted));
  return bench_median(sorted, MEASURED) / job->rounds;
}

static bool tell(const job_t* job, bench_report_t* out, bool judges) {
  bool good = true;
  fprintf(stderr, "%u elements, %u rounds\n", job->n, job->rounds);
  for (int way = 0; way < WAYS; way++) {
    int beside = kWays[way].beside;
    char name[BENCH_NAME_BYTES];
    if (!has(job, way)) continue;
    if (way == COOPERATIVE && has(job, 0)) beside = best_hand();
    (void)snprintf(name, sizeof(name), "%s, %u elements", kWays[way].name,
                   job->n);
    bool has_base = has(job, beside) && beside != way;
    double each = each_of(job, way);
    bench_report_less(out, name, "us a round", each,
                      has_base ? kWays[beside].name : NULL,
                      has_base ? each_of(job, beside) : 0);
    fprintf(stderr, "%-34s %8.3f us a round", kWays[way].name, each);
    if (has_base) {
      double ratio = ratio_of(way, beside);
      bool holds = ratio <= kWays[way].limit;
      fprintf(stderr, ", %.4f times %s", ratio, kWays[beside].name);
      if (kWays[way].limit > 0 && judges) {
        fprintf(stderr, " (bar %.2f: %s)", kWays[way].limit,
                holds ? "holds" : "DOES NOT HOLD");
        good = good && holds;
      }
    }
    fprintf(stderr, "\n");
  }
  return good;
}

static bool bench(kiln_runtime_t* runtime, job_t* job, bool judges) {
  static const uint32_t kSizes[][2] = {
      {256, 1000}, {33792, 1000}, {1 << 18, 1000}, {1 << 22, 200}};
  static bench_report_t out;
  kiln_compiler_t* compiler = NULL;
  kiln_status_t status = kiln_runtime_open_compiler(runtime, NULL, &compiler);
  bool good = true;
  if (!kiln_status_is_ok(status)) {
    fprintf(stderr, "no kernels by hand: %s\n", kiln_status_message(status));
    kiln_status_free(status);
  }
  out.device = kiln_device_name(job->device);
  for (size_t i = 0; i < sizeof(kSizes) / sizeof(kSizes[0]); i++) {
    job->n = judges ? kSizes[i][0] : kSizes[i][0] / 20;
    job->rounds = judges ? kSizes[i][1] : 4;
    if (!judges && i > 1) break;
    prepare(job, compiler);
    measure(job);
    good = tell(job, &out, judges) && good;
    release(job);
  }
  kiln_compiler_release(compiler);
  bench_report_print(&out);
  return good;
}

int main(int argc, char** argv) {
  static bench_stage_t stage;
  static job_t job;
  kiln_program_t* program = NULL;
  kiln_string_view_t text = {kProgram, sizeof(kProgram) - 1};
  bench_stage_init(&stage);
  if (!bench_stage_open(&stage, argc > 1 ? argv[1] : "cuda:0")) {
    return BENCH_SKIPPED;
  }
  job.cu = &stage.raw;
  job.device = stage.device;
  bench_expect(kiln_dispatcher_create(job.device, NULL, &job.dispatcher));
  bench_expect(kiln_program_parse(text, NULL, NULL, &program));
  bench_expect(
      kiln_pipeline_create(job.dispatcher, program, NULL, &job.pipeline));
  kiln_program_release(program);
  bench_expect(kiln_stream_create(job.device, NULL, &job.stream));
  bool judges = kiln_device_info(job.device)->kind != KILN_DEVICE_KIND_SOFT;
  bool good = bench(stage.runtime, &job, judges);
  kiln_stream_release(job.stream);
  kiln_pipeline_release(job.pipeline);
  kiln_dispatcher_release(job.dispatcher);
  bench_stage_close(&stage);
  return good ? 0 : 1;
}
