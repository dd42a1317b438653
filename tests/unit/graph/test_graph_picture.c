// SPDX-License-Identifier: Apache-2.0
//
// graph: DOT and traces, over the null provider and over the software device.
#include "graph_kit.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "graph/graph_picture.h"
#include "kiln/picture.h"
#include "table/cuda_table.h"

#define REFUSED(call, code, text) assert_says((call), KILN_STATUS_##code, text)

// What breaks a contract names the parameter, and says what to do.
#define WRONG(call, code, text) wrong((call), KILN_STATUS_##code, text)

static void wrong(kiln_status_t status, kiln_status_code_t code,
                  const char* says) {
  assert_int_equal(kiln_status_code(status), code);
  assert_non_null(strstr(kiln_status_message(status), says));
  assert_non_null(kiln_status_fix(status));
  kiln_status_free(status);
}

static graph_kit_t kit;
static char text[1 << 16];
static size_t text_size;

static int setup_null(void** state) {
  (void)state;
  graph_kit_open(&kit, false);
  return 0;
}

static int setup_soft(void** state) {
  (void)state;
  graph_kit_open(&kit, true);
  return 0;
}

static int teardown(void** state) {
  (void)state;
  graph_kit_close(&kit);
  return 0;
}

static bool take(const char* data, size_t size, void* user_data) {
  (void)user_data;
  if (size >= sizeof(text) - text_size) return false;
  memcpy(text + text_size, data, size);
  text_size += size;
  text[text_size] = 0;
  return true;
}

static bool refuse(const char* data, size_t size, void* user_data) {
  (void)data;
  (void)size;
  (void)user_data;
  return false;
}

static void draw(kiln_graph_t* graph, const kiln_graph_draw_options_t* how) {
  text_size = 0;
  text[0] = 0;
  assert_null(kiln_graph_draw(graph, how, take, NULL));
}

static void has(const char* part) {
  if (strstr(text, part) == NULL) print_error("no %s in\n%s", part, text);
  assert_non_null(strstr(text, part));
}

static void lacks(const char* part) {
  if (strstr(text, part) != NULL) print_error("%s in\n%s", part, text);
  assert_null(strstr(text, part));
}

// ---- DOT ----

// Quotes, backslashes, entities, control characters, broken UTF-8.
static void test_names(void** state) {
  (void)state;
  kiln_graph_t* graph = NULL;
  assert_null(kiln_graph_create(kit.device, &graph));
  kiln_graph_node_t* node = graph_kit_add(graph, NULL, kiln_graph_work_empty());
  assert_null(kiln_graph_node_set_name(node, "a\"b\\N<&lt;\n\x01\x7f"));
  draw(graph, NULL);
  has("[label=\"a\\\"b\\\\N<&amp;lt;???\\nempty\"");
  assert_null(kiln_graph_node_set_name(node, "\xc3\xa9\xc3(\xed\xa0\x80\xf0"));
  draw(graph, NULL);
  has("[label=\"\xc3\xa9?(????\\nempty\"");
  kiln_graph_draw_options_t how = kiln_graph_draw_options_default();
  how.title = "}\"";
  draw(graph, &how);
  has("label=\"}\\\"\";\n");
  kiln_graph_release(graph);
}

static void test_escapes(void** state) {
  (void)state;
  kilni_base_str_t out;
  kilni_base_str_init(&out, kiln_allocator_libc(), 4096);
  kilni_graph_picture_add_json(&out,
                               "a\"\\&\n\x1f\xf4\x90\x80\x80\xe2\x82\xac");
  assert_string_equal(kilni_base_str_cstr(&out),
                      "a\\\"\\\\&??????\xe2\x82\xac");
  kilni_base_str_deinit(&out);
}

