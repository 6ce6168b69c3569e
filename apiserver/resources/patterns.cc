#include "apiserver/resources/patterns.h"

#include <fmt/format.h>
#include <re2/re2.h>

#include <functional>
#include <utility>

namespace lookout::apiserver::resources {
namespace {

namespace rules = api::validation;

/// The maximum size of a compiled pattern: some ten thousand instructions, each of which may run
/// for every character of a text in the worst case. {1,1000} of one character takes a fifth of it.
constexpr std::int64_t kMaxBytes = 1 << 20;

re2::RE2::Options options() {
  re2::RE2::Options out;
  out.set_log_errors(false);
  out.set_max_mem(kMaxBytes);
  return out;
}

re2::StringPiece piece(std::string_view text) { return {text.data(), text.size()}; }

}  // namespace

struct Patterns::Compiled {
  explicit Compiled(std::string_view pattern) : regex(piece(pattern), options()) {}
  re2::RE2 regex;
};

Patterns::Patterns() = default;
Patterns::~Patterns() = default;

bool Patterns::match(std::string_view pattern, std::string_view text) {
  auto found = compiled_.find(pattern);
  if (found == compiled_.end()) {
    found = compiled_.emplace(std::string(pattern), std::make_unique<Compiled>(pattern)).first;
  }
  const re2::RE2& regex = found->second->regex;
  return !regex.ok() || re2::RE2::PartialMatch(piece(text), regex);
}

void validate_patterns(api::Value schema, const std::string& path, Causes& causes) {
  if (const auto pattern = schema["pattern"].to_string_view(); pattern && !pattern->empty()) {
    const re2::RE2 regex(piece(*pattern), options());
    if (regex.error_code() == re2::RE2::ErrorPatternTooLarge) {
      causes.push_back(rules::invalid(path + ".pattern", *pattern, "is too hard to match"));
    } else if (!regex.ok()) {
      causes.push_back(rules::invalid(path + ".pattern", *pattern,
                                      "must be a valid regular expression, but isn't: error "
                                      "parsing regexp: " +
                                          regex.error()));
    }
  }
  for (const auto& [name, property] : schema["properties"].members())
    validate_patterns(property, fmt::format("{}.properties[{}]", path, name), causes);
  for (const char* part : {"items", "additionalProperties", "not"}) {
    if (schema[part].is_object())
      validate_patterns(schema[part], fmt::format("{}.{}", path, part), causes);
  }
  for (const char* combination : {"allOf", "anyOf", "oneOf"}) {
    std::size_t index = 0;
    for (const api::Value one : schema[combination].elements())
      validate_patterns(one, fmt::format("{}.{}[{}]", path, combination, index++), causes);
  }
}

}  // namespace lookout::apiserver::resources
