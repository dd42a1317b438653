// SPDX-License-Identifier: Apache-2.0
//
// base: the cores that control groups allow, over trees of files made here.
#define _GNU_SOURCE  // mkdtemp, nftw, sched_setaffinity
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
// After the above, which it needs.
#include <cmocka.h>
#include <ftw.h>
#include <sched.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/thread.h"

static char root[64];

static int make_root(void** state) {
  (void)state;
  snprintf(root, sizeof(root), "/tmp/kiln_cores_XXXXXX");
  return mkdtemp(root) ? 0 : -1;
}

static int remove_one(const char* path, const struct stat* status, int kind,
                      struct FTW* walk) {
  (void)status;
  (void)kind;
  (void)walk;
  return remove(path);
}

static int remove_root(void** state) {
  (void)state;
  return nftw(root, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

// Writes a file under the root, with the folders that lead to it.
static void put(const char* path, const char* text) {
  char whole[512];
  snprintf(whole, sizeof(whole), "%s%s", root, path);
  for (char* at = strchr(whole + strlen(root) + 1, '/'); at;
       at = strchr(at + 1, '/')) {
    *at = 0;
    mkdir(whole, 0700);
    *at = '/';
  }
  FILE* file = fopen(whole, "w");
  assert_non_null(file);
  assert_true(fputs(text, file) >= 0);
  assert_int_equal(fclose(file), 0);
}

static const char mount_2[] =
    "22 1 8:1 / / rw - ext4 /dev/sda1 rw\n"
    "30 22 0:26 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw\n";

static void nothing_to_read_sets_no_limit(void** state) {
  (void)state;
  assert_int_equal(kilni_base_core_quota(root), 0);
  put("/proc/self/cgroup", "nonsense\n:\n0\n\n");
  put("/proc/self/mountinfo", "a - b\n - \n1 2 3 4 5 6 - cgroup2\n");
  assert_int_equal(kilni_base_core_quota(root), 0);
}

static void version_2_counts_the_tightest_above(void** state) {
  (void)state;
  put("/proc/self/cgroup", "0::/outer/inner\n");
  put("/proc/self/mountinfo", mount_2);
  assert_int_equal(kilni_base_core_quota(root), 0);
  put("/sys/fs/cgroup/outer/inner/cpu.max", "max 100000\n");
  assert_int_equal(kilni_base_core_quota(root), 0);
  put("/sys/fs/cgroup/outer/inner/cpu.max", "800000 100000\n");
  assert_int_equal(kilni_base_core_quota(root), 8);
  put("/sys/fs/cgroup/outer/cpu.max", "250000 100000\n");
  assert_int_equal(kilni_base_core_quota(root), 3);
  put("/sys/fs/cgroup/cpu.max", "50000 100000\n");
  assert_int_equal(kilni_base_core_quota(root), 1);
}

static void numbers_that_are_none_set_no_limit(void** state) {
  (void)state;
  put("/proc/self/cgroup", "0::/g\n");
  put("/proc/self/mountinfo", mount_2);
  static const char* const bad[] = {"",      "\n",      "-1 100000\n",
                                    "5\n",   "5 0\n",   "x 100000\n",
                                    "0 5\n", "9 -100\n"};
  for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
    put("/sys/fs/cgroup/g/cpu.max", bad[i]);
    assert_int_equal(kilni_base_core_quota(root), 0);
  }
  put("/sys/fs/cgroup/g/cpu.max", "9223372036854775807 1\n");
  assert_int_equal(kilni_base_core_quota(root), UINT32_MAX);
}

// A container sees its own group as the root of the mount; another mount of
// the same name, or a group elsewhere, must not confuse it.
static void a_mounted_part_is_the_top(void** state) {
  (void)state;
  put("/proc/self/cgroup", "0::/pods/one/leaf\n");
  put("/proc/self/mountinfo",
      "40 22 0:26 /pods/one /mnt/my\\040groups rw - cgroup2 cgroup2 rw\n");
  put("/mnt/my groups/leaf/cpu.max", "400000 100000\n");
  put("/mnt/my groups/cpu.max", "600000 100000\n");
  put("/mnt/cpu.max", "100000 100000\n");  // above the mount
  assert_int_equal(kilni_base_core_quota(root), 4);
  put("/proc/self/cgroup", "0::/pods/oneself\n");
  assert_int_equal(kilni_base_core_quota(root), 6);
  put("/proc/self/cgroup", "0::/../other\n");
  assert_int_equal(kilni_base_core_quota(root), 6);
}

static void version_1_has_two_files(void** state) {
  (void)state;
  put("/proc/self/cgroup",
      "5:cpuset:/nope\n4:cpuacct,cpu:/box\n3:memory:/nope\n0::/\n");
  put("/proc/self/mountinfo",
      "31 1 0:30 / /cg/cpuset rw - cgroup cgroup rw,cpuset\n"
      "32 1 0:31 / /cg/cpu rw - cgroup cgroup rw,cpu,cpuacct\n"
      "33 1 0:32 / /cg/unified rw - cgroup2 cgroup2 rw\n");
  put("/cg/cpuset/nope/cpu.cfs_quota_us", "100000\n");
  put("/cg/cpuset/nope/cpu.cfs_period_us", "100000\n");
  put("/cg/cpu/box/cpu.cfs_quota_us", "-1\n");
  put("/cg/cpu/box/cpu.cfs_period_us", "100000\n");
  assert_int_equal(kilni_base_core_quota(root), 0);
  put("/cg/cpu/box/cpu.cfs_quota_us", "350000\n");
  assert_int_equal(kilni_base_core_quota(root), 4);
  put("/cg/unified/cpu.max", "200000 100000\n");
  assert_int_equal(kilni_base_core_quota(root), 2);
}

static void long_lines_are_passed_over(void** state) {
  (void)state;
  static char text[40000];
  memset(text, 'x', sizeof(text) - 1);
  static const char line[] = "\n0::/g\n";
  memcpy(text + sizeof(text) - sizeof(line), line, sizeof(line));
  put("/proc/self/cgroup", text);
  put("/proc/self/mountinfo", mount_2);
  put("/sys/fs/cgroup/g/cpu.max", "200000 100000\n");
  assert_int_equal(kilni_base_core_quota(root), 2);
}

static void affinity_counts_too(void** state) {
  (void)state;
  cpu_set_t before, one;
  if (sched_getaffinity(0, sizeof(before), &before) != 0) {
    print_message("the system does not say which cores are ours\n");
    skip();
  }
  CPU_ZERO(&one);
  for (int i = 0; i < CPU_SETSIZE && !CPU_COUNT(&one); i++) {
    if (CPU_ISSET(i, &before)) CPU_SET(i, &one);
  }
  assert_int_equal(sched_setaffinity(0, sizeof(one), &one), 0);
  assert_int_equal(kilni_base_core_count(), 1);
  assert_int_equal(sched_setaffinity(0, sizeof(before), &before), 0);
  assert_true(kilni_base_core_count() >= 1);
  assert_true(kilni_base_core_count() <= (uint32_t)CPU_COUNT(&before));
}

#define IN_A_ROOT(test) \
  cmocka_unit_test_setup_teardown(test, make_root, remove_root)

// The machine's, and no more than a group above leaves, of either kind.
static void memory_that_is_left(void** state) {
  (void)state;
  assert_true(kilni_base_memory_left(root) == UINT64_MAX);
  put("/proc/meminfo", "MemTotal: 9000 kB\nMemAvailable:    8000 kB\n");
  assert_int_equal(kilni_base_memory_left(root), 8000 << 10);
  put("/proc/self/cgroup", "0::/outer/inner\n");
  put("/proc/self/mountinfo", mount_2);
  put("/sys/fs/cgroup/outer/inner/memory.max", "max\n");
  put("/sys/fs/cgroup/outer/inner/memory.current", "1\n");
  assert_int_equal(kilni_base_memory_left(root), 8000 << 10);
  put("/sys/fs/cgroup/outer/memory.max", "5000000\n");
  put("/sys/fs/cgroup/outer/memory.current", "2000000\n");
  assert_int_equal(kilni_base_memory_left(root), 3000000);
  put("/sys/fs/cgroup/outer/memory.stat",
      "anon 1\ninactive_file 500000\nactive_file 7\n");
  assert_int_equal(kilni_base_memory_left(root), 3500000);
  put("/sys/fs/cgroup/outer/memory.current", "6000000\n");
  assert_int_equal(kilni_base_memory_left(root), 0);
  put("/proc/self/cgroup", "4:memory:/g\n0::/\n");
  put("/proc/self/mountinfo",
      "30 22 0:26 / /cg/memory rw - cgroup cgroup rw,memory\n");
  put("/cg/memory/g/memory.limit_in_bytes", "4000000\n");
  put("/cg/memory/g/memory.usage_in_bytes", "1000000\n");
  put("/cg/memory/memory.limit_in_bytes", "9223372036854771712\n");
  put("/cg/memory/memory.usage_in_bytes", "1000000\n");
  assert_int_equal(kilni_base_memory_left(root), 3000000);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      IN_A_ROOT(nothing_to_read_sets_no_limit),
      IN_A_ROOT(version_2_counts_the_tightest_above),
      IN_A_ROOT(numbers_that_are_none_set_no_limit),
      IN_A_ROOT(a_mounted_part_is_the_top),
      IN_A_ROOT(version_1_has_two_files),
      IN_A_ROOT(long_lines_are_passed_over),
      IN_A_ROOT(memory_that_is_left),
      cmocka_unit_test(affinity_counts_too),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
