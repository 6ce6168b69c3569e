// The generator's parts; each returns the contents of its files.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "api/codegen/facts.h"

namespace lookout::codegen {

/// File name (below the output folder) -> text.
using Files = std::map<std::string, std::string>;

/// All symbols; a symbol's number is its index.
std::vector<std::string> symbol_strings(const Facts& facts, const WellKnown& well_known);

/// The names of all fields, in the order of an object's members.
std::vector<std::string> field_order(const Facts& facts, const WellKnown& well_known);

/// include/lookout/api/symbols.h and api/symbol_table.inc.
Files generate_symbols(const Facts& facts, const WellKnown& well_known);

/// include/lookout/api/<group>/<version>.h and the umbrella header include/lookout/k8s/types.h.
Files generate_views(const Facts& facts, const WellKnown& well_known);

/// include/lookout/api/<group>/<version>_draft.h and the umbrella header
/// include/lookout/k8s/drafts.h.
Files generate_drafts(const Facts& facts);

/// api/resource_table.inc.
Files generate_resources(const Facts& facts);

/// api/type_table.inc.
Files generate_types(const Facts& facts, const WellKnown& well_known);

/// api/wire_table.inc.
Files generate_wire(const Facts& facts, const WellKnown& well_known);

/// The text of apiserver/tables/columns.inc from apiserver/tables/columns.json.
std::string generate_columns(const std::filesystem::path& facts);

}  // namespace lookout::codegen
