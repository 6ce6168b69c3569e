// A caller: each call goes to an instance of the service; if it fails, another instance is tried.
//
//   caller NAME [CALLS [curl|beast]]
#include <fmt/format.h>

#include <exception>
#include <string>
#include <utility>

#include "lookout/registry/balancer.h"
#include "lookout/registry/clients/beast.h"
#include "lookout/registry/clients/curl.h"
#include "lookout/registry/kratos/registry.h"
#include "lookout/rest/client.h"

using namespace lookout;
using namespace std::chrono_literals;

namespace {

registry::HttpResponse with_curl(const registry::Balancer& web, registry::CurlClient& http) {
  return web.call(
      {.attempts = 3, .deadline = 3s, .scheme = "http"},
      [&](const registry::Endpoint& e, const registry::Attempt& attempt) {
        return http.request(e, {.path = "/hello"}, attempt);
      },
      registry::judge_http);
}

Awaitable<registry::HttpResponse> with_beast(const registry::Balancer& web) {
  registry::CallPolicy policy{.attempts = 3, .deadline = 3s, .scheme = "http"};
  const auto get = [](const registry::Endpoint& e, const registry::Attempt& attempt) {
    registry::HttpRequest hello{.path = "/hello"};
    return registry::beast_request(e, std::move(hello), attempt);
  };
  return web.async_call(std::move(policy), get, registry::judge_http);
}

}  // namespace

int main(int argc, char** argv) try {
  if (argc < 2 || argc > 4) {
    fmt::print(stderr, "usage: caller NAME [CALLS [curl|beast]]\n");
    return 2;
  }
  const int calls = argc > 2 ? std::stoi(argv[2]) : 1;
  const bool beast = argc > 3 && std::string(argv[3]) == "beast";

  const rest::Client client{rest::Config::load()};
  registry::kratos::Registry registry{client};
  const registry::Balancer web{registry, argv[1], registry::p2c_ewma().eject_after(3)};

  registry::CurlClient http;
  int failed = 0;
  for (int i = 0; i < calls; ++i) {
    try {
      const auto response = beast ? client.loop().run(with_beast(web)) : with_curl(web, http);
      fmt::print("{}", response.body);
      failed += response.status == 200 ? 0 : 1;
    } catch (const Error& e) {
      fmt::print(stderr, "{}\n", e.what());
      ++failed;
    }
  }
  return failed == 0 ? 0 : 1;
} catch (const std::exception& e) {
  fmt::print(stderr, "{}\n", e.what());
  return 1;
}
