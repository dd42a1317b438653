// SPDX-License-Identifier: Apache-2.0
//
// live: what a driver says of kernels against what their cubins say.
//
//   live_attributes [cuda:0|soft] [FOLDER]
//
// Each PTX file of tests/kernels (of FOLDER) is made a cubin by the driver's
// linker. Registers, shared and local memory and every parameter of each of its
// kernels, as the driver tells them, must be what Kiln reads in the cubin
// without a driver; a handle of the driver's that is adopted is the same
// kernel, and its clusters are counted. Kernels that are made for clusters run
// in them, and are refused by Kiln where they cannot. On the software device,
// whose linker makes PTX, parameters alone are compared. Exit code 77 where
// there is no such device.
#define _POSIX_C_SOURCE 200809L  // opendir
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device/device_scope.h"
#include "kiln/kiln.h"

// How the driver's number may follow from the file's: one rule for all.
typedef enum rule_t {
  SHARED_ALONE,     // static shared memory
  SHARED_WITH_OWN,  // and what the system takes of a block
  LOCAL_FRAME,      // local memory of the kernel's own frame
  LOCAL_STACK,      // and of what it calls
  RULES
} rule_t;

// What was compared. one-thread
typedef struct totals_t {
  uint32_t files;
  uint32_t kernels;
  uint32_t params;
  uint32_t wrong;
  uint32_t clusters;       // kernels that were asked about them
  uint32_t adopted;        // kernels from a driver's handle
  uint32_t unsupported;    // kernels that the device does not execute
  uint32_t broken[RULES];  // kernels that do not follow a rule
  uint32_t ruled;          // kernels that tell
  uint32_t endless;        // of these, those whose stack nobody knows
} totals_t;

// Prints a failure and ends it. True if there was one.
static bool failed(const char* what, kiln_status_t status) {
  if (kiln_status_is_ok(status)) return false;
  char text[4096];
  kiln_status_format(status, sizeof(text), text, NULL);
  printf("%s: %s\n", what, text);
  kiln_status_free(status);
  return true;
}

static void differ(totals_t* totals, const char* file, const char* kernel,
                   const char* what, uint64_t driver, uint64_t ours) {
  if (driver == ours) return;
  totals->wrong++;
  printf("%s, %s: %s is %llu to the driver and %llu in the file\n", file,
         kernel, what, (unsigned long long)driver, (unsigned long long)ours);
}

static void check_params(totals_t* totals, const char* file,
                         const kiln_image_t* image, uint32_t index,
                         const kiln_kernel_t* kernel) {
  const kiln_cuda_table_t* table = kernel->module->device->table;
  const kiln_image_kernel_t* read = kiln_image_kernel(image, index);
  if (!kilni_table_cuda_has(table, KILNI_CUDA_ROW_cuFuncGetParamInfo)) return;
  differ(totals, file, read->name, "whether parameters are known", 1,
         read->params_known);
  for (uint32_t i = 0; i <= read->param_count; i++) {
    size_t offset = 0;
    size_t bytes = 0;
    kiln_status_t status;
    KILNI_DEVICE_CALL(status, kernel->module->device, cuFuncGetParamInfo,
                      kernel->handle, i, &offset, &bytes);
    bool told = kiln_status_is_ok(status);
    bool behind = i == read->param_count;
    kiln_status_free(status);
    differ(totals, file, read->name, "whether there is such a parameter", told,
           !behind);
    if (behind || !told) return;
    const kiln_image_param_t* param = kiln_image_kernel_param(image, index, i);
    differ(totals, file, read->name, "a parameter's offset", offset,
           param->offset);
    differ(totals, file, read->name, "a parameter's size", bytes, param->bytes);
    totals->params++;
  }
}

