// SPDX-License-Identifier: Apache-2.0
//
// program: what to write in the place of what other languages write.
#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "program/text/program_reader.h"

typedef struct hint_t {
  const char* found;
  const char* fix;
} hint_t;

static const hint_t kNames[] = {
    {"threadIdx", "a thread's number in its block is local_id.x"},
    {"blockIdx", "a block's number is block_id.x"},
    {"blockDim", "the threads of a block are block_size.x"},
    {"gridDim", "the blocks are block_count.x"},
    {"warpSize", "a subgroup has 32 threads"},
    {"laneId", "a thread's number in its subgroup is lane"},
    {"__syncthreads", "write barrier;"},
    {"__syncwarp", "subgroups need no barrier of their own"},
    {"__shared__", "write shared NAME: f32[64]; at the head of the body"},
    {"__global__", "write program NAME(...) { ... }"},
    {"atomicAdd", "write atomic_add(buffer[i], value)"},
    {"atomicMin", "write atomic_min(buffer[i], value)"},
    {"atomicMax", "write atomic_max(buffer[i], value)"},
    {"atomicCAS", "write atomic_compare_exchange(buffer[i], expected, value)"},
    {"atomicExch", "write atomic_exchange(buffer[i], value)"},
    {"__ballot_sync", "write ballot(condition)"},
    {"__shfl_sync", "write shuffle(value, lane)"},
    {"get_global_id", "a thread's number is global_id.x"},
    {"get_local_id", "a thread's number in its block is local_id.x"},
    {"get_group_id", "a block's number is block_id.x"},
    {"tid", "a thread's number is global_id.x"},
    {"len", "a buffer's length is length(x)"},
    {"size", "a buffer's length is length(x)"},
    {"sum", "add up in a loop, or 32 threads' values by reduce_add(x)"},
    {"rsqrt", "write inverse_sqrt(x)"},
    {"rsqrtf", "write inverse_sqrt(x)"},
    {"fabsf", "write abs(x)"},
    {"not", "write !x"},
    {"goto", "write a loop, and break or continue"},
    {"print", "a program writes into buffers only"},
    {"elif", "write else if"},
    {"elseif", "write else if"},
    {"do", "write while true { ... if done { break; } }"},
    {"switch", "write if ... { } else if ... { }"},
    {"int", "write let name: i32 = value; or var, where it changes"},
    {"uint", "write let name: u32 = value; or var, where it changes"},
    {"float", "write let name: f32 = value; or var, where it changes"},
    {"double", "write let name: f64 = value; or var, where it changes"},
    {"const", "consts stand outside of the program; inside write let"},
    {"printf", "a program writes into buffers only"},
    {"fabs", "write abs(x)"},
    {"fmaf", "write fma(a, b, c)"},
    {"mod", "write a % b"},
    {"NULL", "there are no pointers: a buffer is always there"},
};

static const hint_t kTypes[] = {
    {"float", "write f32"},          {"double", "write f64"},
    {"half", "write f16"},           {"int", "write i32"},
    {"unsigned", "write u32"},       {"uint", "write u32"},
    {"long", "write i64"},           {"size_t", "write u64"},
    {"short", "write i16"},          {"char", "write u8 or i8"},
    {"uint8_t", "write u8"},         {"int8_t", "write i8"},
    {"uint16_t", "write u16"},       {"int16_t", "write i16"},
    {"uint32_t", "write u32"},       {"int32_t", "write i32"},
    {"uint64_t", "write u64"},       {"int64_t", "write i64"},
    {"__nv_bfloat16", "write bf16"},
};

static const hint_t kFile[] = {
    {"/", "a comment begins with //"},
    {"}", "one } is too many, or one { is missing above"},
    {"kernel", "write program NAME(...) { ... }"},
    {"__global__", "write program NAME(...) { ... }"},
    {"void", "write program NAME(...) { ... }, or fn NAME(...) { ... }"},
    {"shared", "put it at the head of the body of the program"},
};

