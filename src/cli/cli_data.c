// SPDX-License-Identifier: Apache-2.0
//
// cli: data files by extension.
#include "cli/cli_data.h"

#include <inttypes.h>
#include <string.h>

#include "cli/cli_files.h"
#include "cli/cli_list.h"
#include "cli/cli_npy.h"
#include "cli/cli_png.h"
#include "cli/cli_pnm.h"
#include "cli/cli_signature.h"

kilni_cli_format_t kilni_cli_format_of(const char* path) {
  return kilni_cli_name_ends(path, ".npy")   ? KILNI_CLI_FORMAT_NPY
         : kilni_cli_name_ends(path, ".pgm") ? KILNI_CLI_FORMAT_PGM
         : kilni_cli_name_ends(path, ".ppm") ? KILNI_CLI_FORMAT_PPM
         : kilni_cli_name_ends(path, ".png") ? KILNI_CLI_FORMAT_PNG
                                             : KILNI_CLI_FORMAT_RAW;
}

// Bytes that start like a known format are read as raw bytes only with an
// explicit type; if the signature cannot occur by chance, that type must be u8.
static bool check_signature(const kilni_cli_buffer_t* file,
                            const kilni_cli_spec_t* spec,
                            kilni_cli_error_t* error) {
  const kilni_cli_signature_t* is =
      kilni_cli_signature_of(file->data, file->size);
  if (is == NULL) return true;
  bool is_bytes = spec->shape.type == KILNI_CLI_TYPE_U8;
  if (spec->is_type_written && (is_bytes || !is->is_sure)) return true;
  (void)kilni_cli_fail(
      error,
      is->is_read ? KILN_STATUS_INVALID_ARGUMENT : KILN_STATUS_UNSUPPORTED,
      NULL, "the file contains %s%s%s", is->what,
      is->is_read ? ", and its name does not end in " : "",
      is->is_read ? is->end : "");
  kilni_cli_error_fix(error,
                      is->is_read
                          ? "rename it to end in %s, or write :u8 after the "
                            "name to take the bytes as they are"
                          : "convert it to .npy%s, or write a type after the "
                            "name, such as :u8, to take the bytes as they are",
                      is->is_read ? is->end : ", .png or .ppm");
  return false;
}

// ---- Names of formats that are not raw numbers ----

// Text, compressed data or sound is bytes. Read as wider elements it would give
// meaningless numbers without an error.
static bool data_is_of_bytes(kilni_cli_type_t type) {
  return type == KILNI_CLI_TYPE_U8 || type == KILNI_CLI_TYPE_I8;
}

// Python's names of the elements in an array.array; 0: it has none.
static char data_code_of(kilni_cli_type_t type) {
  switch (type) {
    case KILNI_CLI_TYPE_U16:
      return 'H';
    case KILNI_CLI_TYPE_I16:
      return 'h';
    case KILNI_CLI_TYPE_U32:
      return 'I';
    case KILNI_CLI_TYPE_I32:
      return 'i';
    case KILNI_CLI_TYPE_U64:
      return 'Q';
    case KILNI_CLI_TYPE_I64:
      return 'q';
    case KILNI_CLI_TYPE_F32:
      return 'f';
    case KILNI_CLI_TYPE_F64:
      return 'd';
    default:
      return 0;
  }
}

// Whether a name can be used in a command as it is, in quotes of either kind.
static bool data_is_plain(const char* path) {
  for (const char* c = path; *c != 0; c++) {
    bool is_word = (*c >= 'a' && *c <= 'z') || (*c >= 'A' && *c <= 'Z') ||
                   (*c >= '0' && *c <= '9');
    if (!is_word && strchr("._/+,=@-", *c) == NULL) return false;
  }
  return strlen(path) <= 120 && path[0] != '-';
}

// The Fix for an input: a line that converts a text of numbers to raw bytes. If
// no type was given, that comes first: floats where a kernel takes integers
// would not be an error.
static void fix_named_input(const char* path, const kilni_cli_named_t* named,
                            const kilni_cli_buffer_t* file,
                            kilni_cli_type_t type, kilni_cli_error_t* error) {
  const char* bytes = "write :u8 after the name to take the bytes as they are";
  kilni_cli_list_t list;
  kilni_cli_list_look(file->data, file->size, &list);
  bool is_list = named->is_list && data_is_plain(path) && list.is_plain;
  if (is_list && type == KILNI_CLI_TYPE_NONE) {
    const char* name =
        strrchr(path, '/') == NULL ? path : strrchr(path, '/') + 1;
    kilni_cli_error_fix(
        error,
        "write the type for its numbers after the name, such as %s:f32 or "
        "%s:i32, to see the command that converts them to raw bytes; or %s",
        name, name, bytes);
    return;
  }
  char code = data_code_of(type);
  if (!is_list || code == 0 || !kilni_cli_list_fits(&list, type)) {
    kilni_cli_error_fix(error,
                        "convert it to .npy, to raw bytes (.bin) or, a "
                        "picture, to .png, or %s",
                        bytes);
    return;
  }
  int stem = (int)(strlen(path) - strlen(named->end));
  bool is_whole = kilni_cli_type_info(type)->kind != 'f';
  kilni_cli_error_fix(
      error,
      "make raw bytes of its numbers: python3 -c \"import array, re; "
      "array.array('%c', map(%s, re.findall(r'[^\\s,;]+', "
      "open('%s').read()%s))).tofile(open('%.*s.bin', 'wb'))\" and give "
      "%.*s.bin:%s; or %s",
      code, is_whole ? "int" : "float", path,
      list.has_head ? ".split(chr(10), 1)[1]" : "", stem, path, stem, path,
      kilni_cli_type_info(type)->text, bytes);
}

