#!/usr/bin/env bash
# export: a folder that others can use and check. The ONNX file is read here without packages; whether it computes what the network
# does is tests/model/onnx_test.cpp's and, by runtimes, tests/slow/export_runtimes_test.sh's.
set -u
source tests/lib.sh
checks=$source_folder/tests/app/export_checks.py
fork_starts
export PYTHONPATH=$source_folder/tests/support
train() { "$program" train "$small" --out "$scratch/$1" --set model.arch="$2" --set train.max_steps=2 --set data.val_fraction=0 --set eval.splits=[] "${@:3}" 2>"$scratch/log"; }
shared_run plain "$scratch/dense" || exit 1
check "a ResNet, in bf16" train res resnet50 --set train.precision=bf16 --set data.val_fraction=0.2
cd "$scratch"

"$program" export dense --out d --json >d.json 2>log; check "exports the DenseNet" [ $? = 0 ]
check "exports the ResNet: float in, logits out" "$program" export res --out r --input float --output logits 2>log
for folder in d r; do
  check "$folder: sha256sum agrees" sh -c "cd $folder && sha256sum --quiet -c SHA256SUMS"
  check "$folder: with all files" [ "$(cd $folder && find . -type f ! -name SHA256SUMS | wc -l)" = "$(wc -l <$folder/SHA256SUMS)" ]
done
check "no patient, path, host or user in what is text" sh -c "! grep -rlE '$(hostname)|$scratch|$CHEXNET_BUILD|/tmp/|[0-9]{8}_[0-9]{3}' d/*.json d/*.txt d/*.pbtxt"
check "the ONNX files hold the checkpoints' numbers, each node's inputs are known" python3 "$checks" onnx_files