static void test_refusals(void** state) {
  (void)state;
  kiln_graph_t* graph = NULL;
  assert_null(kiln_graph_create(kit.device, &graph));
  REFUSED(kiln_graph_draw(graph, NULL, refuse, NULL), IO_ERROR,
          "the writer did not accept all");
  WRONG(kiln_graph_draw(NULL, NULL, take, NULL), INVALID_ARGUMENT, "graph");
  WRONG(kiln_graph_draw(graph, NULL, NULL, NULL), INVALID_ARGUMENT, "write");
  kiln_graph_draw_options_t how = kiln_graph_draw_options_default();
  how.brief = 7;
  WRONG(kiln_graph_draw(graph, &how, take, NULL), INVALID_ARGUMENT, "brief");
  REFUSED(kiln_graph_draw_file(graph, NULL, "none/there/g.dot"), NOT_FOUND,
          "none/there");
  WRONG(kiln_graph_dump_file(graph, 1u << 16, "g.dot"), INVALID_ARGUMENT,
        "flags");
  if (kit.soft) {
    assert_null(kiln_graph_dump_file(graph, 1, "picture_dump.dot"));
    assert_true(kilni_base_file_exists("picture_dump.dot"));
    assert_int_equal(remove("picture_dump.dot"), 0);
  } else {
    REFUSED(kiln_graph_dump_file(graph, 1, "none/there/g.dot"), NOT_FOUND,
            "no folder");
    // A driver that writes nothing leaves nothing.
    REFUSED(kiln_graph_dump_file(graph, 1, "picture_none.dot"), IO_ERROR,
            "the driver wrote nothing");
    assert_false(kilni_base_file_exists("picture_none.dot"));
  }
  kiln_graph_trace_t* trace = NULL;
  WRONG(kiln_graph_trace_create(NULL, NULL, &trace), INVALID_ARGUMENT, "graph");
  assert_null(trace);
  assert_null(kiln_graph_trace_create(graph, NULL, &trace));
  kiln_graph_slice_t slice;
  REFUSED(kiln_graph_trace_read(trace), INVALID_STATE, "no run");
  REFUSED(kiln_graph_trace_write(trace, take, NULL), INVALID_STATE, "no times");
  WRONG(kiln_graph_trace_slice(trace, 0, &slice), INVALID_ARGUMENT, "index");
  assert_int_equal(kiln_graph_trace_count(trace), 0);
  kiln_graph_trace_release(trace);
  kiln_graph_trace_release(NULL);
  kiln_graph_release(graph);
}

// Nodes of every look, a child, and edges drawn in an order that is not theirs.
static kiln_graph_t* make_graph(void) {
  kiln_graph_t* graph = NULL;
  kiln_graph_t* child = NULL;
  assert_null(kiln_graph_create(kit.device, &graph));
  assert_null(kiln_graph_create(kit.device, &child));
  kiln_graph_node_t* in =
      graph_kit_add(child, NULL, kiln_graph_work_launch(kit.launch));
  (void)graph_kit_add(child, in, kiln_graph_work_empty());
  kiln_graph_node_t* kernel =
      graph_kit_add(graph, NULL, kiln_graph_work_launch(kit.launch));
  kiln_graph_node_t* fill = graph_kit_add(
      graph, NULL, kiln_graph_work_fill(kit.buffer, 64, 3, 0x1f, 2));
  kiln_graph_node_t* copy = graph_kit_add(
      graph, NULL,
      kiln_graph_work_move(kiln_graph_place_buffer(kit.buffer, 128),
                           kiln_graph_place_buffer(kit.buffer, 0), 24));
  kiln_graph_node_t* inside =
      graph_kit_add(graph, NULL, kiln_graph_work_child(child));
  kiln_graph_node_t* last = graph_kit_add(graph, NULL, kiln_graph_work_empty());
  const kiln_graph_edge_t edges[] = {
      kiln_graph_edge(copy, inside), kiln_graph_edge(inside, last),
      kiln_graph_edge(fill, copy), kiln_graph_edge(kernel, copy)};
  assert_null(kiln_graph_connect(graph, edges, 4));
  assert_null(kiln_graph_node_set_name(kernel, "step"));
  assert_null(kiln_graph_node_set_name(copy, "keep"));
  assert_null(kiln_graph_node_set_name(inside, "part"));
  kiln_graph_release(child);
  return graph;
}

