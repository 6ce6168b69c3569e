// Symbol: a name of the Kubernetes schema as a small number.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace lookout::api {

/// Objects store the names of schema fields, and strings that the control plane writes often, as
/// symbols: indexes into a table that is generated with the library (constants in
/// lookout/api/symbols.h). The table is fixed and does not grow with the data of a cluster; objects
/// store all other strings themselves.
///
/// Symbol numbers are valid within one build of the library only: never store or send them.
struct Symbol {
  std::uint16_t id = 0;

  friend constexpr bool operator==(Symbol, Symbol) = default;

  /// The text of the symbol, in static storage.
  std::string_view text() const;

  /// The symbol of `text`, if there is one.
  static std::optional<Symbol> find(std::string_view text);
};

/// A constant of lookout/api/symbols.h: the name of a schema field, known when a program is
/// compiled.
struct FieldSymbol : Symbol {
  /// For the library: the first byte of the key if that is the whole key in an object, else 0xFF.
  std::uint8_t code = 0xFF;
};

}  // namespace lookout::api
