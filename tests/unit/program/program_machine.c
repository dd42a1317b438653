// SPDX-License-Identifier: Apache-2.0
//
// program: a program lowered and run on the software device, beside what the
// reference evaluator says of it.
#include "program_machine.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "image/ptx.h"
#include "program/ir/program_object.h"
#include "program/ir/program_types.h"
#include "program_kit.h"
#include "ptx_defined.h"

static uint32_t g_offset, g_elements;

void machine_shape(uint32_t offset, uint32_t elements) {
  g_offset = offset;
  g_elements = elements;
}

kiln_program_code_t* machine_lower(
    const kiln_program_t* program,
    const kiln_program_lower_options_t* options) {
  kiln_program_code_t* code;
  kiln_status_t status = kiln_program_lower(program, options, &code);
  if (!kiln_status_is_ok(status)) fail_msg("%s", kiln_status_message(status));
  char out[PTX_DEFINED_BYTES];
  const kiln_string_view_t text = kiln_program_code_text(code);
  const char* problem = ptx_defined_text(text, out);
  if (problem != NULL) {
    fprintf(stderr, "%s\n", text.data);
    fail_msg("%s", problem);
  }
  return code;
}

static kiln_program_code_t* lower(const kiln_program_t* program, uint32_t sm,
                                  uint32_t without) {
  kiln_program_lower_options_t options = kiln_program_lower_options_default();
  options.sm = sm;
  options.without = without;
  options.elements = g_elements;
  return machine_lower(program, &options);
}

// ---- Texts for ptxas ----

static const char* g_folder;
static uint32_t g_collected;

void machine_collect(int argc, char** argv) {
  if (argc == 3 && strcmp(argv[1], "collect") == 0) g_folder = argv[2];
}

bool machine_collects(void) {
  return g_folder != NULL;
}

// Adds a kernel to the file of those with the same first lines, under a name
// that no other has.
static void collect(const kiln_program_code_t* code) {
  kiln_program_launch_t launch;
  kiln_program_code_launch(code, &launch);
  char name[1024];
  snprintf(name, sizeof(name), "%s/isa%u_sm%u.ptx", g_folder, launch.isa,
           launch.sm);
  FILE* file = fopen(name, "a");
  assert_non_null(file);
  const char* text = kiln_program_code_text(code).data;
  const char* kernel = strstr(text, "\n\n");
  assert_non_null(kernel);
  if (ftell(file) == 0) fwrite(text, 1, (size_t)(kernel - text), file);
  const char* entry = kiln_program_code_entry(code);
  const char* at = strstr(kernel, entry);
  assert_non_null(at);
  fwrite(kernel, 1, (size_t)(at - kernel), file);
  fprintf(file, "%s_%u%s", entry, g_collected++, at + strlen(entry));
  assert_int_equal(fclose(file), 0);
}

static bool is_parameter(const kilni_program_buffer_record_t* buffer) {
  return buffer->function == 0 && buffer->role != KILN_PROGRAM_ROLE_SHARED &&
         buffer->role != KILN_PROGRAM_ROLE_PRIVATE;
}

// The index in the tables of the n-th buffer parameter.
static uint32_t buffer_of(const kilni_program_ir_t* ir, uint32_t n) {
  for (uint32_t i = 1; i < ir->buffers.count; i++) {
    if (is_parameter(&ir->buffers.items[i]) && n-- == 0) return i;
  }
  return 0;
}

static uint64_t bytes_of(const kilni_program_ir_t* ir,
                         const program_world_t* world, uint32_t buffer) {
  return world->buffers[buffer].count *
         kilni_program_type_bytes(ir->buffers.items[buffer].type);
}

typedef struct arguments_t {
  uint8_t bytes[4096];
  size_t size;
} arguments_t;

static void add(arguments_t* to, uint64_t value, uint32_t bytes) {
  to->size = (to->size + bytes - 1) / bytes * bytes;
  memcpy(to->bytes + to->size, &value, bytes);
  to->size += bytes;
}

enum { GRID_BYTES = 24, MEET_BYTES = 32 };

