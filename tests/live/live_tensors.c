// SPDX-License-Identifier: Apache-2.0
//
// live: tensor maps on a GPU: kernels copy boxes of a tensor, and columns of
// pictures, into shared memory by the maps that Kiln encodes, and every byte
// that arrives is compared: all types, all swizzles, steps, and what is
// beyond the edges.
//
// Each stage is a process of its own, so that a fault hides no other. Exit code
// 77 without a GPU that has tensor maps.
#define _POSIX_C_SOURCE 200809L
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kiln/kiln.h"
#include "live_check.h"

enum {
  SKIPPED = 77,
  TILE_BYTES = 4096,
  ROW_BYTES = 512,  // of the tensor, from row to row
  ROWS = 24,
  WIDTH_BYTES = 320,  // of a row that are the tensor's
};

// One block copies a box into shared memory and from there to `out`. The map is
// a parameter, or lies where a parameter says.
#define BY_VALUE(align) ".param .align " align " .b8 map[128]"
#define VALUE           "  mov.b64 %d2, map;\n  cvta.param.u64 %d2, %d2;\n"
#define BY_ADDRESS      ".param .u64 map"
#define ADDRESS         "  ld.param.u64 %d2, [map];\n"
#define COPY(name, map, find, params, load, copy)                \
  ".visible .entry " name "(" map                                \
  ", .param .u64 out,\n"                                         \
  "    .param .u32 bytes, " params                               \
  ") {\n"                                                        \
  "  .reg .pred %p<3>;\n  .reg .b16 %h<3>;\n"                    \
  "  .reg .b32 %r<14>;\n  .reg .b64 %d<8>;\n"                    \
  "  .shared .align 1024 .b8 " name                              \
  "_tile[4096];\n"                                               \
  "  .shared .align 8 .b64 " name                                \
  "_bar;\n"                                                      \
  "  mov.u32 %r1, %tid.x;\n  mov.u32 %r2, " name                 \
  "_tile;\n"                                                     \
  "  mov.u32 %r3, " name                                         \
  "_bar;\n"                                                      \
  "  ld.param.u64 %d1, [out];\n  cvta.to.global.u64 %d1, %d1;\n" \
  "  ld.param.u32 %r4, [bytes];\n" find load                     \
  "  setp.ne.u32 %p1, %r1, 0;\n"                                 \
  "  @%p1 bra READY;\n"                                          \
  "  mbarrier.init.shared::cta.b64 [%r3], 1;\n"                  \
  "  fence.mbarrier_init.release.cluster;\n"                     \
  "  fence.proxy.async.shared::cta;\n"                           \
  "  mbarrier.arrive.expect_tx.shared::cta.b64 %d3, [%r3], "     \
  "%r4;\n" copy                                                  \
  "READY:\n"                                                     \
  "  bar.sync 0;\n"                                              \
  "WAIT:\n"                                                      \
  "  mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r3], 0;\n"  \
  "  @!%p2 bra WAIT;\n"                                          \
  "  shl.b32 %r5, %r1, 2;\n"                                     \
  "NEXT:\n"                                                      \
  "  add.u32 %r6, %r2, %r5;\n  ld.shared.u32 %r7, [%r6];\n"      \
  "  cvt.u64.u32 %d4, %r5;\n  add.u64 %d5, %d1, %d4;\n"          \
  "  st.global.u32 [%d5], %r7;\n"                                \
  "  add.u32 %r5, %r5, 128;\n  setp.lt.u32 %p2, %r5, 4096;\n"    \
  "  @%p2 bra NEXT;\n  ret;\n}\n"

#define BY "mbarrier::complete_tx::bytes [%r2], [%d2, "

#define TILE(name, map, find)                                 \
  COPY(name, map, find, ".param .s32 x, .param .s32 y",       \
       "  ld.param.s32 %r8, [x];\n"                           \
       "  ld.param.s32 %r9, [y];\n",                          \
       "  cp.async.bulk.tensor.2d.shared::cluster.global." BY \
       "{%r8, %r9}], [%r3];\n")