static void check_kernel(totals_t* totals, const char* file,
                         const kiln_image_t* image, uint32_t index,
                         const kiln_kernel_t* kernel) {
  const kiln_image_kernel_t* read = kiln_image_kernel(image, index);
  const kiln_kernel_info_t* told = kiln_kernel_info(kernel);
  totals->kernels++;
  check_params(totals, file, image, index, kernel);
  if (kiln_image_format(image) != KILN_CODE_FORMAT_CUBIN) return;
  differ(totals, file, read->name, "registers", told->registers,
         read->registers);
  uint32_t shared = read->static_shared_bytes;
  uint32_t local = told->local_bytes;
  // Of a recursion no file tells how deep it goes.
  bool endless = read->stack_bytes == KILN_IMAGE_UNTOLD;
  bool follows[RULES] = {
      told->static_shared_bytes == shared,
      told->static_shared_bytes == shared + read->reserved_shared_bytes,
      local == read->frame_bytes, endless || local == read->stack_bytes};
  totals->ruled++;
  totals->endless += endless;
  for (int i = 0; i < RULES; i++) totals->broken[i] += !follows[i];
  if ((!follows[SHARED_ALONE] && !follows[SHARED_WITH_OWN]) ||
      (!follows[LOCAL_FRAME] && !follows[LOCAL_STACK])) {
    printf(
        "%s, %s: shared %u (file %u and %u), local %u (frame %u, stack "
        "%u)\n",
        file, read->name, told->static_shared_bytes, shared,
        read->reserved_shared_bytes, local, read->frame_bytes,
        read->stack_bytes);
  }
}

// What the same kernel is when a handle of the driver's is adopted.
static void check_adopted(totals_t* totals, const char* file,
                          kiln_cu_library_t library,
                          const kiln_kernel_t* kernel, bool is_ours) {
  kiln_device_t* device = kiln_module_device(kernel->module);
  const kiln_kernel_info_t* told = kiln_kernel_info(kernel);
  kiln_cu_kernel_t raw = NULL;
  kiln_kernel_t* adopted = NULL;
  kiln_status_t status;
  KILNI_DEVICE_CALL(status, device, cuLibraryGetKernel, &raw, library,
                    told->name);
  if (kiln_status_is_ok(status)) {
    status = kiln_kernel_adopt(device, raw, NULL, &adopted);
  }
  if (failed(told->name, status)) {
    totals->wrong++;
    return;
  }
  const kiln_kernel_info_t* info = kiln_kernel_info(adopted);
  // Which library a kernel is of is told from CUDA 12.5 on.
  is_ours = is_ours && kilni_table_cuda_has(device->table,
                                            KILNI_CUDA_ROW_cuKernelGetLibrary);
  differ(totals, file, told->name, "whether an adopted kernel is of the module",
         // It is there where the status is OK.
         // NOLINTNEXTLINE(clang-analyzer-core.NullDereference)
         adopted->module == kernel->module, is_ours);
  differ(totals, file, told->name, "an adopted kernel's registers",
         info->registers, told->registers);
  differ(totals, file, told->name, "an adopted kernel's threads",
         info->max_threads, told->max_threads);
  if (info->params_known) {
    differ(totals, file, told->name, "an adopted kernel's parameters",
           info->param_count, told->param_count);
  }
  totals->adopted++;
  kiln_kernel_release(adopted);
}

static void check_foreign(totals_t* totals, const char* file,
                          const kiln_code_t* code,
                          const kiln_kernel_t* kernel) {
  kiln_device_t* device = kiln_module_device(kernel->module);
  kiln_cu_library_t library = NULL;
  kiln_status_t status;
  KILNI_DEVICE_CREATE(status, device, &library, cuLibraryLoadData,
                      kiln_code_bytes(code).data, NULL, NULL, 0, NULL, NULL, 0);
  if (failed(file, status)) {
    totals->wrong++;
    return;
  }
  check_adopted(totals, file, library, kernel, false);
  KILNI_DEVICE_CALL(status, device, cuLibraryUnload, library);
  totals->wrong += failed("unloading what was adopted from", status);
}

