// SPDX-License-Identifier: Apache-2.0
//
// device: what arrays and the textures over them know of each other.
#ifndef KILN_SRC_DEVICE_TEXTURE_INSIDE_H_
#define KILN_SRC_DEVICE_TEXTURE_INSIDE_H_

#include "device/device_inside.h"
#include "table/cuda_abi.h"

struct kiln_array_t {
  kiln_device_t* device;
  atomic_uint references;
  bool with_surface;
  uint32_t texel_bytes;
  kiln_mipmap_t* mipmap;  // whose level it is, and which ends the handle
  bool foreign;           // the handle is foreign
  kiln_owner_t owner;     // of that; may be none
  kilni_base_registry_entry_t entry;
  kiln_cu_array_desc_t desc;
  kiln_cu_array_t handle;
};

struct kiln_mipmap_t {
  kiln_device_t* device;
  atomic_uint references;
  bool with_surface;
  uint32_t texel_bytes;
  uint32_t levels;
  kiln_cu_array_desc_t desc;
  kiln_cu_mipmapped_array_t handle;
};

// Replaces defaults; the size of a texel in bytes.
kiln_status_t kilni_device_texel_read(uint32_t* inout_format,
                                      uint32_t* inout_channels,
                                      uint32_t* out_bytes);

// An attribute of the device as what may be multiplied; 0 where it is none.
kiln_status_t kilni_device_texture_ask(kiln_device_t* device,
                                       kiln_cu_device_attribute_t id,
                                       uint64_t* out_value);
// LIMIT_EXCEEDED, with what is too long and what the device takes.
kiln_status_t kilni_device_texture_limit(kiln_device_t* device, uint64_t value,
                                         kiln_cu_device_attribute_t id,
                                         const char* what);

#endif  // KILN_SRC_DEVICE_TEXTURE_INSIDE_H_
