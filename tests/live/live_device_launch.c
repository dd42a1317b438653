// SPDX-License-Identifier: Apache-2.0
//
// live: a kernel that launches a graph. CUDA C++ is compiled by NVRTC, linked
// with the toolkit's device runtime (libcudadevrt), and run as a node of a
// graph, from which it launches an executable made with `device_launch`: beside
// its own graph, behind it, and as a graph that launches itself again.
//
//   live_device_launch [cuda:0]
//
// Exit code 77, with the reason, where there is no such device, no NVRTC or no
// device runtime. The software device has none of it: soft-rows.md.
#include "live_check.h"

#include "kiln/kiln.h"

enum { SKIP = 77, CELLS = 8, LAUNCHES = 3, ROUNDS = 10 };
// Of `cells`.
enum { VALUE = 0, SEEN = 1, SAID = 2, COUNT = 3, SAID_AGAIN = 4 };

static const char kSource[] =
    "extern \"C\" __global__ void step(unsigned* cells, unsigned a) {\n"
    "  cells[0] = cells[0] * 3 + a;\n"
    "}\n"
    "extern \"C\" __global__ void start(unsigned* cells, cudaGraphExec_t "
    "what,\n"
    "                                  unsigned way) {\n"
    "  cells[2] |= cudaGraphLaunch(what, way == 0\n"
    "                                        ? cudaStreamGraphFireAndForget\n"
    "                                        : cudaStreamGraphTailLaunch);\n"
    "}\n"
    "extern \"C\" __global__ void see(unsigned* cells) {\n"
    "  cells[1] = *(volatile unsigned*)cells;\n"
    "}\n"
    "extern \"C\" __global__ void again(unsigned* cells, unsigned rounds) {\n"
    "  if (++cells[3] < rounds) {\n"
    "    cells[4] |= cudaGraphLaunch(cudaGetCurrentGraphExec(),\n"
    "                                cudaStreamGraphTailLaunch);\n"
    "  }\n"
    "}\n";

// one-thread
typedef struct live_t {
  kiln_runtime_t* runtime;
  kiln_device_t* device;
  kiln_stream_t* stream;
  kiln_module_t* module;
  kiln_buffer_t* cells;
} live_t;

// ---- Code ----

// True where this machine lacks what is needed, which is told.
static bool is_missing(kiln_status_t status, const char* what) {
  kiln_status_code_t code = kiln_status_code(status);
  if (code != KILN_STATUS_NOT_FOUND && code != KILN_STATUS_UNSUPPORTED) {
    return false;
  }
  printf("skipped: %s: %s\n", what, kiln_status_message(status));
  kiln_status_free(status);
  return true;
}

static int compile(live_t* live, const char* arch, kiln_code_t** out_code) {
  kiln_compiler_t* compiler = NULL;
  kiln_compile_result_t* result = NULL;
  kiln_compile_options_t options = kiln_compile_options_default();
  options.output = KILN_CODE_FORMAT_RELOCATABLE;
  options.arch = arch;
  options.file_name = "device_launch.cu";
  kiln_status_t status =
      kiln_runtime_open_compiler(live->runtime, NULL, &compiler);
  if (is_missing(status, "NVRTC")) return SKIP;
  if (!OK(status)) return 1;
  kiln_string_view_t source = {kSource, sizeof(kSource) - 1};
  bool good = OK(kiln_compiler_compile(compiler, source, &options, &result));
  if (good) {
    *out_code = kiln_compile_result_code(result);
    kiln_code_retain(*out_code);
  } else if (result != NULL) {
    printf("%s\n", kiln_compile_result_log(result));
  }
  kiln_compile_result_release(result);
  kiln_compiler_release(compiler);
  return good ? 0 : 1;
}

