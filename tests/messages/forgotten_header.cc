#if !defined(MISTAKE)
#include <lookout/k8s/core/v1.h>
#endif
#include <lookout/rest/client.h>

int main() {
  const lookout::rest::Client client{lookout::rest::Config{}};
  client.resource<lookout::k8s::core::v1::Pod>("shop");
}
