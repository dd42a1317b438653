// SPDX-License-Identifier: Apache-2.0
//
// device: entering and leaving a driver call, and a public header for the
// modules that make such calls for a device.
//
// A file that includes this depends on every row of the driver's table; one
// that only passes devices on needs device_inside.h alone.
#ifndef KILN_SRC_DEVICE_DEVICE_SCOPE_H_
#define KILN_SRC_DEVICE_DEVICE_SCOPE_H_

#include "device/device_inside.h"
#include "table/cuda_table.h"

// KILNI_WAY_cuMemAlloc and the others: what each row needs around it.
enum {
#define KILNI_CUDA_ROW(name, suffix, version, need, needs, capture, ...) \
  KILNI_WAY_##name =                                                     \
      (KILNI_CONTEXT_##needs == KILNI_CONTEXT_CURRENT ? 1 : 0) |         \
      (KILNI_CAPTURE_##capture == KILNI_CAPTURE_UNSAFE ? 2 : 0),
#include "table/cuda_rows.inc"
#undef KILNI_CUDA_ROW
};

// A driver call being made. one-thread
typedef struct kilni_device_scope_t {
  kiln_device_t* device;
  kiln_cu_context_t previous;
  kiln_cu_capture_mode_t mode;  // what it was
  bool switched;
  bool relaxed;
} kilni_device_scope_t;

// Prepares a call, after checking for a fork and a lost device: makes the
// device's context current if the way requires it and it is not, then relaxes
// the capture mode.
kiln_status_t kilni_device_scope_begin(kilni_device_scope_t* scope,
                                       kiln_device_t* device, uint32_t way);
// The same for a row of the table.
kiln_status_t kilni_device_scope_enter(kilni_device_scope_t* scope,
                                       kiln_device_t* device,
                                       kilni_cuda_row_id_t row);
// Puts mode and context back. `status` is the operation's, and wins.
kiln_status_t kilni_device_scope_leave(kilni_device_scope_t* scope,
                                       kiln_status_t status);
// Does that after a call that made a handle: if nothing else failed, the caller
// destroys the handle again, and the status reports that.
kiln_status_t kilni_device_scope_leave_made(kilni_device_scope_t* scope,
                                            kiln_status_t status,
                                            const char* call);

// The status of a driver call; a sticky result marks the device as lost and
// carries the fault report.
kiln_status_t kilni_device_check(kiln_device_t* device, kiln_cu_result_t result,
                                 const char* call, const char* file, int line);

// Does that for a call on `device` that concerns `other` too: the one that a
// sticky result belongs to is marked, and its fault reported.
kiln_status_t kilni_device_check_across(kiln_device_t* device,
                                        kiln_device_t* other,
                                        kiln_cu_result_t result,
                                        const char* call, const char* file,
                                        int line);

#define KILNI_DEVICE_CHECK(device, result, call) \
  kilni_device_check((device), (result), (call), __FILE__, __LINE__)

// Calls a row of the device's table; `out_status` is the result.
#define KILNI_DEVICE_CALL(out_status, device_, call, ...) \
  KILNI_WAY_CALL(out_status, device_, KILNI_WAY_##call, call, __VA_ARGS__)
// Does that for a row that concerns two devices: the one that it is called on,
// and another, which a sticky error may belong to.
#define KILNI_ACROSS_CALL(out_status, device_, other_, way, call, ...)      \
  KILNI_SCOPED_CALL(                                                        \
      out_status, device_, way,                                             \
      kilni_device_check_across((device_), (other_),                        \
                                (device_)->table->call(__VA_ARGS__), #call, \
                                __FILE__, __LINE__))
// The same for a row that is about a stream.
#define KILNI_STREAM_CALL(out_status, stream_, call, ...)                   \
  KILNI_WAY_CALL(out_status, (stream_)->device,                             \
                 KILNI_WAY_##call | kilni_device_stream_way(stream_), call, \
                 __VA_ARGS__)
#define KILNI_WAY_CALL(out_status, device_, way, call, ...)              \
  KILNI_SCOPED_CALL(                                                     \
      out_status, device_, way,                                          \
      KILNI_DEVICE_CHECK((device_), (device_)->table->call(__VA_ARGS__), \
                         #call))
// `check`, which calls a row and returns its status, in a scope of that way.
#define KILNI_SCOPED_CALL(out_status, device_, way, check)              \
  do {                                                                  \
    kilni_device_scope_t scope_;                                        \
    (out_status) = kilni_device_scope_begin(&scope_, (device_), (way)); \
    if (kiln_status_is_ok(out_status)) {                                \
      (out_status) = kilni_device_scope_leave(&scope_, (check));        \
    }                                                                   \
  } while (0)

// Calls a row that makes `*handle_`, which is 0 unless the call itself worked.
// With a status other than OK and a handle, the caller destroys that: what was
// current could not be restored, and a handle that no caller receives must not
// stay.
#define KILNI_DEVICE_CREATE(out_status, device_, handle_, call, ...)     \
  KILNI_WAY_CREATE(out_status, device_, KILNI_WAY_##call, handle_, call, \
                   __VA_ARGS__)
#define KILNI_STREAM_CREATE(out_status, stream_, handle_, call, ...)    \
  KILNI_WAY_CREATE(out_status, (stream_)->device,                       \
                   KILNI_WAY_##call | kilni_device_stream_way(stream_), \
                   handle_, call, __VA_ARGS__)
#define KILNI_WAY_CREATE(out_status, device_, way, handle_, call, ...)       \
  do {                                                                       \
    kilni_device_scope_t scope_;                                             \
    (out_status) = kilni_device_scope_begin(&scope_, (device_), (way));      \
    if (kiln_status_is_ok(out_status)) {                                     \
      (out_status) = KILNI_DEVICE_CHECK(                                     \
          (device_), (device_)->table->call((handle_), __VA_ARGS__), #call); \
      if (!kiln_status_is_ok(out_status)) *(handle_) = 0;                    \
      (out_status) =                                                         \
          kilni_device_scope_leave_made(&scope_, (out_status), #call);       \
    }                                                                        \
  } while (0)

// In a destructor: false if the handle is to be left alone (a lost device).
// Never fails: a context that cannot be made current does not keep a handle
// from being destroyed.
bool kilni_device_scope_begin_end(kilni_device_scope_t* scope,
                                  kiln_device_t* device, uint32_t way);
void kilni_device_scope_leave_end(kilni_device_scope_t* scope,
                                  kiln_cu_result_t result, const char* call);

#define KILNI_DEVICE_END(device_, call, ...) \
  KILNI_WAY_END(device_, KILNI_WAY_##call, call, __VA_ARGS__)
#define KILNI_STREAM_END(stream_, call, ...)                               \
  KILNI_WAY_END((stream_)->device,                                         \
                KILNI_WAY_##call | kilni_device_stream_way(stream_), call, \
                __VA_ARGS__)
#define KILNI_WAY_END(device_, way, call, ...)                     \
  do {                                                             \
    kilni_device_scope_t scope_;                                   \
    if (kilni_device_scope_begin_end(&scope_, (device_), (way))) { \
      kilni_device_scope_leave_end(                                \
          &scope_, (device_)->table->call(__VA_ARGS__), #call);    \
    }                                                              \
  } while (0)

#endif  // KILN_SRC_DEVICE_DEVICE_SCOPE_H_
