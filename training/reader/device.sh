#!/bin/bash
# Trains and measures the reader on a machine with a GPU; results go to $OUT. Arguments go to train.py.
set -eo pipefail
cd "$(dirname "$0")/../.."
export PYTHONUNBUFFERED=1
test -f .cache/reader/sources.json.gz || { echo "no .cache/reader/sources.json.gz in $PWD: run training/reader/sources.py"; exit 3; }
nvidia-smi -L
python3 training/reader/train.py --out "$OUT/reader" "$@" 2>&1 | tee "$OUT/train.log"
python3 training/reader/evaluate.py "$OUT/reader/reader.pt" --rows "${ROWS:-2000}" --out "$OUT/predictions.jsonl" 2>&1 | tee "$OUT/eval.log"