// Clusters of one block are blocks, and the largest there may be fits.
static void check_clusters(totals_t* totals, const char* file,
                           kiln_kernel_t* kernel) {
  const kiln_kernel_info_t* told = kiln_kernel_info(kernel);
  const kiln_device_info_t* device =
      kiln_device_info(kiln_module_device(kernel->module));
  if (device->compute_major < 9) return;
  kiln_launch_config_t config = kiln_launch_config_default();
  config.block[0] = told->max_threads < 64 ? told->max_threads : 64;
  if (told->required_block[0] != 0) {
    memcpy(config.block, told->required_block, sizeof(config.block));
  }
  uint32_t threads = config.block[0];
  for (int i = 1; i < 3; i++) threads *= config.block[i] ? config.block[i] : 1;
  uint32_t most = 0;
  uint32_t blocks = 0;
  uint32_t at_once = 0;
  uint32_t largest = 0;
  if (failed(told->name, kiln_kernel_max_cluster(kernel, &config, &most)) ||
      failed(told->name, kiln_kernel_max_blocks(kernel, threads, 0, &blocks))) {
    totals->wrong++;
    return;
  }
  const uint32_t one[3] = {1, 1, 1};
  const uint32_t all[3] = {most, 1, 1};
  config.grid[0] = most;
  if (failed(told->name,
             kiln_kernel_active_clusters(kernel, &config, one, &at_once)) ||
      failed(told->name,
             kiln_kernel_active_clusters(kernel, &config, all, &largest))) {
    totals->wrong++;
    return;
  }
  differ(totals, file, told->name, "whether one block at least is a cluster",
         at_once > 0, blocks > 0);
  differ(totals, file, told->name, "whether more clusters than blocks run",
         at_once > blocks * device->multiprocessors, 0);
  differ(totals, file, told->name, "whether the largest cluster runs",
         largest > 0, blocks > 0);
  if (totals->clusters++ == 0) {
    printf("%s: clusters of up to %u blocks; of one %u at once, of %u %u\n",
           told->name, most, at_once, most, largest);
  }
}

static void check_code(totals_t* totals, const char* file,
                       kiln_device_t* device, kiln_code_t* code) {
  kiln_image_t* image = NULL;
  kiln_module_t* module = NULL;
  bool bad =
      failed(file, kiln_image_create(kiln_code_bytes(code), NULL, &image)) ||
      failed(file, kiln_module_create(device, code, NULL, &module));
  totals->wrong += bad;
  for (uint32_t i = 0; !bad && i < kiln_image_kernel_count(image); i++) {
    kiln_kernel_t* kernel = NULL;
    const char* name = kiln_image_kernel(image, i)->name;
    kiln_status_t status = kiln_kernel_create(module, name, &kernel);
    if (kiln_status_code(status) == KILN_STATUS_UNSUPPORTED) {
      totals->unsupported++;  // by the software device, which says what
      kiln_status_free(status);
      continue;
    }
    if (failed(name, status)) {
      totals->wrong++;
      continue;
    }
    check_kernel(totals, file, image, i, kernel);
    check_clusters(totals, file, kernel);
    check_adopted(totals, file, kiln_module_library(module), kernel, true);
    check_foreign(totals, file, code, kernel);
    kiln_kernel_release(kernel);
  }
  kiln_module_release(module);
  kiln_image_release(image);
}

static void check_file(totals_t* totals, kiln_linker_t* linker,
                       kiln_device_t* device, const char* folder,
                       const char* name) {
  char path[1024];
  (void)snprintf(path, sizeof(path), "%s/%s", folder, name);
  kiln_link_options_t options = kiln_link_options_default();
  options.backend = KILN_LINK_BACKEND_DRIVER;
  kiln_link_t* link = NULL;
  kiln_code_t* code = NULL;
  kiln_status_t status = kiln_link_create(linker, &options, &link);
  if (kiln_status_is_ok(status)) status = kiln_link_add_file(link, path, 0);
  if (kiln_status_is_ok(status)) status = kiln_link_finish(link, &code);
  totals->files++;
  if (failed(name, status)) {
    totals->wrong++;
  } else {
    check_code(totals, name, device, code);
  }
  kiln_code_release(code);
  kiln_link_release(link);
}

