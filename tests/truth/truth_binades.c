// SPDX-License-Identifier: Apache-2.0
//
// truth: every answer of an approximate form over whole binades.
#include "truth_binades.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "truth_device.h"

enum { MANTISSAS = 1 << 23, CHUNK = 1 << 21, THREADS = 256 };

// The binades, first what says most; 256 is the sign.
static const struct {
  const char* form;
  uint16_t tops[48];  // sign and exponent, ended by 0xffff
} wanted[] = {
    {"rcp.approx.f32",
     {127, 253, 254, 0, 1, 252, 2, 256 + 127, 64, 190, 0xffff}},
    {"rsqrt.approx.f32", {127, 126, 0, 1, 254, 253, 64, 0xffff}},
    {"sqrt.approx.f32", {127, 126, 0, 1, 254, 253, 64, 0xffff}},
    {"lg2.approx.f32",
     {127, 126, 125, 128, 0, 124, 129, 120, 135, 1, 254, 0xffff}},
    {"ex2.approx.f32",
     {127,       126,       125,       124,       123,       122,
      121,       128,       256 + 127, 256 + 126, 256 + 125, 256 + 124,
      256 + 123, 256 + 128, 129,       130,       131,       132,
      133,       256 + 129, 256 + 130, 256 + 131, 256 + 132, 256 + 133,
      120,       119,       118,       116,       112,       108,
      104,       100,       256 + 120, 256 + 112, 256 + 104, 0xffff}},
    {"sin.approx.f32",
     {127, 126, 125, 124, 123, 128, 129, 122,       121,       120,   119, 118,
      130, 131, 132, 133, 134, 136, 140, 145,       150,       158,   117, 116,
      115, 114, 112, 110, 108, 104, 100, 256 + 127, 256 + 129, 0xffff}},
    {"cos.approx.f32",
     {127, 126, 125, 124, 123, 128, 129,       122,       121,   120, 119,
      118, 130, 131, 132, 133, 134, 136,       140,       145,   150, 158,
      117, 116, 115, 114, 112, 110, 256 + 127, 256 + 129, 0xffff}},
    {"tanh.approx.f32",
     {127, 126, 125, 124, 123,       122,       121,   120, 119,
      118, 128, 129, 130, 117,       116,       115,   114, 112,
      110, 108, 104, 100, 256 + 127, 256 + 125, 0xffff}},
};

static void write_answers(FILE* file, const uint32_t* answers, uint32_t count,
                          uint32_t* last, uint32_t* step) {
  static uint8_t bytes[CHUNK * 5];
  size_t size = 0;
  for (uint32_t i = 0; i < count; i++) {
    const uint32_t delta = answers[i] - *last;
    const uint32_t second = delta - *step;
    const uint32_t zigzag = second << 1 ^ (0 - (second >> 31));
    if (zigzag < 255) {
      bytes[size++] = (uint8_t)zigzag;
    } else {
      bytes[size++] = 255;
      memcpy(bytes + size, &answers[i], 4);
      size += 4;
    }
    *last = answers[i];
    *step = delta;
  }
  (void)fwrite(bytes, 1, size, file);
}

static bool ask(truth_device_t* device, kiln_cu_function_t function,
                uint32_t top, FILE* file) {
  kiln_cuda_table_t* t = &device->t;
  uint32_t last = 0, step = 0;
  for (uint32_t at = 0; at < MANTISSAS; at += CHUNK) {
    uint32_t first = top << 23 | at;
    kiln_cu_deviceptr_t to = device->written[0];
    void* params[] = {&first, &to};
    if (t->cuLaunchKernel(function, CHUNK / THREADS, 1, 1, THREADS, 1, 1, 0,
                          device->streams[0], params,
                          NULL) != KILN_CU_SUCCESS ||
        (!device->is_soft &&
         t->cuMemcpyDtoHAsync(device->answers[0], to, CHUNK * 4,
                              device->streams[0]) != KILN_CU_SUCCESS) ||
        t->cuStreamSynchronize(device->streams[0]) != KILN_CU_SUCCESS) {
      return false;
    }
    write_answers(file, device->answers[0], CHUNK, &last, &step);
  }
  return true;
}

static bool ask_form(truth_device_t* device, const char* folder,
                     uint32_t index) {
  char text[1024];
  kiln_cu_module_t module = NULL;
  kiln_cu_function_t function = NULL;
  (void)snprintf(
      text, sizeof(text),
      ".version 8.0\n.target sm_90\n.address_size 64\n"
      ".visible .entry k(.param .u32 first,.param .u64 to)\n{\n"
      ".reg .b32 %%r<9>;\n.reg .b64 %%d<4>;\nld.param.u32 %%r1,[first];\n"
      "ld.param.u64 %%d1,[to];\nmov.u32 %%r2,%%ctaid.x;\n"
      "mov.u32 %%r3,%%ntid.x;\nmov.u32 %%r4,%%tid.x;\n"
      "mad.lo.u32 %%r5,%%r2,%%r3,%%r4;\nadd.u32 %%r6,%%r1,%%r5;\n"
      "%s %%r7,%%r6;\nmad.wide.u32 %%d2,%%r5,4,%%d1;\n"
      "st.global.b32 [%%d2],%%r7;\nret;\n}\n",
      wanted[index].form);
  if (device->t.cuModuleLoadData(&module, text) != KILN_CU_SUCCESS ||
      device->t.cuModuleGetFunction(&function, module, "k") !=
          KILN_CU_SUCCESS) {
    return false;
  }
  bool done = true;
  for (uint32_t i = 0; done && wanted[index].tops[i] != 0xffff; i++) {
    char path[1024];
    (void)snprintf(path, sizeof(path), "%s/%02u-%s.%03u.d2", folder, i,
                   wanted[index].form, wanted[index].tops[i]);
    FILE* file = fopen(path, "wb");
    done = file != NULL && ask(device, function, wanted[index].tops[i], file);
    if (file != NULL && fclose(file) != 0) done = false;
  }
  (void)device->t.cuModuleUnload(module);
  return done;
}

int truth_binades(const char* folder, int soft, const char* only) {
  static truth_device_t device;
  const truth_wish_t all = {1, 0};
  int code = truth_device_open(&device, soft != 0, NULL, all);
  if (code != 0) return code;
  for (uint32_t i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++) {
    if (only != NULL && strstr(wanted[i].form, only) == NULL) continue;
    if (!ask_form(&device, folder, i)) {
      printf("%s: failed\n", wanted[i].form);
      code = 1;
      break;
    }
  }
  truth_device_close(&device);
  return code;
}
