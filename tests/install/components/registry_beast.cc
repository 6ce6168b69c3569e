#include <lookout/registry/clients/beast.h>

int main() {
  using namespace lookout;
  EventLoop loop(1);
  try {
    loop.run(registry::beast_request(registry::Endpoint("http", "127.0.0.1", 1), {}));
  } catch (const boost::system::system_error&) {
    return 0;  // nothing listens there
  }
  return 1;
}
