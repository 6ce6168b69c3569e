// The parent's own coroutines, with Lookout's on another context. A library that was compiled
// without Lookout runs one of them and sees the same threads.
#include <fmt/format.h>
#include <lookout/lookout.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <exception>

#include "network.h"

namespace {

boost::asio::awaitable<int> count(boost::asio::io_context& context) {
  int steps = 0;
  for (; steps < 1000; ++steps) co_await boost::asio::post(context, boost::asio::use_awaitable);
  co_return steps;
}

}  // namespace

int main() {
  using namespace lookout;
  boost::asio::io_context context;
  int counted = 0;
  boost::asio::co_spawn(context, count(context),
                        [&](const std::exception_ptr&, int steps) { counted = steps; });
  bool same = false;
  network::run(context, [&] {
    same = network::runs_here(context) && context.get_executor().running_in_this_thread();
  });

  EventLoop loop(1);
  const bool elsewhere = !network::runs_here(loop.context());
  const auto ask = [](boost::asio::io_context& running) -> Awaitable<bool> {
    co_return network::runs_here(running);
  };
  same = same && elsewhere && loop.run(ask(loop.context()));

  rest::Config config;
  config.server = "http://127.0.0.1:1";
  const rest::Client client{config};
  bool refused = false;
  try {
    client.resource({"", "v1", "ConfigMap", "configmaps", true}, "default").list();
  } catch (const std::exception& e) {
    refused = rest::is_connection_refused(e);
  }
  fmt::print("{} steps, {}, {}\n", counted, refused ? "ok" : "FAILED",
             same ? "the same threads" : "OTHER THREADS");
  return counted == 1000 && refused && same ? 0 : 1;
}