typedef struct machine_t {
  soft_kit_t kit;
  uint64_t addresses[PROGRAM_BUFFERS_MAX];
  uint64_t trap;
  uint64_t grid;
  uint64_t meet;
  uint64_t rounds;
  uint32_t limit;
  arguments_t arguments;
} machine_t;

static void bind(machine_t* m, const kilni_program_ir_t* ir,
                 const kiln_program_code_t* code, program_world_t* world) {
  uint32_t count = kiln_program_code_parameter_count(code);
  for (uint32_t i = 0; i < count; i++) {
    kiln_program_parameter_t p;
    assert_true(kiln_program_code_parameter(code, i, &p));
    uint64_t value = 0;
    switch (p.kind) {
      case KILN_PROGRAM_PARAMETER_ADDRESS:
        value = m->addresses[buffer_of(ir, p.index)];
        break;
      case KILN_PROGRAM_PARAMETER_LENGTH:
        value = world->buffers[buffer_of(ir, p.index)].count;
        break;
      case KILN_PROGRAM_PARAMETER_SCALAR:
        value = world->scalars[p.index + 1];
        break;
      case KILN_PROGRAM_PARAMETER_WORK:
        value = world->work[p.index];
        break;
      case KILN_PROGRAM_PARAMETER_TRAP:
        value = m->trap;
        break;
      case KILN_PROGRAM_PARAMETER_MEET:
        value = m->meet;
        break;
      case KILN_PROGRAM_PARAMETER_ROUNDS:
        value = m->rounds;
        break;
      case KILN_PROGRAM_PARAMETER_LIMIT:
        value = m->limit;
        break;
      default:
        value = m->grid;
        break;
    }
    add(&m->arguments, value, kilni_program_type_bytes(p.type));
  }
}

static void run(const kilni_program_ir_t* ir,
                const kiln_program_lower_options_t* options,
                program_world_t* world, machine_rounds_t* rounds) {
  kiln_program_t* program;
  kilni_program_ir_t copy;
  assert_true(kiln_status_is_ok(
      kilni_program_ir_copy(ir, kiln_allocator_libc(), &copy)));
  assert_true(kiln_status_is_ok(kilni_program_create(&copy, &program)));
  kiln_program_code_t* code = machine_lower(program, options);
  machine_t* m = calloc(1, sizeof(*m));
  assert_non_null(m);
  soft_kit_way_t way;
  assert_true(soft_kit_way(rounds == NULL ? 0 : rounds->way, &way));
  soft_kit_open(&m->kit, &way);
  m->kit.stack_bytes = 1 << 17;
  kiln_string_view_t text = kiln_program_code_text(code);
  kiln_status_t status = soft_kit_try(&m->kit, text.data);
  if (!kiln_status_is_ok(status)) {
    fprintf(stderr, "%s\n", text.data);
    fail_msg("%s", kiln_status_message(status));
  }
  for (uint32_t i = 1; i < ir->buffers.count; i++) {
    if (!is_parameter(&ir->buffers.items[i])) continue;
    uint64_t bytes = bytes_of(ir, world, i), padded = (bytes + 4) / 4 * 4;
    uint64_t offset = (uint64_t)g_offset *
                      kilni_program_type_bytes(ir->buffers.items[i].type);
    uint8_t* data = calloc(1, padded + offset);
    // A parameter has data.
    // NOLINTNEXTLINE(clang-analyzer-core.NonNullParamChecker)
    memcpy(data + offset, world->buffers[i].data, bytes);
    m->addresses[i] = soft_kit_buffer(&m->kit, data, padded + offset) + offset;
    free(data);
  }
  m->trap = soft_kit_buffer(&m->kit, NULL, sizeof(program_trap_t));
  m->grid = soft_kit_buffer(&m->kit, NULL, GRID_BYTES);
  m->meet = soft_kit_buffer(&m->kit, NULL, MEET_BYTES);
  m->rounds = soft_kit_buffer(&m->kit, NULL, sizeof(kiln_program_rounds_t));
  m->limit = rounds == NULL ? 0 : rounds->limit;
  const char* wrong = program_evaluate_sizes(ir, world);
  assert_null(wrong);
  bind(m, ir, code, world);
  kiln_program_launch_t launch;
  kiln_program_code_launch(code, &launch);
  m->kit.cooperative = launch.cooperative;
  uint32_t grid[3];
  uint64_t work[3];
  for (uint32_t axis = 0; axis < 3; axis++) {
    assert_int_equal(launch.block[axis], world->block[axis]);
    work[axis] = world->work[axis];
  }
  kiln_program_code_grid(code, work, grid);
  if (rounds != NULL) {
    grid[0] = rounds->blocks;
    grid[1] = grid[2] = 1;
  }
  if (soft_kit_launch(&m->kit, kiln_program_code_entry(code), grid,
                      launch.block, launch.dynamic_shared_bytes,
                      m->arguments.bytes,
                      m->arguments.size) != KILNI_SOFT_FAULT_NONE) {
    fprintf(stderr, "%s\n", text.data);
    fail_msg("%s", m->kit.report);
  }
  for (uint32_t i = 1; i < ir->buffers.count; i++) {
    if (!is_parameter(&ir->buffers.items[i])) continue;
    soft_kit_read(&m->kit, m->addresses[i], world->buffers[i].data,
                  bytes_of(ir, world, i));
  }
  soft_kit_read(&m->kit, m->trap, &world->trap, sizeof(world->trap));
  uint64_t left[3];
  soft_kit_read(&m->kit, m->grid, left, sizeof(left));
  for (uint32_t i = 0; i < 3; i++) assert_int_equal(left[i], 0);
  uint64_t met[MEET_BYTES / 8];
  soft_kit_read(&m->kit, m->meet, met, sizeof(met));
  for (uint32_t i = 0; i < MEET_BYTES / 8; i++) assert_int_equal(met[i], 0);
  if (rounds != NULL) {
    soft_kit_read(&m->kit, m->rounds, &rounds->end, sizeof(rounds->end));
  }
  soft_kit_close(&m->kit);
  free(m);
  kiln_program_code_release(code);
  kiln_program_release(program);
}

