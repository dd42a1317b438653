// SPDX-License-Identifier: Apache-2.0
//
// live: memory of each kind handed to another library as DLPack has it, and
// taken from it. The other library is this file: it knows the driver alone, has
// its own stream, writes what it was shown, and ends it on a thread of its own;
// what it shows it frees itself, when it is told to.
//
//   live_dlpack [DEVICE]    cuda:0
#include <stdio.h>
#include <string.h>

#include "base/thread.h"
#include "kiln/kiln.h"
#include "live_check.h"
#include "runtime/runtime.h"
#include "table/cuda_table.h"

enum { WORDS = 1 << 14, BYTES = WORDS * 4, OFFSET = 256, KINDS = 3 };

static const char kPtx[] =
    ".version 7.0\n.target sm_50\n.address_size 64\n"
    ".visible .entry more(.param .u64 at, .param .u32 count) {\n"
    "  .reg .pred %p;\n  .reg .b32 %r<6>;\n  .reg .b64 %d<4>;\n"
    "  ld.param.u64 %d1, [at];\n  ld.param.u32 %r1, [count];\n"
    "  mov.u32 %r2, %ctaid.x;\n  mov.u32 %r3, %ntid.x;\n"
    "  mov.u32 %r4, %tid.x;\n  mad.lo.u32 %r2, %r2, %r3, %r4;\n"
    "  setp.ge.u32 %p, %r2, %r1;\n  @%p ret;\n"
    "  mul.wide.u32 %d2, %r2, 4;\n  add.u64 %d1, %d1, %d2;\n"
    "  ld.global.u32 %r5, [%d1];\n  add.u32 %r5, %r5, 1;\n"
    "  st.global.u32 [%d1], %r5;\n  ret;\n}\n";

static bool gives(kiln_status_t status, kiln_status_code_t code) {
  const bool same = kiln_status_code(status) == code;
  if (!same) printf("gave %s\n", kiln_status_message(status));
  kiln_status_free(status);
  return same;
}

// Both sides. one-thread
typedef struct live_t {
  kiln_cuda_table_t cu;
  kiln_runtime_t* runtime;
  kiln_device_t* device;
  kiln_stream_t* stream;
  kiln_module_t* module;
  kiln_kernel_t* kernel;
  bool soft;
  kiln_cu_device_t ordinal;
  kiln_cu_context_t context;
  kiln_cu_stream_t theirs;
} live_t;

// A tensor of either form. thread-compatible
typedef struct shown_t {
  live_t* live;
  kiln_dlpack_t* versioned;
  kiln_dlpack_legacy_t* legacy;
  kiln_dlpack_tensor_t* tensor;
} shown_t;

static kiln_status_t keep_table(void* user, kiln_cuda_table_t* inout_table) {
  ((live_t*)user)->cu = *inout_table;
  return kiln_ok();
}

// ---- The other library takes ----

// A thread that never had a context.
static void end_shown(void* user) {
  const shown_t* shown = user;
  kiln_cu_context_t current = NULL;
  if (shown->legacy != NULL) {
    shown->legacy->deleter(shown->legacy);
  } else {
    shown->versioned->deleter(shown->versioned);
  }
  CU(shown->live->cu.cuCtxGetCurrent(&current));
  IS(current == NULL);
}

static bool show(live_t* live, kiln_buffer_t* buffer, bool legacy,
                 shown_t* out) {
  const int64_t shape[2] = {WORDS / 64, 64};
  kiln_dlpack_view_t view = kiln_dlpack_view_default();
  view.type = (kiln_dlpack_type_t){KILN_DLPACK_INT, 32, 1};
  view.rank = 2;
  view.shape = shape;
  view.offset = OFFSET;
  const shown_t none = {live, NULL, NULL, NULL};
  *out = none;
  if (legacy) {
    if (!OK(kiln_dlpack_export_legacy(buffer, &view, &out->legacy))) {
      return false;
    }
    out->tensor = &out->legacy->tensor;
    return true;
  }
  if (!OK(kiln_dlpack_export(buffer, &view, &out->versioned))) return false;
  IS(out->versioned->major == 1 && out->versioned->flags == 0);
  out->tensor = &out->versioned->tensor;
  return true;
}