# Vectors: predict's own probabilities of the drawings.
for name in d:dense r:res; do
  folder=${name%:*} run=${name#*:}
  "$program" predict "$run" $folder/vectors/00[0-7].png --set train.precision=fp32 --json >vectors.out 2>log
  check "$folder: predict gives the vectors' probabilities" python3 "$checks" vectors $folder
done
check "the same export twice" "$program" export dense --out again 2>log
check "is equal, byte for byte" diff -r d again

# Weights for other libraries, and back.
check "torchvision's weights" "$program" export dense --weights torchvision --out tv 2>log
check "torchxrayvision's" "$program" export dense --weights torchxrayvision --out xrv 2>log
check "the ResNet's" "$program" export res --weights torchxrayvision --out xrv_res 2>log
check "no ONNX and no Triton beside them" [ "$(cd tv && echo *)" = "SHA256SUMS labels.json preprocessing.json vectors vectors.json weights.safetensors" ]
check "thresholds of a model that was scored on validation" python3 "$checks" thresholds
check "names and shapes as load_state_dict takes them" python3 "$checks" weights
"$program" predict dense d/vectors/000.png --out own.csv 2>log
"$program" predict tv/weights.safetensors d/vectors/000.png --out tv.csv 2>log
check "torchvision's weights predict the same" cmp own.csv tv.csv
check "the ResNet has thresholds" grep -q decision_rules res/checkpoints/last/model.safetensors
check "its file for torchxrayvision has none, as they are of other weights" sh -c '! grep -q decision_rules xrv_res/weights.safetensors'
check "and it is read" "$program" predict xrv_res/weights.safetensors d/vectors/000.png --out xrv_res.csv 2>log
check "torchxrayvision's are read" "$program" predict xrv/weights.safetensors d/vectors/000.png --out xrv.csv 2>log
check "and nearly predict it: but for the picture's edge" look '
worst = max(abs(float(value) - float(b[0][name])) for name, value in a[0].items() if name.startswith("prob:"))
print("torchxrayvision: largest difference at 32 pixels", worst)
assert 0 < worst < 0.2' {own,xrv}.csv
check "model.weights takes a torchxrayvision file" "$program" train "$small" --out "$scratch/tuned" --set model.weights="$scratch/xrv/weights.safetensors" --set train.max_steps=1 --set data.val_fraction=0 --set eval.splits=[] 2>log
check "and says how it was read" grep -q "the first convolution has one channel: taken for TorchXRayVision's" log

# And as a model again, from a file that does not say whose it is.
python3 "$checks" foreign tv/weights.safetensors reproduction.safetensors
size=(--set data.resize=36 --set data.crop=32)
check "import makes a model of it" "$program" import reproduction.safetensors --findings d/labels.txt --out back.safetensors "${size[@]}" 2>log
check "and says how it was read" grep -q "read by other names, e.g. module.densenet121.classifier.0.bias as classifier.bias" log
"$program" predict back.safetensors d/vectors/000.png --out back.csv 2>log
check "it predicts the same" cmp own.csv back.csv
names=-,$(sed 1d d/labels.txt | paste -sd,)
check "an output can be left out" "$program" import reproduction.safetensors --findings "$names" --out fewer.safetensors "${size[@]}" 2>log
"$program" predict fewer.safetensors d/vectors/000.png --out fewer.csv 2>log
check "and the others stay what they were" look '
first = next(name for name in a[0] if name.startswith("prob:"))
assert {name: value for name, value in a[0].items() if name != first} == dict(b[0])' {own,fewer}.csv
check "model.weights takes it, findings by name" "$program" train "$small" --out "$scratch/from-import" --set model.weights="$scratch/back.safetensors" --set train.max_steps=1 --set data.val_fraction=0 --set eval.splits=[] 2>log
check "all of them" grep -q "classifier taken over by name: $(sed 's/_/./g;q' d/labels.txt)" log
refused 2 "does not name the 14 outputs of its classifier. Hint: --findings" import reproduction.safetensors --out new.safetensors
refused 2 "names 2 outputs, and the classifier of reproduction.safetensors has 14" import reproduction.safetensors --findings A,B --out new.safetensors
refused 2 "'Mass' appears twice" import reproduction.safetensors --findings Mass,Mass,-,-,-,-,-,-,-,-,-,-,-,- --out new.safetensors
refused 4 "is a model of this program already" import back.safetensors --out new.safetensors
refused 4 "back.safetensors: is there already" import reproduction.safetensors --findings d/labels.txt --out back.safetensors
refused 8 "--findings nolabels.txt: no such file" import reproduction.safetensors --findings nolabels.txt --out new.safetensors
refused 2 "data.crop: larger than data.resize" import reproduction.safetensors --findings d/labels.txt --set data.crop=300 --out new.safetensors
refused 2 "--set model.arch: says nothing of the input" import reproduction.safetensors --findings d/labels.txt --set model.arch=resnet50 --out new.safetensors
python3 "$checks" foreign tv/weights.safetensors larger.safetensors features.denseblock1.denselayer7.conv1.weight
refused 4 "is another network: 1 tensor that DenseNets" import larger.safetensors --findings d/labels.txt --out new.safetensors
python3 "$checks" foreign tv/weights.safetensors named.safetensors Mass,Nodule
refused 4 "named.safetensors: names 2 outputs, and the classifier" import named.safetensors --out new.safetensors
refused 2 "is no name" import reproduction.safetensors --findings $'\xff'",$(printf -- '-,%.0s' {1..12})A" --out new.safetensors
printf 'PK\003\004 and more' >net.pth
refused 4 "convert_weights.py net.pth net.safetensors" import net.pth --findings A --out new.safetensors
check "what is refused leaves nothing" [ ! -e new.safetensors ]

# Refusals.
cp -r d before
refused 4 "d: is there already, and nothing in it is replaced" export dense --out d
check "nothing was touched" diff -r d before
touch file
refused 4 "file: is there already" export dense --out file
refused 4 "nowhere/x: no folder can be made beside it" export dense --out nowhere/x
refused 4 "no checkpoint here" export "$phantom" --out new
refused 2 "s3://" export dense --out s3://bucket/x
refused 2 "--weights excludes" export dense --out new --weights torchvision --output logits
refused 2 "--weights" export dense --out new --weights keras
cp d/SHA256SUMS none.safetensors
refused 4 "none.safetensors" export none.safetensors --out new
check "no refused export left anything" [ -z "$(ls -A | grep -E '^new|partial')" ]
mkdir empty
check "an empty folder is taken" "$program" export tv/weights.safetensors --out empty/ 2>log
check "an exported file exports to the same network" cmp d/model.onnx empty/model.onnx
finish
