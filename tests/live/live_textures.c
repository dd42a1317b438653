// SPDX-License-Identifier: Apache-2.0
//
// live: arrays, textures and surfaces on a GPU: a kernel writes through a
// surface, others read what is there through textures over the array, over
// rows of a buffer and over a line of it.
//
// Texel (x, y) is 100 y + x, so that a filter half-way between two texels
// gives numbers that floats hold exactly.
//
// Exit code 77 without a GPU.
#include <stdio.h>
#include <string.h>

#include "kiln/kiln.h"

enum { WIDTH = 16, HEIGHT = 8, TEXELS = WIDTH * HEIGHT, ROW_BYTES = 512 };

// One block for each row, one thread for each texel.
static const char texture_ptx[] =
    ".version 7.0\n"
    ".target sm_70\n"
    ".address_size 64\n"
    ".visible .entry paint(.param .u64 surface) {\n"
    "  .reg .b32 %r<6>;\n  .reg .f32 %f<2>;\n  .reg .b64 %d<2>;\n"
    "  ld.param.u64 %d1, [surface];\n"
    "  mov.u32 %r1, %tid.x;\n  mov.u32 %r2, %ctaid.x;\n"
    "  mad.lo.u32 %r3, %r2, 100, %r1;\n"
    "  cvt.rn.f32.u32 %f1, %r3;\n"
    "  mov.b32 %r4, %f1;\n"
    "  shl.b32 %r5, %r1, 2;\n"
    "  sust.b.2d.b32.trap [%d1, {%r5, %r2}], {%r4};\n"
    "  ret;\n}\n"
    // out[y][x] = the texture at (x + 0.5 + shift, y + 0.5)
    ".visible .entry plane(.param .u64 texture, .param .u64 out,\n"
    "    .param .f32 shift) {\n"
    "  .reg .b32 %r<4>;\n  .reg .f32 %f<9>;\n  .reg .b64 %d<5>;\n"
    "  ld.param.u64 %d1, [texture];\n  ld.param.u64 %d2, [out];\n"
    "  ld.param.f32 %f1, [shift];\n"
    "  cvta.to.global.u64 %d2, %d2;\n"
    "  mov.u32 %r1, %tid.x;\n  mov.u32 %r2, %ctaid.x;\n"
    "  cvt.rn.f32.u32 %f2, %r1;\n  add.f32 %f2, %f2, 0f3F000000;\n"
    "  add.f32 %f2, %f2, %f1;\n"
    "  cvt.rn.f32.u32 %f3, %r2;\n  add.f32 %f3, %f3, 0f3F000000;\n"
    "  tex.2d.v4.f32.f32 {%f4, %f5, %f6, %f7}, [%d1, {%f2, %f3}];\n"
    "  mad.lo.u32 %r3, %r2, 16, %r1;\n"
    "  mul.wide.u32 %d3, %r3, 4;\n  add.u64 %d4, %d2, %d3;\n"
    "  st.global.f32 [%d4], %f4;\n  ret;\n}\n"
    // out[i] = the texture at i
    ".visible .entry line(.param .u64 texture, .param .u64 out) {\n"
    "  .reg .b32 %r<4>;\n  .reg .f32 %f<5>;\n  .reg .b64 %d<5>;\n"
    "  ld.param.u64 %d1, [texture];\n  ld.param.u64 %d2, [out];\n"
    "  cvta.to.global.u64 %d2, %d2;\n"
    "  mov.u32 %r1, %tid.x;\n  mov.u32 %r2, %ctaid.x;\n"
    "  mad.lo.u32 %r3, %r2, 16, %r1;\n"
    "  tex.1d.v4.f32.s32 {%f1, %f2, %f3, %f4}, [%d1, {%r3}];\n"
    "  mul.wide.u32 %d3, %r3, 4;\n  add.u64 %d4, %d2, %d3;\n"
    "  st.global.f32 [%d4], %f1;\n  ret;\n}\n";

static int failures;

static bool is(bool good, const char* what, int line) {
  if (good) return true;
  printf("live_textures.c:%d: %s\n", line, what);
  ++failures;
  return false;
}

static bool ok(kiln_status_t status, const char* what, int line) {
  if (kiln_status_is_ok(status)) return true;
  printf("live_textures.c:%d: %s: %s\n", line, what,
         kiln_status_message(status));
  kiln_status_free(status);
  ++failures;
  return false;
}

