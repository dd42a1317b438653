// SPDX-License-Identifier: Apache-2.0
//
// bench: rounds until nothing changes: one cooperative launch of a program
// beside a hand-written cooperative kernel that does the same round, and a
// WHILE node beside a bare one by the driver's own calls.
//
//   bench_fixpoint cuda:0     each way in turns, to its end. Fails above 1.1
//                             times the hand-written kernel, or above 1.05
//                             times the bare WHILE node
//   bench_fixpoint soft       that all of them do the same; nothing is judged
//
// Exit code 77 where there is no such device.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench_check.h"
#include "bench_report.h"
#include "kiln/kiln.h"
#include "runtime/runtime.h"
#include "table/table.h"

enum {
  SKIPPED = 77,
  BLOCK = 256,
  WAYS = 5,
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
static const char kHand[] =
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
  kiln_cu_module_t modules[3];    // the program, `hand`, `again`
  kiln_cu_function_t hand;        // NULL: there is no compiler
  uint32_t hand_blocks;
  kiln_cu_graph_exec_t loop;
} job_t;

#define CU(call) bench_need((call) == KILN_CU_SUCCESS, #call)

// ---- The ways ----

static void by_hand(job_t* job) {
  uint32_t limit = 2 * job->rounds;
  void* arguments[] = {&job->addresses[0], &job->n, &job->addresses[2], &limit};
  CU(job->cu->cuLaunchCooperativeKernel(
      job->hand, job->hand_blocks, 1, 1, BLOCK, 1, 1, 0,
      kiln_stream_handle(job->stream), arguments));
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

static const struct {
  const char* name;
  void (*run)(job_t* job);
  int beside;    // the way that it is judged by; itself: none
  double limit;  // 0: not judged
} kWays[WAYS] = {
    {"hand-written cooperative kernel", by_hand, 0, 0},
    {"fixpoint, COOPERATIVE", by_cooperative, 0, 1.1},  // times the kernel
    {"bare WHILE node", by_bare_loop, 2, 0},
    {"fixpoint, WHILE", by_while, 2, 1.05},  // times the bare node
    {"fixpoint, POLL", by_poll, 2, 0},
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

static void make_hand(job_t* job, kiln_compiler_t* compiler) {
  kiln_compile_options_t options = kiln_compile_options_default();
  kiln_string_view_t view = {kHand, sizeof(kHand) - 1};
  kiln_compile_result_t* result = NULL;
  const kiln_device_info_t* info = kiln_device_info(job->device);
  char arch[32];
  int each = 0;
  if (compiler == NULL) return;
  (void)snprintf(arch, sizeof(arch), "compute_%u%u",
                 (unsigned)info->compute_major, (unsigned)info->compute_minor);
  options.arch = arch;
  bench_expect(kiln_compiler_compile(compiler, view, &options, &result));
  kiln_bytes_view_t image = kiln_code_bytes(kiln_compile_result_code(result));
  char* text = calloc(1, image.size + 1);
  bench_need(text != NULL, "out of memory");
  memcpy(text, image.data, image.size);
  CU(job->cu->cuModuleLoadData(&job->modules[1], text));
  free(text);
  CU(job->cu->cuModuleGetFunction(&job->hand, job->modules[1], "hand"));
  kiln_compile_result_release(result);
  CU(job->cu->cuOccupancyMaxActiveBlocksPerMultiprocessor(&each, job->hand,
                                                          BLOCK, 0));
  uint32_t most = (uint32_t)each * info->multiprocessors;
  job->hand_blocks = (job->n + BLOCK - 1) / BLOCK;
  if (job->hand_blocks > most) job->hand_blocks = most;
}

// The arguments of the program's kernel, launched once.
static void make_values(job_t* job, uint64_t values[MAX_ARGUMENTS],
                        void* list[MAX_ARGUMENTS]) {
  kiln_program_code_t* code = kiln_pipeline_code(job->pipeline);
  kiln_program_parameter_t p;
  for (uint32_t i = 0; kiln_program_code_parameter(code, i, &p); i++) {
    bench_need(i < MAX_ARGUMENTS, "more arguments than there is room for");
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
  CU(cu->cuModuleLoadData(&job->modules[2], kSet));
  CU(cu->cuModuleGetFunction(&again, job->modules[2], "again"));
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
  make_hand(job, compiler);
  make_loop(job);
}

static void release(job_t* job) {
  for (int i = 0; i < 3; i++) kiln_sequence_release(job->sequences[i]);
  (void)job->cu->cuGraphExecDestroy(job->loop);
  for (int i = 0; i < 3; i++) {
    if (job->modules[i] != NULL) (void)job->cu->cuModuleUnload(job->modules[i]);
    job->modules[i] = NULL;
  }
  bench_expect(kiln_resident_free(job->dispatcher, job->x));
  bench_expect(kiln_resident_free(job->dispatcher, job->changed));
  bench_expect(kiln_resident_free(job->dispatcher, job->words));
  job->hand = NULL;
}

// ---- Measuring ----

static int by_value(const void* a, const void* b) {
  double x = *(const double*)a;
  double y = *(const double*)b;
  return (x > y) - (x < y);
}

static double median(double* values, int count) {
  qsort(values, (size_t)count, sizeof(*values), by_value);
  return values[count / 2];
}

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
  return way != 0 || job->hand != NULL;
}

static bool measure(job_t* job, bench_report_t* out, bool judges) {
  static double spent[WAYS][MEASURED], ratios[WAYS][MEASURED];
  bool good = true;
  for (int round = -2; round < MEASURED; round++) {
    double took[WAYS] = {0};
    for (int k = 0; k < WAYS; k++) {
      int way = (k + round + 2) % WAYS;
      if (!has(job, way)) continue;
      took[way] = run(job, way);
      check(job, way);
    }
    for (int way = 0; way < WAYS && round >= 0; way++) {
      spent[way][round] = took[way];
      ratios[way][round] = took[way] / took[kWays[way].beside];
    }
  }
  fprintf(stderr, "%u elements, %u rounds\n", job->n, job->rounds);
  for (int way = 0; way < WAYS; way++) {
    int beside = kWays[way].beside;
    char name[BENCH_NAME_BYTES];
    if (!has(job, way)) continue;
    (void)snprintf(name, sizeof(name), "%s, %u elements", kWays[way].name,
                   job->n);
    double each = median(spent[way], MEASURED) / job->rounds;
    bool has_base = has(job, beside) && beside != way;
    bench_report_less(
        out, name, "us a round", each, has_base ? kWays[beside].name : NULL,
        has_base ? median(spent[beside], MEASURED) / job->rounds : 0);
    double ratio = median(ratios[way], MEASURED);
    fprintf(stderr, "%-34s %8.3f us a round", kWays[way].name, each);
    if (has_base) fprintf(stderr, ", %.4f times %s", ratio, kWays[beside].name);
    double limit = kWays[way].limit;
    if (has_base && limit != 0 && judges) {
      bool holds = ratio <= limit;
      fprintf(stderr, " (bar %.2f: %s)", limit,
              holds ? "holds" : "DOES NOT HOLD");
      good = good && holds;
    }
    fprintf(stderr, "\n");
  }
  return good;
}

// Where the driver's own calls are taken from: below every wrapper.
static kiln_status_t keep_table(void* user, kiln_cuda_table_t* inout_table) {
  *(kiln_cuda_table_t*)user = *inout_table;
  return NULL;
}

static bool bench(kiln_runtime_t* runtime, job_t* job, bool judges) {
  static const uint32_t kSizes[][2] = {
      {256, 1000}, {33792, 1000}, {1 << 18, 1000}, {1 << 22, 200}};
  static bench_report_t out;
  kiln_compiler_t* compiler = NULL;
  kiln_status_t status = kiln_runtime_open_compiler(runtime, NULL, &compiler);
  bool good = true;
  if (!kiln_status_is_ok(status)) {
    fprintf(stderr, "no hand-written kernel: %s\n",
            kiln_status_message(status));
    kiln_status_free(status);
  }
  out.device = kiln_device_name(job->device);
  for (size_t i = 0; i < sizeof(kSizes) / sizeof(kSizes[0]); i++) {
    job->n = kSizes[i][0];
    job->rounds = judges ? kSizes[i][1] : 4;
    if (!judges && job->n > 100000) break;
    prepare(job, judges ? compiler : NULL);
    good = measure(job, &out, judges) && good;
    release(job);
  }
  kiln_compiler_release(compiler);
  bench_report_print(&out);
  return good;
}

int main(int argc, char** argv) {
  static kiln_cuda_table_t raw;
  static job_t job;
  const char* name = argc > 1 ? argv[1] : "cuda:0";
  kilni_runtime_hooks_t hooks = {0};
  kiln_runtime_t* runtime = NULL;
  kiln_program_t* program = NULL;
  kiln_string_view_t text = {kProgram, sizeof(kProgram) - 1};
  hooks.wrap = keep_table;
  hooks.user = &raw;
  bench_expect(kilni_runtime_create_with(NULL, &hooks, &runtime));
  kiln_status_t status = kiln_runtime_open_device(runtime, name, &job.device);
  if (!kiln_status_is_ok(status)) {
    printf("no device: %s\n", kiln_status_message(status));
    kiln_status_free(status);
    kiln_runtime_release(runtime);
    return SKIPPED;
  }
  job.cu = &raw;
  bench_expect(kiln_dispatcher_create(job.device, NULL, &job.dispatcher));
  bench_expect(kiln_program_parse(text, NULL, NULL, &program));
  bench_expect(
      kiln_pipeline_create(job.dispatcher, program, NULL, &job.pipeline));
  kiln_program_release(program);
  bench_expect(kiln_stream_create(job.device, NULL, &job.stream));
  CU(raw.cuCtxSetCurrent(kiln_device_context(job.device)));
  bool judges = kiln_device_info(job.device)->kind != KILN_DEVICE_KIND_SOFT;
  bool good = bench(runtime, &job, judges);
  CU(raw.cuCtxSetCurrent(NULL));
  kiln_stream_release(job.stream);
  kiln_pipeline_release(job.pipeline);
  kiln_dispatcher_release(job.dispatcher);
  kiln_device_release(job.device);
  kiln_runtime_release(runtime);
  return good ? 0 : 1;
}
