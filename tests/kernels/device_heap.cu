// SPDX-License-Identifier: Apache-2.0
//
// tests: malloc and free in kernels: lists built by each thread and given back,
// memory that one thread makes and another gives back, memory that outlives a
// launch's barrier, and the null that a request without end gets.
//
// other: 12.9 compute_75
//
// run: lists
// grid: 2 1 1
// block: 64 1 1
// also: 4 1 1 32 1 1
// buffer: in in u32 128 bits 601
// buffer: out out u32 128
//
// run: handed_on
// grid: 2 1 1
// block: 64 1 1
// buffer: out out u32 130
struct node {
  unsigned value;
  node* next;
};

// A list of 1 to 16 nodes, turned round, summed and freed.
extern "C" __global__ void lists(const unsigned* in, unsigned* out) {
  unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  node* head = nullptr;
  for (unsigned n = 0; n <= (in[i] & 15); ++n) {
    node* one = (node*)malloc(sizeof(node));
    one->value = in[i] >> n;
    one->next = head;
    head = one;
  }
  node* turned = nullptr;
  while (head) {
    node* next = head->next;
    head->next = turned;
    turned = head;
    head = next;
  }
  unsigned sum = 0;
  while (turned) {
    sum = sum * 33 + turned->value;
    node* next = turned->next;
    free(turned);
    turned = next;
  }
  out[i] = sum;
}

extern "C" __global__ void handed_on(unsigned* out) {
  __shared__ unsigned* places[64];
  unsigned t = threadIdx.x;
  unsigned* mine = (unsigned*)malloc(64 + 16 * t);
  for (unsigned n = 0; n < 16 + 4 * t; ++n) mine[n] = t * 1000 + n;
  places[t] = mine;
  __syncthreads();
  unsigned* other = places[63 - t];
  unsigned sum = 0;
  for (unsigned n = 0; n < 16 + 4 * (63 - t); ++n) sum += other[n];
  out[blockIdx.x * 64 + t] = sum;
  // All are apart, and aligned for any type.
  unsigned odd = ((unsigned long long)mine & 15) != 0;
  for (unsigned n = 0; n < 64; ++n) odd += n != t && places[n] == mine;
  __syncthreads();
  free(other);
  if (t == 0) {
    free(nullptr);
    out[128 + blockIdx.x] = (malloc(1ull << 40) == nullptr) + 2 * odd;
  }
}