static void test_picture(void** state) {
  (void)state;
  kiln_graph_t* graph = make_graph();
  draw(graph, NULL);
  has("digraph graph_ {\n");
  has("n_0 [label=\"step\\nkernel\\nstep\\ngrid 1,1,1\\nblock 1,1,1\"");
  has("n_1 [label=\"fill\\nwith 0x001f\\n");
  has("n_2 [label=\"keep\\ncopy\\n24 bytes\"");
  has("subgraph cluster_3 {");
  has("n_3 [label=\"part\\nchild\"");
  has("n_3_0_0 [label=\"kernel\\nstep");
  has("n_3_0_0 -> n_3_0_1;\n");
  has("  n_0 -> n_2;\n  n_1 -> n_2;\n  n_2 -> n_3 [lhead=cluster_3");
  has("n_3 -> n_4 [ltail=cluster_3");
  // The same again, and from another graph.
  char* first = malloc(text_size + 1);
  assert_non_null(first);
  memcpy(first, text, text_size + 1);
  kiln_graph_t* other = make_graph();
  draw(other, NULL);
  assert_string_equal(text, first);
  kiln_graph_draw_options_t how = kiln_graph_draw_options_default();
  how.brief = KILN_SWITCH_ON;
  draw(graph, &how);
  has("n_0 [label=\"step\\nkernel\"");
  lacks("bytes");
  // To a file, whole.
  const char* path = "unit_graph_picture.dot";
  assert_null(kiln_graph_draw_file(graph, NULL, path));
  uint8_t* data = NULL;
  size_t size = 0;
  assert_null(
      kilni_base_file_read(kiln_allocator_libc(), path, 1 << 20, &data, &size));
  assert_int_equal(size, strlen(first));
  assert_memory_equal(data, first, size);
  kilni_base_file_free(kiln_allocator_libc(), data, size);
  assert_int_equal(remove(path), 0);
  free(first);
  kiln_graph_release(other);
  kiln_graph_release(graph);
}

// ---- Traces ----

static kiln_graph_slice_t slice_of(const kiln_graph_trace_t* trace,
                                   const char* name) {
  kiln_graph_slice_t slice;
  for (uint32_t i = 0; i < kiln_graph_trace_count(trace); i++) {
    assert_null(kiln_graph_trace_slice(trace, i, &slice));
    if (strcmp(slice.name, name) == 0) return slice;
  }
  fail_msg("no slice %s", name);
  return slice;
}

static void check_times(const kiln_graph_trace_t* trace) {
  kiln_graph_slice_t step = slice_of(trace, "step");
  kiln_graph_slice_t fill = slice_of(trace, "fill 1");
  kiln_graph_slice_t keep = slice_of(trace, "keep");
  kiln_graph_slice_t part = slice_of(trace, "part");
  kiln_graph_slice_t in = slice_of(trace, "part/kernel 0");
  assert_string_equal(step.kernel, "step");
  assert_string_equal(keep.kernel, "");
  assert_int_equal(step.kind, KILN_GRAPH_KERNEL);
  assert_int_equal(in.depth, 1);
  assert_true(keep.is_start_known && part.is_start_known);
  // What waits begins when all that it waits for has ended.
  assert_true(keep.start_ns >= step.start_ns + step.elapsed_ns);
  assert_true(keep.start_ns >= fill.start_ns + fill.elapsed_ns);
  assert_true(part.start_ns >= keep.start_ns + keep.elapsed_ns);
  assert_true(in.start_ns >= part.start_ns);
  assert_true(in.elapsed_ns <= part.elapsed_ns);
  assert_true(kiln_graph_trace_elapsed(trace) >=
              part.start_ns + part.elapsed_ns);
  // Slices of one lane do not overlap.
  uint32_t count = kiln_graph_trace_count(trace);
  for (uint32_t i = 0; i < count; i++) {
    for (uint32_t j = 0; j < count; j++) {
      kiln_graph_slice_t a;
      kiln_graph_slice_t b;
      assert_null(kiln_graph_trace_slice(trace, i, &a));
      assert_null(kiln_graph_trace_slice(trace, j, &b));
      if (i == j || a.lane != b.lane || a.start_ns > b.start_ns) continue;
      if (a.start_ns == b.start_ns) continue;  // one of them takes no time
      assert_true(a.start_ns + a.elapsed_ns <= b.start_ns);
    }
  }
}

