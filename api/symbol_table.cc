#include "lookout/api/detail/symbol_table.h"

#include <cstddef>
#include <cstring>

#include "api/symbol_hash.h"
#include "lookout/api/symbol.h"

namespace lookout::api {
namespace detail {

/// A place of the hash table. `begin` is where the text is in kSymbolText.
struct SymbolSlot {
  std::uint16_t id;
  std::uint8_t length;
  std::uint8_t tag;
  std::uint32_t begin;
};

#include "api/symbol_table.inc"

std::uint16_t find_symbol(std::string_view text) {
  if (text.empty() || text.size() > kMaxSymbolLength) return kNoSymbol;
  const std::uint64_t hash = symbol_hash(text);
  const std::uint32_t displacement = kSymbolDisplacements[symbol_bucket(hash, kSymbolBuckets)];
  const SymbolSlot& slot = kSymbolSlotTable[symbol_slot(hash, displacement, kSymbolSlots)];
  // Most of what is no symbol differs in one of these two. (An empty slot has no length.)
  if (slot.length != text.size() || slot.tag != symbol_tag(hash)) return kNoSymbol;
  return equal_bytes(kSymbolText + slot.begin, text.data(), text.size()) ? slot.id : kNoSymbol;
}

}  // namespace detail

std::string_view Symbol::text() const { return detail::symbol_text(id); }

std::optional<Symbol> Symbol::find(std::string_view text) {
  const std::uint16_t id = detail::find_symbol(text);
  return id == detail::kNoSymbol ? std::nullopt : std::optional(Symbol{id});
}

}  // namespace lookout::api