static const char* hints_look_up(const hint_t* hints, size_t count,
                                 kiln_string_view_t found) {
  for (size_t i = 0; i < count; i++) {
    if (kilni_base_sv_equal_cstr(found, hints[i].found)) return hints[i].fix;
  }
  return NULL;
}

#define LOOK_UP(hints, found) \
  hints_look_up(hints, sizeof(hints) / sizeof((hints)[0]), found)

const char* kilni_program_hint_type(kiln_string_view_t found) {
  return LOOK_UP(kTypes, found);
}

const char* kilni_program_hint_file(kiln_string_view_t found) {
  return LOOK_UP(kFile, found);
}

const char* kilni_program_hint_word(kiln_string_view_t found) {
  static const hint_t kNoValues[] = {
      {"if", "choose by select(condition, a, b), or assign to a var in if"},
      {"for", "a loop is a statement: assign to a var in it"},
      {"while", "a loop is a statement: assign to a var in it"},
  };
  return LOOK_UP(kNoValues, found);
}

static const char kBothSides[] =
    "write digits on both sides of the point: 0.5, 2.0";

// Behind a value that was whole, where a statement or a condition should end.
static const char* hint_end(const kilni_program_reader_t* reader, char next) {
  if (kilni_program_reader_is_word(reader, "or")) return "write ||";
  if (kilni_program_reader_is_word(reader, "and")) return "write &&";
  if (kilni_program_reader_is_word(reader, "as")) {
    return "a cast is written f32(x)";
  }
  if (kilni_program_reader_is_word(reader, "if")) {
    return "choose by select(condition, a, b)";
  }
  if (next == '[') {
    return "this is one value; a buffer is declared with [] and its role";
  }
  uint32_t at = reader->token.at;
  char before = at > 0 ? reader->text.data[at - 1] : '\0';
  return next == '.' && before >= '0' && before <= '9' ? kBothSides : NULL;
}

// In front of a body.
static const char* hint_body(const kilni_program_reader_t* reader) {
  if (kilni_program_reader_is_sign(reader, '=')) return "compare with ==";
  if (kilni_program_reader_is_sign(reader, ',')) {
    return "two or three axes stand in parentheses: work (w, h)";
  }
  if (kilni_program_reader_is_sign(reader, ':')) {
    return "the type of a result stands behind ->";
  }
  if (kilni_program_reader_is_sign(reader, KILNI_SIGN2('-', '>'))) {
    return "a program has no result: write it into a buffer that is out";
  }
  return kilni_program_reader_is_word(reader, "work")
             ? "work stands in front of block"
             : NULL;
}

static const char* hint_element(const kilni_program_reader_t* reader,
                                char next) {
  if (next == '.') return "a buffer's length is length(x)";
  if (kilni_program_reader_is_sign(reader, '=')) {
    return "write one element: x[i] = value;";
  }
  return "name one element: x[i]";
}

static const char* hint_value_of(char next) {
  switch (next) {
    case ';':
      return "give it a first value: var n = 0;";
    case ',':
      return "declare one at a time";
    default:
      return NULL;
  }
}

const char* kilni_program_hint_sign(const kilni_program_reader_t* reader,
                                    uint32_t wanted) {
  const kilni_program_token_t* token = &reader->token;
  char next = token->text.size != 0 ? token->text.data[0] : '\0';
  const char* end = NULL;
  switch (wanted) {
    case '{':
      end = hint_body(reader);
      if (end == NULL) end = hint_end(reader, next);
      return end != NULL ? end : "a body stands in braces: { ... }";
    case ';':
      if (kilni_program_reader_is_sign(reader, '=')) {
        return "assign to a var, or to an element of a buffer";
      }
      return hint_end(reader, next);
    case '[':
      return hint_element(reader, next);
    case ']':
      if (next == ':') return "write a loop over the elements";
      if (next == ',') return "an index is one number: x[row * width + column]";
      return hint_end(reader, next);
    case '=':
      return hint_value_of(next);
    case '.':
      return "name the axis: .x, .y or .z";
    case ')':
      if (next == '*') return "there are no pointers: x: in f32[]";
      return hint_end(reader, next);
    case ':':
      return "a name and its type: n: u32, or with its role x: in f32[]";
    default:
      return NULL;
  }
}