void machine_run(const kilni_program_ir_t* ir,
                 const kiln_program_lower_options_t* options,
                 program_world_t* world) {
  run(ir, options, world, NULL);
}

void machine_run_rounds(const kilni_program_ir_t* ir,
                        const kiln_program_lower_options_t* options,
                        program_world_t* world, machine_rounds_t* rounds) {
  run(ir, options, world, rounds);
}

void machine_collect_rounds(const kiln_program_t* program, uint32_t flag) {
  kiln_program_lower_options_t options = kiln_program_lower_options_default();
  options.rounds = flag + 1;
  for (options.sm = 75; options.sm <= 90; options.sm += 15) {
    kiln_program_code_t* code = machine_lower(program, &options);
    collect(code);
    kiln_program_code_release(code);
  }
}

void machine_collect_fast(const char* text) {
  kiln_program_lower_options_t options = kiln_program_lower_options_default();
  options.max_ulp = UINT32_MAX;
  kiln_program_t* program = kit_parse(text);
  for (options.sm = 80; options.sm <= 90; options.sm += 10) {
    kiln_program_code_t* code = machine_lower(program, &options);
    collect(code);
    kiln_program_code_release(code);
  }
  kiln_program_release(program);
}

// ---- Comparing ----

static uint64_t next(uint64_t* state) {
  *state += UINT64_C(0x9e3779b97f4a7c15);
  uint64_t z = *state;
  z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
  z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
  return z ^ z >> 31;
}

