// SPDX-License-Identifier: Apache-2.0
//
// tests: reads the comments at the head of a kernel and makes its inputs.
#include "kernel_run.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint32_t width_of(const char* type) {
  size_t length = strlen(type);
  uint32_t bits = (uint32_t)strtoul(type + 1, NULL, 10);
  bool sound = length >= 2 && length <= 3 && strchr("iuf", type[0]) != NULL;
  return sound && (bits == 8 || bits == 16 || bits == 32 || bits == 64)
             ? bits / 8
             : 0;
}

static kernel_param_t* add_param(kernel_run_t* run, kernel_role_t role,
                                 const char* name, const char* type,
                                 size_t count) {
  uint32_t width = width_of(type);
  if (run->param_count >= KERNEL_PARAMS || width == 0 || count == 0) {
    return NULL;
  }
  kernel_param_t* param = &run->params[run->param_count++];
  *param = (kernel_param_t){.role = role, .width = width, .count = count};
  snprintf(param->name, sizeof(param->name), "%s", name);
  snprintf(param->type, sizeof(param->type), "%s", type);
  return param;
}

static kernel_param_t* find_param(kernel_run_t* run, const char* name) {
  for (int i = 0; i < run->param_count; i++) {
    if (strcmp(run->params[i].name, name) == 0) return &run->params[i];
  }
  return NULL;
}

// NAME TYPE COUNT GENERATOR SEED, with the role before the type of a buffer.
static bool read_buffer(kernel_run_t* run, const char* rest) {
  char name[KERNEL_NAME];
  char role[8];
  char type[4];
  char generator[12] = "zero";
  unsigned long long count = 0;
  unsigned long long seed = 0;
  int got = sscanf(rest, "%63s %7s %3s %llu %11s %llu", name, role, type,
                   &count, generator, &seed);
  bool out = got >= 2 && strcmp(role, "out") == 0;
  if (got != (out ? 4 : 6)) return false;
  kernel_role_t is = out                          ? KERNEL_OUT
                     : strcmp(role, "in") == 0    ? KERNEL_IN
                     : strcmp(role, "inout") == 0 ? KERNEL_INOUT
                                                  : KERNEL_VALUE;
  if (is == KERNEL_VALUE) return false;
  kernel_param_t* param = add_param(run, is, name, type, (size_t)count);
  if (param == NULL) return false;
  memcpy(param->generator, generator, sizeof(generator));
  param->seed = seed;
  return true;
}

static bool read_made(kernel_run_t* run, kernel_role_t role, const char* rest) {
  char name[KERNEL_NAME];
  char type[4];
  char generator[12];
  unsigned long long count = 0;
  unsigned long long seed = 0;
  if (sscanf(rest, "%63s %3s %llu %11s %llu", name, type, &count, generator,
             &seed) != 5) {
    return false;
  }
  kernel_param_t* param = add_param(run, role, name, type, (size_t)count);
  if (param == NULL) return false;
  memcpy(param->generator, generator, sizeof(generator));
  param->seed = seed;
  return true;
}

static bool read_scalar(kernel_run_t* run, const char* rest) {
  char name[KERNEL_NAME];
  char type[4];
  char number[32];
  if (sscanf(rest, "%63s %3s %31s", name, type, number) != 3) return false;
  kernel_param_t* param = add_param(run, KERNEL_VALUE, name, type, 1);
  if (param == NULL) return false;
  memcpy(param->number, number, sizeof(number));
  return true;
}

static bool read_approx(kernel_run_t* run, const char* rest) {
  char name[KERNEL_NAME];
  long long ulps = 0;
  int used = 0;
  if (sscanf(rest, "%63s %lld %n", name, &ulps, &used) != 2) return false;
  kernel_param_t* param = find_param(run, name);
  if (param == NULL) return false;
  param->ulps = ulps;
  snprintf(param->reason, sizeof(param->reason), "%s", rest + used);
  return true;
}

static bool read_open(kernel_run_t* run, const char* rest) {
  char name[KERNEL_NAME];
  int used = 0;
  if (sscanf(rest, "%63s %n", name, &used) != 1) return false;
  kernel_param_t* param = find_param(run, name);
  if (param == NULL || rest[used] == '\0') return false;
  param->open = true;
  snprintf(param->reason, sizeof(param->reason), "%s", rest + used);
  return true;
}

static bool read_three(const char* rest, uint32_t out[3]) {
  return sscanf(rest, "%u %u %u", &out[0], &out[1], &out[2]) == 3;
}

// Six numbers: a further grid and block.
static bool read_also(kernel_run_t* run, const char* rest) {
  if (run->shape_count >= KERNEL_SHAPES) return false;
  kernel_shape_t* shape = &run->shapes[run->shape_count++];
  return sscanf(rest, "%u %u %u %u %u %u", &shape->grid[0], &shape->grid[1],
                &shape->grid[2], &shape->block[0], &shape->block[1],
                &shape->block[2]) == 6;
}

static bool begin_run(kernel_file_t* file, const char* entry) {
  if (file->run_count >= KERNEL_RUNS) return false;
  kernel_run_t* run = &file->runs[file->run_count];
  *run =
      (kernel_run_t){.number = file->run_count, .shape_count = 1, .prints = -1};
  memcpy(run->file, file->name, sizeof(run->file));
  snprintf(run->entry, sizeof(run->entry), "%s", entry);
  file->run_count++;
  return true;
}

