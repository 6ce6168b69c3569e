#include "api/codegen/naming.h"

#include <algorithm>
#include <cctype>
#include <set>
#include <vector>

namespace lookout::codegen {
namespace {

bool is_upper(char c) { return std::isupper(static_cast<unsigned char>(c)) != 0; }
char to_lower(char c) { return static_cast<char>(std::tolower(static_cast<unsigned char>(c))); }
char to_upper(char c) { return static_cast<char>(std::toupper(static_cast<unsigned char>(c))); }

}  // namespace

/// True for C++ keywords, for "typeof", "linux" and "unix" of the GNU dialects, and for lower-case
/// macros of the C library.
bool is_reserved(std::string_view word) {
  static const std::set<std::string_view> kWords = {
      "alignas",       "alignof",      "and",
      "and_eq",        "asm",          "assert",
      "auto",          "bitand",       "bitor",
      "bool",          "break",        "case",
      "catch",         "char",         "char16_t",
      "char32_t",      "char8_t",      "class",
      "co_await",      "co_return",    "co_yield",
      "compl",         "concept",      "const",
      "const_cast",    "consteval",    "constexpr",
      "constinit",     "continue",     "decltype",
      "default",       "delete",       "do",
      "double",        "dynamic_cast", "else",
      "enum",          "errno",        "explicit",
      "export",        "extern",       "false",
      "float",         "for",          "friend",
      "goto",          "if",           "inline",
      "int",           "linux",        "long",
      "major",         "makedev",      "minor",
      "mutable",       "namespace",    "new",
      "noexcept",      "not",          "not_eq",
      "nullptr",       "operator",     "or",
      "or_eq",         "private",      "protected",
      "public",        "register",     "reinterpret_cast",
      "requires",      "return",       "short",
      "signed",        "sizeof",       "static",
      "static_assert", "static_cast",  "struct",
      "switch",        "template",     "this",
      "thread_local",  "throw",        "true",
      "try",           "typedef",      "typeid",
      "typename",      "typeof",       "union",
      "unix",          "unsigned",     "using",
      "virtual",       "void",         "volatile",
      "wchar_t",       "while",        "xor",
      "xor_eq"};
  return kWords.contains(word);
}

std::string accessor_name(std::string_view json_name) {
  std::string out;
  for (std::size_t i = 0; i < json_name.size(); ++i) {
    const char c = json_name[i];
    if (c == '$') {
      out += "dollar_";
    } else if (!std::isalnum(static_cast<unsigned char>(c))) {
      out += '_';
    } else if (is_upper(c)) {
      const char before = i == 0 ? '\0' : json_name[i - 1];
      const char after = i + 1 < json_name.size() ? json_name[i + 1] : '\0';
      // A new word starts after a small letter or a digit, and at the last capital of a run
      // ("APIVersion" -> api_version); the plural of an acronym stays whole ("podIPs" -> pod_ips).
      const bool plural = after == 's' && i + 2 >= json_name.size();
      const bool starts_word =
          i > 0 &&
          (!is_upper(before) ||
           (after != '\0' && std::islower(static_cast<unsigned char>(after)) != 0 && !plural));
      if (starts_word && !out.empty() && out.back() != '_') out += '_';
      out += to_lower(c);
    } else {
      out += c;
    }
  }
  // All fields of this name are pod templates.
  if (out == "template") return "pod_template";
  if (is_reserved(out)) out += '_';
  return out;
}

std::string constant_name(std::string_view json_name) {
  std::string out = "k";
  // Distinguishes "Port" from "port".
  if (!json_name.empty() && is_upper(json_name.front())) out += "Capital";
  bool capital = true;
  for (const char c : json_name) {
    if (c == '$') {
      out += "Dollar";
      capital = true;
    } else if (!std::isalnum(static_cast<unsigned char>(c))) {
      capital = true;
    } else {
      out += capital ? to_upper(c) : c;
      capital = false;
    }
  }
  return out;
}

TypeName split_type_name(std::string_view full_name) {
  std::vector<std::string> parts;
  for (std::size_t start = 0; start <= full_name.size();) {
    const std::size_t dot = std::min(full_name.find('.', start), full_name.size());
    parts.emplace_back(full_name.substr(start, dot - start));
    start = dot + 1;
  }
  TypeName out;
  out.name = parts.back();
  out.version = parts[parts.size() - 2];
  out.group = parts[parts.size() - 3];
  // version.Info is the only type whose package has no version.
  if (out.version == "version") {
    out.group = "version";
    out.version = "v1";
  }
  return out;
}

}  // namespace lookout::codegen
