// YAML (and so JSON) from outside, read within bounds.
#pragma once

#include <cstddef>
#include <deque>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lookout/base/error.h"

namespace lookout {

/// One value of a document.
struct YamlNode {
  enum class Kind { kNull, kScalar, kSequence, kMap };

  Kind kind = Kind::kNull;
  bool quoted = false;  // of a scalar: it is text whatever it looks like
  int line = 0;         // where it begins, from 1
  std::string text;     // of a scalar
  std::vector<const YamlNode*> items;
  std::vector<std::pair<std::string, const YamlNode*>> fields;

  /// The field of a map, the last one if there are several (as Go's reader has it), or null.
  const YamlNode* find(std::string_view key) const;
};

/// Text that is no YAML, or goes beyond the limits. The message repeats nothing of the text, which
/// may hold secrets.
class YamlError : public Error {
 public:
  YamlError(int line, const std::string& message) : Error(message), line_(line) {}
  int line() const { return line_; }

 private:
  int line_;
};

/// The most that a document may cost. Aliases count with everything they stand for, so that a few
/// anchors cannot grow into a billion values when the tree is walked.
struct YamlLimits {
  int depth = 64;
  std::size_t nodes = 200'000;
  /// Brackets, commas, quotes, colons: yaml-cpp reads a flow collection to its end before it says
  /// anything about it, and needs a few hundred bytes for each of these.
  std::size_t indicators = 500'000;
  std::size_t expanded_nodes = 400'000;
  std::size_t expanded_bytes = 16u << 20;
};

/// The first document of a text, as a tree. Merge keys ("<<") are resolved.
class YamlTree {
 public:
  /// Throws YamlError.
  explicit YamlTree(std::string_view text, const YamlLimits& limits = {});

  const YamlNode& root() const { return *root_; }

 private:
  std::deque<YamlNode> nodes_;
  const YamlNode* root_ = nullptr;
};

/// The words that YAML 1.1, and with it every Kubernetes tool, takes for true or false.
bool is_yaml_true(std::string_view word);
bool is_yaml_false(std::string_view word);

/// The value as JSON. Scalars become numbers only where JSON writes the number the same way.
std::string to_json(const YamlNode& node);

}  // namespace lookout