// What it finds in a tensor is what the driver says of that address.
static void look(live_t* live, const kiln_dlpack_tensor_t* tensor,
                 uint32_t kind) {
  static const int32_t types[KINDS] = {KILN_DLPACK_CUDA, KILN_DLPACK_CUDA_HOST,
                                       KILN_DLPACK_CUDA_MANAGED};
  const kiln_cu_deviceptr_t at =
      (kiln_cu_deviceptr_t)(uintptr_t)tensor->data + tensor->byte_offset;
  kiln_cu_memory_type_t type = 0;
  unsigned int managed = 0;
  CU(live->cu.cuCtxSetCurrent(live->context));
  CU(live->cu.cuPointerGetAttribute(&type,
                                    KILN_CU_POINTER_ATTRIBUTE_MEMORY_TYPE, at));
  CU(live->cu.cuPointerGetAttribute(&managed,
                                    KILN_CU_POINTER_ATTRIBUTE_IS_MANAGED, at));
  IS(tensor->device.type == (live->soft ? KILN_DLPACK_CPU : types[kind]));
  IS(tensor->device.id ==
     (live->soft || kind == KILN_MEMORY_PINNED ? 0 : live->ordinal));
  IS(managed != 0 ||
     (type == KILN_CU_MEMORYTYPE_HOST) == (kind == KILN_MEMORY_PINNED));
  IS((managed != 0) == (kind == KILN_MEMORY_MANAGED));
  IS(tensor->rank == 2 && tensor->shape[0] * tensor->shape[1] == WORDS);
  IS(tensor->strides[0] == 64 && tensor->strides[1] == 1);
  CU(live->cu.cuMemsetD32Async(at, 1000 + kind, WORDS, live->theirs));
  CU(live->cu.cuStreamSynchronize(live->theirs));
  CU(live->cu.cuCtxSetCurrent(NULL));
}

static bool all_are(const uint32_t* words, uint32_t value) {
  for (int i = 0; i < WORDS; i++) {
    if (words[i] != value) return false;
  }
  return true;
}

static void run_kernel(live_t* live, kiln_buffer_t* buffer) {
  kiln_launch_config_t config = kiln_launch_config_default();
  config.grid[0] = WORDS / 256;
  config.block[0] = 256;
  kiln_argument_t arguments[2] = {kiln_arg_buffer(buffer), kiln_arg_u32(WORDS)};
  OK(kiln_kernel_launch(live->kernel, live->stream, &config, arguments, 2));
  OK(kiln_stream_synchronize(live->stream));
}

// Out to the other library and in again: one memory, and it is kept by whoever
// has it last.
static void there_and_back(live_t* live, uint32_t kind, bool legacy) {
  static uint32_t words[WORDS];
  kiln_buffer_options_t options = kiln_buffer_options_default();
  options.kind = kind;
  kiln_buffer_t* buffer = NULL;
  kiln_buffer_t* back = NULL;
  kiln_status_t status;
  shown_t shown;
  shown_t again;
  if (!OK(kiln_buffer_create(live->device, BYTES + OFFSET, &options,
                             &buffer)) ||
      !show(live, buffer, legacy, &shown)) {
    kiln_buffer_release(buffer);
    return;
  }
  look(live, shown.tensor, kind);
  if (!show(live, buffer, legacy, &again)) return;
  status = legacy ? kiln_dlpack_import_legacy(live->device, again.legacy, &back)
                  : kiln_dlpack_import(live->device, again.versioned, &back);
  if (!OK(status)) return;
  const uint64_t address = kiln_buffer_address(buffer);
  kiln_buffer_release(buffer);  // the two tensors have it still
  IS(kiln_buffer_address(back) == address + OFFSET);
  IS(kiln_buffer_size(back) == BYTES && kiln_buffer_kind(back) == kind);
  run_kernel(live, back);
  OK(kiln_buffer_read(back, 0, BYTES, words));
  IS(all_are(words, 1001 + kind));
  kiln_buffer_release(back);
  look(live, shown.tensor, kind);
  kilni_base_thread_t thread;
  if (!OK(kilni_base_thread_start(&thread, "taker", end_shown, &shown))) return;
  kilni_base_thread_join(&thread);
}

