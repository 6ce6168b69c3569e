#include <lookout/registry/clients/curl.h>

int main() {
  using namespace lookout;
  registry::CurlClient client;
  return client.handle() != nullptr &&
                 registry::judge_http({.status = 200}) == registry::Outcome::kOk
             ? 0
             : 1;
}
