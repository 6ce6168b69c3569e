#include "apiserver/endpoints/health.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "lookout/api/detail/go_text.h"
#include "lookout/base/detail/log.h"

namespace lookout::apiserver::endpoints {

bool Health::is_check(const http::Request& request) {
  if (request.segments.empty() || request.segments.size() > 2) return false;
  const std::string& first = request.segments[0];
  return first == "healthz" || first == "livez" || first == "readyz";
}

Awaitable<bool> Health::check_storage() const {
  try {
    co_await storage_.check();
    co_return true;
  } catch (const std::exception& e) {
    log::warn("the storage does not answer: {}", e.what());
    co_return false;
  }
}

Awaitable<http::Response> Health::answer(const http::Request& request) const {
  const std::string& name = request.segments[0];
  const std::string stored(storage_.name());
  std::vector<std::string> checks = {"ping", "log", stored};
  if (name == "readyz") {
    if (stored == "etcd") checks.emplace_back("etcd-readiness");
    checks.emplace_back("shutdown");
  }
  if (request.segments.size() == 2 && !request.segments[1].empty()) {
    if (std::find(checks.begin(), checks.end(), request.segments[1]) == checks.end())
      co_return http::Response::text(404, "404 page not found\n");
    checks = {request.segments[1]};
  }
  std::set<std::string> excluded;
  for (const auto& [parameter, value] : request.query) {
    if (parameter == "exclude") excluded.insert(value);
  }
  std::string lines;
  bool failed = false;
  std::optional<bool> storage_works;
  for (const std::string& check : checks) {
    if (excluded.erase(check) > 0) {
      lines += fmt::format("[+]{} excluded: ok\n", check);
      continue;
    }
    bool works = check != "shutdown" || !shutting_down_;
    if (check == stored || check == "etcd-readiness") {
      if (!storage_works) storage_works = co_await check_storage();
      works = *storage_works;
    }
    lines += works ? fmt::format("[+]{} ok\n", check)
                   : fmt::format("[-]{} failed: reason withheld\n", check);
    failed = failed || !works;
  }
  for (const std::string& unknown : excluded) {
    lines += fmt::format("warn: some health checks cannot be excluded: no matches for {}\n",
                         api::detail::quote(unknown));
  }
  const bool single = request.segments.size() == 2;
  http::Response response;
  if (failed) {
    response = http::Response::text(500, fmt::format("{}{} check failed\n", lines, name));
  } else if (request.parameter("verbose") && !single) {
    response = http::Response::text(200, fmt::format("{}{} check passed\n", lines, name));
  } else {
    response = http::Response::text(200, "ok");
  }
  response.headers.emplace_back("Cache-Control", "no-cache, private");
  response.headers.emplace_back("X-Content-Type-Options", "nosniff");
  co_return response;
}

}  // namespace lookout::apiserver::endpoints
