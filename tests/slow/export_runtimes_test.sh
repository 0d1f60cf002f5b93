#!/usr/bin/env bash
# Exported networks by other people's software: the onnx checker, ONNX Runtime, OpenVINO and Triton's schema, on drawings and on real
# X-rays; within 1e-4 of predict, from the same pixels. Needs PyPI.
set -u
source tests/lib.sh
python_tools export numpy Pillow onnx onnxruntime openvino "tritonclient[grpc]" || { echo "skipped"; exit 77; }
python=$tools/python3
xray=$(cd "${CHEXNET_XRAY_DIR:-../shared/xray}" 2>/dev/null && pwd) && [ -d "$xray/nih352" ] || { echo "skipped: real X-rays (set CHEXNET_XRAY_DIR)"; xray=; }
config=$small data=()
if [ -n "$xray" ]; then
  config=$scratch/real.yaml
  { data_config "$xray/nih352" 352 320; printf 'model: {weights: none}\nlaunch: {device: cpu}\n'; } >"$config"
  data=(--set data.val_fraction=0 --set data.train_list="$xray/nih352/train_list.txt")
  sed -n '1,24p' "$xray/nih352/test_list.txt" | tr -d '\r' | sed "s|^|$xray/nih352/images/|" >"$scratch/list"
fi
check_export() { "$python" scripts/reference/check_export.py "$@"; }
for run in densenet121:fp32 densenet121:bf16 resnet50:fp32; do
  arch=${run%:*} precision=${run#*:} folder=$scratch/$arch-$precision
  # Trained at few pixels and evaluated at 320: a network whose statistics are of pictures.
  check "$arch, trained in $precision" "$program" train "$config" "${data[@]}" --out "$folder" --set model.arch=$arch --set train.precision=$precision \
    --set train.batch=8 --set train.max_steps=12 --set eval.splits=[] 2>"$scratch/log"
  check "exports" "$program" export "$folder" --out "$folder.gray" 2>"$scratch/log"
  check "exports for float in and logits out" "$program" export "$folder" --out "$folder.float" --input float --output logits 2>"$scratch/log"
  predicted=()
  if [ -n "$xray" ]; then
    "$program" predict "$folder" "@$scratch/list" --set train.precision=fp32 --out "$scratch/$arch.csv" 2>"$scratch/log"
    predicted=(--predicted "$scratch/$arch.csv")
  fi
  for folder in "$folder.gray" "$folder.float"; do
    check "$(basename "$folder") as predict" check_export "$folder" --runtime onnx --runtime onnxruntime --runtime openvino "${predicted[@]}"
  done
done
check "Triton's own schema takes config.pbtxt" "$python" -c '
import sys
from google.protobuf import text_format
from tritonclient.grpc import model_config_pb2
for path, kind in zip(sys.argv[1:], ("TYPE_FP32", "TYPE_UINT8")):
    config = text_format.Parse(open(path).read(), model_config_pb2.ModelConfig())
    assert config.platform == "onnxruntime_onnx" and config.max_batch_size == 32
    assert model_config_pb2.DataType.Name(config.input[0].data_type) == kind
    assert list(config.output[0].dims) == [14] and config.output[0].label_filename == "labels.txt"' "$folder/config.pbtxt" "$scratch/densenet121-fp32.gray/config.pbtxt"
# PYTHONS names interpreters to look for the libraries in (default: python3).
read -ra pythons <<<"${PYTHONS:-python3}"
for library in torchvision torchxrayvision; do
  torch=
  for python in "${pythons[@]}"; do "$python" -c "import torch, $library, safetensors, PIL" 2>/dev/null && torch=$python; done
  [ -n "$torch" ] || { echo "skipped: no Python with PyTorch, $library, safetensors and Pillow among: ${pythons[*]}"; continue; }
  for run in densenet121-fp32 resnet50-fp32; do
    check "weights of $run" "$program" export "$scratch/$run" --weights $library --out "$scratch/$run.$library" 2>"$scratch/log"
    check "$library loads them and gives the same" "$torch" scripts/reference/check_weights.py "$scratch/$run.$library" $library
  done
done
folder=$scratch/densenet121-fp32.gray
printf 'x' >>"$folder/model.onnx"
check "a changed file is found" sh -c "! '$python' scripts/reference/check_export.py '$folder' 2>/dev/null"
finish
