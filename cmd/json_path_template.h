// The templates of `lookout get -o jsonpath=TEMPLATE`.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lookout/api/detail/json_path.h"
#include "lookout/api/value.h"

namespace lookout::cmd {

/// A template as in kubectl: text, with paths `{.metadata.name}`, quoted text `{"\n"}` and loops
/// `{range .items[*]}...{end}` in braces. Immutable.
class JsonPathTemplate {
 public:
  /// Throws Error with the reason if the text is not a template.
  explicit JsonPathTemplate(std::string_view text);

  /// Texts and numbers appear as they are, other values as JSON (go_json), several values of a path with
  /// blanks between them, and absent ones not at all. Throws Error if an index is out of bounds.
  std::string render(api::Value root) const;

 private:
  class Parser;

  /// A text, a path, or a path with a body for each of its values.
  struct Part {
    std::string text = {};
    std::optional<api::detail::JsonPath> path = {};
    bool is_loop = false;
    std::vector<Part> body = {};
  };

  static void render(const std::vector<Part>& parts, api::Value root, std::string& out);

  std::vector<Part> parts_;
};

}  // namespace lookout::cmd
