// SPDX-License-Identifier: Apache-2.0
//
// soft: the parameters in `aux` of operations on asynchronous copies and
// mbarriers: the decoder writes it, soft_async.c reads it.
#ifndef KILN_SRC_SOFT_CODE_SOFT_ASYNC_H_
#define KILN_SRC_SOFT_CODE_SOFT_ASYNC_H_

// cp_async: `a`, the target; `b`, the source; `c`, the bytes of the source or
// KILNI_SOFT_NONE; `d`, a predicate under which the source is not read.
#define KILNI_SOFT_COPY_BYTES(aux) ((aux) & 31u)
#define KILNI_SOFT_COPY_HAS_SIZE   0x100u
#define KILNI_SOFT_COPY_HAS_IGNORE 0x200u
#define KILNI_SOFT_COPY_GENERIC    0x400u  // the target's address is generic

// mbarrier: `a`, the address; `b`, the count, state or parity, or
// KILNI_SOFT_NONE; `d`, the result.
typedef enum kilni_soft_mbarrier_t {
  KILNI_SOFT_MBARRIER_INIT,
  KILNI_SOFT_MBARRIER_INVAL,
  KILNI_SOFT_MBARRIER_EXPECT_TX,
  KILNI_SOFT_MBARRIER_COMPLETE_TX,
  KILNI_SOFT_MBARRIER_ARRIVE,
  KILNI_SOFT_MBARRIER_ARRIVE_DROP,
  KILNI_SOFT_MBARRIER_TEST,         // by a state
  KILNI_SOFT_MBARRIER_TEST_PARITY,  //
  KILNI_SOFT_MBARRIER_PENDING,      // of a state: no address
  KILNI_SOFT_MBARRIER_COPIES        // cp.async.mbarrier.arrive.noinc
} kilni_soft_mbarrier_t;
#define KILNI_SOFT_MBARRIER_ACTION(aux) ((aux) & 15u)
#define KILNI_SOFT_MBARRIER_HAS_RESULT  0x10u
#define KILNI_SOFT_MBARRIER_HAS_VALUE   0x20u
#define KILNI_SOFT_MBARRIER_GENERIC     0x40u
#define KILNI_SOFT_MBARRIER_WITH_TX     0x80u   // `b` is what is expected
#define KILNI_SOFT_MBARRIER_TRY         0x100u  // may wait a while

#endif  // KILN_SRC_SOFT_CODE_SOFT_ASYNC_H_
