// SPDX-License-Identifier: Apache-2.0
//
// cli: numpy's .npy format.
//
// The header is a Python dictionary; only what numpy itself writes there is
// taken: the keys descr, fortran_order and shape, each once, in any order.
#include "cli/cli_npy.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static const char kMagic[6] = {(char)0x93, 'N', 'U', 'M', 'P', 'Y'};
static const char kFixBad[] =
    "write the file again with numpy.save, or give raw bytes (.bin)";
static const char kFixType[] =
    "convert it in numpy, such as a.astype('<f4'), and save it again";

// Where the reader is. one-thread
typedef struct npy_reader_t {
  const uint8_t* data;
  size_t at;
  size_t end;  // of the header
  kilni_cli_error_t* error;
} npy_reader_t;

static bool npy_bad(npy_reader_t* r, const char* what) {
  return kilni_cli_fail(r->error, KILN_STATUS_BAD_DATA, kFixBad,
                        "the .npy header is malformed at byte %zu: %s", r->at,
                        what);
}

static void npy_skip_space(npy_reader_t* r) {
  while (r->at < r->end && strchr(" \t\r\n", r->data[r->at]) != NULL &&
         r->data[r->at] != 0) {
    r->at++;
  }
}

static bool npy_take(npy_reader_t* r, char c) {
  npy_skip_space(r);
  if (r->at >= r->end || r->data[r->at] != (uint8_t)c) return false;
  r->at++;
  return true;
}

static bool npy_take_word(npy_reader_t* r, const char* word) {
  npy_skip_space(r);
  size_t n = strlen(word);
  if (r->end - r->at < n || memcmp(r->data + r->at, word, n) != 0) return false;
  r->at += n;
  return true;
}

static bool take_string(npy_reader_t* r, const char** out, size_t* out_size) {
  npy_skip_space(r);
  if (r->at >= r->end || (r->data[r->at] != '\'' && r->data[r->at] != '"')) {
    return npy_bad(r, "a string is expected");
  }
  uint8_t quote = r->data[r->at];
  size_t start = r->at + 1;
  const uint8_t* stop = memchr(r->data + start, quote, r->end - start);
  if (stop == NULL) return npy_bad(r, "a string has no end");
  *out = (const char*)r->data + start;
  *out_size = (size_t)(stop - (r->data + start));
  r->at = start + *out_size + 1;
  return true;
}

static bool read_descr(npy_reader_t* r, kilni_cli_shape_t* shape) {
  const char* text;
  size_t size;
  size_t start = r->at;
  if (npy_take(r, '[')) {
    return kilni_cli_fail(r->error, KILN_STATUS_UNSUPPORTED, kFixType,
                          "the .npy file contains records, not numbers");
  }
  if (!take_string(r, &text, &size)) return false;
  for (int i = 1; i < KILNI_CLI_TYPE_COUNT; i++) {
    const char* name = kilni_cli_type_info((kilni_cli_type_t)i)->numpy;
    if (name == NULL || size != 3 || memcmp(text + 1, name + 1, 2) != 0) {
      continue;
    }
    bool one_byte = name[0] == '|';
    if (text[0] == name[0] || text[0] == '=' ||
        (one_byte && strchr("<>", text[0]) != NULL)) {
      shape->type = (kilni_cli_type_t)i;
    }
  }
  if (shape->type != KILNI_CLI_TYPE_NONE) return true;
  return kilni_cli_fail(r->error, KILN_STATUS_UNSUPPORTED, kFixType,
                        "the .npy file has elements of type '%.*s' (byte %zu)",
                        (int)(size > 32 ? 32 : size), text, start);
}

static bool npy_read_shape(npy_reader_t* r, kilni_cli_shape_t* shape) {
  if (!npy_take(r, '(')) return npy_bad(r, "the shape is not a tuple");
  shape->rank = 0;
  while (!npy_take(r, ')')) {
    uint64_t value = 0;
    npy_skip_space(r);
    size_t start = r->at;
    while (r->at < r->end && r->data[r->at] >= '0' && r->data[r->at] <= '9') {
      if (value > UINT64_MAX / 10 - 1) {
        return npy_bad(r, "an extent is too large");
      }
      value = value * 10 + (uint64_t)(r->data[r->at++] - '0');
    }
    if (r->at == start) return npy_bad(r, "an extent is not a whole number");
    (void)npy_take(r, 'L');  // Python 2 wrote long integers so
    if (shape->rank == KILNI_CLI_MAX_RANK) {
      return kilni_cli_fail(r->error, KILN_STATUS_LIMIT_EXCEEDED,
                            "reshape the array and save it again",
                            "the .npy file has more than %d dimensions",
                            KILNI_CLI_MAX_RANK);
    }
    shape->dims[shape->rank++] = value;
    if (npy_take(r, ',')) continue;
    if (!npy_take(r, ')')) return npy_bad(r, "the shape is not closed");
    break;
  }
  return true;
}

static bool npy_read_entry(npy_reader_t* r, kilni_cli_shape_t* shape,
                           unsigned* seen, bool* fortran) {
  const char* key;
  size_t size;
  if (!take_string(r, &key, &size)) return false;
  if (!npy_take(r, ':')) return npy_bad(r, "a colon is expected");
  unsigned bit = size == 5 && memcmp(key, "descr", 5) == 0             ? 1
                 : size == 13 && memcmp(key, "fortran_order", 13) == 0 ? 2
                 : size == 5 && memcmp(key, "shape", 5) == 0           ? 4
                                                                       : 0;
  if (bit == 0) return npy_bad(r, "there is no such key");
  if ((*seen & bit) != 0) return npy_bad(r, "a key occurs twice");
  *seen |= bit;
  if (bit == 1) return read_descr(r, shape);
  if (bit == 4) return npy_read_shape(r, shape);
  *fortran = npy_take_word(r, "True");
  return *fortran || npy_take_word(r, "False") ||
         npy_bad(r, "not True or False");
}

