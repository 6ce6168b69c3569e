// An HTTP client that finds its server through the registry, and asks another one when one fails.
//
//   http_failover SERVICE [PATH]
#include <curl/curl.h>
#include <fmt/format.h>

#include <memory>
#include <string>
#include <string_view>

#include "lookout/registry/balancer.h"
#include "lookout/registry/kratos/registry.h"
#include "lookout/rest/client.h"

using namespace lookout;

namespace {

constexpr int kAttempts = 3;

std::size_t append(char* data, std::size_t size, std::size_t count, void* body) {
  static_cast<std::string*>(body)->append(data, size * count);
  return size * count;
}

/// The endpoint that speaks HTTP; empty if none does.
std::string http_endpoint(const registry::ServiceInstance& instance) {
  for (const auto& endpoint : instance.endpoints) {
    if (endpoint.starts_with("http://") || endpoint.starts_with("https://")) return endpoint;
  }
  return {};
}

/// The body; what went wrong goes to `error`, which is empty if nothing did.
std::string get(CURL* curl, const std::string& url, std::string& error) {
  std::string body;
  curl_easy_setopt(curl, CURLOPT_URL, url.c_str());
  curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, append);
  curl_easy_setopt(curl, CURLOPT_WRITEDATA, &body);
  curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT_MS, 500L);
  curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, 5000L);
  const CURLcode code = curl_easy_perform(curl);
  long status = 0;
  curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &status);
  error = code != CURLE_OK ? curl_easy_strerror(code)
          : status >= 500  ? fmt::format("status {}", status)
                           : "";
  return body;
}

}  // namespace

int main(int argc, char** argv) try {
  if (argc < 2) {
    fmt::print(stderr, "usage: http_failover SERVICE [PATH]\n");
    return 2;
  }
  const std::string service = argv[1];
  const std::string path = argc > 2 ? argv[2] : "/";

  const rest::Client client{rest::Config::load()};
  registry::kratos::Registry registry{client};
  registry.get_service(service);  // waits for the first data
  const registry::Balancer balancer(registry, service);

  const std::unique_ptr<CURL, decltype(&curl_easy_cleanup)> curl(curl_easy_init(),
                                                                 curl_easy_cleanup);
  for (int attempt = 1; attempt <= kAttempts; ++attempt) {
    // Round robin: the next pick is another instance, if there is one.
    const registry::Pick pick = balancer.pick();
    const std::string endpoint = pick ? http_endpoint(*pick) : "";
    if (endpoint.empty()) {
      fmt::print(stderr, "{} has no instance that speaks HTTP\n", service);
      return 1;
    }
    std::string error;
    const std::string body = get(curl.get(), endpoint + path, error);
    if (error.empty()) {
      fmt::print("{}\n", body);
      return 0;
    }
    fmt::print(stderr, "{} ({}): {}\n", endpoint, pick->origin, error);
  }
  return 1;
} catch (const std::exception& e) {
  fmt::print(stderr, "{}\n", e.what());
  return 1;
}