// ---- The other library shows ----

// Its memory, and how often it was told to end it. one-thread
typedef struct theirs_t {
  live_t* live;
  uint32_t kind;
  kiln_cu_deviceptr_t memory;
  void* host;
  int ended;
  int64_t shape[1];
} theirs_t;

static void end_theirs(theirs_t* theirs) {
  const kiln_cuda_table_t* cu = &theirs->live->cu;
  kiln_cu_context_t before = NULL;
  theirs->ended++;
  CU(cu->cuCtxGetCurrent(&before));
  CU(cu->cuCtxSetCurrent(theirs->live->context));
  if (theirs->kind == KILN_MEMORY_PINNED) {
    CU(cu->cuMemFreeHost(theirs->host));
  } else {
    CU(cu->cuMemFree(theirs->memory));
  }
  CU(cu->cuCtxSetCurrent(before));
}

static void end_versioned(kiln_dlpack_t* self) {
  end_theirs(self->owner);
}

static void end_legacy(kiln_dlpack_legacy_t* self) {
  end_theirs(self->owner);
}

static void make_theirs(live_t* live, uint32_t kind, theirs_t* out,
                        kiln_dlpack_tensor_t* tensor) {
  static const int32_t types[KINDS] = {KILN_DLPACK_CUDA, KILN_DLPACK_CUDA_HOST,
                                       KILN_DLPACK_CUDA_MANAGED};
  const kiln_cuda_table_t* cu = &live->cu;
  memset(out, 0, sizeof(*out));
  memset(tensor, 0, sizeof(*tensor));
  out->live = live;
  out->kind = kind;
  out->shape[0] = WORDS;
  CU(cu->cuCtxSetCurrent(live->context));
  if (kind == KILN_MEMORY_DEVICE) {
    CU(cu->cuMemAlloc(&out->memory, BYTES + OFFSET));
  } else if (kind == KILN_MEMORY_PINNED) {
    CU(cu->cuMemHostAlloc(&out->host, BYTES + OFFSET, 0));
    out->memory = (kiln_cu_deviceptr_t)(uintptr_t)out->host;
  } else {
    CU(cu->cuMemAllocManaged(&out->memory, BYTES + OFFSET,
                             KILN_CU_MEM_ATTACH_GLOBAL));
  }
  CU(cu->cuMemsetD32Async(out->memory + OFFSET, 7, WORDS, live->theirs));
  CU(cu->cuStreamSynchronize(live->theirs));
  CU(cu->cuCtxSetCurrent(NULL));
  tensor->data = (void*)(uintptr_t)out->memory;
  tensor->byte_offset = OFFSET;
  tensor->device.type = types[kind];
  if (kind != KILN_MEMORY_PINNED) tensor->device.id = live->ordinal;
  tensor->rank = 1;
  tensor->type = (kiln_dlpack_type_t){KILN_DLPACK_UINT, 32, 1};
  tensor->shape = out->shape;
}

