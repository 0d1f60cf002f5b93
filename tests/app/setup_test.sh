#!/usr/bin/env bash
# The messages of scripts/setup on a machine without a GPU, and builds with another LibTorch.
# Layouts that are configured: site-packages, where CUDA's headers and NCCL are in
# NVIDIA's folders beside, and a zip, which has neither.
source "$(dirname "$0")/../lib.sh"
checks=$source_folder/tests/app/input_checks.py

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

# The quick start builds and runs the preset of the variant that it sets up. Stand-ins record its calls.
quick=$scratch/quick
mkdir -p "$quick"/{scripts,build/release,build/cuda12}
cp scripts/quickstart "$quick/scripts/"
for name in scripts/setup scripts/build build/{release,cuda12}/chexnet-train; do
  printf '#!/bin/sh\necho "$0 $*" >>called.txt\n' >"$quick/$name"
  chmod +x "$quick/$name"
done
quickstart() { : >"$quick/called.txt"; "$quick/scripts/quickstart" "$@" >"$scratch/quick.txt" && sed 's/ .*//' "$quick/called.txt" | sort -u | paste -sd ' '; }
check "quickstart --cuda cuda12 builds and runs cuda12" [ "$(quickstart --no-apt --cuda cuda12)" = "build/cuda12/chexnet-train scripts/build scripts/setup" ]
check "with the options passed on" eval 'grep -qx "scripts/setup --no-apt --cuda cuda12" "$quick/called.txt" && grep -qx "scripts/build cuda12 chexnet-train" "$quick/called.txt"'
check "quickstart builds and runs release" [ "$(quickstart)" = "build/release/chexnet-train scripts/build scripts/setup" ]
check "quickstart --help asks for nothing else" [ "$(quickstart --help)" = scripts/setup ]
if command -v ssh-keygen >/dev/null; then
  cp scripts/release "$quick/scripts/"
  mkdir -p "$scratch/bundle/chexnet-train" "$scratch/signed"
  cp "$quick/build/release/chexnet-train" "$scratch/bundle/chexnet-train/run"
  tar -C "$scratch/bundle" -czf "$scratch/signed/bundle.tar.gz" chexnet-train
  ssh-keygen -q -t ed25519 -N '' -f "$scratch/key" -C ''
  echo "release@chexnet-train $(cat "$scratch/key.pub")" >"$scratch/signers"
  scripts/release sign "$scratch/key" "$scratch/signed"
  bundle=(--bundle "$scratch/signed/bundle.tar.gz" --signers "$scratch/signers")
  check "quickstart --bundle runs what it unpacks, and sets nothing up" [ "$(quickstart "${bundle[@]}")" = build/bundle/chexnet-train/run ]
  echo >>"$scratch/signed/bundle.tar.gz"
  check "only as it was signed" eval '[ -z "$(quickstart "${bundle[@]}" 2>"$scratch/err.txt")" ] && grep -q "differ from what was signed" "$scratch/err.txt"'
fi

# What is downloaded is what the pins say, byte by byte. Wheels of a few bytes, from a folder instead of the network.
tree=$scratch/pinned
mkdir -p "$tree/third_party/pins" "$tree/scripts" "$scratch/index"
cp scripts/setup "$tree/scripts/"; cp third_party/unpack_wheels.py "$tree/third_party/"
pins=$tree/third_party/pins/cuda13-build.txt
for more in gpu nvrtc; do echo '# none' >"$tree/third_party/pins/cuda13-$more.txt"; done  # --download takes these, too
python3 "$checks" wheels "$scratch/index" "$pins"
pinned() {  # pinned CACHE ARGUMENTS...
  CHEXNET_CACHE=$scratch/$1 PIP_NO_INDEX=1 PIP_FIND_LINKS=$scratch/index PIP_CONFIG_FILE=/dev/null \
    "$tree/scripts/setup" --no-apt --no-gpu "${@:2}" >"$scratch/setup.txt" 2>&1
}
nothing_in() { [ -z "$(find "$scratch/$1" -name '*.so' -o -name '*.h' -o -name '.complete*' 2>/dev/null)" ]; }
check "pinned wheels are taken from a folder" pinned folder --from "$scratch/index"
check "and downloaded" pinned network
check "to the same files" diff -r "$scratch/folder" "$scratch/network"
check "the library is there" [ "$(cat "$scratch"/network/cuda13-*/lib/libtorch_cpu.so)" = "as it was pinned" ]
# A machine of another architecture, which takes other pins.
mkdir "$scratch/aarch64"
printf '#!/bin/sh\necho aarch64\n' >"$scratch/aarch64/uname"
chmod +x "$scratch/aarch64/uname"
on_aarch64() { PATH=$scratch/aarch64:$PATH pinned "$@"; }
check "AArch64 without pins is refused" eval '! on_aarch64 arm --from "$scratch/index"'
check "and the pins are named" grep -q 'no wheels of cuda13-build-aarch64 are pinned' "$scratch/setup.txt"
cp "$pins" "${pins%.txt}-aarch64.txt"
check "with pins of its own it is set up" on_aarch64 arm --from "$scratch/index"
check "by them" grep -q 'unpacking cuda13-build-aarch64' "$scratch/setup.txt"
sed -i 's/as it was pinned/as it was Pinned/' "$scratch/index/nvidia_cuda_runtime-1.0-py3-none-any.whl"
check "a wheel with another byte is refused from a folder" eval '! pinned bad-folder --from "$scratch/index" && nothing_in bad-folder'
check "and the pin is named" grep -q 'is nvidia-cuda-runtime==1.0 (sha256 ' "$scratch/setup.txt"
check "it is refused when it is downloaded" eval '! pinned bad-network && nothing_in bad-network'
check "by its hash" grep -q 'DO NOT MATCH THE HASHES' "$scratch/setup.txt"
check "also for another machine" eval '! pinned bad --download "$scratch/carried" && grep -q "DO NOT MATCH THE HASHES" "$scratch/setup.txt"'
sed -i 's/ --hash=sha256:[0-9a-f]*$//' "$pins"
check "a pin without a hash is refused from a folder" eval '! pinned no-hash --from "$scratch/index" && nothing_in no-hash'
check "and says so" grep -q 'torch==1.0: no SHA-256' "$scratch/setup.txt"
check "and when it is downloaded" eval '! pinned no-hash && nothing_in no-hash'