#define HEAD ".version 8.0\n.target sm_90\n.address_size 64\n"
static const char kTile[] = HEAD TILE("tile", BY_VALUE("128"), VALUE);
static const char kTile64[] = HEAD TILE("tile_64", BY_VALUE("64"), VALUE);
static const char kTileAt[] = HEAD TILE("tile_at", BY_ADDRESS, ADDRESS);
static const char kColumns[] =
    HEAD COPY("columns", BY_VALUE("128"), VALUE,
              ".param .s32 w, .param .s32 h, .param .u16 dw,\n"
              "    .param .u16 dh",
              "  ld.param.s32 %r8, [w];\n  ld.param.s32 %r9, [h];\n"
              "  ld.param.u16 %h1, [dw];\n  ld.param.u16 %h2, [dh];\n"
              "  mov.u32 %r10, 0;\n",
              "  cp.async.bulk.tensor.4d.shared::cluster.global.im2col." BY
              "{%r10, %r8, %r9, %r10}], [%r3], {%h1, %h2};\n");

// A GPU with a tensor. one-thread
typedef struct live_t {
  kiln_runtime_t* runtime;
  kiln_device_t* device;
  kiln_stream_t* stream;
  kiln_module_t* module;
  kiln_kernel_t* kernel;  // of this stage
  kiln_buffer_t* map;     // where it takes the map from, or NULL
  kiln_buffer_t* tensor;
  kiln_buffer_t* out;
  uint8_t bytes[ROWS * ROW_BYTES];
  uint8_t got[TILE_BYTES];
} live_t;

// Whatever the type, a normal number that every format of that width holds.
static uint8_t byte_at(uint32_t index) {
  static const uint8_t bytes_of_tf32[] = {0, 0x20};
  uint32_t mixed = (index / 4 + 1) * 2654435761u;
  if (index % 4 < 2) return bytes_of_tf32[index % 4];
  return (uint8_t)(0x20 + ((mixed >> (index % 4 * 8)) & 0x1f));
}

static kiln_status_t copy_out(live_t* live, kiln_argument_t* arguments,
                              uint32_t count, const kiln_tensor_map_t* map) {
  kiln_launch_config_t config = kiln_launch_config_default();
  config.grid[0] = 1;
  config.block[0] = 32;
  arguments[0] = kiln_arg_bytes(map, sizeof(*map));
  if (live->map != NULL) {
    arguments[0] = kiln_arg_buffer(live->map);
    kiln_status_t status = kiln_buffer_write(live->map, 0, sizeof(*map), map);
    if (!kiln_status_is_ok(status)) return status;
  }
  arguments[1] = kiln_arg_buffer(live->out);
  memset(live->got, 0, sizeof(live->got));
  kiln_status_t status =
      kiln_kernel_launch(live->kernel, live->stream, &config, arguments, count);
  if (kiln_status_is_ok(status)) {
    status = kiln_buffer_read_async(live->out, live->stream, 0, TILE_BYTES,
                                    live->got);
  }
  if (!kiln_status_is_ok(status)) return status;
  return kiln_stream_synchronize(live->stream);
}

static bool run(live_t* live, kiln_argument_t* arguments, uint32_t count,
                const kiln_tensor_map_t* map) {
  return OK(copy_out(live, arguments, count, map));
}

// ---- Boxes ----

// A box, and where it is taken from. one-thread
typedef struct box_t {
  uint32_t type;
  uint32_t element;  // bytes
  uint32_t swizzle;
  uint32_t row_bytes;
  uint32_t rows;
  uint32_t step;
  int32_t x;  // elements
  int32_t y;
  bool nan;
} box_t;

// Where a byte of the box lies in shared memory.
static uint32_t mixed(uint32_t offset, uint32_t swizzle) {
  const uint32_t mask = (1u << swizzle) - 1;
  return offset ^ (((offset >> 7) & mask) << 4);
}

// Beyond the edges; a float of 4 bytes there is a NaN or 0.
static bool edge_is_right(const live_t* live, uint32_t at, bool nan) {
  uint32_t word = 0;
  if (!nan) return live->got[at] == 0;
  memcpy(&word, live->got + (at & ~3u), sizeof(word));
  return (word & 0x7f800000) == 0x7f800000 && (word & 0x7fffff) != 0;
}

