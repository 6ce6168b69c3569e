// Which names a page may be asked for under.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace lookout::cmd::registry_cmd {

/// Whether the Host header of a request is one that this server means. A foreign web site can have
/// a name of its own point to this machine ("DNS rebinding") and so have a visitor's browser ask us
/// on its behalf; but then the header has that name. Addresses and "localhost" cannot be turned
/// round like that; other names have to be in `allowed`.
bool host_is_allowed(std::string_view host, const std::vector<std::string>& allowed);

}  // namespace lookout::cmd::registry_cmd