static void take(live_t* live, uint32_t kind, bool legacy) {
  static uint32_t words[WORDS];
  theirs_t theirs;
  kiln_dlpack_t versioned;
  kiln_dlpack_legacy_t old;
  kiln_buffer_t* buffer = NULL;
  memset(&versioned, 0, sizeof(versioned));
  memset(&old, 0, sizeof(old));
  make_theirs(live, kind, &theirs, legacy ? &old.tensor : &versioned.tensor);
  versioned.major = 1;
  versioned.minor = 3;
  versioned.owner = old.owner = &theirs;
  versioned.deleter = end_versioned;
  old.deleter = end_legacy;
  kiln_dlpack_tensor_t* tensor = legacy ? &old.tensor : &versioned.tensor;
  if (kind == KILN_MEMORY_DEVICE) {
    // Of a GPU that is not this one: refused, and still theirs.
    tensor->device.id = live->ordinal + 1;
    IS(gives(
        legacy ? kiln_dlpack_import_legacy(live->device, &old, &buffer)
               : kiln_dlpack_import(live->device, &versioned, &buffer),
        live->soft ? KILN_STATUS_UNSUPPORTED : KILN_STATUS_INVALID_ARGUMENT));
    IS(buffer == NULL && theirs.ended == 0);
    tensor->device.id = live->ordinal;
    if (live->soft) {
      end_theirs(&theirs);
      return;
    }
  }
  if (!OK(legacy ? kiln_dlpack_import_legacy(live->device, &old, &buffer)
                 : kiln_dlpack_import(live->device, &versioned, &buffer))) {
    return;
  }
  IS(kiln_buffer_kind(buffer) == kind && kiln_buffer_size(buffer) == BYTES);
  run_kernel(live, buffer);
  OK(kiln_buffer_read(buffer, 0, BYTES, words));
  IS(all_are(words, 8));
  IS(theirs.ended == 0);
  kiln_buffer_release(buffer);
  IS(theirs.ended == 1);
}

// ---- All ----

static bool begin(live_t* live) {
  const kiln_bytes_view_t image = {(const uint8_t*)kPtx, sizeof(kPtx) - 1};
  CU(live->cu.cuDeviceGet(&live->ordinal, 0));
  CU(live->cu.cuDevicePrimaryCtxRetain(&live->context, live->ordinal));
  CU(live->cu.cuCtxSetCurrent(live->context));
  CU(live->cu.cuStreamCreate(&live->theirs, KILN_CU_STREAM_NON_BLOCKING));
  CU(live->cu.cuCtxSetCurrent(NULL));
  return OK(kiln_stream_create(live->device, NULL, &live->stream)) &&
         OK(kiln_module_load(live->device, image, NULL, NULL, &live->module)) &&
         OK(kiln_kernel_create(live->module, NULL, &live->kernel));
}

static void end(live_t* live) {
  kiln_kernel_release(live->kernel);
  kiln_module_release(live->module);
  kiln_stream_release(live->stream);
  kiln_device_release(live->device);
  CU(live->cu.cuCtxSetCurrent(live->context));
  CU(live->cu.cuStreamDestroy(live->theirs));
  CU(live->cu.cuCtxSetCurrent(NULL));
  CU(live->cu.cuDevicePrimaryCtxRelease(live->ordinal));
  kiln_runtime_release(live->runtime);
}

int main(int argc, char** argv) {
  static live_t live;
  const char* name = argc > 1 ? argv[1] : "cuda:0";
  live.soft = strcmp(name, "soft") == 0;
  kilni_runtime_hooks_t hooks = {0};
  hooks.wrap = keep_table;
  hooks.user = &live;
  kiln_status_t status = kilni_runtime_create_with(NULL, &hooks, &live.runtime);
  if (kiln_status_is_ok(status)) {
    status = kiln_runtime_open_device(live.runtime, name, &live.device);
  }
  if (!kiln_status_is_ok(status)) {
    printf("skipped: %s\n", kiln_status_message(status));
    kiln_status_free(status);
    kiln_runtime_release(live.runtime);
    return 77;
  }
  int runs = 0;
  if (begin(&live)) {
    for (uint32_t kind = 0; kind < KINDS; kind++) {
      for (int legacy = 0; legacy < 2; legacy++) {
        take(&live, kind, legacy != 0);
        runs++;
        // Device memory of the software device is for nobody else.
        if (live.soft && kind == KILN_MEMORY_DEVICE) continue;
        there_and_back(&live, kind, legacy != 0);
        runs++;
      }
    }
  }
  end(&live);
  printf("%s: %d runs, %d failures\n", name, runs, failures);
  return failures == 0 ? 0 : 1;
}