static int link_with(live_t* live, kiln_code_t* code, const char* library,
                     kiln_code_t** out_code) {
  kiln_linker_t* linker = NULL;
  kiln_link_t* link = NULL;
  kiln_linker_options_t options = kiln_linker_options_default();
  options.device = live->device;
  int result = 1;
  if (OK(kiln_runtime_open_linker(live->runtime, &options, &linker)) &&
      OK(kiln_link_create(linker, NULL, &link)) &&
      OK(kiln_link_add(link, code)) &&
      OK(kiln_link_add_file(link, library, 0))) {
    kiln_status_t status = kiln_link_finish(link, out_code);
    result = is_missing(status, "a linker") ? SKIP : OK(status) ? 0 : 1;
  }
  if (result == 0) {
    printf("linked by %s with %s\n",
           kiln_link_backend_word(
               kiln_link_choice_backend(kiln_link_chosen(link))),
           library);
  }
  kiln_link_release(link);
  kiln_linker_release(linker);
  return result;
}

static int link_code(live_t* live, kiln_code_t* code, kiln_code_t** out_code) {
  kiln_toolkit_t* toolkit = kiln_runtime_toolkit(live->runtime);
  kiln_locate_item_t* item = NULL;
  if (!OK(kiln_locate_find(kiln_toolkit_locate(toolkit),
                           KILN_LOCATE_KIND_STATIC, "cudadevrt", &item))) {
    return 1;
  }
  int result = 1;
  kiln_status_t status = kiln_locate_item_require(item);
  if (is_missing(status, "the device runtime")) {
    result = SKIP;
  } else if (OK(status)) {
    result = link_with(live, code, kiln_locate_item_path(item), out_code);
  }
  kiln_locate_item_release(item);
  return result;
}

static int load(live_t* live) {
  const kiln_device_info_t* info = kiln_device_info(live->device);
  char arch[32];
  snprintf(arch, sizeof(arch), "sm_%u%u", (unsigned)info->compute_major,
           (unsigned)info->compute_minor);
  kiln_code_t* compiled = NULL;
  kiln_code_t* linked = NULL;
  int result = compile(live, arch, &compiled);
  if (result == 0) result = link_code(live, compiled, &linked);
  if (result == 0 &&
      !OK(kiln_module_create(live->device, linked, NULL, &live->module))) {
    result = 1;
  }
  kiln_code_release(compiled);
  kiln_code_release(linked);
  return result;
}

// ---- Graphs ----

static kiln_graph_node_t* add(live_t* live, kiln_graph_t* graph,
                              kiln_graph_node_t* after, const char* kernel_name,
                              const kiln_argument_t* arguments,
                              uint32_t count) {
  kiln_kernel_t* kernel = NULL;
  kiln_launch_t* launch = NULL;
  kiln_graph_node_t* node = NULL;
  if (OK(kiln_kernel_create(live->module, kernel_name, &kernel)) &&
      OK(kiln_launch_create(kernel, NULL, &launch)) &&
      OK(kiln_launch_set_all(launch, arguments, count))) {
    kiln_graph_work_t work = kiln_graph_work_launch(launch);
    OK(kiln_graph_add(graph, &after, after == NULL ? 0 : 1, &work, &node));
  }
  kiln_launch_release(launch);
  kiln_kernel_release(kernel);
  return node;
}

// An executable that kernels may launch, on the device already.
static kiln_graph_exec_t* for_kernels(live_t* live, kiln_graph_t* graph) {
  kiln_graph_exec_t* exec = NULL;
  kiln_graph_exec_options_t options = kiln_graph_exec_options_default();
  options.device_launch = KILN_SWITCH_ON;
  if (OK(kiln_graph_exec_create(graph, &options, &exec))) {
    OK(kiln_graph_exec_upload(exec, live->stream));
    OK(kiln_stream_synchronize(live->stream));
  }
  return exec;
}

static void clear(live_t* live) {
  const uint32_t zero[CELLS] = {0};
  OK(kiln_buffer_write(live->cells, 0, sizeof(zero), zero));
}

static uint32_t cell(live_t* live, uint32_t index) {
  uint32_t value = 0;
  OK(kiln_buffer_read(live->cells, 4 * index, 4, &value));
  return value;
}

// What two steps make of it.
static uint32_t stepped(uint32_t value) {
  return (value * 3 + 5) * 3 + 7;
}

