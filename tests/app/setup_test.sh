#!/usr/bin/env bash
# What scripts/setup says on a machine without a GPU, and what a build makes of a LibTorch that is not its own.
# Layouts that are configured: site-packages, where CUDA's headers and NCCL are in
# NVIDIA's folders beside, and a zip, which has neither.
source "$(dirname "$0")/../lib.sh"

# With everything in the cache nothing is downloaded.
if [ ! -e /dev/nvidiactl ]; then
  tree=$scratch/tree
  mkdir -p "$tree/third_party" "$tree/scripts"
  cp -r third_party/pins third_party/apt*.txt "$tree/third_party/"
  cp scripts/setup "$tree/scripts/"
  place=$scratch/cache/cuda13-$(sha256sum <third_party/pins/cuda13-build.txt | cut -c1-12)
  mkdir -p "$place" && touch "$place/.complete-cuda13-build"
  setup() { CHEXNET_CACHE=$scratch/cache "$tree/scripts/setup" --no-apt "$@" >"$scratch/setup.txt" 2>&1; }
  hint="run also: scripts/setup --gpu --cuda cuda13"
  check "a set-up without a GPU" setup
  check "says what a GPU run misses" grep -qF "$hint" "$scratch/setup.txt"
  check "not to those who asked for none" eval 'setup --no-gpu && ! grep -qF "$hint" "$scratch/setup.txt"'
  touch "$place/.complete-cuda13-gpu"
  check "nor where it is there" eval 'setup && ! grep -qF "$hint" "$scratch/setup.txt"'
fi

lib=$(readlink -f "$CHEXNET_BUILD/torch") include=$(readlink -f "$CHEXNET_BUILD/torch")/../include
configure() {  # configure TORCH
  cmake -S "$source_folder" -B "$scratch/build" --fresh -DCHEXNET_TORCH="$1" >"$scratch/configure.txt" 2>&1 || tail -n 20 "$scratch/configure.txt"
}
says() { check "$1" grep -qE -- "$1" "$scratch/configure.txt"; }

# Links for all of LibTorch's own, and NVIDIA's parts in their places.
site=$scratch/site-packages
mkdir -p "$site/torch/include" "$site/torch/lib" "$site/nvidia/cu13/include" "$site/nvidia/cu13/lib" "$site/nvidia/nccl/include" "$site/nvidia/nccl/lib"
ln -s "$include"/{ATen,c10,torch} "$site/torch/include/"
ln -s "$lib"/lib{torch,c10}*.so "$site/torch/lib/"
configure "$site/torch"
says "GPUs: none, libchexnet_cuda.so is not built: .* lacks CUDA's or NCCL's headers or libraries"
says "Generating done"
check "no CUDA side is built" bash -c '! grep -q libchexnet_cuda "$1/build/build.ninja" "$1/build/Makefile" 2>/dev/null' - "$scratch"

ln -s "$include"/*.h "$include"/*.hpp "$include"/crt "$site/nvidia/cu13/include/" 2>/dev/null
mv "$site/nvidia/cu13/include/nccl.h" "$site/nvidia/nccl/include/"
ln -s "$lib"/libcudart.so.1* "$site/nvidia/cu13/lib/"
ln -s "$lib/libnccl.so.2" "$site/nvidia/nccl/lib/"
configure "$site/torch"
says "GPUs: sm_[0-9]+ .*, CUDA 1[23]"
says "Generating done"
finish
