// SPDX-License-Identifier: Apache-2.0
//
// cli: PNG pictures, through libpng.
//
// libpng reports errors by a jump. Everything that must survive one lives in
// the codec struct, never in a local of the function that set the jump.
#include "cli/cli_png.h"

#include <inttypes.h>
#include <png.h>
#include <setjmp.h>
#include <stdio.h>
#include <string.h>

#include "cli/cli_pnm.h"

#define MAX_CHUNK_BYTES ((png_alloc_size_t)8 << 20)

enum { COMPRESSION = 3 };

static const char kFixBad[] =
    "save the picture again as an 8-bit PNG, PGM or PPM";

// One picture being read or written. one-thread
typedef struct png_codec_t {
  png_structp png;
  png_infop info;
  const uint8_t* data;  // reading
  size_t size;
  size_t at;
  kilni_cli_array_t* array;
  kilni_cli_buffer_t* out;  // writing
  const kilni_cli_array_t* source;
  uint32_t height, width, channels;
  bool refused;  // `error` is filled already
  kilni_cli_error_t* error;
} png_codec_t;

static void on_error(png_structp png, png_const_charp message) {
  png_codec_t* c = png_get_error_ptr(png);
  if (!c->refused) {
    (void)kilni_cli_fail(c->error, KILN_STATUS_BAD_DATA, kFixBad,
                         "the PNG picture is malformed near byte %zu: %s",
                         c->at, message);
  }
  c->refused = true;
  longjmp(png_jmpbuf(png), 1);
}

static void on_warning(png_structp png, png_const_charp message) {
  (void)png;
  (void)message;
}

static void on_read(png_structp png, png_bytep out, png_size_t size) {
  png_codec_t* c = png_get_io_ptr(png);
  if (size > c->size - c->at) png_error(png, "the file ends too early");
  memcpy(out, c->data + c->at, size);
  c->at += size;
}

static void on_write(png_structp png, png_bytep data, png_size_t size) {
  png_codec_t* c = png_get_io_ptr(png);
  if (!kilni_cli_buffer_add(c->out, data, size, c->error)) {
    c->refused = true;
    png_error(png, "no memory");
  }
}

static void on_flush(png_structp png) {
  (void)png;
}

static void png_refuse(png_codec_t* c) {
  c->refused = true;
  png_error(c->png, "refused");
}

static void png_read_header(png_codec_t* c) {
  png_read_info(c->png, c->info);
  if (png_get_bit_depth(c->png, c->info) == 16) {
    (void)kilni_cli_fail(c->error, KILN_STATUS_UNSUPPORTED, kFixBad,
                         "the PNG picture has 16 bits a sample");
    png_refuse(c);
  }
  png_set_expand(c->png);
  (void)png_set_interlace_handling(c->png);
  png_read_update_info(c->png, c->info);
  kilni_cli_shape_t* shape = &c->array->shape;
  shape->type = KILNI_CLI_TYPE_U8;
  shape->dims[0] = png_get_image_height(c->png, c->info);
  shape->dims[1] = png_get_image_width(c->png, c->info);
  shape->dims[2] = png_get_channels(c->png, c->info);
  shape->rank = shape->dims[2] == 1 ? 2 : 3;
  if (shape->rank == 2) shape->dims[2] = 0;
  if (!kilni_cli_shape_finish(shape, c->error) ||
      !kilni_cli_picture_shape(shape, &c->height, &c->width, &c->channels,
                               c->error)) {
    png_refuse(c);
  }
  // Deflate packs at most 1032 to 1: allocate no more than the file can
  // contain.
  if (shape->bytes / 1100 > c->size) png_error(c->png, "it is too short");
  if (!kilni_cli_buffer_resize(&c->array->data, (size_t)shape->bytes,
                               c->error)) {
    png_refuse(c);
  }
}

// Interlaced pictures come in up to seven passes over the same rows.
static void read_rows(png_codec_t* c) {
  size_t stride = (size_t)c->width * c->channels;
  int passes =
      png_get_interlace_type(c->png, c->info) == PNG_INTERLACE_ADAM7 ? 7 : 1;
  for (int pass = 0; pass < passes; pass++) {
    for (uint32_t y = 0; y < c->height; y++) {
      png_read_row(c->png, c->array->data.data + y * stride, NULL);
    }
  }
  png_read_end(c->png, NULL);
}