// Where types end, and around zero; floats by their bits.
static uint64_t edge(uint8_t type, uint64_t pick) {
  static const uint64_t kFloats[][4] = {
      // f16, bf16, f32, f64
      {0x0000, 0x0000, 0x00000000, 0},
      {0x3c00, 0x3f80, 0x3f800000, 0x3ff0000000000000},
      {0x3800, 0x3f00, 0x3f000000, 0x3fe0000000000000},
      {0x3e00, 0x3fc0, 0x3fc00000, 0x3ff8000000000000},
      {0x4100, 0x4020, 0x40200000, 0x4004000000000000},
      {0x0001, 0x0001, 0x00000001, 1},
      {0x0400, 0x0080, 0x00800000, 0x0010000000000000},
      {0x7bff, 0x7f7f, 0x7f7fffff, 0x7fefffffffffffff},
      {0x7c00, 0x7f80, 0x7f800000, 0x7ff0000000000000},
      {0x7e00, 0x7fc0, 0x7fc00000, 0x7ff8000000000000},
      {0x7c01, 0x7f81, 0x7f800001, 0x7ff0000000000001},
      {0x5c00, 0x4f00, 0x4f000000, 0x41e0000000000000},
      {0x5bff, 0x4eff, 0x4effffff, 0x43e0000000000000},
      {0x6400, 0x5f80, 0x5f800000, 0x43f0000000000000},
      {0x4248, 0x4049, 0x40490fdb, 0x400921fb54442d18},
      {0x77ff, 0x4b7f, 0x4b7fffff, 0x433fffffffffffff},
  };
  uint32_t bits = 8 * kilni_program_type_bytes(type);
  uint64_t sign = UINT64_C(1) << (bits - 1);
  uint64_t which = pick >> 8;
  if (kilni_program_type_class(type) == KILNI_CLASS_FLOAT) {
    uint32_t column = type == KILN_PROGRAM_TYPE_F16    ? 0
                      : type == KILN_PROGRAM_TYPE_BF16 ? 1
                      : type == KILN_PROGRAM_TYPE_F32  ? 2
                                                       : 3;
    uint64_t x = kFloats[which % 16][column];
    return (pick & 1) != 0 ? x | sign : x;
  }
  const uint64_t kIntegers[] = {
      0,  1,  2,  3,        7,    8,        10,  31,     32,
      33, 63, 64, sign - 1, sign, sign + 1, 100, 0x5555, ~UINT64_C(0)};
  uint64_t x = kIntegers[which % (sizeof(kIntegers) / sizeof(kIntegers[0]))];
  return (pick & 1) != 0 ? 0 - x : x;
}

static void fill(uint8_t type, uint8_t* data, uint64_t count, uint64_t* state) {
  uint32_t bytes = kilni_program_type_bytes(type);
  for (uint64_t i = 0; i < count; i++) {
    uint64_t bits = next(state), how = next(state);
    // Edges half the time; a small number, or any.
    if ((how & 1) != 0) {
      bits = edge(type, how >> 8);
    } else if ((how & 2) != 0) {
      bits &= 63;
    }
    if (type == KILN_PROGRAM_TYPE_BOOL) bits &= 1;
    memcpy(data + i * bytes, &bits, bytes);
  }
}

static uint64_t element(const kilni_program_ir_t* ir,
                        const program_world_t* world, uint32_t buffer,
                        uint64_t i) {
  uint8_t type = ir->buffers.items[buffer].type;
  uint32_t bytes = kilni_program_type_bytes(type);
  uint64_t bits = 0;
  memcpy(&bits, (uint8_t*)world->buffers[buffer].data + i * bytes, bytes);
  return kilni_program_float_canonical(type, bits);
}

static void compare(const char* text, const kilni_program_ir_t* ir,
                    const program_world_t* want, const program_world_t* have,
                    uint32_t sm, uint32_t without) {
  for (uint32_t b = 1; b < ir->buffers.count; b++) {
    if (!is_parameter(&ir->buffers.items[b])) continue;
    for (uint64_t i = 0; i < want->buffers[b].count; i++) {
      uint64_t w = element(ir, want, b, i), h = element(ir, have, b, i);
      if (w == h) continue;
      char* ptx = machine_ptx(text, sm, without);
      fprintf(stderr, "%s\n%s\n", text, ptx);
      // The test ends here.
      // NOLINTNEXTLINE(clang-analyzer-unix.Malloc)
      fail_msg("%s[%llu] is %llx, should be %llx (sm_%u without %u)",
               kilni_program_ir_name(ir, ir->buffers.items[b].name),
               (unsigned long long)i, (unsigned long long)h,
               (unsigned long long)w, sm, without);
    }
  }
  assert_int_equal(want->trap.set, have->trap.set);
}

