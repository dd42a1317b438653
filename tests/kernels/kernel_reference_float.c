// SPDX-License-Identifier: Apache-2.0
//
// tests: references of kernels
#include "kernel_reference.h"

const kernel_reference_t kernel_references_float[] = {
    {NULL, NULL, NULL},
};
