#include "apiserver/endpoints/health.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>
#include <set>
#include <string>
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
    log::warn("the storage does not respond: {}", e.what());
    co_return false;
  }
}

std::vector<std::string> Health::checks_of(std::string_view name) const {
  const std::string stored(storage_.name());
  std::vector<std::string> checks = {"ping", "log", stored};
  if (name == "readyz") {
    if (stored == "etcd") checks.emplace_back("etcd-readiness");
    checks.emplace_back("shutdown");
  }
  return checks;
}

std::vector<std::string> Health::paths() const {
  std::vector<std::string> out;
  for (const char* name : {"healthz", "livez", "readyz"}) {
    out.push_back(fmt::format("/{}", name));
    for (const std::string& check : checks_of(name))
      out.push_back(fmt::format("/{}/{}", name, check));
  }
  return out;
}

bool Health::asks_storage(std::string_view check) const {
  return check == storage_.name() || check == "etcd-readiness";
}

Awaitable<http::Response> Health::answer_one(std::string check) const {
  std::string why;
  if (check == "shutdown" && shutting_down_) why = "process is shutting down";
  if (asks_storage(check)) {
    const bool works = co_await check_storage();
    if (!works) why = "the storage does not respond";
  }
  if (why.empty()) co_return http::Response::text(200, "ok");
  http::Response response =
      http::Response::text(500, fmt::format("internal server error: {}\n", why));
  response.headers.emplace_back("X-Content-Type-Options", "nosniff");
  co_return response;
}

Awaitable<http::Response> Health::answer(const http::Request& request) const {
  const std::string& name = request.segments[0];
  const std::vector<std::string> checks = checks_of(name);
  if (request.segments.size() == 2 && !request.segments[1].empty()) {
    const std::string& check = request.segments[1];
    if (std::find(checks.begin(), checks.end(), check) == checks.end())
      co_return http::Response::text(404, "404 page not found\n");
    co_return co_await answer_one(check);
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
    if (asks_storage(check)) {
      if (!storage_works) storage_works = co_await check_storage();
      works = *storage_works;
    }
    lines += works ? fmt::format("[+]{} ok\n", check)
                   : fmt::format("[-]{} failed: reason withheld\n", check);
    failed = failed || !works;
  }
  if (!excluded.empty()) {
    std::vector<std::string> unknown;
    unknown.reserve(excluded.size());
    for (const std::string& check : excluded) unknown.push_back(api::detail::quote(check));
    lines += fmt::format("warn: some health checks cannot be excluded: no matches for {}\n",
                         fmt::join(unknown, ","));
  }
  http::Response response;
  if (failed) {
    response = http::Response::text(500, fmt::format("{}{} check failed\n", lines, name));
  } else if (request.parameter("verbose")) {
    response = http::Response::text(200, fmt::format("{}{} check passed\n", lines, name));
  } else {
    response = http::Response::text(200, "ok");
  }
  response.headers.emplace_back("X-Content-Type-Options", "nosniff");
  co_return response;
}

}  // namespace lookout::apiserver::endpoints
