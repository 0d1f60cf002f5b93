#!/usr/bin/env bash
# The program over a fake driver (tests/fakes/cuda_driver.c) and, where they are set up, the real CUDA libraries: whatever keeps
# GPUs from being used ends it with exit code 5 and one sentence, never with a signal, and launch.device=cpu goes round it.
source "$(dirname "$0")/../lib.sh"
export LD_LIBRARY_PATH=$CHEXNET_BUILD/fakes/cuda_driver
c4140=$source_folder/tests/launch/machine/machines/c4140.xml
quiet() { "$@" >/dev/null; }
step=(bench step --size 32 --batch 1 --steps 1)
# over FAKE_DRIVER [VARIABLE=VALUE]... -- ARGUMENTS OF refused OR check
over() {
  local set=("FAKE_DRIVER=$1"); shift
  while [ "$1" != -- ]; do set+=("$1"); shift; done
  shift
  local word rc=0
  for word in "${set[@]}"; do export "${word?}"; done
  "$@" || rc=$?
  for word in "${set[@]}"; do unset "${word%%=*}"; done
  return $rc
}
over gpus=0 -- check "no GPU on this machine: computes on the CPU" quiet "$program" "${step[@]}" --json
over gpus=0 HWLOC_XMLFILE="$c4140" -- refused 5 "this host has 4 NVIDIA GPUs, but the driver shows none" "${step[@]}"
over gpus=0 HWLOC_XMLFILE="$c4140" CUDA_VISIBLE_DEVICES=9 -- refused 5 'whose CUDA_VISIBLE_DEVICES is "9"' "${step[@]}"
over gpus=0 HWLOC_XMLFILE="$c4140" -- check "launch.device=cpu goes round hidden GPUs" quiet "$program" "${step[@]}" --device cpu --json
over gpus=0 HWLOC_XMLFILE="$c4140" CUDA_VISIBLE_DEVICES=$'\e[31m' -- refused 5 'whose CUDA_VISIBLE_DEVICES is "\x1b[31m"' "${step[@]}"
over gpus=0 SLURM_JOB_ID=1 SLURM_GPUS_ON_NODE=2 -- refused 5 "the batch job was given 2 GPUs on this host, but" "${step[@]}"
over init=803 -- refused 5 "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH). Hint: restart this host" "${step[@]}"
over "gpus=4 version=11040" -- refused 5 "the NVIDIA driver is too old: it serves CUDA 11.4" "${step[@]}"
over "gpus=4 version=11040" -- refused 5 "Hint: a newer driver; launch.device=cpu" "${step[@]}"  # cuda12 would refuse it too
over "gpus=4 version=12080" -- refused 5 "Hint: a newer driver, or variant cuda12" "${step[@]}"
over "gpus=4 sm=37" -- refused 5 "is of architecture sm_37, and this build" "${step[@]}"
if [ -e "$CHEXNET_BUILD/torch/libcudnn.so.9" ]; then
  over gpus=4 -- refused 5 "cannot use the driver's GPUs: " "${step[@]}"
else
  echo "skipped: the CUDA runtime's own word needs the libraries of scripts/setup --gpu"
fi

# doctor finds the same before a job does, as a row among the others.
export LD_LIBRARY_PATH=$LD_LIBRARY_PATH:$CHEXNET_BUILD/fakes/fake_nvml
over "gpus=4 sm=37" FAKE_NVML="$source_folder/tests/launch/machine/machines/v100x4.yaml" HWLOC_XMLFILE="$c4140" -- \
  "$program" doctor --folder "$scratch" >"$scratch/doctor.txt" 2>"$scratch/err.txt"
rows() { check "doctor: $1" grep -qE -- "$1" "$scratch/doctor.txt"; }
rows "^FAIL  CUDA .*is of architecture sm_37"
rows "^WARN  GPU 0 .*process 100 uses it"
rows "^WARN  GPU 1 .*clock is held down: hardware slowdown, hardware thermal"
rows "^FAIL  GPU 2 .*3 uncorrected memory errors"
rows "^WARN  GPU 3 .*process 4711 uses it"
rows "^PASS  visible GPUs .*4 of 4"

# Asked for a GPU where there is none, it has its rows all the same.
rc=0; over gpus=0 -- "$program" doctor --device cuda --folder "$scratch" >"$scratch/doctor.txt" 2>"$scratch/err.txt" || rc=$?
check "doctor --device cuda without a GPU: exit code $rc" test $rc = 5
rows "^FAIL  CUDA .*no NVIDIA GPU is on this host's bus"
rows "^SKIP  self-test "

# A set-up without the libraries that a GPU run loads: as this build, but LibTorch's folder holds the -build wheels' alone.
mkdir -p "$scratch/login/torch"
cp "$CHEXNET_BUILD/chexnet-train" "$CHEXNET_BUILD/libchexnet_cuda.so" "$scratch/login/"
for library in libtorch libc10 libcaffe2 libcudart libcupti libgomp libnccl; do
  ln -s "$(readlink -f "$CHEXNET_BUILD/torch")/$library"* "$scratch/login/torch/"
done
program=$scratch/login/chexnet-train
over "gpus=4" -- refused 5 "a set-up on a machine without a GPU leaves out what a GPU run loads: scripts/setup --gpu --cuda cuda1" "${step[@]}"
# On a host without a GPU doctor reports it all the same.
over gpus=0 -- "$program" doctor --folder "$scratch" >"$scratch/doctor.txt" 2>"$scratch/err.txt"
rows "^SKIP  CUDA .*no GPU here, and none could be used elsewhere: "
rows "-> a set-up on a machine without a GPU leaves out what a GPU run loads"
# One of those libraries, or of the driver's, that was not copied whole.
for library in libnccl.so libc10_cuda.so; do
  link=$(ls "$scratch/login/torch/$library"*); file=$(readlink -f "$link")
  [ -e "$file" ] || continue
  rm "$link"; head -c $(($(stat -c %s "$file") / 2)) "$file" >"$link"
  over "gpus=4" -- refused 5 "error: [libraries] $link: is cut off, or its storage failed" "${step[@]}"
  rm "$link"; ln -s "$file" "$link"
done
for library in cuda_driver/libcuda.so.1 fake_nvml/libnvidia-ml.so.1; do
  mkdir -p "$scratch/cut"; head -c 3000 "$CHEXNET_BUILD/fakes/$library" >"$scratch/cut/${library#*/}"
  LD_LIBRARY_PATH=$scratch/cut refused 5 "error: [libraries] $scratch/cut/${library#*/}: is cut off" doctor --folder "$scratch"
  rm -r "$scratch/cut"
done
truncate -s 100000 "$scratch/login/libchexnet_cuda.so"
over "gpus=4" -- refused 5 "libchexnet_cuda.so: is damaged: its headers speak of" "${step[@]}"
rm "$scratch/login/libchexnet_cuda.so"
over "gpus=4" -- refused 5 "libchexnet_cuda.so: not found beside the program" "${step[@]}"
finish
