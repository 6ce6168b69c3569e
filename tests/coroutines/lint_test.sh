#!/usr/bin/env bash
# Checks that scripts/check-coroutines.sh finds exactly the marked lines of traps.cc.
set -euo pipefail
cd "$(dirname "$0")"

wanted=$(grep -n '// found$' traps.cc | cut -d: -f1)
found=$(../../scripts/check-coroutines.sh traps.cc 2>/dev/null | cut -d: -f2) && {
  echo "the check does not fail" >&2
  exit 1
}
diff <(echo "$wanted") <(echo "$found")
