// SPDX-License-Identifier: Apache-2.0
//
// table: the module's one mutable global.
#include "table/table_state.h"

kilni_table_state_t kilni_table_state = {.null = {.busy = ATOMIC_FLAG_INIT}};

kilni_table_cuda_wrapped_t* const kilni_table_cuda_wrapped =
    &kilni_table_state.cuda;
kilni_table_nvrtc_wrapped_t* const kilni_table_nvrtc_wrapped =
    &kilni_table_state.nvrtc;
kilni_table_nvvm_wrapped_t* const kilni_table_nvvm_wrapped =
    &kilni_table_state.nvvm;
kilni_table_nvjitlink_wrapped_t* const kilni_table_nvjitlink_wrapped =
    &kilni_table_state.nvjitlink;
kilni_table_nvml_wrapped_t* const kilni_table_nvml_wrapped =
    &kilni_table_state.nvml;
