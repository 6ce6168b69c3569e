#!/usr/bin/env bash
# Checks that the code in the guides is code that CI compiles: each block of C++ in docs/guide/, and each indented one in
# docs/writing.md, stands, word for word, in the example that the page names.
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
