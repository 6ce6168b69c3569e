// Protection against requests that a foreign web page makes through a visitor's browser.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "lookout/base/http/message.h"

namespace lookout::http {

/// True if the Host header of a request is one that this server accepts. A foreign web site can
/// point a name of its own to this machine ("DNS rebinding") and so reach it through a visitor's
/// browser; the Host header then contains that name. IP addresses and "localhost" cannot be abused
/// in this way; other names must be in `allowed`.
bool host_is_allowed(std::string_view host, const std::vector<std::string>& allowed);

/// True if the head of a request announces a body.
bool announces_body(const Request& request);

/// Why a server that asks for no credentials must not answer a request: its Host is a foreign name
/// (see host_is_allowed), or a browser says in Origin or Sec-Fetch-Site that a page from elsewhere
/// makes it. Empty if it may. Only the head is looked at.
std::string why_foreign(const Request& request, const std::vector<std::string>& allowed_hosts);

}  // namespace lookout::http