static bool check_named_input(const char* path, const kilni_cli_buffer_t* file,
                              const kilni_cli_spec_t* spec,
                              kilni_cli_error_t* error) {
  const kilni_cli_named_t* named = kilni_cli_signature_says(path);
  kilni_cli_type_t type = spec->kind == KILNI_CLI_SPEC_NONE
                              ? KILNI_CLI_TYPE_NONE
                              : spec->shape.type;
  if (named == NULL || data_is_of_bytes(type)) return true;
  (void)kilni_cli_fail(error, KILN_STATUS_UNSUPPORTED, NULL,
                       "by its name the file is %s, not %s one after the "
                       "other",
                       named->what,
                       type == KILNI_CLI_TYPE_NONE
                           ? "numbers"
                           : kilni_cli_type_info(type)->text);
  fix_named_input(path, named, file, type, error);
  return false;
}

// The Fix for an output: raw bytes, and the line that makes a text of them.
static bool fail_named_output(const char* path, const kilni_cli_named_t* named,
                              kilni_cli_type_t type, kilni_cli_error_t* error) {
  const char* write = "write .npy or raw bytes (.bin)";
  (void)kilni_cli_fail(error, KILN_STATUS_UNSUPPORTED, write,
                       "%s cannot be written of %s", named->what,
                       kilni_cli_type_info(type)->text);
  char code = data_code_of(type);
  if (named->is_list && code != 0 && data_is_plain(path)) {
    int stem = (int)(strlen(path) - strlen(named->end));
    kilni_cli_error_fix(
        error,
        "%s; this converts %.*s.bin to text, one number per line: python3 -c "
        "\"import array; print(*array.array('%c', open('%.*s.bin', "
        "'rb').read()), sep=chr(10))\" > %s",
        write, stem, path, code, stem, path, path);
  }
  return false;
}

// Raw bytes take the whole file and get their shape from `spec`.
static bool read_raw(const char* path, kilni_cli_buffer_t* file,
                     const kilni_cli_spec_t* spec, kilni_cli_array_t* out,
                     kilni_cli_error_t* error) {
  kilni_cli_shape_t shape = spec->shape;
  if (!check_signature(file, spec, error) ||
      !check_named_input(path, file, spec, error)) {
    return false;
  }
  if (spec->kind == KILNI_CLI_SPEC_SHAPE) {
    if (shape.bytes != file->size) {
      char text[256];
      kilni_cli_shape_text(&shape, text, sizeof(text));
      return kilni_cli_fail(error, KILN_STATUS_INVALID_ARGUMENT,
                            "give the shape that the file has",
                            "%s needs %" PRIu64 " bytes, the file has %zu",
                            text, shape.bytes, file->size);
    }
  } else {
    if (spec->kind == KILNI_CLI_SPEC_NONE) shape.type = KILNI_CLI_TYPE_U8;
    const kilni_cli_type_info_t* info = kilni_cli_type_info(shape.type);
    if (file->size % info->bytes != 0) {
      return kilni_cli_fail(error, KILN_STATUS_INVALID_ARGUMENT,
                            "give another type, or a whole file",
                            "%zu bytes are not a whole number of %s",
                            file->size, info->text);
    }
    shape.rank = 1;
    shape.dims[0] = file->size / info->bytes;
    if (!kilni_cli_shape_finish(&shape, error)) return false;
  }
  out->shape = shape;
  out->data = *file;
  memset(file, 0, sizeof(*file));
  return true;
}

static bool check_claim(const kilni_cli_spec_t* spec,
                        const kilni_cli_shape_t* shape,
                        kilni_cli_error_t* error) {
  if (spec->kind == KILNI_CLI_SPEC_NONE) return true;
  bool same = spec->shape.type == shape->type;
  if (spec->kind == KILNI_CLI_SPEC_SHAPE) {
    same = same && spec->shape.rank == shape->rank;
    for (uint32_t i = 0; same && i < shape->rank; i++) {
      same = spec->shape.dims[i] == shape->dims[i];
    }
  }
  if (same) return true;
  char text[256];
  kilni_cli_shape_text(shape, text, sizeof(text));
  return kilni_cli_fail(error, KILN_STATUS_INVALID_ARGUMENT,
                        "omit the type: the file has its own",
                        "the file contains %s, which contradicts the given "
                        "shape",
                        text);
}

