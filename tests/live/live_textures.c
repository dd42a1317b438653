// SPDX-License-Identifier: Apache-2.0
//
// live: arrays, textures and surfaces on a GPU: a kernel writes through a
// surface, others read what is there through textures over the array, over
// rows of a buffer and over a line of it; and points in volumes, layers, cubes,
// gathers of four texels, and levels of mipmaps.
//
// Texel (x, y) is 100 y + x, so that a filter half-way between two texels
// gives numbers that floats hold exactly.
//
// Exit code 77 without a GPU.
#include <stdio.h>
#include <string.h>

#include "kiln/kiln.h"
#include "live_check.h"

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

// One thread for each point: out[i] = the texture at points[i].
#define AT(name, read)                                               \
  ".visible .entry " name                                            \
  "(.param .u64 texture, .param .u64 points,\n"                      \
  "    .param .u64 out) {\n"                                         \
  "  .reg .b32 %r<4>;\n  .reg .f32 %f<9>;\n  .reg .b64 %d<8>;\n"     \
  "  ld.param.u64 %d1, [texture];\n  ld.param.u64 %d2, [points];\n"  \
  "  ld.param.u64 %d3, [out];\n"                                     \
  "  cvta.to.global.u64 %d2, %d2;\n  cvta.to.global.u64 %d3, %d3;\n" \
  "  mov.u32 %r1, %tid.x;\n"                                         \
  "  mul.wide.u32 %d4, %r1, 16;\n  add.u64 %d5, %d2, %d4;\n"         \
  "  mul.wide.u32 %d6, %r1, 4;\n  add.u64 %d7, %d3, %d6;\n"          \
  "  ld.global.v4.f32 {%f1, %f2, %f3, %f4}, [%d5];\n"                \
  "  cvt.rzi.u32.f32 %r2, %f3;\n" read                               \
  "  st.global.f32 [%d7], %f5;\n"                                    \
  "  ret;\n}\n"
#define INTO "{%f5, %f6, %f7, %f8}, [%d1, "
static const char points_ptx[] =
    ".version 7.0\n.target sm_70\n.address_size 64\n" AT(
        "volume", "  tex.3d.v4.f32.f32 " INTO "{%f1, %f2, %f3, %f3}];\n")
        AT("layer", "  tex.a2d.v4.f32.f32 " INTO "{%r2, %f1, %f2, %f2}];\n") AT(
            "cube", "  tex.cube.v4.f32.f32 " INTO "{%f1, %f2, %f3, %f3}];\n")
            AT("level", "  tex.level.2d.v4.f32.f32 " INTO "{%f1, %f2}], %f3;\n")
                AT("gather",
                   "  tld4.r.2d.v4.f32.f32 " INTO
                   "{%f1, %f2}];\n"
                   "  add.f32 %f5, %f5, %f6;\n  add.f32 %f7, %f7, %f8;\n"
                   "  add.f32 %f5, %f5, %f7;\n");

