#!/usr/bin/env bash
# The trace on which the recorded dialogs were held, into the workspace. ENABLE is the program, `enablekit` by default.
set -euo pipefail
names="atan2 logaddexp copysign sign heaviside amax argmax cumsum var gather index_select masked_fill scatter_add flip roll
triu constant_pad_nd baddbmm dot linalg.cross nn.functional.softplus nn.functional.avg_pool2d nn.functional.smooth_l1_loss"
# shellcheck disable=SC2046  # a word an option
"${ENABLE:-enablekit}" capture opinfo $(printf -- '--op %s ' $names) --dtype float32 --dtype bfloat16