static void compare(const live_t* live, const box_t* box, const char* what) {
  uint32_t wrong = 0;
  uint32_t beyond = 0;
  for (uint32_t row = 0; row < box->rows; row++) {
    const int64_t y = box->y + (int64_t)row * box->step;
    for (uint32_t i = 0; i < box->row_bytes; i++) {
      const int64_t x = (int64_t)box->x * box->element + i;
      const uint32_t at = mixed(row * box->row_bytes + i, box->swizzle);
      if (x < 0 || x >= WIDTH_BYTES || y < 0 || y >= ROWS) {
        beyond++;
        if (!edge_is_right(live, at, box->nan)) wrong++;
      } else if (live->got[at] != live->bytes[y * ROW_BYTES + x]) {
        wrong++;
      }
    }
  }
  printf("%s: type %u, swizzle %u: %u of %u bytes are wrong, %u beyond\n", what,
         box->type, box->swizzle, wrong, box->rows * box->row_bytes, beyond);
  IS(wrong == 0);
}

// The map of a box, and the arguments behind it and the result.
static bool encode(live_t* live, const box_t* box, kiln_tensor_map_t* map,
                   kiln_argument_t* arguments) {
  kiln_tensor_options_t options = kiln_tensor_options_default();
  options.type = box->type;
  options.rank = 2;
  options.address = kiln_buffer_address(live->tensor);
  options.sizes[0] = WIDTH_BYTES / box->element;
  options.sizes[1] = ROWS;
  options.strides[0] = ROW_BYTES;
  options.box[0] = box->row_bytes / box->element;
  options.box[1] = box->rows * box->step;
  options.steps[1] = box->step;
  options.swizzle = box->swizzle;
  options.nan_fill = box->nan ? KILN_SWITCH_ON : KILN_SWITCH_DEFAULT;
  arguments[2] = kiln_arg_u32(box->rows * box->row_bytes);
  arguments[3] = kiln_arg_i32(box->x);
  arguments[4] = kiln_arg_i32(box->y);
  return OK(kiln_tensor_map_encode(live->device, &options, map));
}

static void copy_box(live_t* live, const box_t* box, const char* what) {
  kiln_tensor_map_t map;
  kiln_argument_t arguments[5];
  if (!encode(live, box, &map, arguments)) return;
  if (run(live, arguments, 5, &map)) compare(live, box, what);
}

static const uint8_t kElements[] = {0, 1, 2, 4, 4, 8, 8, 2, 4, 8, 2, 4, 4, 4};

static void one_box(live_t* live, uint32_t unused) {
  const box_t box = {KILN_TENSOR_F32, 4, 0, 64, 8, 1, 0, 0, false};
  (void)unused;
  copy_box(live, &box, "at the origin");
}

static void at_an_address(live_t* live, uint32_t unused) {
  if (OK(kiln_buffer_create(live->device, 256, NULL, &live->map))) {
    one_box(live, unused);
  }
}

// From the 32nd byte of a row on.
static void one_type(live_t* live, uint32_t type) {
  const uint32_t element = kElements[type];
  const box_t box = {type, element, 0, 64, 8, 1, (int32_t)(32 / element),
                     3,    false};
  copy_box(live, &box, "inside");
}

static void one_swizzle(live_t* live, uint32_t swizzle) {
  const uint32_t row = swizzle == 0 ? 128 : 16u << swizzle;
  box_t box = {KILN_TENSOR_F32, 4, swizzle, row, 16, 1, 4, 5, false};
  copy_box(live, &box, "inside");
  box.x = 76;
  box.y = 20;
  copy_box(live, &box, "beyond the end");
  box.x = -4;
  box.y = -3;
  copy_box(live, &box, "before the beginning");
  box.nan = true;
  copy_box(live, &box, "NaN before the beginning");
}

static void every_third(live_t* live, uint32_t unused) {
  const box_t box = {KILN_TENSOR_F32, 4, 0, 64, 8, 3, 4, 2, false};
  (void)unused;
  copy_box(live, &box, "every third row");
}

