#!/usr/bin/env bash
# Checks that CI compiles the code in the guides: each C++ block in docs/guide/, and each indented one in docs/writing.md, must
# occur literally in the example that the page names. Also checks that the source files that pages name exist.
set -euo pipefail
cd "$(dirname "$0")/.."

python3 - docs/writing.md docs/guide/*.md <<'PYTHON'
import re, sys

failed = False
for page in sys.argv[1:]:
    text = open(page, encoding="utf-8").read()
    examples = re.findall(r"\]\((?:\.\./)+(examples/[\w/]+\.cc)\)", text)
    code = "".join(open(name, encoding="utf-8").read() for name in examples)
    code_blocks = r"```cpp\n(.*?)```" if "/guide/" in page else r"```cpp\n(  .*?)```"
    for block in re.findall(code_blocks, text, re.DOTALL):
        if block not in code:
            print(f"{page}: not in {', '.join(examples)}:\n{block}", file=sys.stderr)
            failed = True
sys.exit(failed)
PYTHON

# Paths are relative to the root, to include/ or, on a page of an example, to its folder.
mapfile -t pages < <(git ls-files '*.md')
missing=0
for page in "${pages[@]}"; do
  while read -r name; do
    [[ -e $name || -e include/$name || -e include/lookout/$name || -e $(dirname "$page")/$name || $page == docs/guide/* ]] ||
      { echo "$page: there is no $name" >&2 && missing=1; }
  done < <(grep -oE '\b(api|apiserver|base|bench|cmd|controller|examples|informer|lister|registry|rest|testing|tests|tools|include)/[A-Za-z0-9_./-]+\.(cc|h)\b' "$page" | sort -u)
done
exit "$missing"