static bool read_dictionary(npy_reader_t* r, kilni_cli_shape_t* shape) {
  unsigned seen = 0;
  bool fortran = false;
  if (!npy_take(r, '{')) return npy_bad(r, "an opening brace is expected");
  while (!npy_take(r, '}')) {
    if (!npy_read_entry(r, shape, &seen, &fortran)) return false;
    if (npy_take(r, ',')) continue;
    if (!npy_take(r, '}')) return npy_bad(r, "the dictionary is not closed");
    break;
  }
  npy_skip_space(r);
  if (r->at != r->end) return npy_bad(r, "there is something after it");
  if (seen != 7) return npy_bad(r, "descr, fortran_order or shape is missing");
  if (fortran && shape->rank > 1) {
    return kilni_cli_fail(r->error, KILN_STATUS_UNSUPPORTED,
                          "save numpy.ascontiguousarray(a) instead",
                          "the .npy file is in Fortran order");
  }
  return true;
}

static bool open_header(npy_reader_t* r, size_t size) {
  if (size < 10 || memcmp(r->data, kMagic, sizeof(kMagic)) != 0) {
    return kilni_cli_fail(r->error, KILN_STATUS_BAD_DATA, kFixBad,
                          size < 10
                              ? "the .npy file ends inside its header"
                              : "this is not a .npy file: byte 0 is not its "
                                "signature");
  }
  if (r->data[6] < 1 || r->data[6] > 3) {
    return kilni_cli_fail(r->error, KILN_STATUS_UNSUPPORTED, kFixBad,
                          "the .npy file has version %d.%d (byte 6)",
                          r->data[6], r->data[7]);
  }
  bool wide = r->data[6] >= 2;
  if (wide && size < 12) {
    return kilni_cli_fail(r->error, KILN_STATUS_BAD_DATA, kFixBad,
                          "the .npy file ends inside its header");
  }
  size_t length = (size_t)r->data[8] | (size_t)r->data[9] << 8;
  if (wide) length |= (size_t)r->data[10] << 16 | (size_t)r->data[11] << 24;
  r->at = wide ? 12 : 10;
  if (length > KILNI_CLI_NPY_MAX_HEADER) {
    return kilni_cli_fail(
        r->error, KILN_STATUS_LIMIT_EXCEEDED, kFixBad,
        "the .npy header has %zu bytes (byte 8), more than %d", length,
        KILNI_CLI_NPY_MAX_HEADER);
  }
  if (length > size - r->at) {
    return kilni_cli_fail(r->error, KILN_STATUS_BAD_DATA, kFixBad,
                          "the .npy file ends inside its header (byte %zu)",
                          size);
  }
  r->end = r->at + length;
  return true;
}

bool kilni_cli_npy_read(const uint8_t* data, size_t size,
                        kilni_cli_array_t* out, kilni_cli_error_t* error) {
  memset(out, 0, sizeof(*out));
  npy_reader_t reader = {data, 0, 0, error};
  kilni_cli_shape_t shape = {0};
  if (!open_header(&reader, size) || !read_dictionary(&reader, &shape) ||
      !kilni_cli_shape_finish(&shape, error)) {
    return false;
  }
  size_t payload = size - reader.end;
  if (payload != shape.bytes) {
    return kilni_cli_fail(
        error, KILN_STATUS_BAD_DATA, kFixBad,
        "the .npy file %s: its shape needs %" PRIu64
        " bytes from byte %zu on, there are %zu",
        payload < shape.bytes ? "ends too early" : "goes on after the array",
        shape.bytes, reader.end, payload);
  }
  if (!kilni_cli_buffer_add(&out->data, data + reader.end, payload, error)) {
    return false;
  }
  out->shape = shape;
  return true;
}

bool kilni_cli_npy_write(const kilni_cli_array_t* array,
                         kilni_cli_buffer_t* out, kilni_cli_error_t* error) {
  const kilni_cli_type_info_t* info = kilni_cli_type_info(array->shape.type);
  if (info->numpy == NULL) {
    return kilni_cli_fail(error, KILN_STATUS_UNSUPPORTED,
                          "write raw bytes (.bin), or write :u16[...]",
                          "numpy has no type for %s", info->text);
  }
  char text[448];
  int used = snprintf(text, sizeof(text),
                      "{'descr': '%s', 'fortran_order': False, 'shape': (",
                      info->numpy);
  for (uint32_t i = 0; i < array->shape.rank; i++) {
    used += snprintf(text + used, sizeof(text) - (size_t)used,
                     "%s%" PRIu64 "%s", i == 0 ? "" : " ", array->shape.dims[i],
                     i + 1 < array->shape.rank || i == 0 ? "," : "");
  }
  used += snprintf(text + used, sizeof(text) - (size_t)used, "), }");
  // numpy aligns the data to 64 bytes; the padding ends with a newline.
  size_t length = (10 + (size_t)used + 1 + 63) / 64 * 64 - 10;
  memset(text + used, ' ', length - (size_t)used);
  text[length - 1] = '\n';
  uint8_t head[10] = {0x93, 'N', 'U', 'M', 'P', 'Y', 1, 0, 0, 0};
  head[8] = (uint8_t)(length & 0xff);
  head[9] = (uint8_t)(length >> 8);
  return kilni_cli_buffer_add(out, head, sizeof(head), error) &&
         kilni_cli_buffer_add(out, text, length, error) &&
         kilni_cli_buffer_add(out, array->data.data, array->data.size, error);
}