// From somewhere in a chunk of 16 bytes on: compute capability 9.0 ends the
// kernel. A device that is more generous must copy what was asked for.
static void in_a_chunk(live_t* live, uint32_t type) {
  const box_t box = {type, kElements[type], 0, 64, 8, 1, 1, 3, false};
  kiln_tensor_map_t map;
  kiln_argument_t arguments[5];
  if (!encode(live, &box, &map, arguments)) return;
  kiln_status_t status = copy_out(live, arguments, 5, &map);
  if (kiln_status_is_ok(status)) {
    IS(kiln_device_info(live->device)->compute_major > 9);
    compare(live, &box, "in a chunk");
    return;
  }
  printf("in a chunk: type %u: %s\n", (unsigned)type,
         kiln_status_message(status));
  IS(kiln_status_code(status) == KILN_STATUS_DEVICE_LOST);
  IS(strstr(kiln_status_message(status), "ILLEGAL_INSTRUCTION") != NULL);
  kiln_status_free(status);
}

// ---- Columns ----

// Two pictures of 6 by 4 pixels of 8 floats; the box of pixels begins one to
// the left of a picture and ends a row before its last.
static void columns(live_t* live, uint32_t unused) {
  (void)unused;
  enum { CHANNELS = 8, WIDTH = 6, HEIGHT = 4, PIXELS = 24 };
  kiln_tensor_options_t options = kiln_tensor_options_default();
  kiln_tensor_columns_t along = kiln_tensor_columns_default();
  kiln_tensor_map_t map;
  kiln_argument_t arguments[7];
  options.type = KILN_TENSOR_F32;
  options.rank = 4;
  options.address = kiln_buffer_address(live->tensor);
  options.sizes[0] = CHANNELS;
  options.sizes[1] = WIDTH;
  options.sizes[2] = HEIGHT;
  options.sizes[3] = 2;
  options.strides[0] = CHANNELS * 4;
  options.strides[1] = CHANNELS * 4 * WIDTH;
  options.strides[2] = CHANNELS * 4 * WIDTH * HEIGHT;
  along.channels = CHANNELS;
  along.pixels = PIXELS;
  along.lower[0] = -1;
  along.upper[1] = -1;
  if (!OK(kiln_tensor_map_encode_columns(live->device, &options, &along,
                                         &map))) {
    return;
  }
  const int dw = 1;
  const int dh = 1;
  arguments[2] = kiln_arg_u32(PIXELS * CHANNELS * 4);
  arguments[3] = kiln_arg_i32(-1);
  arguments[4] = kiln_arg_i32(0);
  const uint16_t offsets[] = {(uint16_t)dw, (uint16_t)dh};
  arguments[5] = kiln_arg_bytes(&offsets[0], 2);
  arguments[6] = kiln_arg_bytes(&offsets[1], 2);
  if (!run(live, arguments, 7, &map)) return;
  int n = 0, h = 0, w = -1, wrong = 0;
  for (int pixel = 0; pixel < PIXELS; pixel++) {
    const int x = w + dw;
    const int y = h + dh;
    for (int i = 0; i < CHANNELS * 4; i++) {
      uint8_t want = 0;
      if (x >= 0 && x < WIDTH && y >= 0 && y < HEIGHT) {
        want = live->bytes[((n * HEIGHT + y) * WIDTH + x) * CHANNELS * 4 + i];
      }
      const uint8_t got = live->got[pixel * CHANNELS * 4 + i];
      if (got != want && wrong++ == 0) {
        printf("pixel %d (%d, %d, %d), byte %d: %02x, not %02x\n", pixel, n, y,
               x, i, got, want);
      }
    }
    if (++w < WIDTH) continue;
    w = -1;
    if (++h < HEIGHT - 1) continue;
    h = 0;
    n++;
  }
  printf("columns: %d of %d bytes are wrong\n", wrong, PIXELS * CHANNELS * 4);
  IS(wrong == 0);
}

// ---- Stages ----