static bool ends_with(const char* text, const char* end) {
  size_t size = strlen(text);
  return size > strlen(end) && strcmp(text + size - strlen(end), end) == 0;
}

static bool check_folder(totals_t* totals, kiln_linker_t* linker,
                         kiln_device_t* device, const char* folder) {
  DIR* entries = opendir(folder);
  if (entries == NULL) {
    printf("no folder \"%s\"\n", folder);
    return false;
  }
  const struct dirent* entry;
  while ((entry = readdir(entries)) != NULL) {
    if (ends_with(entry->d_name, ".cu.ptx")) {
      check_file(totals, linker, device, folder, entry->d_name);
    }
  }
  closedir(entries);
  return true;
}

// A kernel that writes how many blocks its cluster has.
#define SIZE_OF_CLUSTER(directives)                      \
  ".version 8.0\n.target sm_90\n.address_size 64\n"      \
  ".visible .entry size_of(.param .u64 out) " directives \
  "\n"                                                   \
  "{\n"                                                  \
  "  .reg .b64 %a;\n"                                    \
  "  .reg .b32 %n;\n"                                    \
  "  ld.param.u64 %a, [out];\n"                          \
  "  mov.u32 %n, %cluster_nctaid.x;\n"                   \
  "  st.global.u32 [%a], %n;\n"                          \
  "  ret;\n"                                             \
  "}\n"

// A launch without attributes, or in clusters; 0: a kernel that was refused.
// thread-safe
typedef struct cluster_run_t {
  const char* text;
  uint32_t grid;
  uint32_t cluster;
  uint32_t size;  // that the kernel sees
} cluster_run_t;

static kiln_status_t see_cluster(kiln_stream_t* stream, kiln_module_t* module,
                                 kiln_buffer_t* out, const cluster_run_t* run,
                                 uint32_t* out_size) {
  kiln_kernel_t* kernel = NULL;
  kiln_argument_t argument = kiln_arg_buffer(out);
  kiln_launch_attributes_t with = kiln_launch_attributes_default();
  kiln_launch_config_t config = kiln_launch_config_default();
  config.grid[0] = run->grid;
  with.cluster[0] = run->cluster;
  if (run->cluster != 0) config.attributes = &with;
  kiln_status_t status = kiln_kernel_create(module, "size_of", &kernel);
  if (kiln_status_is_ok(status)) {
    status = kiln_kernel_launch(kernel, stream, &config, &argument, 1);
  }
  if (kiln_status_is_ok(status)) status = kiln_stream_synchronize(stream);
  if (kiln_status_is_ok(status)) {
    status = kiln_buffer_read(out, 0, sizeof(*out_size), out_size);
  }
  kiln_kernel_release(kernel);
  return status;
}

static kiln_status_t run_clustered(kiln_device_t* device,
                                   const cluster_run_t* run,
                                   uint32_t* out_size) {
  kiln_bytes_view_t ptx = {(const uint8_t*)run->text, strlen(run->text)};
  kiln_stream_t* stream = NULL;
  kiln_buffer_t* out = NULL;
  kiln_module_t* module = NULL;
  *out_size = 0;
  kiln_status_t status = kiln_stream_create(device, NULL, &stream);
  if (kiln_status_is_ok(status)) {
    status = kiln_buffer_create(device, sizeof(*out_size), NULL, &out);
  }
  if (kiln_status_is_ok(status)) {
    status = kiln_module_load(device, ptx, NULL, NULL, &module);
  }
  if (kiln_status_is_ok(status)) {
    status = see_cluster(stream, module, out, run, out_size);
  }
  kiln_module_release(module);
  kiln_buffer_release(out);
  kiln_stream_release(stream);
  return status;
}

