// A name that the Kubernetes schema knows, as a small number.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace lookout::api {

/// Objects store the names of schema fields, and strings that the control plane often writes, as
/// symbols: indexes into a table that is generated with the library (constants in
/// lookout/api/symbols.h). The table never grows with what a cluster sends; all other strings are
/// stored inside the object they belong to.
///
/// Symbol numbers mean something within one build of the library only: never store or send them.
struct Symbol {
  std::uint16_t id = 0;

  friend constexpr bool operator==(Symbol, Symbol) = default;

  /// The string it stands for; lives as long as the program.
  std::string_view text() const;

  /// The symbol of `text`, if there is one.
  static std::optional<Symbol> find(std::string_view text);
};

}  // namespace lookout::api
