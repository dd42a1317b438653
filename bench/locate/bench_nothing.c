// SPDX-License-Identifier: Apache-2.0
//
// bench: a process that does nothing, for what a process costs by itself.
int main(void) {
  return 0;
}
