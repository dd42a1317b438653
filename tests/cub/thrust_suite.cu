// SPDX-License-Identifier: Apache-2.0
//
// tests: Thrust's algorithms against plain loops, on awkward sizes.
//
// Built by cub_suite.py with nvcc. The one argument is the largest size.
#include <thrust/adjacent_difference.h>
#include <thrust/copy.h>
#include <thrust/device_ptr.h>
#include <thrust/extrema.h>
#include <thrust/merge.h>
#include <thrust/partition.h>
#include <thrust/reduce.h>
#include <thrust/scan.h>
#include <thrust/sort.h>
#include <thrust/unique.h>

#include "device_words.cuh"

typedef thrust::device_ptr<int> at;

static void orders(int n) {
  ints x = some(n, 1, 1 << 24), index(n), wanted = x;
  std::iota(index.begin(), index.end(), 0);
  words<int> keys(x), values(index), to(n);
  thrust::stable_sort_by_key(at(keys.data), at(keys.data) + n,
                             at(values.data));
  std::stable_sort(index.begin(), index.end(),
                   [&](int a, int b) { return x[a] < x[b]; });
  std::sort(wanted.begin(), wanted.end());
  equal("thrust keys", n, keys.read(), wanted);
  equal("thrust values", n, values.read(), index);
  words<int> again(x);
  thrust::sort(at(again.data), at(again.data) + n, less());
  equal("thrust sort", n, again.read(), wanted);
  int half = n / 3;
  thrust::merge(at(keys.data), at(keys.data) + half, at(keys.data) + half,
                at(keys.data) + n, at(to.data));
  equal("thrust merge", n, to.read(), wanted);
  thrust::adjacent_difference(at(keys.data), at(keys.data) + n, at(to.data));
  std::adjacent_difference(wanted.begin(), wanted.end(), index.begin());
  equal("thrust differences", n, to.read(), index);
}

static void scans(int n) {
  ints x = some(n, 2, 100), out(n);
  words<int> in(x), to(n);
  thrust::inclusive_scan(at(in.data), at(in.data) + n, at(to.data));
  std::partial_sum(x.begin(), x.end(), out.begin());
  equal("thrust inclusive scan", n, to.read(), out);
  thrust::exclusive_scan(at(in.data), at(in.data) + n, at(to.data), 5);
  for (int i = n - 1; i > 0; i--) out[i] = out[i - 1] + 5;
  if (n > 0) out[0] = 5;
  equal("thrust exclusive scan", n, to.read(), out);
  int sum = thrust::reduce(at(in.data), at(in.data) + n);
  equal("thrust reduce", n, ints(1, sum),
        ints(1, std::accumulate(x.begin(), x.end(), 0)));
  long most = thrust::max_element(at(in.data), at(in.data) + n) - at(in.data);
  equal("thrust greatest", n, ints(1, (int)most),
        ints(1, (int)(std::max_element(x.begin(), x.end()) - x.begin())));
}

static void selections(int n) {
  ints x = some(n, 3, 4), y = some(n, 4, 1000), wanted, keys, sums;
  words<int> in(x), values(y), to(n), also(n);
  long got = thrust::copy_if(at(in.data), at(in.data) + n, at(to.data),
                             is_odd()) -
             at(to.data);
  std::copy_if(x.begin(), x.end(), std::back_inserter(wanted), is_odd());
  equal("thrust copy if", n, to.read(got), wanted);
  for (int i = 0; i < n; i++) {
    if (i == 0 || x[i] != x[i - 1]) {
      keys.push_back(x[i]);
      sums.push_back(0);
    }
    sums.back() += y[i];
  }
  auto ends = thrust::reduce_by_key(at(in.data), at(in.data) + n,
                                    at(values.data), at(to.data),
                                    at(also.data));
  equal("thrust keys of sums", n, to.read(ends.first - at(to.data)), keys);
  equal("thrust sums", n, also.read(ends.second - at(also.data)), sums);
  got = thrust::unique_copy(at(in.data), at(in.data) + n, at(to.data)) -
        at(to.data);
  equal("thrust unique", n, to.read(got), keys);
  thrust::stable_partition(at(in.data), at(in.data) + n, is_odd());
  wanted = x;
  std::stable_partition(wanted.begin(), wanted.end(), is_odd());
  equal("thrust partition", n, in.read(), wanted);
}

int main(int argc, char** argv) {
  int most = argc > 1 ? atoi(argv[1]) : 10000;
  for (int n : {1, 31, 33, 1000, 10007, 100003, 3000000}) {
    if (n > most) break;
    orders(n);
    scans(n);
    selections(n);
    printf("size %d: %d checks, %d failed\n", n, checks, failures);
    fflush(stdout);
  }
  return failures > 0;
}
