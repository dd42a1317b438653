// SPDX-License-Identifier: Apache-2.0
//
// tests: a software device with two kernels, for programs that mean it no good.
//
// By public headers alone, as a stranger would. The kernels add to `n` words
// and multiply them, so that the order of work is seen in its result.
#ifndef KILN_TESTS_HOSTILE_HOSTILE_H_
#define KILN_TESTS_HOSTILE_HOSTILE_H_

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "kiln/kiln.h"

enum { HOSTILE_WORDS = 64 };

#define HOSTILE_KERNEL(name, op)                                               \
  ".visible .entry " name                                                      \
  "(.param .u64 p, .param .u32 n, .param .u32 k)"                              \
  "{\n.reg .pred q;\n.reg .b32 r<6>;\n.reg .b64 d<4>;\n"                       \
  "ld.param.u64 d1, [p];\nld.param.u32 r1, [n];\nld.param.u32 r2, [k];\n"      \
  "mov.u32 r3, %ctaid.x;\nmov.u32 r4, %ntid.x;\nmov.u32 r5, %tid.x;\n"         \
  "mad.lo.s32 r3, r3, r4, r5;\nsetp.ge.u32 q, r3, r1;\n@q bra E;\n"            \
  "mul.wide.u32 d2, r3, 4;\nadd.s64 d3, d1, d2;\nld.global.u32 r4, [d3];\n" op \
  " r4, r4, r2;\nst.global.u32 [d3], r4;\nE: ret;\n}\n"

static const char kHostilePtx[] =
    ".version 7.8\n.target sm_75\n.address_size 64\n" HOSTILE_KERNEL(
        "add", "add.u32") HOSTILE_KERNEL("mul", "mul.lo.u32");

// One-thread.
typedef struct hostile_t {
  kiln_runtime_t* runtime;
  kiln_device_t* device;
  kiln_stream_t* stream;
  kiln_module_t* module;
  kiln_kernel_t* add;
  kiln_kernel_t* mul;
  kiln_buffer_t* buffer;  // 4096 bytes
} hostile_t;

// What worked; else the test fails with the whole text.
static inline void hostile_ok(kiln_status_t status, const char* file,
                              int line) {
  if (kiln_status_is_ok(status)) return;
  char text[2048];
  kiln_status_format(status, sizeof(text), text, NULL);
  kiln_status_free(status);
  print_error("%s\n", text);
  _fail(file, line);
}
#define WORKS(status) hostile_ok((status), __FILE__, __LINE__)