// A directive of a run. A word that is none is a line for people.
static bool read_of_run(kernel_run_t* run, const char* word, const char* rest) {
  if (strcmp(word, "grid") == 0) return read_three(rest, run->shapes[0].grid);
  if (strcmp(word, "block") == 0) {
    return read_three(rest, run->shapes[0].block);
  }
  if (strcmp(word, "also") == 0) return read_also(run, rest);
  if (strcmp(word, "buffer") == 0) return read_buffer(run, rest);
  if (strcmp(word, "scalar") == 0) return read_scalar(run, rest);
  if (strcmp(word, "struct") == 0) return read_made(run, KERNEL_VALUE, rest);
  if (strcmp(word, "constant") == 0) {
    return read_made(run, KERNEL_CONSTANT, rest);
  }
  if (strcmp(word, "approx") == 0) return read_approx(run, rest);
  if (strcmp(word, "open") == 0) return read_open(run, rest);
  if (strcmp(word, "prints") == 0) run->prints = atoi(rest);
  if (strcmp(word, "fails") == 0) run->fails = true;
  if (strcmp(word, "cooperative") == 0) run->cooperative = true;
  if (strcmp(word, "shared") == 0) run->shared = (uint32_t)atoi(rest);
  return true;
}

// One comment line without its slashes and its newline.
static bool read_line(kernel_file_t* file, char* line) {
  char* colon = strchr(line, ':');
  if (colon == NULL || memchr(line, ' ', (size_t)(colon - line)) != NULL) {
    return true;
  }
  *colon = '\0';
  const char* rest = colon + 1 + strspn(colon + 1, " ");
  if (strcmp(line, "awaits") == 0) {
    snprintf(file->awaits, sizeof(file->awaits), "%s", rest);
    return true;
  }
  if (strcmp(line, "run") == 0) return begin_run(file, rest);
  if (file->run_count == 0) return true;
  return read_of_run(&file->runs[file->run_count - 1], line, rest);
}

bool kernel_file_read(const char* tree, const char* name, kernel_file_t* out) {
  char path[1024];
  snprintf(path, sizeof(path), "%s/tests/kernels/%s.cu", tree, name);
  FILE* file = fopen(path, "r");
  memset(out, 0, sizeof(*out));
  snprintf(out->name, sizeof(out->name), "%s", name);
  if (file == NULL) {
    printf("not ok %s: cannot be read\n", path);
    return false;
  }
  char line[512];
  int number = 0;
  bool good = true;
  while (good && fgets(line, sizeof(line), file) != NULL &&
         strncmp(line, "//", 2) == 0) {
    number++;
    line[strcspn(line, "\n")] = '\0';
    good = read_line(out, line + 2 + strspn(line + 2, " "));
  }
  fclose(file);
  if (!good) printf("not ok %s:%d: is not understood\n", path, number);
  return good;
}

// ---- Inputs ----

uint64_t kernel_random(uint64_t seed, uint64_t i) {
  uint64_t x = seed * 0x9e3779b97f4a7c15ull + i;
  x += 0x9e3779b97f4a7c15ull;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
  return x ^ (x >> 31);
}

static double power_of_two(int exponent) {
  double result = 1;
  for (; exponent > 0; exponent--) result *= 2;
  for (; exponent < 0; exponent++) result /= 2;
  return result;
}

static double make_float(const kernel_param_t* param, uint64_t i) {
  uint64_t r = kernel_random(param->seed, i);
  const char* generator = param->generator;
  if (strcmp(generator, "zero") == 0) return 0;
  if (strcmp(generator, "index") == 0) return (double)i;
  if (strcmp(generator, "small") == 0) {
    return (double)((r >> 33) % 201) - 100;
  }
  if (strcmp(generator, "unit") == 0) return (double)(r >> 40) * 0x1p-24;
  if (strcmp(generator, "wide") == 0) {
    uint64_t fraction = r & 0xfffffffffffffull;
    // Towards zero, as the significand of the type has space for.
    if (param->width == 4) fraction &= ~0x1fffffffull;
    double significand = 1 + (double)fraction * 0x1p-52;
    return (r >> 63 ? -1 : 1) * significand *
           power_of_two((int)((r >> 52) % 41) - 20);
  }
  return (double)r;
}

static uint64_t make_integer(const kernel_param_t* param, uint64_t i) {
  uint64_t r = kernel_random(param->seed, i);
  const char* generator = param->generator;
  if (strcmp(generator, "index") == 0) return i;
  if (strcmp(generator, "bits") == 0) return r;
  if (strcmp(generator, "small") == 0) {
    return (r >> 33) % 201 - (param->type[0] == 'u' ? 0 : 100);
  }
  if (strcmp(generator, "edge") == 0) {
    uint64_t top = (uint64_t)1 << (param->width * 8 - 1);
    const uint64_t edges[8] = {0, 1, UINT64_MAX, top - 1, top, 2, 0x80, r};
    return edges[i % 8];
  }
  return 0;
}

static void make_element(const kernel_param_t* param, uint64_t i,
                         uint8_t* out) {
  bool is_float = param->type[0] == 'f' && param->width >= 4;
  if (is_float) {
    double value = param->number[0] != '\0' ? strtod(param->number, NULL)
                                            : make_float(param, i);
    float narrow = (float)value;
    memcpy(out, param->width == 4 ? (const void*)&narrow : (const void*)&value,
           param->width);
    return;
  }
  uint64_t value = param->number[0] == '\0' ? make_integer(param, i)
                   : param->number[0] == '-'
                       ? (uint64_t)strtoll(param->number, NULL, 0)
                       : strtoull(param->number, NULL, 0);
  memcpy(out, &value, param->width);
}

uint8_t* kernel_param_make(const kernel_param_t* param) {
  uint8_t* bytes = calloc(param->count, param->width);
  for (size_t i = 0; bytes != NULL && i < param->count; i++) {
    if (param->role == KERNEL_OUT) break;
    make_element(param, i, bytes + i * param->width);
  }
  return bytes;
}
