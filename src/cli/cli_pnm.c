// SPDX-License-Identifier: Apache-2.0
//
// cli: PGM and PPM pictures.
#include "cli/cli_pnm.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static const char kFixBad[] = "save the picture again as 8-bit PGM, PPM or PNG";

// Where the reader is. one-thread
typedef struct pnm_reader_t {
  const uint8_t* data;
  size_t size;
  size_t at;
  kilni_cli_error_t* error;
} pnm_reader_t;

static bool pnm_bad(pnm_reader_t* r, const char* what) {
  return kilni_cli_fail(r->error, KILN_STATUS_BAD_DATA, kFixBad,
                        "the picture is malformed at byte %zu: %s", r->at,
                        what);
}

static bool is_space(uint8_t c) {
  return c == ' ' || (c >= '\t' && c <= '\r');
}

// Skips white space and comments, which go from # to the line's end.
static void pnm_skip_blank(pnm_reader_t* r) {
  while (r->at < r->size) {
    uint8_t c = r->data[r->at];
    if (c == '#') {
      while (r->at < r->size && r->data[r->at] != '\n') r->at++;
    } else if (is_space(c)) {
      r->at++;
    } else {
      return;
    }
  }
}

static bool pnm_read_number(pnm_reader_t* r, uint32_t most, uint32_t* out) {
  pnm_skip_blank(r);
  size_t start = r->at;
  uint32_t value = 0;
  while (r->at < r->size && r->data[r->at] >= '0' && r->data[r->at] <= '9') {
    value = value * 10 + (uint32_t)(r->data[r->at] - '0');
    if (value > most) return pnm_bad(r, "a number is too large");
    r->at++;
  }
  if (r->at == r->size && r->at == start) {
    return pnm_bad(r, "the file ends too early");
  }
  if (r->at == start) return pnm_bad(r, "a number is expected");
  *out = value;
  return true;
}

static uint8_t pnm_scale(uint32_t value, uint32_t most) {
  return (uint8_t)((value * 255 + most / 2) / most);
}

static bool pnm_read_plain(pnm_reader_t* r, uint32_t most, uint8_t* out,
                           uint64_t count) {
  for (uint64_t i = 0; i < count; i++) {
    uint32_t value;
    if (!pnm_read_number(r, most, &value)) return false;
    out[i] = pnm_scale(value, most);
  }
  pnm_skip_blank(r);
  return r->at == r->size || pnm_bad(r, "the file goes on after the image");
}

static bool read_binary(pnm_reader_t* r, uint32_t most, uint8_t* out,
                        uint64_t count) {
  if (r->at >= r->size || !is_space(r->data[r->at])) {
    return pnm_bad(r, "white space is expected after the header");
  }
  r->at++;
  size_t left = r->size - r->at;
  if (left != count) {
    return kilni_cli_fail(
        r->error, KILN_STATUS_BAD_DATA, kFixBad,
        "the picture %s: it needs %" PRIu64
        " bytes from byte %zu on, there are %zu",
        left < count ? "ends too early" : "goes on after its last row", count,
        r->at, left);
  }
  const uint8_t* samples = r->data + r->at;
  if (most == 255) {
    memcpy(out, samples, (size_t)count);
    return true;
  }
  for (uint64_t i = 0; i < count; i++) {
    if (samples[i] > most) {
      r->at += (size_t)i;
      return pnm_bad(r, "a sample is above the picture's own maximum");
    }
    out[i] = pnm_scale(samples[i], most);
  }
  return true;
}

