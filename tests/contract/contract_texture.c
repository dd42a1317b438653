// SPDX-License-Identifier: Apache-2.0
//
// contract: arrays, textures and surfaces: made, copied, refused and ended.
// What kernels read and write through them is asked by live_textures.
#include <string.h>

#include "contract.h"

enum { SIDE = 16, BYTES = SIDE * SIDE * 4 };

static kiln_cu_array_t make_array(contract_t* t) {
  const kiln_cu_array_desc_t desc = {SIDE, SIDE,
                                     0,    KILN_CU_AD_FORMAT_FLOAT,
                                     1,    KILN_CUDA_ARRAY3D_SURFACE_LDST};
  kiln_cu_array_t array = NULL;
  OK(t->cu->cuArray3DCreate(&array, &desc));
  CHECK(array != NULL);
  return array;
}

static kiln_cu_texels_t over(kiln_cu_array_t array) {
  kiln_cu_texels_t texels;
  memset(&texels, 0, sizeof(texels));
  texels.type = KILN_CU_RESOURCE_TYPE_ARRAY;
  texels.of.array = array;
  return texels;
}

// Asks only what needs no answer, for the null provider too.
static void texture_life(contract_t* t) {
  kiln_cu_array_t array = make_array(t);
  const kiln_cu_texels_t texels = over(array);
  kiln_cu_texture_t texture = 0;
  kiln_cu_surface_t surface = 0;
  kiln_cu_sampler_t sampler;
  memset(&sampler, 0, sizeof(sampler));
  sampler.address[0] = sampler.address[1] = KILN_CU_TR_ADDRESS_MODE_CLAMP;
  OK(t->cu->cuTexObjectCreate(&texture, &texels, &sampler, NULL));
  OK(t->cu->cuSurfObjectCreate(&surface, &texels));
  CHECK(texture != 0);
  CHECK(surface != 0);
  OK(t->cu->cuTexObjectDestroy(texture));
  OK(t->cu->cuSurfObjectDestroy(surface));
  OK(t->cu->cuArrayDestroy(array));
}

static kiln_cu_copy_3d_t box(void) {
  kiln_cu_copy_3d_t copy;
  memset(&copy, 0, sizeof(copy));
  copy.width_bytes = SIDE * 4;
  copy.height = SIDE;
  copy.depth = 1;
  return copy;
}

// There and back, by way of a buffer's rows.
static void array_copies(contract_t* t) {
  static unsigned char out[BYTES];
  static unsigned char back[BYTES];
  kiln_cu_array_t array = make_array(t);
  kiln_cu_stream_t stream = NULL;
  kiln_cu_deviceptr_t memory = 0;
  for (int i = 0; i < BYTES; i++) out[i] = (unsigned char)(i * 7);
  memset(back, 0, sizeof(back));
  OK(t->cu->cuStreamCreate(&stream, KILN_CU_STREAM_NON_BLOCKING));
  OK(t->cu->cuMemAlloc(&memory, BYTES));
  kiln_cu_copy_3d_t copy = box();
  copy.from.type = KILN_CU_MEMORYTYPE_HOST;
  copy.from.host = out;
  copy.from.row_bytes = SIDE * 4;
  copy.from.rows = SIDE;
  copy.to.type = KILN_CU_MEMORYTYPE_ARRAY;
  copy.to.array = array;
  OK(t->cu->cuMemcpy3DAsync(&copy, stream));
  copy = box();
  copy.from.type = KILN_CU_MEMORYTYPE_ARRAY;
  copy.from.array = array;
  copy.to.type = KILN_CU_MEMORYTYPE_DEVICE;
  copy.to.device = memory;
  copy.to.row_bytes = SIDE * 4;
  copy.to.rows = SIDE;
  OK(t->cu->cuMemcpy3DAsync(&copy, stream));
  OK(t->cu->cuMemcpyDtoHAsync(back, memory, BYTES, stream));
  OK(t->cu->cuStreamSynchronize(stream));
  CHECK(memcmp(out, back, BYTES) == 0);
  OK(t->cu->cuMemFree(memory));
  OK(t->cu->cuStreamDestroy(stream));
  OK(t->cu->cuArrayDestroy(array));
}

static void array_arguments(contract_t* t) {
  kiln_cu_array_desc_t desc = {0, 0, 0, KILN_CU_AD_FORMAT_FLOAT, 1, 0};
  kiln_cu_array_t array = NULL;
  IS(INVALID_VALUE, t->cu->cuArray3DCreate(&array, &desc));
  desc.width = SIDE;
  desc.channels = 3;
  IS(INVALID_VALUE, t->cu->cuArray3DCreate(&array, &desc));
  desc.channels = 1;
  desc.width = (size_t)1 << 30;
  IS(INVALID_VALUE, t->cu->cuArray3DCreate(&array, &desc));
}

static const contract_case_t kCases[] = {
    {"texture_life", texture_life, CONTRACT_PLAIN},
    {"array_copies", array_copies, CONTRACT_PLAIN},
    {"array_arguments", array_arguments, CONTRACT_PLAIN},
};
CONTRACT_GROUP(contract_texture, kCases);
