#!/usr/bin/env python3
"""Checks the names that are local to a source (in an unnamed namespace).

Several sources of a library may be compiled as one (LOOKOUT_UNITY).
A local name of one of them must not hide a name that another one means. In the same namespace the compiler finds two
of a name; this finds local names that hide a header's, or those of a source in a namespace around it.

usage: scripts/check-local-names.py (in the project's folder)
"""
import collections
import re
import subprocess
import sys

# Each is compiled into separate libraries.
FOLDERS = ("api/", "apiserver/", "base/", "cmd/", "controller/", "informer/", "registry/", "rest/", "testing/", "tools/")

# Declarations at the start of a line, in a namespace (clang-format does not indent them).
DECLARATIONS = (
    re.compile(r"(?:template <[^>]*> )?(?:class|struct|enum class) (\w+)"),
    re.compile(r"using (\w+) ="),
    re.compile(r"(?:inline |static )*(?:const|constexpr)\b.*?\b(k[A-Z]\w*)\b"),
    re.compile(
        r"(?!(?:return|namespace|using|template|class|struct|enum|else|if|for|while|switch|case)\b)"
        r"[\w:<>,&*\[\] ]+?[ *&](\w+)\("
    ),
)


def is_short(lines):
    """Whether a namespace of these and further lines ends without a comment, as one of constants does."""
    for line in lines:
        if line.startswith("}"):
            return line == "}"
        if line and line[0] not in " #/" and line.endswith("{"):
            return False
    return False


def scan(path):
    """The namespaces that a file has code in, and the names declared there: (name, namespace, whether it is local)."""
    names, opened, scopes = [], [], set()
    with open(path, encoding="utf-8") as source:
        lines = source.read().splitlines()
    for at, line in enumerate(lines):
        if begins := re.match(r"(?:inline )?namespace ?([\w:]*) \{$", line):
            if not is_short(lines[at + 1 :]):
                opened.append(begins[1])
                scopes.add("::".join(filter(None, opened)))
        elif line.startswith("}  // namespace") and opened:
            opened.pop()
        elif line and line[0] not in " /#})":
            declared = next((found for form in DECLARATIONS if (found := form.match(line))), None)
            if declared:
                names.append((declared[1], "::".join(filter(None, opened)), "" in opened))
    return scopes, names


def main():
    files = subprocess.run(["git", "ls-files", "*.h", "*.cc"], capture_output=True, text=True, check=True).stdout.split()
    visible = collections.defaultdict(set)  # by name: its namespaces, and where
    local, scopes = [], {}
    for path in files:
        if path.startswith(("tests/", "examples/", "bench/")):
            continue
        scopes[path], names = scan(path)
        for name, scope, is_local in names:
            if is_local and path.startswith(FOLDERS):
                local.append((name, scope, path))
            if path.endswith(".h") or (is_local and path.startswith(FOLDERS)):
                visible[name].add((scope, path))

    def may_hide(scope, path, outer, where):
        if where == path or not scope.startswith(outer + "::"):
            return False
        return where.endswith(".h") or (where.split("/")[0] == path.split("/")[0] and scope in scopes[where])

    wrong = sorted(
        {
            f"{path}: {scope}::{name} hides {outer}::{name} of {where}"
            for name, scope, path in local
            for outer, where in visible[name]
            if may_hide(scope, path, outer, where)
        }
    )
    for one in wrong:
        print(one)
    if wrong:
        print("Give the first of each two another name: sources may be compiled as one (LOOKOUT_UNITY).")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