// What is refused with that code, and no other.
static inline void hostile_refused(kiln_status_t status,
                                   kiln_status_code_t code, const char* file,
                                   int line) {
  kiln_status_code_t got = kiln_status_code(status);
  char text[2048] = "";
  kiln_status_format(status, sizeof(text), text, NULL);
  kiln_status_free(status);
  if (got == code) return;
  print_error("%s, not %s: %s\n", kiln_status_code_name(got),
              kiln_status_code_name(code), text);
  _fail(file, line);
}
#define REFUSED(code, status) \
  hostile_refused((status), KILN_STATUS_##code, __FILE__, __LINE__)

static inline void hostile_open_with(hostile_t* world,
                                     const kiln_allocator_t* allocator) {
  memset(world, 0, sizeof(*world));
  kiln_runtime_options_t options = kiln_runtime_options_default();
  options.allocator = allocator;
  options.soft_workers = 2;
  WORKS(kiln_runtime_create(&options, &world->runtime));
  WORKS(kiln_runtime_open_device(world->runtime, "soft", &world->device));
  WORKS(kiln_stream_create(world->device, NULL, &world->stream));
  kiln_bytes_view_t ptx = {(const uint8_t*)kHostilePtx,
                           sizeof(kHostilePtx) - 1};
  WORKS(kiln_module_load(world->device, ptx, NULL, NULL, &world->module));
  WORKS(kiln_kernel_create(world->module, "add", &world->add));
  WORKS(kiln_kernel_create(world->module, "mul", &world->mul));
  WORKS(kiln_buffer_create(world->device, 4096, NULL, &world->buffer));
}

static inline void hostile_open(hostile_t* world) {
  hostile_open_with(world, NULL);
}

static inline void hostile_close(hostile_t* world) {
  kiln_buffer_release(world->buffer);
  kiln_kernel_release(world->add);
  kiln_kernel_release(world->mul);
  kiln_module_release(world->module);
  kiln_stream_release(world->stream);
  kiln_device_release(world->device);
  kiln_runtime_release(world->runtime);
}

static inline kiln_launch_config_t hostile_shape(uint32_t words) {
  kiln_launch_config_t shape = kiln_launch_config_default();
  shape.grid[0] = (words + 31) / 32;
  shape.block[0] = 32;
  return shape;
}

// The status of one launch on a stream.
static inline kiln_status_t hostile_run(kiln_kernel_t* kernel,
                                        kiln_stream_t* stream,
                                        kiln_buffer_t* buffer,
                                        uint32_t operand) {
  kiln_launch_config_t shape = hostile_shape(HOSTILE_WORDS);
  kiln_argument_t arguments[] = {kiln_arg_buffer(buffer),
                                 kiln_arg_u32(HOSTILE_WORDS),
                                 kiln_arg_u32(operand)};
  return kiln_kernel_launch(kernel, stream, &shape, arguments, 3);
}

static inline kiln_launch_t* hostile_launch(kiln_kernel_t* kernel,
                                            kiln_buffer_t* buffer,
                                            uint32_t operand) {
  kiln_launch_config_t shape = hostile_shape(HOSTILE_WORDS);
  kiln_launch_t* launch = NULL;
  WORKS(kiln_launch_create(kernel, &shape, &launch));
  kiln_argument_t arguments[] = {kiln_arg_buffer(buffer),
                                 kiln_arg_u32(HOSTILE_WORDS),
                                 kiln_arg_u32(operand)};
  WORKS(kiln_launch_set_all(launch, arguments, 3));
  return launch;
}

static inline kiln_stream_t* hostile_stream_of(
    const kiln_graph_builder_t* builder) {
  kiln_stream_t* stream = NULL;
  WORKS(kiln_graph_builder_stream(builder, &stream));
  return stream;
}

// Puts a kernel on the stream that a builder captures.
static inline void hostile_capture(const kiln_graph_builder_t* builder,
                                   kiln_kernel_t* kernel, kiln_buffer_t* buffer,
                                   uint32_t operand) {
  WORKS(hostile_run(kernel, hostile_stream_of(builder), buffer, operand));
}

static inline kiln_graph_builder_t* hostile_begin(hostile_t* world,
                                                  kiln_stream_t* stream,
                                                  uint32_t mode) {
  kiln_graph_builder_options_t options = kiln_graph_builder_options_default();
  options.stream = stream;
  kiln_graph_builder_t* builder = NULL;
  WORKS(kiln_graph_builder_create(world->device, &options, &builder));
  WORKS(kiln_graph_builder_begin(builder, mode));
  return builder;
}

static inline void hostile_zero(hostile_t* world) {
  static const uint32_t zeros[HOSTILE_WORDS];
  WORKS(kiln_buffer_write(world->buffer, 0, sizeof(zeros), zeros));
}

// The first word and the last one, which must be equal.
static inline uint32_t hostile_value(hostile_t* world) {
  uint32_t words[HOSTILE_WORDS];
  WORKS(kiln_buffer_read(world->buffer, 0, sizeof(words), words));
  assert_int_equal(words[0], words[HOSTILE_WORDS - 1]);
  return words[0];
}

// What an executable makes of zeros.
static inline uint32_t hostile_result(hostile_t* world,
                                      kiln_graph_exec_t* exec) {
  hostile_zero(world);
  WORKS(kiln_graph_exec_launch(exec, world->stream));
  WORKS(kiln_stream_synchronize(world->stream));
  return hostile_value(world);
}

// What an ended capture makes of zeros, three times.
static inline void hostile_expect(hostile_t* world,
                                  kiln_graph_builder_t* builder,
                                  uint32_t wanted) {
  kiln_graph_exec_t* exec = NULL;
  WORKS(kiln_graph_builder_exec(builder, NULL, &exec));
  for (int i = 0; i < 3; i++) {
    assert_int_equal(hostile_result(world, exec), wanted);
  }
  kiln_graph_exec_release(exec);
}

// One condition that every launch begins with `first`, and its node.
static inline void hostile_choose(kiln_graph_builder_t* builder, uint32_t kind,
                                  uint32_t bodies, uint32_t first,
                                  kiln_graph_builder_t** out_bodies) {
  kiln_graph_conditional_t choice;
  WORKS(kiln_graph_builder_add_condition(builder, &first, &choice.condition));
  choice.kind = kind;
  choice.bodies = bodies;
  WORKS(kiln_graph_builder_add_conditional(builder, &choice, out_bodies));
}

static inline void hostile_nap(long microseconds) {
  struct timespec nap = {0, microseconds * 1000};
  (void)nanosleep(&nap, NULL);
}

// A world for each test of a file; what else to do when it is there.
#define HOSTILE_WORLD(...)            \
  static hostile_t world;             \
  static int setup(void** state) {    \
    (void)state;                      \
    hostile_open(&world);             \
    __VA_ARGS__;                      \
    return 0;                         \
  }                                   \
  static int teardown(void** state) { \
    (void)state;                      \
    hostile_close(&world);            \
    return 0;                         \
  }

#endif  // KILN_TESTS_HOSTILE_HOSTILE_H_
