// SPDX-License-Identifier: Apache-2.0
//
// cli: one launch through the library, from code file to results.
//
// The steps of `kiln run` in order: open, load, upload, launch, read. Each may
// fail; close is called once, whatever happened.
#ifndef KILN_SRC_CLI_RUN_SESSION_H_
#define KILN_SRC_CLI_RUN_SESSION_H_

#include "cli/run_code.h"
#include "cli/run_plan.h"
#include "kiln/runtime.h"
#include "kiln/soft.h"

// What is open. one-thread
typedef struct kilni_cli_session_t {
  kilni_cli_request_t* request;
  kiln_runtime_t* runtime;
  kiln_device_t* device;
  kilni_cli_code_t code;
  kiln_module_t* module;
  kiln_kernel_t* kernel;
  kiln_dispatcher_t* dispatcher;
  kiln_stream_t* stream;  // the dispatcher's first
  kiln_pipeline_t* pipeline;
  kiln_pending_t* pending;  // NULL: there is no work
  kiln_resident_t buffers[KILNI_CLI_MAX_PARAMS];
  uint32_t order[KILNI_CLI_MAX_PARAMS];  // of a slot: which binding it is
  kilni_cli_kernel_t facts;              // names are borrowed from kernel
  kiln_image_use_t* use;                 // NULL: not known
  char device_name[32];                  // as the user counts
  uint64_t elapsed_ns;
  bool counted;  // instructions are known
  uint64_t instructions;
  bool profiled;  // `profile` is
  kiln_soft_profile_t profile;
  bool leave_at_once;  // a step still runs: nothing can be closed
} kilni_cli_session_t;

// Chooses and opens the device; for a GPU makes it the only visible one.
bool kilni_cli_session_open(kilni_cli_session_t* session,
                            kilni_cli_request_t* request,
                            kilni_cli_error_t* error);

// Compiles where the file is source, loads it, finds the kernel. Fills
// `session->facts`.
bool kilni_cli_session_load(kilni_cli_session_t* session,
                            kilni_cli_error_t* error);

// Whether a block may have the shared memory that `option` requests, in
// addition to the kernel's own.
bool kilni_cli_shared_check(const kilni_cli_session_t* session,
                            kiln_kernel_t* kernel, const char* option,
                            uint32_t asked, kilni_cli_error_t* error);

// Makes the buffers, runs the kernel and waits for it.
bool kilni_cli_session_run(kilni_cli_session_t* session,
                           const kilni_cli_plan_t* plan,
                           kilni_cli_error_t* error);

// Reads the buffer of parameter `index` into `out`.
bool kilni_cli_session_read(kilni_cli_session_t* session,
                            const kilni_cli_plan_t* plan, uint32_t index,
                            kilni_cli_array_t* out, kilni_cli_error_t* error);

// Why a kernel may not end, for the call below.
#define KILNI_CLI_ENDLESS_KERNEL "a loop or a wait that never ends"

// Whether a wait that began at `began_ns` has failed because the time limit has
// passed. Then `error` reports that `what`, "the kernel", called `name` had not
// ended, where it was, and to look for `look`; and the command must exit.
bool kilni_cli_session_overdue(kilni_cli_session_t* session, uint64_t began_ns,
                               const char* what, const char* name,
                               const char* look, kilni_cli_error_t* error);

// An error of the device as what its kernel did wrong, if known.
void kilni_cli_session_explain(kilni_cli_session_t* session,
                               const kilni_cli_plan_t* plan,
                               kilni_cli_error_t* error);

// A second one on the same device, with the dispatcher of the first.
void kilni_cli_session_share(kilni_cli_session_t* session,
                             const kilni_cli_session_t* first,
                             kilni_cli_request_t* request);

// The first trap of a program, if any, as an error. NULL: it has none.
bool kilni_cli_trap_check(kiln_buffer_t* trap_or_null, const char* name,
                          kilni_cli_error_t* error);

// A number as an argument; eight bytes may be an address.
kiln_argument_t kilni_cli_scalar_argument(const kilni_cli_scalar_t* scalar,
                                          bool is_pointer);

void kilni_cli_session_close(kilni_cli_session_t* session);

#endif  // KILN_SRC_CLI_RUN_SESSION_H_
