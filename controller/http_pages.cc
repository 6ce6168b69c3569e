#include "controller/http_pages.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <exception>
#include <optional>

#include "controller/waiting.h"
#include "lookout/base/detail/log.h"

namespace lookout::controller::detail {
namespace {

using http::Response;

/// A check with this many calls that have not returned is not called: each of them occupies a thread.
constexpr int kMostCalls = 16;

http::ServerOptions listen_options(const std::string& address) {
  http::ServerOptions out;
  const std::size_t colon = address.rfind(':');
  const char* const end = address.data() + address.size();
  const auto port = colon == std::string::npos
                        ? std::from_chars_result{end, std::errc::invalid_argument}
                        : std::from_chars(address.data() + colon + 1, end, out.port);
  if (port.ec != std::errc() || port.ptr != end) {
    throw InvalidArgument(
        fmt::format("\"{}\" is not an address to listen on, such as \":8081\"", address));
  }
  out.address = http::address_of_host(address.substr(0, colon));
  // As in controller-runtime's servers.
  out.limits.header_timeout = std::chrono::seconds(32);
  out.limits.idle_timeout = std::chrono::seconds(90);
  out.threads = 1;
  return out;
}

}  // namespace

void HealthPage::add(std::string name, HealthCheck check) {
  if (name.empty() || name.front() == '/' || name.back() == '/')
    throw InvalidArgument(fmt::format("\"{}\" is not a valid name for a check", name));
  if (!check) throw InvalidArgument(fmt::format("{}: the check {} is empty", name_, name));
  const std::lock_guard lock(mutex_);
  for (const auto& each : checks_) {
    if (each.name == name) throw InvalidArgument(fmt::format("{}: {} is taken", name_, name));
  }
  checks_.push_back({std::move(name), std::move(check)});
}

std::vector<HealthPage::Check> HealthPage::checks() const {
  std::vector<Check> out;
  {
    const std::lock_guard lock(mutex_);
    out = checks_;
  }
  if (out.empty()) out.push_back({"ping", [] { return std::nullopt; }});
  std::sort(out.begin(), out.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
  return out;
}

std::optional<std::string> HealthPage::run(const Check& check) {
  const int before = check.calls->fetch_add(1);
  std::optional<std::string> out;
  if (before >= kMostCalls) {
    out = fmt::format("{} calls of it have not returned", before);
  } else {
    try {
      out = check.check();
    } catch (const std::exception& e) {
      out = e.what();
    } catch (...) {
      out = "it threw something that is not a std::exception";
    }
  }
  --*check.calls;
  return out;
}

Response HealthPage::answer(const http::Request& request, std::string_view path) const {
  const auto all = checks();
  if (!path.empty() && path != "/") {
    for (const Check& check : all) {
      if (path.substr(1) != check.name) continue;
      const auto wrong = run(check);
      if (!wrong) return Response::text(200, "ok");
      return Response::text(500, fmt::format("internal server error: {}\n", *wrong));
    }
    return Response::text(404, "404 page not found\n");
  }

  std::vector<std::string_view> excluded;
  bool verbose = false;
  for (const auto& [name, value] : request.query) {
    if (name == "exclude") excluded.emplace_back(value);
    if (name == "verbose") verbose = true;
  }
  std::string details;
  bool failed = false;
  for (const Check& check : all) {
    const std::string& name = check.name;
    const auto at = std::find(excluded.begin(), excluded.end(), name);
    if (at != excluded.end()) {
      excluded.erase(std::remove(excluded.begin(), excluded.end(), std::string_view(name)),
                     excluded.end());
      details += fmt::format("[+]{} excluded: ok\n", name);
    } else if (const auto wrong = run(check)) {
      // Only /NAME and the log show the reason.
      log::warn("{}: {} failed: {}", name_, name, *wrong);
      details += fmt::format("[-]{} failed: reason withheld\n", name);
      failed = true;
    } else {
      details += fmt::format("[+]{} ok\n", name);
    }
  }
  if (!excluded.empty()) {
    details += fmt::format("warn: some health checks cannot be excluded: no matches for \"{}\"\n",
                           fmt::join(excluded, "\",\""));
  }
  if (failed) return Response::text(500, fmt::format("{}{} check failed\n", details, name_));
  if (verbose) return Response::text(200, fmt::format("{}{} check passed\n", details, name_));
  return Response::text(200, "ok");
}

HttpPages::HttpPages(const std::string& address, Handler handler, Calls calls, PageAccess access)
    : handler_(std::move(handler)), calls_(calls), access_(std::move(access)) {
  const auto error = [](int status, const std::string& message) {
    return Response::text(status, message + "\n");
  };
  http::ServerOptions options = listen_options(address);
  options.tls = access_.tls;
  server_ = std::make_unique<http::Server>(
      std::move(options), [this](http::Request request) { return answer(std::move(request)); },
      error);
}

Awaitable<Response> HttpPages::answer(http::Request request) {
  if (access_.review) {
    auto refusal = co_await access_.review->refuse(request);
    if (refusal) co_return *std::move(refusal);
  }
  if (request.method != "GET" && request.method != "HEAD")
    co_return Response::text(405, "405 method not allowed\n");
  if (calls_ == Calls::kOneAtATime) co_return handler_(request);
  co_return co_await handle_on_thread(std::move(request));
}

Awaitable<Response> HttpPages::handle_on_thread(http::Request request) {
  struct Call {
    http::Request request;
    Response response;
  };
  const auto call = std::make_shared<Call>();
  call->request = std::move(request);
  const std::function<void()> task = [this, call] { call->response = handler_(call->request); };
  co_await uncancelled(on_thread(Clock::real(), task));
  co_return std::move(call->response);
}

void HttpPages::stop() { server_->stop(std::chrono::seconds(1)); }

}  // namespace lookout::controller::detail