bool kilni_cli_data_read(const char* path, const kilni_cli_spec_t* spec,
                         kilni_cli_array_t* out, kilni_cli_error_t* error) {
  memset(out, 0, sizeof(*out));
  if (spec->kind == KILNI_CLI_SPEC_COPY) {
    return kilni_cli_fail(error, KILN_STATUS_INVALID_ARGUMENT,
                          "omit it: an input has the shape of its file; "
                          "write :TYPE or :TYPE[N,...] for raw bytes",
                          "the input \"%s\" with a shape to copy", path);
  }
  kilni_cli_buffer_t file = {0};
  kilni_cli_format_t format = kilni_cli_format_of(path);
  size_t most = (size_t)KILNI_CLI_MAX_DATA_BYTES;
  // Raw bytes may be none: an array without elements.
  bool ok = format == KILNI_CLI_FORMAT_RAW
                ? kilni_cli_buffer_read(&file, path, most, error)
                : kilni_cli_buffer_read_some(&file, path, most, error);
  if (ok) {
    ok = format == KILNI_CLI_FORMAT_RAW
             ? read_raw(path, &file, spec, out, error)
         : format == KILNI_CLI_FORMAT_NPY
             ? kilni_cli_npy_read(file.data, file.size, out, error)
         : format == KILNI_CLI_FORMAT_PNG
             ? kilni_cli_png_read(file.data, file.size, out, error)
             : kilni_cli_pnm_read(file.data, file.size, out, error);
    ok = ok && check_claim(spec, &out->shape, error);
    if (!ok) kilni_cli_error_prefix(error, "%s", path);
  }
  kilni_cli_buffer_deinit(&file);
  if (!ok) kilni_cli_array_deinit(out);
  return ok;
}

bool kilni_cli_data_check(const char* path, const kilni_cli_shape_t* shape,
                          kilni_cli_error_t* error) {
  kilni_cli_format_t format = kilni_cli_format_of(path);
  const kilni_cli_signature_t* named = kilni_cli_signature_named(path);
  const kilni_cli_named_t* says = kilni_cli_signature_says(path);
  bool ok = true;
  if (named != NULL) {
    ok = kilni_cli_fail(error, KILN_STATUS_UNSUPPORTED,
                        "write .npy, .png, .ppm or .pgm, or raw bytes (.bin)",
                        "%s cannot be written", named->what);
  } else if (format == KILNI_CLI_FORMAT_RAW && says != NULL &&
             !data_is_of_bytes(shape->type)) {
    ok = fail_named_output(path, says, shape->type, error);
  } else if (format == KILNI_CLI_FORMAT_NPY) {
    const kilni_cli_type_info_t* info = kilni_cli_type_info(shape->type);
    ok = info->numpy != NULL ||
         kilni_cli_fail(error, KILN_STATUS_UNSUPPORTED,
                        "write raw bytes (.bin), or write :u16[...]",
                        "numpy has no type for %s", info->text);
  } else if (format != KILNI_CLI_FORMAT_RAW) {
    uint32_t h, w, c;
    ok = kilni_cli_picture_shape(shape, &h, &w, &c, error);
    uint32_t wanted = format == KILNI_CLI_FORMAT_PGM   ? 1
                      : format == KILNI_CLI_FORMAT_PPM ? 3
                                                       : c;
    if (ok && c != wanted) {
      ok = kilni_cli_fail(error, KILN_STATUS_INVALID_ARGUMENT,
                          "write .pgm for one channel, .ppm for three, .png "
                          "for any",
                          "a picture of %" PRIu32
                          " channels does not fit the "
                          "format",
                          c);
    }
  }
  if (!ok) kilni_cli_error_prefix(error, "%s", path);
  return ok;
}

bool kilni_cli_data_encode(const char* path, const kilni_cli_array_t* array,
                           kilni_cli_buffer_t* out, kilni_cli_error_t* error) {
  kilni_cli_format_t format = kilni_cli_format_of(path);
  if (format == KILNI_CLI_FORMAT_RAW) {
    return kilni_cli_buffer_add(out, array->data.data, array->data.size, error);
  }
  if (format == KILNI_CLI_FORMAT_NPY) {
    return kilni_cli_npy_write(array, out, error);
  }
  if (format == KILNI_CLI_FORMAT_PNG) {
    return kilni_cli_png_write(array, out, error);
  }
  return kilni_cli_pnm_write(array, format == KILNI_CLI_FORMAT_PGM, out, error);
}
