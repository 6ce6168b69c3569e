// The columns of `lookout get -o custom-columns=SPEC`.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cmd/columns.h"
#include "lookout/api/detail/json_path.h"
#include "lookout/api/value.h"

namespace lookout::cmd {

/// Reads a path as kubectl's --sort-by and custom-columns do: the braces and the first dot are optional.
/// Throws Error if the text is not a path.
api::detail::JsonPath relaxed_path(std::string_view text);

/// Columns that the user chose, with kubectl's notation and texts. Immutable.
class CustomColumns {
 public:
  /// Reads "NAME:.metadata.name,NODE:.spec.nodeName". Throws Error with the reason.
  static CustomColumns parse(std::string_view spec);
  /// Reads a line of headers and a line of paths, both separated by blanks. Throws Error with the reason.
  static CustomColumns parse_file(const std::string& file);

  const Row& headers() const { return headers_; }
  /// "<none>" for an absent value; several values of a path are separated by commas.
  /// Throws Error if an index is out of bounds.
  Row values(api::Value root) const;

 private:
  void add(std::string_view header, std::string_view path);

  Row headers_;
  std::vector<api::detail::JsonPath> paths_;
};

}  // namespace lookout::cmd
