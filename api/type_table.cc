#include "lookout/api/detail/type_table.h"

#include <algorithm>
#include <tuple>

#include "lookout/api/detail/symbol_table.h"

namespace lookout::api::detail {
namespace {

struct KindEntry {
  std::string_view kind;
  std::string_view group;
  std::string_view version;
  std::uint16_t type;
};

#include "api/type_table.inc"

}  // namespace

std::optional<Type> Type::of_kind(std::string_view group, std::string_view version,
                                  std::string_view kind) {
  const auto key = [](const KindEntry& e) { return std::tie(e.kind, e.group, e.version); };
  const auto wanted = std::tie(kind, group, version);
  const auto* at = std::lower_bound(std::begin(kKinds), std::end(kKinds), wanted,
                                    [&](const KindEntry& e, const auto& w) { return key(e) < w; });
  if (at == std::end(kKinds) || key(*at) != wanted) return std::nullopt;
  return Type(at->type);
}

const TypeEntry& Type::entry() const { return kTypes[id_]; }
Shape Type::shape() const { return entry().shape; }
Scalar Type::scalar() const { return entry().scalar; }
Type Type::element() const { return Type(entry().element); }

std::string_view Type::name() const {
  if (id_ >= kNamedTypes) return {};
  return {kTypeNames + kTypeNameOffsets[id_],
          static_cast<std::size_t>(kTypeNameOffsets[id_ + 1] - kTypeNameOffsets[id_])};
}

std::string_view Type::short_name() const {
  const std::string_view full = name();
  return full.substr(full.rfind('.') + 1);
}

Type::Fields Type::fields() const {
  const std::size_t begin = kTypes[id_].first_field;
  const std::size_t end = kTypes[id_ + 1].first_field;
  return Fields({kFields + begin, end - begin});
}

std::optional<Field> Type::field(std::string_view name) const {
  const std::uint16_t symbol = find_symbol(name);
  return symbol == kNoSymbol ? std::nullopt : field(symbol);
}

std::optional<Field> Type::field(std::uint16_t symbol) const {
  const FieldEntry* begin = kFields + kTypes[id_].first_field;
  const FieldEntry* end = kFields + kTypes[id_ + 1].first_field;
  const FieldEntry* at =
      std::lower_bound(begin, end, symbol,
                       [](const FieldEntry& e, std::uint16_t wanted) { return e.symbol < wanted; });
  if (at == end || at->symbol != symbol) return std::nullopt;
  return Field(*at);
}

std::string_view Field::name() const { return symbol_text(entry_->symbol); }

std::string_view Field::patch_merge_key() const {
  return entry_->merge_key == kNoSymbol ? std::string_view() : symbol_text(entry_->merge_key);
}

std::span<const std::uint16_t> Field::list_map_keys() const {
  const std::size_t begin = kListMapKeyOffsets[entry_->list_map_keys];
  const std::size_t end = kListMapKeyOffsets[entry_->list_map_keys + 1];
  return {kListMapKeys + begin, end - begin};
}

}  // namespace lookout::api::detail
