#include "network.h"

#include <boost/asio/post.hpp>

namespace network {

void run(boost::asio::io_context& context, const std::function<void()>& work) {
  boost::asio::post(context, work);
  context.run();
}

bool runs_here(boost::asio::io_context& context) {
  return context.get_executor().running_in_this_thread();
}

}  // namespace network
