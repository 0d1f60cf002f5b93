# Sourced by the tests of the fake GPU: the program with made-up GPUs, whose memory the host cannot touch.
CHEXNET_PROGRAM=${CHEXNET_BUILD:-$PWD/build/release}/chexnet-train-fake
[ -x "$CHEXNET_PROGRAM" ] || { echo "skipped: $CHEXNET_PROGRAM is not built (it needs the CUDA headers of LibTorch's wheel)"; exit 77; }
source tests/lib.sh
export FAKE_CUDA_DEVICES=4 FAKE_CUDA_DELAY_US=${FAKE_CUDA_DELAY_US:-20}
fake=(--set launch.device=fake)
cpu=(--set launch.device=cpu --set train.engine=aten)
