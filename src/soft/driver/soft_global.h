// SPDX-License-Identifier: Apache-2.0
//
// soft: the process-wide state of the software driver, for soft_provide.c,
// which starts and stops it.
#ifndef KILN_SRC_SOFT_DRIVER_SOFT_GLOBAL_H_
#define KILN_SRC_SOFT_DRIVER_SOFT_GLOBAL_H_

#include "soft/driver/soft_driver.h"

// Before a start takes the lock: what a forked child finds is its parent's, and
// is left alone from then on.
void kilni_soft_global_begin(void);
// Held around start and stop.
void kilni_soft_global_lock(void);
void kilni_soft_global_unlock(void);
// True in a child that was forked from a process with a running driver, before
// its own first start. What its locks guard then has no owner: take none.
bool kilni_soft_global_is_forked(void);
// The running driver or NULL. Locked.
kilni_soft_driver_t* kilni_soft_global_driver(void);
// Locked.
void kilni_soft_global_set(kilni_soft_driver_t* driver);
// How many starts have no stop yet. Locked.
uint32_t* kilni_soft_global_users(void);
// Numbers the next driver; threads then forget the one before.
uint32_t kilni_soft_global_next_epoch(void);

#endif  // KILN_SRC_SOFT_DRIVER_SOFT_GLOBAL_H_
