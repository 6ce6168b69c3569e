#include "api/wire_table.h"

#include <algorithm>
#include <iterator>
#include <tuple>

namespace lookout::api::detail {

struct WireKindEntry {
  std::string_view kind;
  std::string_view group;
  std::string_view version;
  std::uint16_t message;
};

#include "api/wire_table.inc"

std::string_view wire_name(std::uint16_t message) { return kWireNames[message]; }

std::optional<std::uint16_t> wire_message_of_kind(std::string_view group, std::string_view version,
                                                  std::string_view kind) {
  // Every group and version has this kind.
  if (kind == "DeleteOptions") return kDeleteOptions;
  const auto key = [](const WireKindEntry& e) { return std::tie(e.kind, e.group, e.version); };
  const auto wanted = std::tie(kind, group, version);
  const auto* at =
      std::lower_bound(std::begin(kWireKinds), std::end(kWireKinds), wanted,
                       [&](const WireKindEntry& e, const auto& w) { return key(e) < w; });
  if (at == std::end(kWireKinds) || key(*at) != wanted) return std::nullopt;
  return at->message;
}

std::optional<std::uint16_t> wire_message_of_type(std::string_view api_version,
                                                  std::string_view kind) {
  const std::size_t slash = api_version.find('/');
  const bool core = slash == std::string_view::npos;
  return wire_message_of_kind(core ? std::string_view() : api_version.substr(0, slash),
                              core ? api_version : api_version.substr(slash + 1), kind);
}

std::optional<WireTypeMeta> wire_type_of_message(std::uint16_t message) {
  const auto* at = std::find_if(std::begin(kWireKinds), std::end(kWireKinds),
                                [&](const WireKindEntry& e) { return e.message == message; });
  if (at == std::end(kWireKinds)) return std::nullopt;
  return WireTypeMeta{at->group, at->version, at->kind};
}

}  // namespace lookout::api::detail
