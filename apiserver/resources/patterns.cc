#include "apiserver/resources/patterns.h"

#include <fmt/format.h>
#include <re2/re2.h>

#include <algorithm>
#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

namespace lookout::apiserver::resources {
namespace {

namespace rules = api::validation;

/// The maximum size of a compiled pattern: over a million instructions, each of which may run for
/// every character of a text in the worst case, and a second to compile. {1,1000} of all Unicode
/// letters and digits fits.
constexpr std::int64_t kMaxBytes = 32 << 20;

/// The maximum number of cached instructions, of 16 bytes each, plus about as much for matching.
constexpr std::size_t kMostInstructions = 4'000'000;

re2::RE2::Options options() {
  re2::RE2::Options out;
  out.set_log_errors(false);
  out.set_max_mem(kMaxBytes);
  return out;
}

re2::StringPiece piece(std::string_view text) { return {text.data(), text.size()}; }

/// The size of an escape, a quote or a class: "\(", "\Q...\E", "[(?<]".
std::size_t literal_size(std::string_view pattern) {
  const auto until = [&](std::string_view end, std::size_t from) {
    const std::size_t found = pattern.find(end, from);
    return found == std::string_view::npos ? pattern.size() : found + end.size();
  };
  if (pattern.starts_with("\\Q")) return until("\\E", 2);
  if (pattern.starts_with('\\')) return std::min<std::size_t>(2, pattern.size());
  if (!pattern.starts_with('[')) return 0;
  std::size_t size = pattern.starts_with("[^") ? 2 : 1;
  if (pattern.substr(size).starts_with(']'))
    ++size;  // at the start, ']' is a character of the class
  while (size < pattern.size() && pattern[size] != ']') {
    if (pattern.substr(size).starts_with("[:")) {
      size = until(":]", size + 2);
    } else {
      size += pattern[size] == '\\' ? 2u : 1u;
    }
  }
  return std::min(size + 1, pattern.size());
}

/// Go accepts "(?<name>" and "(?P<name>", old versions of RE2 only the latter.
std::string with_old_names(std::string_view pattern) {
  constexpr std::string_view kName = "(?<";
  std::string out;
  while (!pattern.empty()) {
    std::size_t size = literal_size(pattern);
    const bool lookbehind = pattern.size() > kName.size() &&
                            (pattern[kName.size()] == '=' || pattern[kName.size()] == '!');
    if (size == 0 && pattern.starts_with(kName) && !lookbehind) {
      out += "(?P<";
      size = kName.size();
    } else {
      size = std::max<std::size_t>(size, 1);
      out += pattern.substr(0, size);
    }
    pattern.remove_prefix(size);
  }
  return out;
}

/// A cache of compiled patterns. Thread-safe.
class CompiledPatterns {
 public:
  std::shared_ptr<const re2::RE2> get(std::string_view pattern) {
    if (auto known = find(pattern)) return known;
    // Compile without the lock, because this may take a second.
    auto compiled = std::make_shared<const re2::RE2>(with_old_names(pattern), options());
    const auto size = static_cast<std::size_t>(std::max(compiled->ProgramSize(), 1));
    const std::lock_guard lock(mutex_);
    if (instructions_ + size > kMostInstructions) {
      patterns_.clear();
      instructions_ = 0;
    }
    const auto [entry, is_new] = patterns_.try_emplace(std::string(pattern), std::move(compiled));
    if (is_new) instructions_ += size;
    return entry->second;
  }

 private:
  std::shared_ptr<const re2::RE2> find(std::string_view pattern) {
    const std::lock_guard lock(mutex_);
    const auto found = patterns_.find(pattern);
    return found == patterns_.end() ? nullptr : found->second;
  }

  std::mutex mutex_;
  std::map<std::string, std::shared_ptr<const re2::RE2>, std::less<>> patterns_;
  std::size_t instructions_ = 0;
};

std::shared_ptr<const re2::RE2> compile(std::string_view pattern) {
  static CompiledPatterns patterns;
  return patterns.get(pattern);
}

}  // namespace

bool matches_pattern(std::string_view pattern, std::string_view text) {
  const auto regex = compile(pattern);
  return !regex->ok() || re2::RE2::PartialMatch(piece(text), *regex);
}

void validate_patterns(api::Value schema, const std::string& path, Causes& causes) {
  if (const auto pattern = schema["pattern"].to_string_view(); pattern && !pattern->empty()) {
    const auto regex = compile(*pattern);
    if (regex->error_code() == re2::RE2::ErrorPatternTooLarge) {
      causes.push_back(rules::invalid(path + ".pattern", *pattern, "is too hard to match"));
    } else if (!regex->ok()) {
      causes.push_back(rules::invalid(path + ".pattern", *pattern,
                                      "must be a valid regular expression, but isn't: error "
                                      "parsing regexp: " +
                                          regex->error()));
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
