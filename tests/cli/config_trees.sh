# SPDX-License-Identifier: Apache-2.0
#
# Toolkits made of nothing, for the cases of `kiln config`: each is laid out as
# the real thing is, and what lies in it is a line of text.

made() {
  for file; do
    mkdir -p "$(dirname "$file")"
    echo x >"$file"
  done
}

tree_local() {
  made t/include/nvrtc.h t/include/cuda_runtime.h t/include/crt/host_config.h \
    t/include/cublas.h t/lib64/libnvrtc.so.13 t/lib64/stubs/libcuda.so \
    t/lib64/libcublas_static.a t/lib64/libcublasLt_static.a \
    t/lib64/libculibos.a t/lib64/libcudart_static.a t/bin/nvcc
  chmod +x t/bin/nvcc
  ln -s libnvrtc.so.13 t/lib64/libnvrtc.so
  echo '#define CUDA_VERSION 13000 // x' >t/include/cuda.h
  echo '{"cuda":{"version":"13.0.1"}}' >t/version.json
}

tree_cu13() {
  made site/nvidia/cu13/lib/libnvrtc.so.13 site/nvidia/cu13/lib/libnvJitLink.so.13 \
    site/nvidia/cu13/lib/libcudart_static.a site/nvidia/cu13/include/nvrtc.h \
    site/nvidia/cu13/include/nvJitLink.h site/nvidia/cu13/include/cuda_runtime.h
}

# Headers of 13.3 beside an NVRTC of 13.0, as two wheels can be.
tree_mixed() {
  tree_cu13
  wheel nvidia_cuda_nvrtc 13.0.88 nvidia/cu13/lib/libnvrtc.so.13
  wheel nvidia_cuda_runtime 13.3.29 nvidia/cu13/include/cuda_runtime.h
}

wheel() {
  info=$1-$2.dist-info
  mkdir -p "site/$info"
  printf 'Metadata-Version: 2.1\nName: %s\nVersion: %s\n' "$1" "$2" \
    >"site/$info/METADATA"
  printf '%s,,\n%s/METADATA,,\n%s/RECORD,,\n' "$3" "$info" "$info" \
    >"site/$info/RECORD"
}

tree_cu12() {
  made site/nvidia/cuda_nvrtc/lib/libnvrtc.so.12 \
    site/nvidia/cuda_nvrtc/include/nvrtc.h \
    site/nvidia/cuda_runtime/lib/libcudart.so.12 \
    site/nvidia/cuda_runtime/include/cuda_runtime.h
}

tree_conda() {
  target=$(uname -m)-linux
  [ "$target" != aarch64-linux ] || target=sbsa-linux
  made env/targets/$target/include/nvrtc.h \
    env/targets/$target/lib/libnvrtc.so.13 env/conda-meta/history
  ln -s libnvrtc.so.13 env/targets/$target/lib/libnvrtc.so
}

tree_debian() {
  made "d/usr/include/nvrtc.h" "d/usr/lib/$(gcc -print-multiarch)/libnvrtc.so.12"
}
