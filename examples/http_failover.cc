// An HTTP client that finds its server through the registry. A call that fails is sent to another
// instance, at most twice, and never to one that has failed it already. (It is a GET: what must not
// happen twice must not be sent twice either.)
//
//   http_failover SERVICE [PATH [CALLS]]
#include <curl/curl.h>
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "lookout/registry/balancer.h"
#include "lookout/registry/kratos/registry.h"
#include "lookout/rest/client.h"

using namespace lookout;

namespace {

constexpr int kAttempts = 3;
/// Each attempt has time of its own, so that an instance that hangs leaves some for the others.
constexpr long kConnectMs = 1000;
constexpr long kAttemptMs = 2000;
constexpr int kThreads = 4;

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

/// One attempt. The body; what went wrong goes to `error`, which is empty if nothing did.
std::string get(CURL* curl, const std::string& url, std::string& error) {
  std::string body;
  curl_easy_setopt(curl, CURLOPT_URL, url.c_str());
  curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, append);
  curl_easy_setopt(curl, CURLOPT_WRITEDATA, &body);
  curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT_MS, kConnectMs);
  curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, kAttemptMs);
  const CURLcode code = curl_easy_perform(curl);
  long status = 0;
  curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &status);
  error = code != CURLE_OK ? curl_easy_strerror(code)
          : status >= 500  ? fmt::format("status {}", status)
                           : "";
  return body;
}

/// One call; false if all attempts failed. Any number of threads may share the balancer: that one
/// has just picked an instance does not keep another from picking it, so each call says which ones
/// it has tried.
bool call(const registry::Balancer& balancer, const std::string& path) {
  const std::unique_ptr<CURL, decltype(&curl_easy_cleanup)> curl(curl_easy_init(),
                                                                 curl_easy_cleanup);
  std::vector<registry::Pick> tried;
  for (int attempt = 0; attempt < kAttempts;) {
    const registry::Pick pick = balancer.pick(tried);
    if (!pick) break;
    tried.push_back(pick);
    const std::string endpoint = http_endpoint(*pick);
    if (endpoint.empty()) continue;
    ++attempt;
    std::string error;
    const std::string body = get(curl.get(), endpoint + path, error);
    if (error.empty()) {
      fmt::print("{}\n", body);
      return true;
    }
    fmt::print(stderr, "{} ({}): {}\n", endpoint, pick->origin, error);
  }
  fmt::print(stderr, "no instance has answered, of {} that were picked\n", tried.size());
  return false;
}

}  // namespace

int main(int argc, char** argv) try {
  if (argc < 2 || argc > 4) {
    fmt::print(stderr, "usage: http_failover SERVICE [PATH [CALLS]]\n");
    return 2;
  }
  const std::string service = argv[1];
  const std::string path = argc > 2 ? argv[2] : "/";
  const int calls = argc > 3 ? std::stoi(argv[3]) : 1;

  const rest::Client client{rest::Config::load()};
  registry::kratos::Registry registry{client};
  registry.get_service(service);  // waits for the first data
  const registry::Balancer balancer(registry, service);

  std::atomic<int> begun{0};
  std::atomic<int> failed{0};
  {
    const int count = std::min(kThreads, calls);
    std::vector<std::jthread> threads;
    threads.reserve(static_cast<std::size_t>(count));
    for (int i = 0; i < count; ++i) {
      threads.emplace_back([&] {
        while (begun++ < calls) failed += call(balancer, path) ? 0 : 1;
      });
    }
  }
  return failed == 0 ? 0 : 1;
} catch (const std::exception& e) {
  fmt::print(stderr, "{}\n", e.what());
  return 1;
}
