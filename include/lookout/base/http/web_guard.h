// Requests that a web page has a visitor's browser make.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "lookout/base/http/message.h"

namespace lookout::http {

/// Whether the Host header of a request is one that this server means. A foreign web site can have
/// a name of its own point to this machine ("DNS rebinding") and so have a visitor's browser ask us
/// on its behalf; but then the header has that name. Addresses and "localhost" cannot be turned
/// round like that; other names have to be in `allowed`.
bool host_is_allowed(std::string_view host, const std::vector<std::string>& allowed);

/// Whether the head of a request says that a body follows.
bool announces_body(const Request& request);

/// Why a server that asks for no credentials must not answer a request: its Host is a foreign name
/// (see host_is_allowed), or a browser says in Origin or Sec-Fetch-Site that a page from elsewhere
/// makes it. Empty if it may. Only the head is looked at.
std::string why_foreign(const Request& request, const std::vector<std::string>& allowed_hosts);

}  // namespace lookout::http
