// SPDX-License-Identifier: Apache-2.0
//
// cli: an error of a device as what its kernel did wrong.
#ifndef KILN_SRC_CLI_CLI_FAULT_H_
#define KILN_SRC_CLI_CLI_FAULT_H_

#include <jansson.h>

#include "cli/cli_error.h"
#include "kiln/device.h"

// What the memory at an address is called; false if that is not known.
typedef bool (*kilni_cli_fault_namer_t)(void* user, uint64_t address,
                                        char* out_name, size_t capacity);

// Where the device knows of a fault, `error` says that: what the kernel did, to
// which buffer by the caller's names, where, and what to do. False where it
// does not know, as on a GPU.
bool kilni_cli_fault_tell(const kiln_device_t* device,
                          kilni_cli_fault_namer_t namer, void* user,
                          kilni_cli_error_t* error);

// For an error that says that a time limit was reached: adds where the kernel
// was.
void kilni_cli_fault_place(const kiln_device_t* device,
                           kilni_cli_error_t* error);

// The fields of a fault; null for kind 0.
json_t* kilni_cli_fault_json(const kiln_fault_t* fault);

#endif  // KILN_SRC_CLI_CLI_FAULT_H_
