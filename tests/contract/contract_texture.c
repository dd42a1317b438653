// SPDX-License-Identifier: Apache-2.0
//
// contract: arrays, textures, surfaces: made, copied, refused and ended; what
// tensor maps are encoded of.
// What kernels read and write through them is asked by live_textures.
#include <string.h>

#include "contract.h"
#include "table/cuda_table.h"

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
  kiln_cu_array_desc_t desc;
  kiln_cu_stream_t stream = NULL;
  OK(t->cu->cuArray3DGetDescriptor(&desc, array));
  CHECK(desc.width == SIDE && desc.height == SIDE && desc.depth == 0);
  CHECK(desc.format == KILN_CU_AD_FORMAT_FLOAT && desc.channels == 1);
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

// A level is an array that ends with the whole; what is copied into one level
// is in that one alone.
static void mipmap_life(contract_t* t) {
  const kiln_cu_array_desc_t desc = {SIDE, SIDE,
                                     0,    KILN_CU_AD_FORMAT_FLOAT,
                                     1,    KILN_CUDA_ARRAY3D_SURFACE_LDST};
  kiln_cu_mipmapped_array_t mipmapped = NULL;
  kiln_cu_array_t level = NULL;
  OK(t->cu->cuMipmappedArrayCreate(&mipmapped, &desc, 3));
  CHECK(mipmapped != NULL);
  OK(t->cu->cuMipmappedArrayGetLevel(&level, mipmapped, 2));
  CHECK(level != NULL);
  OK(t->cu->cuMipmappedArrayDestroy(mipmapped));
}

static void mipmap_arguments(contract_t* t) {
  kiln_cu_array_desc_t desc = {SIDE, SIDE, 0, KILN_CU_AD_FORMAT_FLOAT, 1, 0};
  kiln_cu_mipmapped_array_t mipmapped = NULL;
  kiln_cu_array_t level = NULL;
  OK(t->cu->cuMipmappedArrayCreate(&mipmapped, &desc, 3));
  IS(INVALID_VALUE, t->cu->cuMipmappedArrayGetLevel(&level, mipmapped, 3));
  OK(t->cu->cuMipmappedArrayDestroy(mipmapped));
  // Six faces, each as high as it is wide.
  desc.flags = KILN_CUDA_ARRAY3D_CUBEMAP;
  desc.depth = 5;
  IS(INVALID_VALUE, t->cu->cuMipmappedArrayCreate(&mipmapped, &desc, 1));
}

typedef struct tensor_t {
  uint64_t sizes[3];
  uint64_t strides[2];
  uint32_t box[3];
  uint32_t steps[3];
} tensor_t;

static kiln_cu_result_t encode(contract_t* t, kiln_cu_deviceptr_t memory,
                               const tensor_t* of) {
  kiln_cu_tensor_map_t map;
  return t->cu->cuTensorMapEncodeTiled(&map, 7, 3, (void*)(uintptr_t)memory,
                                       of->sizes, of->strides, of->box,
                                       of->steps, 0, 0, 0, 0);
}

static kiln_cu_result_t encode_columns(contract_t* t,
                                       kiln_cu_deviceptr_t memory,
                                       const tensor_t* of, int lower,
                                       uint32_t pixels) {
  kiln_cu_tensor_map_t map;
  const int upper = 0;
  return t->cu->cuTensorMapEncodeIm2col(&map, 7, 3, (void*)(uintptr_t)memory,
                                        of->sizes, of->strides, &lower, &upper,
                                        16, pixels, of->steps, 0, 0, 0, 0);
}

static void tensor_arguments(contract_t* t) {
  static const tensor_t good = {{16, 8, 2}, {64, 512}, {16, 4, 1}, {1, 1, 1}};
  tensor_t bad = good;
  kiln_cu_deviceptr_t memory = 0;
  OK(t->cu->cuMemAlloc(&memory, 1024));
  OK(encode(t, memory, &good));
  IS(INVALID_VALUE, encode(t, memory + 8, &good));
  bad.strides[0] = 72;
  IS(INVALID_VALUE, encode(t, memory, &bad));
  bad = good;
  bad.box[0] = 0;
  IS(INVALID_VALUE, encode(t, memory, &bad));
  bad = good;
  bad.steps[1] = 9;
  IS(INVALID_VALUE, encode(t, memory, &bad));
  OK(encode_columns(t, memory, &good, -1, 8));
  IS(INVALID_VALUE, encode_columns(t, memory, &good, 40000, 8));
  IS(INVALID_VALUE, encode_columns(t, memory, &good, 0, 1025));
  OK(t->cu->cuMemFree(memory));
}

static const contract_case_t kCases[] = {
    {"texture_life", texture_life, CONTRACT_PLAIN},
    {"array_copies", array_copies, CONTRACT_PLAIN},
    {"array_arguments", array_arguments, CONTRACT_PLAIN},
    {"mipmap_life", mipmap_life, CONTRACT_PLAIN},
    {"mipmap_arguments", mipmap_arguments, CONTRACT_PLAIN},
    {"tensor_arguments", tensor_arguments, CONTRACT_PLAIN},
};
CONTRACT_GROUP(contract_texture, kCases);