#define IS(condition) is((condition), #condition, __LINE__)
#define OK(call)      ok((call), #call, __LINE__)

// A host program with a GPU. one-thread
typedef struct live_t {
  kiln_runtime_t* runtime;
  kiln_device_t* device;
  kiln_stream_t* stream;
  kiln_module_t* module;
  kiln_kernel_t* paint;
  kiln_kernel_t* plane;
  kiln_kernel_t* line;
  kiln_buffer_t* out;
  float got[TEXELS];
} live_t;

static float texel(int x, int y) {
  if (x < 0) x = 0;
  if (x >= WIDTH) x = WIDTH - 1;
  return (float)(100 * y + x);
}

static bool launch(live_t* live, kiln_kernel_t* kernel,
                   const kiln_argument_t* arguments, uint32_t count) {
  kiln_launch_config_t config = kiln_launch_config_default();
  config.grid[0] = HEIGHT;
  config.block[0] = WIDTH;
  return OK(
      kiln_kernel_launch(kernel, live->stream, &config, arguments, count));
}

static void read_back(live_t* live) {
  memset(live->got, 0, sizeof(live->got));
  OK(kiln_buffer_read_async(live->out, live->stream, 0, sizeof(live->got),
                            live->got));
  OK(kiln_stream_synchronize(live->stream));
}

// Reads a plane through a texture, `shift` to the right; each texel is then
// the mean of two neighbours if that is a half.
static void check_plane(live_t* live, kiln_texture_t* texture, float shift,
                        const char* what) {
  const kiln_argument_t arguments[] = {
      kiln_arg_u64(kiln_texture_handle(texture)), kiln_arg_buffer(live->out),
      kiln_arg_f32(shift)};
  int wrong = 0;
  if (!launch(live, live->plane, arguments, 3)) return;
  read_back(live);
  for (int y = 0; y < HEIGHT; y++) {
    for (int x = 0; x < WIDTH; x++) {
      float want =
          shift > 0 ? (texel(x, y) + texel(x + 1, y)) / 2 : texel(x, y);
      if (live->got[y * WIDTH + x] != want) wrong++;
    }
  }
  printf("%s: %d of %d texels are wrong\n", what, wrong, TEXELS);
  IS(wrong == 0);
}

static void over_an_array(live_t* live) {
  kiln_array_options_t options = kiln_array_options_default();
  kiln_texture_options_t how = kiln_texture_options_default();
  kiln_array_t* array = NULL;
  kiln_surface_t* surface = NULL;
  kiln_texture_t* nearest = NULL;
  kiln_texture_t* filtered = NULL;
  float texels[TEXELS] = {0};
  options.width = WIDTH;
  options.height = HEIGHT;
  options.surface = KILN_SWITCH_ON;
  how.linear = KILN_SWITCH_ON;
  if (OK(kiln_array_create(live->device, &options, &array)) &&
      OK(kiln_surface_create(array, &surface)) &&
      OK(kiln_texture_create(array, NULL, &nearest)) &&
      OK(kiln_texture_create(array, &how, &filtered))) {
    const kiln_argument_t argument = kiln_arg_u64(kiln_surface_handle(surface));
    launch(live, live->paint, &argument, 1);
    check_plane(live, nearest, 0, "written by a surface, nearest");
    check_plane(live, filtered, 0.5f, "written by a surface, filtered");
    OK(kiln_array_read_async(array, live->stream, sizeof(texels), texels));
    OK(kiln_stream_synchronize(live->stream));
    IS(texels[0] == texel(0, 0) && texels[TEXELS - 1] == texel(15, 7));
    // Other texels, from the host and by way of a buffer.
    memset(texels, 0, sizeof(texels));
    OK(kiln_array_write_async(array, live->stream, sizeof(texels), texels));
    OK(kiln_array_copy_to_async(array, live->stream, live->out, 0));
    read_back(live);
    IS(live->got[0] == 0 && live->got[TEXELS - 1] == 0);
    for (int i = 0; i < TEXELS; i++) texels[i] = texel(i % WIDTH, i / WIDTH);
    OK(kiln_buffer_write(live->out, 0, sizeof(texels), texels));
    OK(kiln_array_copy_from_async(array, live->stream, live->out, 0));
    check_plane(live, nearest, 0, "copied from a buffer");
  }
  kiln_array_release(array);
  kiln_texture_release(filtered);
  kiln_texture_release(nearest);
  kiln_surface_release(surface);
}

