// An informer's parts, from the component core alone.
#include <lookout/lookout.h>

#include <exception>

int main() {
  using namespace lookout;
  rest::Config config;
  config.server = "http://127.0.0.1:1";
  const rest::Client client{config};
  const informer::SharedInformerFactory factory{client};
  try {
    client.resource({"", "v1", "ConfigMap", "configmaps", true}, "default").list();
  } catch (const std::exception& e) {
    return rest::is_connection_refused(e) ? 0 : 1;
  }
  return 1;
}
