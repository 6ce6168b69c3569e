// A server and its client, from the component apiserver.
#include <lookout/apiserver/server.h>
#include <lookout/lookout.h>

int main() {
  using namespace lookout;
  const apiserver::Server server;
  const rest::Client client{server.client_config()};
  return client.resource({"", "v1", "ConfigMap", "configmaps", true}, "default")
                 .list()
                 .items.empty()
             ? 0
             : 1;
}
