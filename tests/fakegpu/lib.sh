# Sourced by the tests of the fake GPU: the program with fake GPUs, whose memory the host cannot touch.
CHEXNET_PROGRAM=${CHEXNET_BUILD:-$PWD/build/release}/chexnet-train-fake
[ -x "$CHEXNET_PROGRAM" ] || { echo "skipped: $CHEXNET_PROGRAM is not built (it needs the CUDA headers of LibTorch's wheel, and a build that is not portable)"; exit 77; }
source tests/lib.sh
export FAKE_CUDA_DEVICES=4 FAKE_CUDA_DELAY_US=${FAKE_CUDA_DELAY_US:-20}
fake=(--set launch.device=fake --set train.precision=fp32)  # a GPU's auto is bf16, in which the CPU takes eight times as long
cpu=(--set launch.device=cpu --set train.engine=aten)
# The self-test of a first run is made here, once for a build: in the tests faults are counted from the first step on.
export XDG_CACHE_HOME=$CHEXNET_BUILD/test-cache
contact=$XDG_CACHE_HOME/made
if [ ! "$contact" -nt "$CHEXNET_PROGRAM" ] || [ ! "$contact" -nt "$CHEXNET_BUILD/libchexnet_fakegpu.so" ]; then
  for ranks in 1 2; do
    mpi $ranks train "$small" "${fake[@]}" --set train.max_steps=1 --set eval.splits=[] --out "$scratch/contact-$ranks" 2>"$scratch/log" || tail -n 5 "$scratch/log"
  done
  mkdir -p "$XDG_CACHE_HOME" && touch "$contact"
fi