bool kilni_cli_picture_shape(const kilni_cli_shape_t* shape, uint32_t* out_h,
                             uint32_t* out_w, uint32_t* out_channels,
                             kilni_cli_error_t* error) {
  *out_h = *out_w = *out_channels = 0;
  uint64_t channels = shape->rank == 3 ? shape->dims[2] : 1;
  if (shape->type != KILNI_CLI_TYPE_U8 || shape->rank < 2 || shape->rank > 3 ||
      channels < 1 || channels > 4 || shape->count == 0) {
    char text[256];
    kilni_cli_shape_text(shape, text, sizeof(text));
    return kilni_cli_fail(error, KILN_STATUS_INVALID_ARGUMENT,
                          "give it as :u8[height,width] or "
                          ":u8[height,width,channels], or write .npy",
                          "%s is not the shape of a picture", text);
  }
  if (shape->dims[0] > KILNI_CLI_PICTURE_MAX_SIDE ||
      shape->dims[1] > KILNI_CLI_PICTURE_MAX_SIDE ||
      shape->bytes > KILNI_CLI_PICTURE_MAX_BYTES) {
    return kilni_cli_fail(error, KILN_STATUS_LIMIT_EXCEEDED,
                          "use .npy or raw bytes for data of this size",
                          "a picture of %" PRIu64 " by %" PRIu64 " pixels",
                          shape->dims[1], shape->dims[0]);
  }
  *out_h = (uint32_t)shape->dims[0];
  *out_w = (uint32_t)shape->dims[1];
  *out_channels = (uint32_t)channels;
  return true;
}

bool kilni_cli_pnm_read(const uint8_t* data, size_t size,
                        kilni_cli_array_t* out, kilni_cli_error_t* error) {
  memset(out, 0, sizeof(*out));
  pnm_reader_t r = {data, size, 2, error};
  if (size < 3 || data[0] != 'P' || strchr("2356", data[1]) == NULL ||
      data[1] == 0) {
    r.at = 0;
    return pnm_bad(&r, "it does not begin with P2, P3, P5 or P6");
  }
  bool plain = data[1] <= '3';
  bool color = data[1] == '3' || data[1] == '6';
  uint32_t w, h, most, unused;
  if (!pnm_read_number(&r, KILNI_CLI_PICTURE_MAX_SIDE, &w) ||
      !pnm_read_number(&r, KILNI_CLI_PICTURE_MAX_SIDE, &h) ||
      !pnm_read_number(&r, 65535, &most)) {
    return false;
  }
  if (most > 255) {
    return kilni_cli_fail(error, KILN_STATUS_UNSUPPORTED, kFixBad,
                          "the picture has 16 bits a sample");
  }
  if (most == 0) return pnm_bad(&r, "the maximum is 0");
  kilni_cli_shape_t shape = {0};
  shape.type = KILNI_CLI_TYPE_U8;
  shape.rank = color ? 3 : 2;
  shape.dims[0] = h;
  shape.dims[1] = w;
  shape.dims[2] = color ? 3 : 0;
  if (w == 0 || h == 0) return pnm_bad(&r, "it has no pixels");
  if (!kilni_cli_shape_finish(&shape, error) ||
      !kilni_cli_picture_shape(&shape, &h, &w, &unused, error)) {
    return false;
  }
  // A sample takes at least a byte: allocate no more than the file can contain.
  if (shape.count > size - r.at) return pnm_bad(&r, "the file ends too early");
  if (!kilni_cli_buffer_resize(&out->data, (size_t)shape.bytes, error)) {
    return false;
  }
  bool ok = plain ? pnm_read_plain(&r, most, out->data.data, shape.count)
                  : read_binary(&r, most, out->data.data, shape.count);
  out->shape = shape;
  if (!ok) kilni_cli_array_deinit(out);
  return ok;
}

bool kilni_cli_pnm_write(const kilni_cli_array_t* array, bool gray,
                         kilni_cli_buffer_t* out, kilni_cli_error_t* error) {
  uint32_t h, w, channels;
  if (!kilni_cli_picture_shape(&array->shape, &h, &w, &channels, error)) {
    return false;
  }
  if (channels != (gray ? 1u : 3u)) {
    return kilni_cli_fail(error, KILN_STATUS_INVALID_ARGUMENT,
                          "write .pgm for one channel, .ppm for three, .png "
                          "for any",
                          "a .%s picture of %" PRIu32 " channels",
                          gray ? "pgm" : "ppm", channels);
  }
  char head[64];
  int n = snprintf(head, sizeof(head), "P%c\n%" PRIu32 " %" PRIu32 "\n255\n",
                   gray ? '5' : '6', w, h);
  return kilni_cli_buffer_add(out, head, (size_t)n, error) &&
         kilni_cli_buffer_add(out, array->data.data, array->data.size, error);
}
