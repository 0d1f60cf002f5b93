#!/usr/bin/env bash
# Includes point left only: core -> config -> machine -> launch -> comm -> watch -> image -> storage -> data -> eval -> checkpoint -> report -> run -> engine -> model -> train -> app.
# The folders before model see no LibTorch.
set -u
order=(core config machine launch comm watch image storage data eval checkpoint report run engine model train app)
bad=0
for i in "${!order[@]}"; do
  for ((j = i + 1; j < ${#order[@]}; ++j)); do
    if grep -rn "include \"chexnet/${order[j]}/" "include/chexnet/${order[i]}" "src/${order[i]}"; then
      echo "^ ${order[i]} must not include ${order[j]}"; bad=1
    fi
  done
done
for folder in core config machine launch comm watch image storage data engine eval; do
  if grep -rnE 'include <(ATen|torch|c10)/' "include/chexnet/$folder" "src/$folder"; then echo "^ $folder must not see LibTorch"; bad=1; fi
done
if grep -rn 'include <torch/torch.h>' include src; then echo '^ torch/torch.h costs 16 s a file'; bad=1; fi
files=$(find include/chexnet -name '*.hpp' | wc -l)
[ "$files" -gt 30 ] || { echo "only $files headers found: wrong folder?"; bad=1; }
exit $bad
