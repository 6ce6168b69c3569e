// The HTTP pages of a manager.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "controller/access_review.h"
#include "lookout/base/event_loop.h"
#include "lookout/base/http/server.h"
#include "lookout/controller/manager.h"

namespace lookout::controller::detail {

/// Named checks behind one path, with the answers of controller-runtime's healthz.
class HealthPage {
 public:
  /// `name`: "healthz".
  explicit HealthPage(std::string name) : name_(std::move(name)) {}

  void add(std::string name, HealthCheck check);
  /// `path`: the rest of the path after the page's own, "" or "/NAME".
  http::Response answer(const http::Request& request, std::string_view path) const;

 private:
  struct Check {
    std::string name;
    HealthCheck check;
    /// The calls that have not returned.
    std::shared_ptr<std::atomic<int>> calls = std::make_shared<std::atomic<int>>(0);
  };

  std::vector<Check> checks() const;
  /// The reason for a failure.
  static std::optional<std::string> run(const Check& check);

  const std::string name_;
  mutable std::mutex mutex_;
  std::vector<Check> checks_;  // guarded by mutex_
};

/// The protection of a listener.
struct PageAccess {
  /// Null: plain HTTP.
  std::shared_ptr<boost::asio::ssl::context> tls = nullptr;
  /// Null: any client may read the pages.
  std::shared_ptr<AccessReview> review = nullptr;
};

/// One listener.
class HttpPages {
 public:
  using Handler = std::function<http::Response(const http::Request& request)>;

  /// Where the handler runs: on the server's only thread, or each call on a thread of its own, so that one
  /// that hangs delays no other request.
  enum class Calls { kOneAtATime, kConcurrent };

  /// Listens immediately. `address`: ":8080" or "127.0.0.1:0". Throws InvalidArgument if it is invalid, and
  /// Error if it cannot be bound.
  HttpPages(const std::string& address, Handler handler, Calls calls, PageAccess access = {});

  std::uint16_t port() const { return server_->port(); }
  void start() { server_->start(); }
  /// Not on the event loop.
  void stop();

 private:
  Awaitable<http::Response> answer(http::Request request);
  Awaitable<http::Response> handle_on_thread(http::Request request);

  const Handler handler_;
  const Calls calls_;
  const PageAccess access_;
  std::unique_ptr<http::Server> server_;
};

/// True if the address disables the listener.
inline bool is_off(std::string_view address) { return address.empty() || address == "0"; }

}  // namespace lookout::controller::detail
