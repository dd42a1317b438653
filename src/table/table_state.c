// SPDX-License-Identifier: Apache-2.0
//
// table: the room's one mutable global.
#include "table/table_state.h"

kilni_table_state_t kilni_table_state = {.null = {.busy = ATOMIC_FLAG_INIT}};