const char* kilni_program_hint_value(const kilni_program_reader_t* reader) {
  const kilni_program_token_t* token = &reader->token;
  char next = token->text.size != 0 ? token->text.data[0] : '\0';
  if (kilni_program_reader_is_behind(reader, "..")) {
    return "a range is 0..n, and ends in front of n";
  }
  if (kilni_program_reader_is_behind(reader, "/")) {
    return "a comment begins with //";
  }
  switch (next) {
    case '*':
      return "a power is pow(x, y)";
    case '.':
      return kBothSides;
    case '&':
      return "name the element itself: x[i]";
    case '+':
      return "leave the + in front away";
    case '[':
      return "write an array at the head of a body, and its elements one by "
             "one";
    default:
      return "write a number, a name, a call or parentheses";
  }
}

const char* kilni_program_hint_statement(const kilni_program_reader_t* reader) {
  const kilni_program_token_t* token = &reader->token;
  switch (token->text.size != 0 ? token->text.data[0] : '\0') {
    case ';':
      return "remove it";
    case '/':
      return "a comment begins with //";
    case '{':
      return "write if true { ... }, or the statements without the braces";
    case '+':
      return "write x += 1;";
    case '-':
      return "write x -= 1;";
    case '*':
      return "write one element: x[i] = value;";
    default:
      return "a statement assigns, calls, or begins with a word";
  }
}

// ---- Names that are nearly another one ----

enum { NEAR_MAX = 32 };

// How many letters differ, are missing or are too many; 3 for more than 2.
static uint32_t hints_distance(kiln_string_view_t a, kiln_string_view_t b) {
  uint32_t row[NEAR_MAX + 1];
  if (a.size > NEAR_MAX || b.size > NEAR_MAX || a.size > b.size + 2 ||
      b.size > a.size + 2) {
    return 3;
  }
  for (uint32_t k = 0; k <= b.size; k++) row[k] = k;
  for (uint32_t i = 1; i <= a.size; i++) {
    uint32_t corner = row[0];
    row[0] = i;
    for (uint32_t k = 1; k <= b.size; k++) {
      uint32_t best = corner + (a.data[i - 1] != b.data[k - 1]);
      corner = row[k];
      if (row[k] + 1 < best) best = row[k] + 1;
      if (row[k - 1] + 1 < best) best = row[k - 1] + 1;
      row[k] = best;
    }
  }
  return row[b.size] < 3 ? row[b.size] : 3;
}

const char* kilni_program_hint_name(const kilni_program_reader_t* reader,
                                    kiln_string_view_t found, char text[120]) {
  const char* fix = LOOK_UP(kNames, found);
  const char* type = LOOK_UP(kTypes, found);
  const kilni_program_symbol_t* best = NULL;
  // A short name is near to too many.
  uint32_t least = found.size < 3 ? 0 : found.size < 6 ? 2 : 3;
  // float(x), (float)x
  if (type != NULL && (kilni_program_reader_is_sign(reader, '(') ||
                       kilni_program_reader_is_sign(reader, ')'))) {
    return "a cast is written f32(x), u32(x)";
  }
  if (fix != NULL) return fix;
  for (size_t i = 1; i < reader->symbols.count; i++) {
    const kilni_program_symbol_t* symbol = &reader->symbols.items[i];
    uint32_t far = hints_distance(found, symbol->name);
    if (far < least) {
      least = far;
      best = symbol;
    }
  }
  if (best == NULL) return NULL;
  snprintf(text, 120, "write \"%.*s\", if that is meant, or declare it above",
           KILNI_SV(best->name));
  return text;
}
