// SPDX-License-Identifier: Apache-2.0
//
// device: Kiln's DLPack types beside those of a real dlpack.h, whichever
// version dlpack_python.py has found: compiled by it, and never linked.
#include <dlpack/dlpack.h>
#include <stddef.h>

#include "kiln/dlpack.h"

#define SAME_PLACE(ours, field, theirs, their_field)                     \
  _Static_assert(offsetof(ours, field) == offsetof(theirs, their_field), \
                 #ours "." #field);                                      \
  _Static_assert(                                                        \
      sizeof(((ours*)0)->field) == sizeof(((theirs*)0)->their_field),    \
      #ours "." #field)
#define SAME_SIZE(ours, theirs) \
  _Static_assert(sizeof(ours) == sizeof(theirs), #ours)
#define SAME_NUMBER(ours, theirs) \
  _Static_assert((int)(ours) == (int)(theirs), #ours)

SAME_SIZE(kiln_dlpack_device_t, DLDevice);
SAME_PLACE(kiln_dlpack_device_t, type, DLDevice, device_type);
SAME_PLACE(kiln_dlpack_device_t, id, DLDevice, device_id);

SAME_SIZE(kiln_dlpack_type_t, DLDataType);
SAME_PLACE(kiln_dlpack_type_t, code, DLDataType, code);
SAME_PLACE(kiln_dlpack_type_t, bits, DLDataType, bits);
SAME_PLACE(kiln_dlpack_type_t, lanes, DLDataType, lanes);

SAME_SIZE(kiln_dlpack_tensor_t, DLTensor);
SAME_PLACE(kiln_dlpack_tensor_t, data, DLTensor, data);
SAME_PLACE(kiln_dlpack_tensor_t, device, DLTensor, device);
SAME_PLACE(kiln_dlpack_tensor_t, rank, DLTensor, ndim);
SAME_PLACE(kiln_dlpack_tensor_t, type, DLTensor, dtype);
SAME_PLACE(kiln_dlpack_tensor_t, shape, DLTensor, shape);
SAME_PLACE(kiln_dlpack_tensor_t, strides, DLTensor, strides);
SAME_PLACE(kiln_dlpack_tensor_t, byte_offset, DLTensor, byte_offset);

SAME_SIZE(kiln_dlpack_legacy_t, DLManagedTensor);
SAME_PLACE(kiln_dlpack_legacy_t, tensor, DLManagedTensor, dl_tensor);
SAME_PLACE(kiln_dlpack_legacy_t, owner, DLManagedTensor, manager_ctx);
SAME_PLACE(kiln_dlpack_legacy_t, deleter, DLManagedTensor, deleter);

SAME_NUMBER(KILN_DLPACK_CPU, kDLCPU);
SAME_NUMBER(KILN_DLPACK_CUDA, kDLCUDA);
SAME_NUMBER(KILN_DLPACK_CUDA_HOST, kDLCUDAHost);
SAME_NUMBER(KILN_DLPACK_CUDA_MANAGED, kDLCUDAManaged);
SAME_NUMBER(KILN_DLPACK_INT, kDLInt);
SAME_NUMBER(KILN_DLPACK_UINT, kDLUInt);
SAME_NUMBER(KILN_DLPACK_FLOAT, kDLFloat);
SAME_NUMBER(KILN_DLPACK_OPAQUE, kDLOpaqueHandle);
SAME_NUMBER(KILN_DLPACK_BFLOAT, kDLBfloat);
SAME_NUMBER(KILN_DLPACK_COMPLEX, kDLComplex);

// Some that call themselves 1 do not have it yet.
#if defined(DLPACK_MAJOR_VERSION) && DLPACK_MAJOR_VERSION >= 1 && \
    defined(DLPACK_FLAG_BITMASK_READ_ONLY)
// By its tag: release 1.0 of the header has no other name for it in C.
SAME_SIZE(kiln_dlpack_t, struct DLManagedTensorVersioned);
SAME_PLACE(kiln_dlpack_t, owner, struct DLManagedTensorVersioned, manager_ctx);
SAME_PLACE(kiln_dlpack_t, deleter, struct DLManagedTensorVersioned, deleter);
SAME_PLACE(kiln_dlpack_t, flags, struct DLManagedTensorVersioned, flags);
SAME_PLACE(kiln_dlpack_t, tensor, struct DLManagedTensorVersioned, dl_tensor);
_Static_assert(offsetof(kiln_dlpack_t, major) ==
                   offsetof(struct DLManagedTensorVersioned, version) +
                       offsetof(DLPackVersion, major),
               "kiln_dlpack_t.major");
_Static_assert(offsetof(kiln_dlpack_t, minor) ==
                   offsetof(struct DLManagedTensorVersioned, version) +
                       offsetof(DLPackVersion, minor),
               "kiln_dlpack_t.minor");
SAME_NUMBER(KILN_DLPACK_MAJOR, DLPACK_MAJOR_VERSION);
SAME_NUMBER(KILN_DLPACK_READ_ONLY, DLPACK_FLAG_BITMASK_READ_ONLY);
SAME_NUMBER(KILN_DLPACK_IS_COPIED, DLPACK_FLAG_BITMASK_IS_COPIED);
SAME_NUMBER(KILN_DLPACK_BOOL, kDLBool);
#endif
