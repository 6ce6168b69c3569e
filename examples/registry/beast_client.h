// HTTP with Boost.Beast for Balancer::async_call(): a coroutine, which the call cancels in time.
#pragma once

#include <string>

#include "examples/registry/curl_client.h"
#include "lookout/base/event_loop.h"
#include "lookout/registry/endpoint.h"

namespace example {

/// One request on a connection of its own. Throws boost::system::system_error if there is no
/// response.
lookout::Awaitable<Response> beast_get(const lookout::registry::Endpoint& endpoint,
                                       std::string path);

}  // namespace example
