// Access to the generated symbol table.
#pragma once

#include <cstdint>
#include <string_view>

namespace lookout::api::detail {

inline constexpr std::uint16_t kNoSymbol = 0xFFFF;
inline constexpr std::uint16_t kNoRank = 0xFFFF;
inline constexpr std::uint8_t kNoShortCode = 0xFF;

/// The symbol of `text`, or kNoSymbol. Takes a single hash probe.
std::uint16_t find_symbol(std::string_view text);

// The tables themselves are visible, because a function call per lookup would cost more than the
// lookup.
// NOLINTBEGIN(readability-identifier-naming): they are constants, but only their definitions say so.
extern const std::uint16_t kSymbolRanks[];
extern const std::uint8_t kSymbolShortCodes[];
extern const std::uint16_t kShortCodeSymbols[];
extern const std::uint8_t kSymbolStringCodes[];
extern const std::uint16_t kStringCodeSymbols[];
extern const std::uint16_t kFieldSetNames[];
extern const std::uint8_t kFieldSetCodes[];
extern const char kSymbolText[];
extern const std::uint32_t kSymbolOffsets[];
// NOLINTEND(readability-identifier-naming)

/// The text of a symbol: "name", or "f:name" as fieldsV1 writes it.
inline std::string_view managed_symbol_text(std::uint16_t id) {
  return {kSymbolText + kSymbolOffsets[id], kSymbolOffsets[id + 1] - kSymbolOffsets[id]};
}
inline std::string_view symbol_text(std::uint16_t id) {
  constexpr std::uint32_t kPrefix = 2;
  const std::uint32_t begin = kSymbolOffsets[id] + kPrefix;
  return {kSymbolText + begin, kSymbolOffsets[id + 1] - begin};
}

/// The position of a schema field among its siblings; kNoRank for symbols that are not fields.
inline std::uint16_t symbol_rank(std::uint16_t id) { return kSymbolRanks[id]; }

/// The one-byte key code of a field (below 0xC0), or kNoShortCode; and back.
inline std::uint8_t symbol_short_code(std::uint16_t id) { return kSymbolShortCodes[id]; }
inline std::uint16_t short_code_symbol(std::uint8_t code) { return kShortCodeSymbols[code]; }

/// The one-byte code of a symbol as the value of a string (below 48), or kNoShortCode; and back.
inline std::uint8_t symbol_string_code(std::uint16_t id) { return kSymbolStringCodes[id]; }
inline std::uint16_t string_code_symbol(std::size_t code) { return kStringCodeSymbols[code]; }

/// A name in a field set as a number: symbol * 2, plus 1 if it is "f:" and the symbol's text. Its
/// one-byte code (below 96), or kNoShortCode; and back.
inline std::uint8_t field_set_code(std::size_t number) { return kFieldSetCodes[number]; }
inline std::uint16_t field_set_name(std::size_t code) { return kFieldSetNames[code]; }

}  // namespace lookout::api::detail
