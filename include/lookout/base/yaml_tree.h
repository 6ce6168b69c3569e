// YamlTree: reads untrusted YAML (and JSON) within limits.
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
  bool quoted = false;  // scalars: the value is text, whatever it looks like
  int line = 0;         // the first line of the value, from 1
  std::string text;     // scalars only
  std::vector<const YamlNode*> items;
  /// An unquoted name is converted as to_json() converts values: "yes" is "true", "0400" is "256".
  std::vector<std::pair<std::string, const YamlNode*>> fields;

  /// The field of a map, or null. If a field is duplicated, the last one, as in Go's reader.
  const YamlNode* find(std::string_view key) const;
};

/// The text is not YAML or exceeds a limit. The message quotes nothing of the text, which may
/// contain secrets.
class YamlError : public Error {
 public:
  YamlError(int line, const std::string& message) : Error(message), line_(line) {}
  int line() const { return line_; }

 private:
  int line_;
};

/// Limits on the size of a document. An alias counts with everything that it refers to, so that a
/// few anchors cannot expand into a billion values when the tree is walked.
struct YamlLimits {
  int depth = 64;
  std::size_t nodes = 200'000;
  /// Brackets, commas, quotes, colons: yaml-cpp reads a flow collection to its end before it
  /// reports anything, and uses a few hundred bytes for each of these characters.
  std::size_t indicators = 500'000;
  std::size_t expanded_nodes = 400'000;
  std::size_t expanded_bytes = 16u << 20;
};

/// Limits for manifests of Kubernetes objects: the schemas of whole pods, twenty levels deep in one
/// CustomResourceDefinition, are usual.
YamlLimits manifest_limits();

/// One document of a text with several.
struct YamlDocument {
  std::string text;
  int first_line = 1;
  /// True if the text is read as JSON. Unlike YAML, JSON allows surrogate pairs and names of any
  /// length.
  bool is_json = false;
};
/// Splits a text as kubectl does: at lines that begin with "---", and after each JSON object at the
/// beginning. After one JSON object, the rest may be YAML; after several, it must be JSON.
std::vector<YamlDocument> split_yaml_documents(std::string_view text);

/// The first document of a text, as a tree. Resolves merge keys ("<<").
class YamlTree {
 public:
  /// Throws YamlError.
  explicit YamlTree(std::string_view text, const YamlLimits& limits = {});
  explicit YamlTree(const YamlDocument& document, const YamlLimits& limits = {});

  const YamlNode& root() const { return *root_; }

 private:
  void read_yaml(std::string_view text, const YamlLimits& limits);
  void read_json(std::string_view text, const YamlLimits& limits);

  std::deque<YamlNode> nodes_;
  const YamlNode* root_ = nullptr;
};

/// The words that YAML 1.1, and therefore every Kubernetes tool, reads as true or false.
bool is_yaml_true(std::string_view word);
bool is_yaml_false(std::string_view word);

/// Converts the value to JSON. Unquoted scalars follow YAML 1.1, as in every Kubernetes tool: 0400
/// is 256, 1_000 is 1000, 0x1F is 31, 1.0 is 1. A number too large for a double is text. Throws
/// YamlError for ".inf" and ".nan", which JSON cannot represent.
std::string to_json(const YamlNode& node);

}  // namespace lookout
