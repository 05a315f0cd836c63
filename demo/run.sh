#!/usr/bin/env bash
# From a model to refined kernels, with recorded answers of a language model: no key, no network.
#
# The demo's library is the packaged one with two differences: it has no kernel for gelu_backward, and its
# embedding_dense_backward is right as long as no token occurs twice, which is so in simple tests and not in real text.
set -euo pipefail
cd "$(dirname "$0")/.."
BIN=${BIN:-.venv/bin}

DEMO=${DEMO:-.demo}

export ENABLE_WORKSPACE=$DEMO/workspace ENABLE_LIBRARY=$DEMO/library
rm -rf "$DEMO"
mkdir -p "$DEMO"
cp -r generate/kernels "$DEMO/library"
rm "$DEMO/library/pointwise/gelu_backward.py"
cp demo/embedding_dense_backward.py "$DEMO/library/indexing/"

run() {
  printf '\n$ enable %s\n' "$*"
  "$BIN/enable" "$@"
}

run capture nanogpt
run trace verify nanogpt
run coverage nanogpt
run refine nanogpt --only-failing --llm replay
run coverage nanogpt
