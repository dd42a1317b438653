// SPDX-License-Identifier: Apache-2.0
//
// tests: CUB's device algorithms against plain loops, on awkward sizes.
//
// Built by cub_suite.py with nvcc. The one argument is the largest size.
#include <cub/cub.cuh>

#include "device_words.cuh"

// Asks for memory, then does it.
template <class F>
static void twice(const char* what, F call) {
  size_t bytes = 0;
  must(call(nullptr, bytes), what);
  words<char> storage(bytes + 1);
  must(call(storage.data, bytes), what);
  must(cudaStreamSynchronize(0), what);
}

#define CALL(expression) [&](void* t, size_t& b) { return expression; }

static void scans(int n) {
  ints x = some(n, 1, 100), out(n);
  words<int> in(x), to(n);
  twice("inclusive sum",
        CALL(cub::DeviceScan::InclusiveSum(t, b, in.data, to.data, n)));
  std::partial_sum(x.begin(), x.end(), out.begin());
  equal("inclusive sum", n, to.read(), out);
  twice("exclusive sum",
        CALL(cub::DeviceScan::ExclusiveSum(t, b, in.data, to.data, n)));
  ints shifted(n);
  for (int i = 1; i < n; i++) shifted[i] = out[i - 1];
  equal("exclusive sum", n, to.read(), shifted);
  twice("inclusive maximum",
        CALL(cub::DeviceScan::InclusiveScan(t, b, in.data, to.data, greatest(),
                                            n)));
  std::partial_sum(x.begin(), x.end(), out.begin(), greatest());
  equal("inclusive maximum", n, to.read(), out);
  twice("exclusive maximum",
        CALL(cub::DeviceScan::ExclusiveScan(t, b, in.data, to.data, greatest(),
                                            -1, n)));
  for (int i = n - 1; i > 0; i--) out[i] = out[i - 1];
  if (n > 0) out[0] = -1;
  equal("exclusive maximum", n, to.read(), out);
  ints keys = some(n, 2, 3);
  words<int> by(keys);
  twice("sum by key", CALL(cub::DeviceScan::InclusiveSumByKey(
                          t, b, by.data, in.data, to.data, n)));
  for (int i = 0; i < n; i++) {
    out[i] = x[i] + (i > 0 && keys[i] == keys[i - 1] ? out[i - 1] : 0);
  }
  equal("sum by key", n, to.read(), out);
}

static void selections(int n) {
  ints x = some(n, 3, 50), flags = some(n, 4, 2), wanted, rest;
  words<int> in(x), by(flags), to(n), count(1);
  twice("select if", CALL(cub::DeviceSelect::If(t, b, in.data, to.data,
                                                count.data, n, is_odd())));
  std::copy_if(x.begin(), x.end(), std::back_inserter(wanted), is_odd());
  equal("select if", n, to.read(count.read()[0]), wanted);
  twice("select flagged",
        CALL(cub::DeviceSelect::Flagged(t, b, in.data, by.data, to.data,
                                        count.data, n)));
  wanted.clear();
  for (int i = 0; i < n; i++) (flags[i] ? wanted : rest).push_back(x[i]);
  equal("select flagged", n, to.read(count.read()[0]), wanted);
  twice("partition flagged",
        CALL(cub::DevicePartition::Flagged(t, b, in.data, by.data, to.data,
                                           count.data, n)));
  wanted.insert(wanted.end(), rest.rbegin(), rest.rend());
  equal("partition flagged", n, to.read(), wanted);
  twice("partition if",
        CALL(cub::DevicePartition::If(t, b, in.data, to.data, count.data, n,
                                      is_odd())));
  wanted.clear();
  rest.clear();
  for (int one : x) (is_odd()(one) ? wanted : rest).push_back(one);
  wanted.insert(wanted.end(), rest.rbegin(), rest.rend());
  equal("partition if", n, to.read(), wanted);
  ints runs = some(n, 5, 2);
  words<int> of(runs), lengths(n), uniques(n);
  twice("unique", CALL(cub::DeviceSelect::Unique(t, b, of.data, to.data,
                                                 count.data, n)));
  wanted = runs;
  wanted.erase(std::unique(wanted.begin(), wanted.end()), wanted.end());
  equal("unique", n, to.read(count.read()[0]), wanted);
  twice("run-length encode",
        CALL(cub::DeviceRunLengthEncode::Encode(t, b, of.data, uniques.data,
                                                lengths.data, count.data, n)));
  ints sizes;
  for (int i = 0; i < n; i++) {
    if (i == 0 || runs[i] != runs[i - 1]) sizes.push_back(0);
    sizes.back()++;
  }
  equal("runs", n, uniques.read(count.read()[0]), wanted);
  equal("lengths of runs", n, lengths.read(count.read()[0]), sizes);
  twice("reduce by key",
        CALL(cub::DeviceReduce::ReduceByKey(t, b, of.data, uniques.data,
                                            in.data, lengths.data, count.data,
                                            greatest(), n)));
  ints most;
  for (int i = 0; i < n; i++) {
    if (i == 0 || runs[i] != runs[i - 1]) most.push_back(x[i]);
    most.back() = std::max(most.back(), x[i]);
  }
  equal("reduce by key", n, lengths.read(count.read()[0]), most);
}