// What a GPU does in one stage, a fault too, is not seen by the next one.
typedef struct stage_t {
  const char* name;
  const char* ptx;
  void (*run)(live_t* live, uint32_t what);
  uint32_t first;  // a stage for each from here
  uint32_t last;   // to here
} stage_t;

static const stage_t kStages[] = {
    {"a map as a parameter", kTile, one_box, 0, 0},
    {"a map in memory", kTileAt, at_an_address, 0, 0},
    {"a map aligned to 64 bytes", kTile64, one_box, 0, 0},
    {"a type", kTile, one_type, KILN_TENSOR_U8, KILN_TENSOR_TF32_FTZ},
    {"a swizzle", kTile, one_swizzle, 0, KILN_TENSOR_SWIZZLE_128},
    {"steps", kTile, every_third, 0, 0},
    {"columns", kColumns, columns, 0, 0},
    {"floats in a chunk", kTile, in_a_chunk, KILN_TENSOR_F32, KILN_TENSOR_F32},
    {"bytes in a chunk", kTile, in_a_chunk, KILN_TENSOR_U8, KILN_TENSOR_U8},
};

static bool set_up(live_t* live, const char* ptx) {
  kiln_bytes_view_t image = {(const uint8_t*)ptx, strlen(ptx)};
  for (uint32_t i = 0; i < sizeof(live->bytes); i++) {
    live->bytes[i] = byte_at(i);
  }
  return OK(kiln_stream_create(live->device, NULL, &live->stream)) &&
         OK(kiln_module_load(live->device, image, NULL, NULL, &live->module)) &&
         OK(kiln_kernel_create(live->module, NULL, &live->kernel)) &&
         OK(kiln_buffer_create(live->device, sizeof(live->bytes), NULL,
                               &live->tensor)) &&
         OK(kiln_buffer_write(live->tensor, 0, sizeof(live->bytes),
                              live->bytes)) &&
         OK(kiln_buffer_create(live->device, TILE_BYTES, NULL, &live->out));
}

static int run_stage(const stage_t* stage, uint32_t what) {
  static live_t live;
  kiln_status_t status = kiln_runtime_create(NULL, &live.runtime);
  if (kiln_status_is_ok(status)) {
    status = kiln_runtime_open_device(live.runtime, "cuda:0", &live.device);
  }
  if (!kiln_status_is_ok(status) ||
      kiln_device_info(live.device)->compute_major < 9) {
    printf("skipped: %s\n", kiln_status_is_ok(status)
                                ? "no compute capability 9.0"
                                : kiln_status_message(status));
    kiln_status_free(status);
    kiln_device_release(live.device);
    kiln_runtime_release(live.runtime);
    return SKIPPED;
  }
  printf("%s (%u):\n", stage->name, (unsigned)what);
  if (set_up(&live, stage->ptx)) stage->run(&live, what);
  kiln_buffer_release(live.map);
  kiln_buffer_release(live.out);
  kiln_buffer_release(live.tensor);
  kiln_kernel_release(live.kernel);
  kiln_module_release(live.module);
  kiln_stream_release(live.stream);
  kiln_device_release(live.device);
  kiln_runtime_release(live.runtime);
  return failures == 0 ? 0 : 1;
}

// The exit code of a process of its own.
static int apart(const stage_t* stage, uint32_t what) {
  pid_t child = fork();
  if (child == 0) _exit(run_stage(stage, what));
  int how = 0;
  if (child < 0 || waitpid(child, &how, 0) != child) return 1;
  return WIFEXITED(how) ? WEXITSTATUS(how) : 1;
}

int main(void) {
  int failed = 0;
  setvbuf(stdout, NULL, _IOLBF, 0);
  for (size_t i = 0; i < sizeof(kStages) / sizeof(kStages[0]); i++) {
    const stage_t* stage = &kStages[i];
    for (uint32_t what = stage->first; what <= stage->last; what++) {
      const int code = apart(stage, what);
      if (code == SKIPPED) return SKIPPED;
      if (code == 0) continue;
      printf("%s (%u): failed\n", stage->name, (unsigned)what);
      failed++;
    }
  }
  printf("%d stages failed\n", failed);
  return failed == 0 ? 0 : 1;
}
