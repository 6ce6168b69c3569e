#include "lookout/api/detail/symbol_table.h"

#include "api/symbol_hash.h"
#include "lookout/api/symbol.h"

namespace lookout::api {
namespace detail {

/// A slot of the hash table. `begin` is the text's offset in kSymbolText.
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
  // Most other texts differ in one of these. (The length of an empty slot is 0.)
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
