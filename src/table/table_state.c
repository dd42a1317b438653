// SPDX-License-Identifier: Apache-2.0
//
// table: the room's one mutable global.
#include "table/table_state.h"

kilni_table_state_t kilni_table_state = {.null = {.busy = ATOMIC_FLAG_INIT}};

kilni_cuda_wrapped_t* const kilni_cuda_wrapped = &kilni_table_state.cuda;
kilni_nvrtc_wrapped_t* const kilni_nvrtc_wrapped = &kilni_table_state.nvrtc;
kilni_nvvm_wrapped_t* const kilni_nvvm_wrapped = &kilni_table_state.nvvm;
kilni_nvjitlink_wrapped_t* const kilni_nvjitlink_wrapped =
    &kilni_table_state.nvjitlink;
kilni_nvml_wrapped_t* const kilni_nvml_wrapped = &kilni_table_state.nvml;