static void sorts(int n) {
  ints x = some(n, 6, 1 << 24), index(n);
  std::iota(index.begin(), index.end(), 0);
  words<int> in(x), to(n), values(index), moved(n);
  twice("sort keys",
        CALL(cub::DeviceRadixSort::SortKeys(t, b, in.data, to.data, n)));
  ints wanted = x;
  std::sort(wanted.begin(), wanted.end());
  equal("sort keys", n, to.read(), wanted);
  twice("sort keys down", CALL(cub::DeviceRadixSort::SortKeysDescending(
                              t, b, in.data, to.data, n)));
  equal("sort keys down", n, to.read(), ints(wanted.rbegin(), wanted.rend()));
  ints few = some(n, 7, 1000), order = index;
  words<int> keys(few);
  std::stable_sort(order.begin(), order.end(),
                   [&](int a, int b) { return few[a] < few[b]; });
  twice("sort pairs",
        CALL(cub::DeviceRadixSort::SortPairs(t, b, keys.data, to.data,
                                             values.data, moved.data, n)));
  equal("sort pairs", n, moved.read(), order);
  twice("merge sort pairs",
        CALL(cub::DeviceMergeSort::StableSortPairs(
            t, b, keys.data, values.data, n, less())));
  equal("merge sort pairs", n, values.read(), order);
  int half = n / 3;
  ints one(wanted.begin(), wanted.begin() + half);
  ints other(wanted.begin() + half, wanted.end());
  for (int& key : other) key /= 2;
  words<int> first(one), second(other);
  twice("merge", CALL(cub::DeviceMerge::MergeKeys(
                     t, b, first.data, half, second.data, n - half, to.data,
                     less())));
  ints merged(n);
  std::merge(one.begin(), one.end(), other.begin(), other.end(),
             merged.begin());
  equal("merge", n, to.read(), merged);
}

static void reductions(int n) {
  ints x = some(n, 8, 1 << 20);
  words<int> in(x), one(1);
  twice("sum", CALL(cub::DeviceReduce::Sum(t, b, in.data, one.data, n)));
  uint32_t sum = 0;
  for (int v : x) sum += (uint32_t)v;
  equal("sum", n, one.read(), ints(1, (int)sum));
  if (n > 0) {
    twice("maximum", CALL(cub::DeviceReduce::Max(t, b, in.data, one.data, n)));
    equal("maximum", n, one.read(),
          ints(1, *std::max_element(x.begin(), x.end())));
    twice("minimum", CALL(cub::DeviceReduce::Min(t, b, in.data, one.data, n)));
    equal("minimum", n, one.read(),
          ints(1, *std::min_element(x.begin(), x.end())));
    words<int> to(n);
    twice("differences", CALL(cub::DeviceAdjacentDifference::SubtractLeftCopy(
                             t, b, in.data, to.data, n)));
    ints wanted(n);
    std::adjacent_difference(x.begin(), x.end(), wanted.begin());
    equal("differences", n, to.read(), wanted);
  }
  ints counts(16);
  words<int> bins(16);
  twice("histogram", CALL(cub::DeviceHistogram::HistogramEven(
                         t, b, in.data, bins.data, 17, 0, 1 << 20, n)));
  for (int v : x) counts[v >> 16]++;
  equal("histogram", n, bins.read(), counts);
  const ints levels = {0, 10, 1000, 5000, 1 << 19, 1 << 20};
  words<int> at(levels), few(5);
  twice("histogram of ranges",
        CALL(cub::DeviceHistogram::HistogramRange(t, b, in.data, few.data, 6,
                                                  at.data, n)));
  ints ranges(5);
  for (int v : x) {
    ranges[std::upper_bound(levels.begin(), levels.end(), v) -
           levels.begin() - 1]++;
  }
  equal("histogram of ranges", n, few.read(), ranges);
}

static void segments(int n) {
  ints x = some(n, 9, 1 << 20), begins(1, 0);
  for (uint32_t seed = 1; begins.back() < n;) {
    seed = seed * 1664525u + 1013904223u;
    begins.push_back(std::min<int>(n, begins.back() + (seed >> 20) % 3000));
  }
  int count = (int)begins.size() - 1;
  words<int> in(x), at(begins), to(n), sums(count);
  twice("segmented sum",
        CALL(cub::DeviceSegmentedReduce::Sum(t, b, in.data, sums.data, count,
                                             at.data, at.data + 1)));
  ints wanted(count), sorted = x;
  for (int s = 0; s < count; s++) {
    uint32_t sum = 0;
    for (int i = begins[s]; i < begins[s + 1]; i++) sum += (uint32_t)x[i];
    wanted[s] = (int)sum;
    std::sort(sorted.begin() + begins[s], sorted.begin() + begins[s + 1]);
  }
  equal("segmented sum", n, sums.read(), wanted);
  twice("segmented radix sort",
        CALL(cub::DeviceSegmentedRadixSort::SortKeys(
            t, b, in.data, to.data, n, count, at.data, at.data + 1)));
  equal("segmented radix sort", n, to.read(), sorted);
  twice("segmented sort",
        CALL(cub::DeviceSegmentedSort::SortKeys(t, b, in.data, to.data, n,
                                                count, at.data, at.data + 1)));
  equal("segmented sort", n, to.read(), sorted);
}

int main(int argc, char** argv) {
  int most = argc > 1 ? atoi(argv[1]) : 10000;
  for (int n : {1, 31, 33, 1000, 10007, 100003, 3000000}) {
    if (n > most) break;
    scans(n);
    selections(n);
    sorts(n);
    reductions(n);
    segments(n);
    printf("size %d: %d checks, %d failed\n", n, checks, failures);
    fflush(stdout);
  }
  return failures > 0;
}
