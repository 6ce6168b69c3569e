// The parent's library: Asio without Lookout.
#pragma once

#include <boost/asio/io_context.hpp>
#include <functional>

namespace network {

/// Runs `work` on the context, and everything that it starts there.
void run(boost::asio::io_context& context, const std::function<void()>& work);

/// True if the calling thread runs the context.
bool runs_here(boost::asio::io_context& context);

}  // namespace network
