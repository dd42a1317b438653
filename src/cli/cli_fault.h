// SPDX-License-Identifier: Apache-2.0
//
// cli: an error of a device, reported as what its kernel did wrong.
#ifndef KILN_SRC_CLI_CLI_FAULT_H_
#define KILN_SRC_CLI_CLI_FAULT_H_

#include <jansson.h>

#include "cli/cli_error.h"
#include "kiln/device.h"

// The name of the memory at an address; false if unknown.
typedef bool (*kilni_cli_fault_namer_t)(void* user, uint64_t address,
                                        char* out_name, size_t capacity);

// If the device has a record of a fault, `error` describes it: what the kernel
// did, to which buffer by the caller's names, where, and how to fix it. False
// without a record, as on a GPU.
bool kilni_cli_fault_tell(const kiln_device_t* device,
                          kilni_cli_fault_namer_t namer, void* user,
                          kilni_cli_error_t* error);

// For an exceeded time limit: adds where the kernel was.
void kilni_cli_fault_place(const kiln_device_t* device,
                           kilni_cli_error_t* error);

// The fields of a fault; null for kind 0.
json_t* kilni_cli_fault_json(const kiln_fault_t* fault);

#endif  // KILN_SRC_CLI_CLI_FAULT_H_