static kiln_graph_exec_t* two_steps(live_t* live) {
  kiln_graph_t* graph = NULL;
  if (!OK(kiln_graph_create(live->device, &graph))) return NULL;
  const kiln_argument_t first[] = {kiln_arg_buffer(live->cells),
                                   kiln_arg_u32(5)};
  const kiln_argument_t second[] = {kiln_arg_buffer(live->cells),
                                    kiln_arg_u32(7)};
  kiln_graph_node_t* node = add(live, graph, NULL, "step", first, 2);
  (void)add(live, graph, node, "step", second, 2);
  kiln_graph_exec_t* exec = for_kernels(live, graph);
  kiln_graph_release(graph);
  return exec;
}

// A graph whose first kernel launches `inner`, and whose second one, with
// nothing of that before it, looks at the value.
static void launches(live_t* live, kiln_graph_exec_t* inner, uint32_t way) {
  kiln_graph_t* graph = NULL;
  kiln_graph_exec_t* exec = NULL;
  if (!OK(kiln_graph_create(live->device, &graph))) return;
  const kiln_argument_t arguments[] = {
      kiln_arg_buffer(live->cells),
      kiln_arg_u64((uintptr_t)kiln_graph_exec_handle(inner)),
      kiln_arg_u32(way)};
  kiln_graph_node_t* node = add(live, graph, NULL, "start", arguments, 3);
  (void)add(live, graph, node, "see", arguments, 1);
  clear(live);
  uint32_t value = 0;
  uint32_t before = 0;
  if (OK(kiln_graph_exec_create(graph, NULL, &exec))) {
    for (int i = 0; i < LAUNCHES; i++) {
      OK(kiln_graph_exec_launch(exec, live->stream));
      before = value;
      value = stepped(value);
    }
    OK(kiln_stream_synchronize(live->stream));
  }
  IS(cell(live, SAID) == 0);
  IS(cell(live, VALUE) == value);
  // A launch behind the graph runs when that has ended.
  if (way == 1) IS(cell(live, SEEN) == before);
  kiln_graph_exec_release(exec);
  kiln_graph_release(graph);
}

// One launch from here, the others by the graph itself.
static void relaunches(live_t* live) {
  kiln_graph_t* graph = NULL;
  if (!OK(kiln_graph_create(live->device, &graph))) return;
  const kiln_argument_t arguments[] = {kiln_arg_buffer(live->cells),
                                       kiln_arg_u32(ROUNDS)};
  (void)add(live, graph, NULL, "again", arguments, 2);
  clear(live);
  kiln_graph_exec_t* exec = for_kernels(live, graph);
  if (exec != NULL) {
    OK(kiln_graph_exec_launch(exec, live->stream));
    OK(kiln_stream_synchronize(live->stream));
  }
  IS(cell(live, COUNT) == ROUNDS);
  IS(cell(live, SAID_AGAIN) == 0);
  kiln_graph_exec_release(exec);
  kiln_graph_release(graph);
}

static int run(live_t* live) {
  int result = load(live);
  if (result != 0) return result;
  OK(kiln_stream_create(live->device, NULL, &live->stream));
  OK(kiln_buffer_create(live->device, 4 * CELLS, NULL, &live->cells));
  kiln_graph_exec_t* inner = failures == 0 ? two_steps(live) : NULL;
  if (inner != NULL) {
    launches(live, inner, 0);
    printf("beside its own graph: %d failures\n", failures);
    launches(live, inner, 1);
    printf("behind its own graph: %d failures\n", failures);
    relaunches(live);
    printf("by itself again: %d failures\n", failures);
  }
  kiln_graph_exec_release(inner);
  kiln_buffer_release(live->cells);
  kiln_stream_release(live->stream);
  kiln_module_release(live->module);
  return failures == 0 ? 0 : 1;
}

int main(int argc, char** argv) {
  static live_t live;
  setvbuf(stdout, NULL, _IOLBF, 0);
  if (!OK(kiln_runtime_create(NULL, &live.runtime))) return 1;
  kiln_status_t status = kiln_runtime_open_device(
      live.runtime, argc > 1 ? argv[1] : "cuda:0", &live.device);
  int result = SKIP;
  if (kiln_status_is_ok(status)) {
    result = run(&live);
  } else {
    printf("skipped: %s\n", kiln_status_message(status));
    kiln_status_free(status);
  }
  kiln_device_release(live.device);
  kiln_runtime_release(live.runtime);
  return result;
}
