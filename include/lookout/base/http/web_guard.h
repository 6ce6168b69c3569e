// Protection against requests that a foreign web page makes through a visitor's browser.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "lookout/base/http/message.h"

namespace lookout::http {

/// True if the server accepts this Host header. A foreign web site can point its own name to this
/// machine ("DNS rebinding") and so reach it through a visitor's browser; the Host header then
/// contains that name. IP addresses and "localhost" cannot be abused in this way; other names must
/// be in `allowed`.
bool host_is_allowed(std::string_view host, const std::vector<std::string>& allowed);

/// True if the head of a request announces a body.
bool announces_body(const Request& request);

/// The reason why a server without authentication must reject a request: its Host is a foreign name
/// (see host_is_allowed), or Origin or Sec-Fetch-Site shows that a page of another site sent it.
/// Empty if it may answer. Checks only the head.
std::string why_foreign(const Request& request, const std::vector<std::string>& allowed_hosts);

}  // namespace lookout::http