static void run_trace(kiln_graph_trace_t* trace) {
  assert_null(kiln_graph_trace_launch(trace, kit.stream));
  assert_null(kiln_stream_synchronize(kit.stream));
  assert_null(kiln_graph_trace_read(trace));
}

static void test_trace(void** state) {
  (void)state;
  kiln_graph_t* graph = make_graph();
  kiln_graph_trace_t* trace = NULL;
  uint32_t before = 0;
  uint32_t after = 0;
  assert_null(kiln_graph_nodes(graph, 0, NULL, &before));
  assert_null(kiln_graph_trace_create(graph, NULL, &trace));
  assert_null(kiln_graph_nodes(graph, 0, NULL, &after));
  assert_int_equal(before, after);
  // The trace lives without the graph, and does what that does.
  kiln_graph_release(graph);
  assert_int_equal(kiln_graph_trace_count(trace), 5);
  assert_null(kiln_buffer_fill(kit.buffer, 0, 4096, 0, 1));
  run_trace(trace);
  check_times(trace);
  uint32_t words[34];
  assert_null(kiln_buffer_read(kit.buffer, 0, sizeof(words), words));
  assert_int_equal(words[0], 2);   // step, and again inside of the child
  assert_int_equal(words[32], 1);  // copied between the two
  assert_int_equal(words[16], 0x001f001f);
  assert_int_equal(words[17], 0x1f);
  run_trace(trace);
  check_times(trace);
  text_size = 0;
  assert_null(kiln_graph_trace_write(trace, take, NULL));
  has("{\"displayTimeUnit\":\"ns\",\n\"traceEvents\":[\n");
  has("\"name\":\"thread_name\",\"ph\":\"M\",\"pid\":1,\"tid\":1,"
      "\"args\":{\"name\":\"stream\"}}");
  has("{\"name\":\"launch\",\"cat\":\"graph\",\"ph\":\"X\",\"pid\":1,"
      "\"tid\":1,\"ts\":0.000,\"dur\":");
  has("{\"name\":\"step\",\"cat\":\"kernel\",\"ph\":\"X\"");
  has("\"args\":{\"kind\":\"kernel\",\"kernel\":\"step\"}}");
  has("\n]}\n");
  REFUSED(kiln_graph_trace_write(trace, refuse, NULL), IO_ERROR, "the writer");
  REFUSED(kiln_graph_trace_write_file(trace, "none/there/t.json"), NOT_FOUND,
          "none/there");
  kiln_graph_trace_release(trace);
}

static void test_in_place(void** state) {
  (void)state;
  kiln_graph_t* graph = NULL;
  assert_null(kiln_graph_create(kit.device, &graph));
  kiln_graph_node_t* memory =
      graph_kit_add(graph, NULL, kiln_graph_work_allocate(256));
  kiln_graph_node_t* gone = graph_kit_add(
      graph, memory, kiln_graph_work_free(kiln_graph_node_address(memory)));
  assert_null(kiln_graph_node_set_name(gone, "gone"));
  kiln_graph_trace_t* trace = NULL;
  kiln_graph_trace_options_t how = kiln_graph_trace_options_default();
  how.in_place = KILN_SWITCH_ON;
  how.free_on_launch = KILN_SWITCH_ON;
  assert_null(kiln_graph_trace_create(graph, &how, &trace));
  uint32_t count = 0;
  assert_null(kiln_graph_nodes(graph, 0, NULL, &count));
  assert_int_equal(count, 6);
  run_trace(trace);
  kiln_graph_slice_t first = slice_of(trace, "allocate 0");
  kiln_graph_slice_t last = slice_of(trace, "gone");
  assert_true(last.start_ns >= first.start_ns + first.elapsed_ns);
  kiln_graph_trace_release(trace);
  kiln_graph_release(graph);
}