# LibTorch's zip instead of wheels, whole, cut off, of something else, and absent.
python3 "$checks" zips "$scratch"
zipped() { pinned "$1" --torch "$scratch/$1.zip"; }
turned_down() { ! zipped "$1" && grep -qF -- "$2" "$scratch/setup.txt" && [ -z "$(find "$scratch/$1" -name '*.partial')" ]; }
refuses_zip() { check "$1.zip: $2" turned_down "$@"; }
check "a zip of LibTorch is taken" zipped libtorch
check "from the cache the next time" eval 'zipped libtorch && ! grep -q unpacking "$scratch/setup.txt"'
check "and the build is told of it" grep -q 'as it was packed' "$(cat "$tree/third_party/.torch-cuda13")/lib/libtorch_cpu.so"
refuses_zip cut "cut.zip is damaged: "
refuses_zip other "holds no folder libtorch"
refuses_zip headers "holds no lib/libtorch_cpu.so"
refuses_zip absent "cannot be read"
check "what was refused is not built with" grep -q 'as it was packed' "$(cat "$tree/third_party/.torch-cuda13")/lib/libtorch_cpu.so"

lib=$(readlink -f "$CHEXNET_BUILD/torch") include=$(readlink -f "$CHEXNET_BUILD/torch")/../include
configure() {  # configure TORCH OPTIONS...
  local torch=$1 rc=0; shift
  cmake -S "$source_folder" -B "$scratch/build" --fresh -DCHEXNET_TORCH="$torch" "$@" >"$scratch/configure.txt" 2>&1 || rc=$?
  [ $rc = 0 ] || tail -n 20 "$scratch/configure.txt"
  check "a build with ${torch#"$scratch/"} is configured" [ $rc = 0 ]
}
says() { check "$1" grep -qE -- "$1" "$scratch/configure.txt"; }

# Links for all of LibTorch's files, and NVIDIA's parts at their paths.
site=$scratch/site-packages
mkdir -p "$site/torch/include" "$site/torch/lib" "$site/nvidia/cu13/include" "$site/nvidia/cu13/lib" "$site/nvidia/nccl/include" "$site/nvidia/nccl/lib"
ln -s "$include"/{ATen,c10,torch} "$site/torch/include/"
ln -s "$lib"/lib{torch,c10}*.so "$site/torch/lib/"
cmake -S "$source_folder" -B "$scratch/build" --fresh -DCHEXNET_TORCH="$site/torch" >"$scratch/configure.txt" 2>&1; rc=$?
check "a LibTorch of CUDA without its headers is an error" [ $rc != 0 ]
check "that says what to do" bash -c 'tr -s " \n" " " <"$1" | grep -q "Name their prefixes in CMAKE_PREFIX_PATH, or set -DCHEXNET_WITH_CUDA=OFF"' - "$scratch/configure.txt"
configure "$site/torch" -DCHEXNET_WITH_CUDA=OFF
says "GPUs: none, as CHEXNET_WITH_CUDA is off"
check "no CUDA side is built" bash -c '! grep -q libchexnet_cuda "$1/build/build.ninja" "$1/build/Makefile" 2>/dev/null' - "$scratch"

ln -s "$include"/*.h "$include"/*.hpp "$include"/crt "$site/nvidia/cu13/include/" 2>/dev/null
mv "$site/nvidia/cu13/include/nccl.h" "$site/nvidia/nccl/include/"
ln -s "$lib"/libcudart.so.1* "$site/nvidia/cu13/lib/"
ln -s "$lib/libnccl.so.2" "$site/nvidia/nccl/lib/"
configure "$site/torch"
says "GPUs: sm_[0-9]+ .*, CUDA 1[23]"

# CUDA and NCCL in separate prefixes, as Spack and EasyBuild have them.
mkdir -p "$scratch"/{cuda,nccl}/lib64
mv "$site/nvidia/cu13/include" "$scratch/cuda/"; mv "$site/nvidia/nccl/include" "$scratch/nccl/"
mv "$site/nvidia/cu13/lib"/* "$scratch/cuda/lib64/"; mv "$site/nvidia/nccl/lib"/* "$scratch/nccl/lib64/"
configure "$site/torch" "-DCMAKE_PREFIX_PATH=$scratch/cuda;$scratch/nccl"
says "GPUs: sm_[0-9]+ .*, CUDA 1[23]"
finish