// A host program with a GPU. one-thread
typedef struct live_t {
  kiln_runtime_t* runtime;
  kiln_device_t* device;
  kiln_stream_t* stream;
  kiln_module_t* module;
  kiln_module_t* points;
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
      // Every bit is to be the same.
      // NOLINTNEXTLINE(bugprone-suspicious-memory-comparison)
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

// ---- Shapes ----

enum { POINTS = 32 };

// A texture, how it is read, and what is to come. one-thread
typedef struct points_t {
  const char* kernel;
  uint32_t count;
  float at[POINTS][4];
  float want[POINTS];
} points_t;

static void ask(points_t* points, float x, float y, float z, float want) {
  if (!IS(points->count < POINTS)) return;
  const float at[4] = {x, y, z, 0};
  memcpy(points->at[points->count], at, sizeof(at));
  points->want[points->count++] = want;
}

static void compare(live_t* live, kiln_texture_t* texture,
                    const points_t* points) {
  kiln_kernel_t* kernel = NULL;
  kiln_buffer_t* at = NULL;
  int wrong = 0;
  kiln_launch_config_t config = kiln_launch_config_default();
  config.grid[0] = 1;
  config.block[0] = points->count;
  if (texture != NULL &&
      OK(kiln_kernel_create(live->points, points->kernel, &kernel)) &&
      OK(kiln_buffer_create(live->device, sizeof(points->at), NULL, &at)) &&
      OK(kiln_buffer_write(at, 0, sizeof(points->at), points->at))) {
    const kiln_argument_t arguments[] = {
        kiln_arg_u64(kiln_texture_handle(texture)), kiln_arg_buffer(at),
        kiln_arg_buffer(live->out)};
    if (OK(kiln_kernel_launch(kernel, live->stream, &config, arguments, 3))) {
      read_back(live);
      for (uint32_t i = 0; i < points->count; i++) {
        if (live->got[i] == points->want[i]) continue;
        printf("%s: point %u: %g, not %g\n", points->kernel, (unsigned)i,
               (double)live->got[i], (double)points->want[i]);
        wrong++;
      }
    }
  }
  printf("%s: %d of %u points are wrong\n", points->kernel, wrong,
         (unsigned)points->count);
  IS(wrong == 0);
  kiln_kernel_release(kernel);
  kiln_buffer_release(at);
}

// An array whose texel i is i.
static kiln_array_t* numbered(live_t* live,
                              const kiln_array_options_t* options) {
  static float data[4096];
  kiln_array_t* array = NULL;
  if (!OK(kiln_array_create(live->device, options, &array))) return NULL;
  for (int i = 0; i < 4096; i++) data[i] = (float)i;
  if (IS(kiln_array_size(array) <= sizeof(data))) {
    OK(kiln_array_write_async(array, live->stream, kiln_array_size(array),
                              data));
    OK(kiln_stream_synchronize(live->stream));
  }
  return array;
}

static kiln_texture_t* over(kiln_array_t* array, uint32_t linear) {
  kiln_texture_options_t how = kiln_texture_options_default();
  kiln_texture_t* texture = NULL;
  how.linear = linear;
  if (array != NULL) OK(kiln_texture_create(array, &how, &texture));
  return texture;
}

static void volumes_and_layers(live_t* live) {
  kiln_array_options_t options = kiln_array_options_default();
  points_t in_volume = {"volume", 0, {{0}}, {0}};
  points_t in_layer = {"layer", 0, {{0}}, {0}};
  options.width = 8;
  options.height = 4;
  options.depth = 5;
  kiln_array_t* array = numbered(live, &options);
  kiln_texture_t* texture = over(array, KILN_SWITCH_ON);
  for (int i = 0; i < 16; i++) {
    const int x = i % 8, y = i % 4, z = i % 5;
    ask(&in_volume, (float)x + 0.5f, (float)y + 0.5f, (float)z + 0.5f,
        (float)((z * 4 + y) * 8 + x));
    ask(&in_layer, (float)x + 0.5f, (float)y + 0.5f, (float)z,
        (float)((z * 4 + y) * 8 + x));
  }
  // Half-way to the next slice.
  ask(&in_volume, 0.5f, 0.5f, 2.0f, (32.0f + 64.0f) / 2);
  compare(live, texture, &in_volume);
  kiln_texture_release(texture);
  kiln_array_release(array);
  options.layered = KILN_SWITCH_ON;
  array = numbered(live, &options);
  texture = over(array, KILN_SWITCH_ON);
  ask(&in_layer, 1.0f, 0.5f, 3, 96.5f);
  compare(live, texture, &in_layer);
  kiln_texture_release(texture);
  kiln_array_release(array);
}

static void cubes(live_t* live) {
  static float faces[6][4][4];
  kiln_array_options_t options = kiln_array_options_default();
  points_t points = {"cube", 0, {{0}}, {0}};
  kiln_array_t* array = NULL;
  options.width = options.height = 4;
  options.depth = 6;
  options.cube = KILN_SWITCH_ON;
  for (int i = 0; i < 6 * 16; i++) (&faces[0][0][0])[i] = (float)(i / 16 + 1);
  if (OK(kiln_array_create(live->device, &options, &array))) {
    OK(kiln_array_write_async(array, live->stream, sizeof(faces), faces));
    OK(kiln_stream_synchronize(live->stream));
  }
  for (int face = 0; face < 6; face++) {
    float to[3] = {0, 0, 0};
    to[face / 2] = face % 2 == 0 ? 1.0f : -1.0f;
    ask(&points, to[0], to[1], to[2], (float)(face + 1));
  }
  kiln_texture_t* texture = over(array, KILN_SWITCH_DEFAULT);
  compare(live, texture, &points);
  kiln_texture_release(texture);
  kiln_array_release(array);
}

static void gathers(live_t* live) {
  kiln_array_options_t options = kiln_array_options_default();
  points_t points = {"gather", 0, {{0}}, {0}};
  options.width = 8;
  options.height = 4;
  options.gather = KILN_SWITCH_ON;
  kiln_array_t* array = numbered(live, &options);
  kiln_texture_t* texture = over(array, KILN_SWITCH_DEFAULT);
  // Between texels (2, 1), (3, 1), (2, 2) and (3, 2).
  ask(&points, 3.0f, 2.0f, 0, 10 + 11 + 18 + 19);
  compare(live, texture, &points);
  kiln_texture_release(texture);
  kiln_array_release(array);
}

// Level 1 is written through a surface, the others from the host.
static void mipmaps(live_t* live) {
  static float texels[2 * WIDTH * 2 * HEIGHT];
  kiln_array_options_t options = kiln_array_options_default();
  kiln_texture_options_t how = kiln_texture_options_default();
  points_t points = {"level", 0, {{0}}, {0}};
  kiln_mipmap_t* mipmap = NULL;
  kiln_array_t* level[3] = {NULL};
  kiln_surface_t* surface = NULL;
  kiln_texture_t* texture = NULL;
  options.width = 2 * WIDTH;
  options.height = 2 * HEIGHT;
  options.surface = KILN_SWITCH_ON;
  how.normalized = KILN_SWITCH_ON;
  how.level_linear = KILN_SWITCH_ON;
  if (OK(kiln_mipmap_create(live->device, &options, 3, &mipmap)) &&
      OK(kiln_mipmap_level(mipmap, 0, &level[0])) &&
      OK(kiln_mipmap_level(mipmap, 1, &level[1])) &&
      OK(kiln_mipmap_level(mipmap, 2, &level[2])) &&
      OK(kiln_surface_create(level[1], &surface)) &&
      OK(kiln_texture_create_mipmap(mipmap, &how, &texture))) {
    for (int i = 0; i < 4 * TEXELS; i++) texels[i] = 8;
    OK(kiln_array_write_async(level[0], live->stream, sizeof(texels), texels));
    OK(kiln_stream_synchronize(live->stream));
    for (int i = 0; i < TEXELS / 4; i++) texels[i] = 1000;
    OK(kiln_array_write_async(level[2], live->stream, TEXELS / 4 * 4, texels));
    OK(kiln_stream_synchronize(live->stream));
    const kiln_argument_t argument = kiln_arg_u64(kiln_surface_handle(surface));
    launch(live, live->paint, &argument, 1);
    for (int i = 0; i < 8; i++) {
      const float x = ((float)i + 0.5f) / WIDTH;
      const float y = ((float)i + 0.5f) / HEIGHT;
      ask(&points, x, y, 0, 8);
      ask(&points, x, y, 1, texel(i, i));
      ask(&points, x, y, 2, 1000);
    }
    ask(&points, 0.5f / WIDTH, 0.5f / HEIGHT, 0.5f, 4);
    compare(live, texture, &points);
  }
  kiln_mipmap_release(mipmap);
  for (int i = 0; i < 3; i++) kiln_array_release(level[i]);
  kiln_texture_release(texture);
  kiln_surface_release(surface);
}

static bool set_up(live_t* live) {
  kiln_bytes_view_t points = {(const uint8_t*)points_ptx, sizeof(points_ptx)};
  if (!OK(kiln_module_load(live->device, points, NULL, NULL, &live->points))) {
    return false;
  }
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
    volumes_and_layers(&live);
    cubes(&live);
    gathers(&live);
    mipmaps(&live);
  }
  kiln_buffer_release(live.out);
  kiln_kernel_release(live.paint);
  kiln_kernel_release(live.plane);
  kiln_kernel_release(live.line);
  kiln_module_release(live.module);
  kiln_module_release(live.points);
  kiln_stream_release(live.stream);
  kiln_device_release(live.device);
  kiln_runtime_release(live.runtime);
  printf("%d failures\n", failures);
  return failures == 0 ? 0 : 1;
}