static void make_world(const kilni_program_ir_t* ir, program_world_t* world,
                       const uint64_t* counts, const uint64_t* scalars,
                       uint64_t seed) {
  memset(world, 0, sizeof(*world));
  for (uint32_t i = 1; i < ir->scalars.count; i++) {
    world->scalars[i] = scalars[i - 1];
  }
  uint32_t n = 0;
  for (uint32_t i = 1; i < ir->buffers.count; i++) {
    if (!is_parameter(&ir->buffers.items[i])) continue;
    world->buffers[i].count = counts[n++];
    uint64_t bytes = bytes_of(ir, world, i);
    world->buffers[i].data = calloc(1, bytes + 8);
    assert_non_null(world->buffers[i].data);
    if (ir->buffers.items[i].role == KILN_PROGRAM_ROLE_OUT) continue;
    fill(ir->buffers.items[i].type, world->buffers[i].data, counts[n - 1],
         &seed);
  }
}

static void end_world(program_world_t* world) {
  for (uint32_t i = 0; i < PROGRAM_BUFFERS_MAX; i++) {
    free(world->buffers[i].data);
  }
}

void machine_check_way(const char* text, const uint64_t* counts,
                       const uint64_t* scalars, uint64_t seed, uint32_t sm,
                       uint32_t without) {
  kiln_program_t* program = kit_parse(text);
  if (g_folder != NULL) {
    // One pass left out changes no instruction's form.
    if (sm == 75 && (without & (without - 1)) == 0 && without > 1) {
      kiln_program_release(program);
      return;
    }
    kiln_program_code_t* code = lower(program, sm, without);
    collect(code);
    kiln_program_code_release(code);
    kiln_program_release(program);
    return;
  }
  const kilni_program_ir_t* ir = kilni_program_ir(program);
  program_world_t want, have;
  make_world(ir, &want, counts, scalars, seed);
  make_world(ir, &have, counts, scalars, seed);
  const char* wrong = program_evaluate(ir, &want);
  if (wrong != NULL) fail_msg("%s\n%s", wrong, text);
  kiln_program_lower_options_t options = kiln_program_lower_options_default();
  options.sm = sm;
  options.without = without;
  options.elements = g_elements;
  machine_run(ir, &options, &have);
  compare(text, ir, &want, &have, sm, without);
  end_world(&want);
  end_world(&have);
  kiln_program_release(program);
}

void machine_check(const char* text, const uint64_t* counts,
                   const uint64_t* scalars, uint64_t seed) {
  machine_check_way(text, counts, scalars, seed, 75, 0);
  machine_check_way(text, counts, scalars, seed, 90, 0);
  for (uint32_t bit = 1; bit <= MACHINE_LAST_PASS; bit *= 2) {
    machine_check_way(text, counts, scalars, seed, 75, bit);
  }
  machine_check_way(text, counts, scalars, seed, 75, 2 * MACHINE_LAST_PASS - 1);
}

char* machine_ptx(const char* text, uint32_t sm, uint32_t without) {
  kiln_program_t* program = kit_parse(text);
  kiln_program_code_t* code = lower(program, sm, without);
  kiln_string_view_t view = kiln_program_code_text(code);
  char* out = malloc(view.size + 1);
  assert_non_null(out);
  memcpy(out, view.data, view.size + 1);
  kiln_program_code_release(code);
  kiln_program_release(program);
  return out;
}

uint32_t machine_forms(const char* text, uint32_t sm, uint32_t without,
                       const char* form) {
  char* ptx = machine_ptx(text, sm, without);
  kilni_image_ptx_module_t* module = NULL;
  const kiln_bytes_view_t view = {(const uint8_t*)ptx, strlen(ptx)};
  kiln_status_t status = kilni_image_ptx_module_create(
      view, "lowered", NULL, kiln_allocator_libc(), &module);
  if (!kiln_status_is_ok(status)) fail_msg("%s", kiln_status_message(status));
  uint32_t count = 0;
  for (uint32_t i = 0; i < module->instruction_count; i++) {
    const char* name =
        kilni_image_ptx_instruction_text(module, &module->instructions[i]);
    count += strcmp(name, form) == 0;
  }
  kilni_image_ptx_module_release(module);
  free(ptx);
  return count;
}

uint32_t machine_count(const char* text, const char* word) {
  uint32_t count = 0;
  for (const char* at = text; (at = strstr(at, word)) != NULL; at++) count++;
  return count;
}