// What a host program does by the graph's handle: one node goes and another one
// comes, so that there are as many as before.
static void test_nodes_of_others(void** state) {
  (void)state;
  kiln_graph_t* graph = NULL;
  assert_null(kiln_graph_create(kit.device, &graph));
  kiln_graph_node_t* gone = graph_kit_add(graph, NULL, kiln_graph_work_empty());
  kiln_graph_node_t* stays =
      graph_kit_add(graph, NULL, kiln_graph_work_empty());
  kiln_cu_graph_t handle = kiln_graph_handle(graph);
  kiln_cu_graph_node_t others = NULL;
  assert_int_equal(kit.table.cuGraphAddEmptyNode(&others, handle, NULL, 0),
                   KILN_CU_SUCCESS);
  assert_int_equal(kit.table.cuGraphDestroyNode(kiln_graph_node_handle(gone)),
                   KILN_CU_SUCCESS);
  kiln_graph_node_t* nodes[3] = {NULL, NULL, NULL};
  uint32_t count = 0;
  assert_null(kiln_graph_nodes(graph, 3, nodes, &count));
  assert_int_equal(count, 2);
  assert_ptr_equal(nodes[0], stays);
  assert_ptr_equal(kiln_graph_node_handle(nodes[1]), others);
  assert_false(kiln_graph_node_is_valid(gone));
  REFUSED(kiln_graph_node_remove(gone), INVALID_STATE, "was removed");
  kiln_graph_release(graph);
}

// Its beginning was recorded anew, and no slice belongs to that.
static void test_a_run_that_fails(void** state) {
  (void)state;
  kiln_graph_t* graph = NULL;
  kiln_graph_trace_t* trace = NULL;
  assert_null(kiln_graph_create(kit.device, &graph));
  (void)graph_kit_add(graph, NULL, kiln_graph_work_launch(kit.launch));
  assert_null(kiln_graph_trace_create(graph, NULL, &trace));
  run_trace(trace);
  kilni_table_cuda_fault_arm(&kit.table, 2, KILNI_FAULT_ONCE,
                             KILN_CU_ERROR_INVALID_VALUE);
  kiln_status_t status = kiln_graph_trace_launch(trace, kit.stream);
  assert_string_equal(kilni_table_cuda_fault_hit(&kit.table), "cuGraphLaunch");
  (void)kilni_table_cuda_fault_disarm(&kit.table);
  assert_non_null(status);
  kiln_status_free(status);
  assert_null(kiln_stream_synchronize(kit.stream));
  REFUSED(kiln_graph_trace_read(trace), INVALID_STATE, "no run");
  run_trace(trace);
  kiln_graph_trace_release(trace);
  kiln_graph_release(graph);
}

// As every release: what the parent made is not the child's to end.
static void test_released_in_a_fork(void** state) {
  (void)state;
  kiln_graph_t* graph = NULL;
  kiln_graph_trace_t* trace = NULL;
  assert_null(kiln_graph_create(kit.device, &graph));
  (void)graph_kit_add(graph, NULL, kiln_graph_work_launch(kit.launch));
  assert_null(kiln_graph_trace_create(graph, NULL, &trace));
  pid_t child = fork();
  assert_true(child >= 0);
  if (child == 0) {
    uint64_t blocks = kit.watch.live_blocks;
    kiln_graph_trace_release(trace);
    kiln_graph_release(graph);
    _exit(kit.watch.live_blocks == blocks ? 0 : 1);
  }
  int result = 0;
  assert_int_equal(waitpid(child, &result, 0), child);
  assert_true(WIFEXITED(result));
  assert_int_equal(WEXITSTATUS(result), 0);
  kiln_graph_trace_release(trace);
  kiln_graph_release(graph);
}

#define SOFT(test)   cmocka_unit_test_setup_teardown(test, setup_soft, teardown)
#define NULLED(test) cmocka_unit_test_setup_teardown(test, setup_null, teardown)

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_escapes),
      NULLED(test_names),
      NULLED(test_refusals),
      NULLED(test_released_in_a_fork),
      SOFT(test_names),
      SOFT(test_refusals),
      SOFT(test_picture),
      SOFT(test_trace),
      SOFT(test_in_place),
      SOFT(test_nodes_of_others),
      SOFT(test_a_run_that_fails),
  };
  return cmocka_run_group_tests_name("graph_picture", tests, NULL, NULL);
}