static void over_a_buffer(live_t* live) {
  static float rows[HEIGHT][ROW_BYTES / sizeof(float)];
  kiln_texels_t texels = kiln_texels_default();
  kiln_texture_options_t how = kiln_texture_options_default();
  kiln_buffer_t* buffer = NULL;
  kiln_texture_t* pitched = NULL;
  kiln_texture_t* linear = NULL;
  how.linear = KILN_SWITCH_ON;
  for (int y = 0; y < HEIGHT; y++) {
    for (int x = 0; x < WIDTH; x++) rows[y][x] = texel(x, y);
  }
  texels.width = WIDTH;
  texels.height = HEIGHT;
  texels.row_bytes = ROW_BYTES;
  if (OK(kiln_buffer_create(live->device, sizeof(rows), NULL, &buffer)) &&
      OK(kiln_buffer_write(buffer, 0, sizeof(rows), rows)) &&
      OK(kiln_texture_create_buffer(buffer, &texels, &how, &pitched))) {
    check_plane(live, pitched, 0.5f, "rows of a buffer, filtered");
  }
  texels.width = TEXELS;
  texels.height = 0;
  texels.row_bytes = 0;
  if (buffer != NULL &&
      OK(kiln_texture_create_buffer(buffer, &texels, NULL, &linear))) {
    const kiln_argument_t arguments[] = {
        kiln_arg_u64(kiln_texture_handle(linear)), kiln_arg_buffer(live->out)};
    if (launch(live, live->line, arguments, 2)) {
      read_back(live);
      IS(memcmp(live->got, rows, sizeof(live->got)) == 0);
    }
  }
  kiln_buffer_release(buffer);
  kiln_texture_release(pitched);
  kiln_texture_release(linear);
}

// Formats that are made and ended, also of three dimensions.
static void formats(live_t* live) {
  for (uint32_t format = KILN_TEXEL_U8; format <= KILN_TEXEL_F32; format++) {
    for (uint32_t channels = 1; channels <= 4; channels *= 2) {
      kiln_array_options_t options = kiln_array_options_default();
      kiln_array_t* array = NULL;
      kiln_texture_t* texture = NULL;
      options.format = format;
      options.channels = channels;
      options.width = 5;
      options.height = 3;
      options.depth = 2;
      if (OK(kiln_array_create(live->device, &options, &array))) {
        OK(kiln_texture_create(array, NULL, &texture));
      }
      kiln_array_release(array);
      kiln_texture_release(texture);
    }
  }
}

static bool set_up(live_t* live) {
  kiln_bytes_view_t image = {(const uint8_t*)texture_ptx, sizeof(texture_ptx)};
  return OK(kiln_stream_create(live->device, NULL, &live->stream)) &&
         OK(kiln_module_load(live->device, image, NULL, NULL, &live->module)) &&
         OK(kiln_kernel_create(live->module, "paint", &live->paint)) &&
         OK(kiln_kernel_create(live->module, "plane", &live->plane)) &&
         OK(kiln_kernel_create(live->module, "line", &live->line)) &&
         OK(kiln_buffer_create(live->device, TEXELS * 4, NULL, &live->out));
}

int main(void) {
  static live_t live;
  kiln_status_t status = kiln_runtime_create(NULL, &live.runtime);
  if (kiln_status_is_ok(status)) {
    status = kiln_runtime_open_device(live.runtime, "cuda:0", &live.device);
  }
  if (!kiln_status_is_ok(status)) {
    printf("skipped: %s\n", kiln_status_message(status));
    kiln_status_free(status);
    kiln_runtime_release(live.runtime);
    return 77;
  }
  if (set_up(&live)) {
    over_an_array(&live);
    over_a_buffer(&live);
    formats(&live);
  }
  kiln_buffer_release(live.out);
  kiln_kernel_release(live.paint);
  kiln_kernel_release(live.plane);
  kiln_kernel_release(live.line);
  kiln_module_release(live.module);
  kiln_stream_release(live.stream);
  kiln_device_release(live.device);
  kiln_runtime_release(live.runtime);
  printf("%d failures\n", failures);
  return failures == 0 ? 0 : 1;
}
