#include "lookout/api/field_names.h"

#include "lookout/api/detail/symbol_table.h"

namespace lookout::api {

bool is_schema_field(std::string_view name) {
  const std::uint16_t id = detail::find_symbol(name);
  return id != detail::kNoSymbol && detail::symbol_rank(id) != detail::kNoRank;
}

}  // namespace lookout::api