// Kernels that run in clusters: of their own size with no word of it, of an
// open one only with a word. What does not fit is refused before the driver.
static void check_made_for_clusters(totals_t* totals, kiln_device_t* device) {
  static const cluster_run_t kRuns[] = {
      {SIZE_OF_CLUSTER(".explicitcluster"), 4, 0, 0},
      {SIZE_OF_CLUSTER(".explicitcluster"), 4, 2, 2},
      {SIZE_OF_CLUSTER(".reqnctapercluster 2, 1, 1"), 4, 0, 2},
      {SIZE_OF_CLUSTER(".reqnctapercluster 2, 1, 1"), 3, 0, 0},
      {SIZE_OF_CLUSTER(".reqnctapercluster 2, 1, 1"), 4, 2, 2},
      {SIZE_OF_CLUSTER(".explicitcluster .reqnctapercluster 2, 1, 1"), 4, 0, 2},
      {SIZE_OF_CLUSTER(""), 4, 0, 1},
  };
  if (kiln_device_info(device)->cluster_launch == 0) return;
  for (size_t i = 0; i < sizeof(kRuns) / sizeof(kRuns[0]); i++) {
    uint32_t size = 0;
    kiln_status_t status = run_clustered(device, &kRuns[i], &size);
    if (kRuns[i].size == 0 &&
        kiln_status_code(status) == KILN_STATUS_INVALID_ARGUMENT) {
      kiln_status_free(status);
      continue;
    }
    if (failed("a kernel made for clusters", status) || size != kRuns[i].size) {
      totals->wrong++;
      printf("clusters, run %zu: %u blocks, not %u\n", i, size, kRuns[i].size);
    }
  }
  printf("kernels made for clusters: %zu launches\n",
         sizeof(kRuns) / sizeof(kRuns[0]));
}

static int verdict(const totals_t* totals) {
  printf("%u files, %u kernels, %u parameters, %u differences\n", totals->files,
         totals->kernels, totals->params, totals->wrong);
  printf("%u kernels adopted, %u asked about clusters\n", totals->adopted,
         totals->clusters);
  printf(
      "of %u kernels with machine code do not follow: shared memory %u, "
      "with the system's own %u; local memory as the frame %u, as the "
      "stack %u (of %u it is not known)\n",
      totals->ruled, totals->broken[SHARED_ALONE],
      totals->broken[SHARED_WITH_OWN], totals->broken[LOCAL_FRAME],
      totals->broken[LOCAL_STACK], totals->endless);
  bool ruled =
      (totals->broken[SHARED_ALONE] == 0 ||
       totals->broken[SHARED_WITH_OWN] == 0) &&
      (totals->broken[LOCAL_FRAME] == 0 || totals->broken[LOCAL_STACK] == 0);
  return totals->wrong == 0 && ruled && totals->kernels > totals->unsupported
             ? 0
             : 1;
}

int main(int argc, char** argv) {
  const char* label = argc > 1 ? argv[1] : "cuda:0";
  const char* folder = argc > 2 ? argv[2] : "tests/kernels";
  totals_t totals = {0};
  kiln_runtime_t* runtime = NULL;
  kiln_device_t* device = NULL;
  kiln_linker_t* linker = NULL;
  if (failed("runtime", kiln_runtime_create(NULL, &runtime))) return 1;
  if (failed(label, kiln_runtime_open_device(runtime, label, &device))) {
    printf("skipped: there is no %s\n", label);
    kiln_runtime_release(runtime);
    return 77;
  }
  kiln_linker_options_t options = kiln_linker_options_default();
  options.device = device;
  int result = 1;
  if (!failed("linker", kiln_runtime_open_linker(runtime, &options, &linker)) &&
      check_folder(&totals, linker, device, folder)) {
    check_made_for_clusters(&totals, device);
    result = verdict(&totals);
  }
  kiln_linker_release(linker);
  kiln_device_release(device);
  kiln_runtime_release(runtime);
  return result;
}