bool kilni_cli_png_read(const uint8_t* data, size_t size,
                        kilni_cli_array_t* out, kilni_cli_error_t* error) {
  memset(out, 0, sizeof(*out));
  if (size < 8 || png_sig_cmp(data, 0, 8) != 0) {
    return kilni_cli_fail(error, KILN_STATUS_BAD_DATA, kFixBad,
                          "this is not a PNG picture: byte 0 is not its "
                          "signature");
  }
  png_codec_t codec = {0};
  codec.data = data;
  codec.size = size;
  codec.array = out;
  codec.error = error;
  codec.png = png_create_read_struct(PNG_LIBPNG_VER_STRING, &codec, on_error,
                                     on_warning);
  if (codec.png != NULL) codec.info = png_create_info_struct(codec.png);
  if (codec.info == NULL) {
    png_destroy_read_struct(&codec.png, NULL, NULL);
    return kilni_cli_fail(error, KILN_STATUS_OUT_OF_MEMORY, NULL,
                          "no memory for a PNG reader");
  }
  if (setjmp(png_jmpbuf(codec.png)) == 0) {
    png_set_user_limits(codec.png, KILNI_CLI_PICTURE_MAX_SIDE,
                        KILNI_CLI_PICTURE_MAX_SIDE);
    png_set_chunk_malloc_max(codec.png, MAX_CHUNK_BYTES);
    png_set_read_fn(codec.png, &codec, on_read);
    png_read_header(&codec);
    read_rows(&codec);
  }
  png_destroy_read_struct(&codec.png, &codec.info, NULL);
  if (codec.refused) kilni_cli_array_deinit(out);
  return !codec.refused;
}

static void write_picture(png_codec_t* c) {
  static const int COLORS[5] = {0, PNG_COLOR_TYPE_GRAY,
                                PNG_COLOR_TYPE_GRAY_ALPHA, PNG_COLOR_TYPE_RGB,
                                PNG_COLOR_TYPE_RGB_ALPHA};
  png_set_write_fn(c->png, c, on_write, on_flush);
  png_set_IHDR(c->png, c->info, c->width, c->height, 8, COLORS[c->channels],
               PNG_INTERLACE_NONE, PNG_COMPRESSION_TYPE_DEFAULT,
               PNG_FILTER_TYPE_DEFAULT);
  // A third of the time of the defaults, which was a third of a short run, for
  // files within a few percent of the size.
  png_set_compression_level(c->png, COMPRESSION);
  png_set_filter(c->png, PNG_FILTER_TYPE_BASE, PNG_FILTER_SUB | PNG_FILTER_UP);
  png_write_info(c->png, c->info);
  size_t stride = (size_t)c->width * c->channels;
  for (uint32_t y = 0; y < c->height; y++) {
    png_write_row(c->png, c->source->data.data + y * stride);
  }
  png_write_end(c->png, NULL);
}

bool kilni_cli_png_write(const kilni_cli_array_t* array,
                         kilni_cli_buffer_t* out, kilni_cli_error_t* error) {
  png_codec_t codec = {0};
  codec.out = out;
  codec.source = array;
  codec.error = error;
  if (!kilni_cli_picture_shape(&array->shape, &codec.height, &codec.width,
                               &codec.channels, error)) {
    return false;
  }
  codec.png = png_create_write_struct(PNG_LIBPNG_VER_STRING, &codec, on_error,
                                      on_warning);
  if (codec.png != NULL) codec.info = png_create_info_struct(codec.png);
  if (codec.info == NULL) {
    png_destroy_write_struct(&codec.png, NULL);
    return kilni_cli_fail(error, KILN_STATUS_OUT_OF_MEMORY, NULL,
                          "no memory for a PNG writer");
  }
  if (setjmp(png_jmpbuf(codec.png)) == 0) write_picture(&codec);
  png_destroy_write_struct(&codec.png, &codec.info);
  return !codec.refused;
}
