#include "api/codegen/crd_names.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <map>

#include "api/codegen/global_names.h"
#include "api/codegen/naming.h"
#include "lookout/base/ascii.h"

namespace lookout::codegen {
namespace {

using base::is_alnum;
using base::is_digit;
char upper(char c) { return static_cast<char>(std::toupper(static_cast<unsigned char>(c))); }

/// The letters and digits of a name, with a capital at the start of each word.
std::string words_of(std::string_view name) {
  std::string out;
  bool capital = true;
  for (const char c : name) {
    if (c == '$') {
      out += "Dollar";
      capital = true;
    } else if (!is_alnum(c)) {
      capital = true;
    } else {
      out += capital ? upper(c) : c;
      capital = false;
    }
  }
  return out;
}

std::string_view symbol_word(char c) {
  static const std::map<char, std::string_view> kWords = {
      {'!', "Not"},   {'#', "Hash"},  {'%', "Percent"},    {'&', "And"},     {'*', "Asterisk"},
      {'+', "Plus"},  {',', "Comma"}, {'-', "Minus"},      {'.', "Dot"},     {'/', "Slash"},
      {':', "Colon"}, {'<', "Less"},  {'=', "Equal"},      {'>', "Greater"}, {'?', "Question"},
      {'@', "At"},    {'^', "Caret"}, {'_', "Underscore"}, {'|', "Or"},      {'~', "Tilde"},
      {' ', "Space"}};
  const auto it = kWords.find(c);
  return it == kWords.end() ? "Other" : it->second;
}

}  // namespace

std::string pascal_name(std::string_view name) {
  std::string out = words_of(name);
  if (out.empty()) return "Field";
  return is_digit(out.front()) ? "N" + out : out;
}

std::string member_name(std::string_view json_name) {
  std::string plain;
  // Independent of the locale, only these are letters below.
  for (const char c : json_name) plain += is_alnum(c) || c == '$' ? c : '_';
  std::string out;
  for (const char c : accessor_name(plain)) {
    // Two underscores in a row belong to the implementation.
    if (c != '_' || (!out.empty() && out.back() != '_')) out += c;
  }
  if (json_name == "template") return "template_";
  if (out.empty()) return "field";
  return is_digit(out.front()) ? "field_" + out : out;
}

std::string enumerator_name(std::string_view value) {
  if (value.empty()) return "kEmpty";
  std::string out = words_of(value);
  if (out.empty() || out == "Dollar") {
    out.clear();
    for (const char c : value) out += c == '$' ? "Dollar" : symbol_word(c);
  }
  // Enumerations may contain both "-1" and "1", or "!x" and "x".
  if (value.size() > 1 && is_alnum(value[1]) && (value[0] == '-' || value[0] == '!'))
    out.insert(0, symbol_word(value[0]));
  return "k" + out;
}

std::string enumerator_name(std::int64_t value) {
  const std::string digits = std::to_string(value);
  return value < 0 ? "kMinus" + digits.substr(1) : "k" + digits;
}

std::string namespace_name(std::string_view name) {
  std::string out;
  for (const char c : name) {
    // Two underscores in a row belong to the implementation.
    if (is_alnum(c) || out.empty() || out.back() != '_') out += is_alnum(c) ? c : '_';
  }
  if (out.empty() || is_digit(out.front())) out.insert(0, "g");
  return is_reserved(out) || is_global_name(out) ? out + "_" : out;
}

bool is_namespace(std::string_view name) {
  for (;;) {
    const std::size_t end = std::min(name.find("::"), name.size());
    const std::string_view part = name.substr(0, end);
    if (part.empty() || is_digit(part.front()) || is_reserved(part) ||
        !std::ranges::all_of(part, [](char c) { return is_alnum(c) || c == '_'; })) {
      return false;
    }
    if (end == name.size()) return true;
    name.remove_prefix(end + 2);
  }
}

std::string cpp_literal(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    // Escape the second of two question marks: trigraphs cause warnings.
    if (c == '"' || c == '\\' || (c == '?' && out.back() == '?')) {
      out += '\\';
      out += c;
    } else if (byte < 0x20 || byte >= 0x7F) {
      // Three octal digits, so that a following digit is not part of the escape.
      out += fmt::format("\\{:03o}", byte);
    } else {
      out += c;
    }
  }
  return out + '"';
}

std::string NameScope::claim(const std::string& base, const Also& also) {
  for (int i = 1;; ++i) {
    std::string name = i == 1                ? base
                       : base.ends_with('_') ? fmt::format("{}{}", base, i)
                                             : fmt::format("{}_{}", base, i);
    std::set<std::string> all = also ? also(name) : std::set<std::string>();
    all.insert(name);
    if (std::ranges::any_of(all, [&](const std::string& n) { return taken_.contains(n); }))
      continue;
    taken_.merge(all);
    return name;
  }
}

}  // namespace lookout::codegen
