#include "api/codegen/naming.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <vector>

namespace lookout::codegen {
namespace {

bool is_upper(char c) { return std::isupper(static_cast<unsigned char>(c)) != 0; }
char to_lower(char c) { return static_cast<char>(std::tolower(static_cast<unsigned char>(c))); }
char to_upper(char c) { return static_cast<char>(std::toupper(static_cast<unsigned char>(c))); }

bool is_keyword(std::string_view word) {
  static constexpr std::array kWords = {
      std::string_view("auto"),    std::string_view("bool"),   std::string_view("continue"),
      std::string_view("default"), std::string_view("delete"), std::string_view("double"),
      std::string_view("enum"),    std::string_view("export"), std::string_view("float"),
      std::string_view("int"),     std::string_view("long"),   std::string_view("namespace"),
      std::string_view("new"),     std::string_view("not"),    std::string_view("operator"),
      std::string_view("private"), std::string_view("public"), std::string_view("short"),
      std::string_view("signed"),  std::string_view("static"), std::string_view("template"),
      std::string_view("this"),    std::string_view("union"),  std::string_view("unsigned"),
      std::string_view("virtual"), std::string_view("and"),    std::string_view("or"),
      std::string_view("requires")};
  return std::find(kWords.begin(), kWords.end(), word) != kWords.end();
}

}  // namespace

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
  if (is_keyword(out)) out += '_';
  return out;
}

std::string constant_name(std::string_view json_name) {
  std::string out = "k";
  // "Port" and "port" are two names.
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
  // version.Info is the one type whose package carries no version.
  if (out.version == "version") {
    out.group = "version";
    out.version = "v1";
  }
  return out;
}

}  // namespace lookout::codegen
