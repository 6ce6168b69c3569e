// The web page of `lookout registry serve` and its API.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "cmd/listen_address.h"
#include "cmd/registry/page/notes.h"
#include "lookout/base/pinned.h"
#include "lookout/registry/registry.h"

namespace lookout::cmd::registry_cmd {

struct PageOptions {
  ListenAddress listen = {.address = "127.0.0.1", .port = 0};
  /// Accepted host names, in addition to addresses and "localhost".
  std::vector<std::string> allowed_hosts = {};
  /// The source of the data, shown on the page ("kratos, all namespaces, https://...").
  std::string source = {};
  /// The sources of notes about problems, pods and traffic.
  NoteSources notes = {};
  /// How often to check for changes, and so the minimum time between updates.
  std::chrono::milliseconds interval{200};
  /// The maximum time without an event, so that each side notices that the other is gone.
  std::chrono::milliseconds heartbeat{15'000};
  /// The time limit for one write to a browser. After it, the connection is closed; the browser
  /// reconnects and starts from the full state.
  std::chrono::milliseconds write_timeout{60'000};
  /// The maximum number of open connections.
  std::size_t max_connections = 500;
};

/// Serves over HTTP, read-only:
///
///     /                    the page: one document without external resources
///     /api/services        all services, as `registry ls -o json` prints them
///     /api/services/NAME   one service, as `registry get NAME -o json` prints it
///     /api/history/NAME    the most recent changes of a service; none for an unknown name
///     /api/events          server-sent events: first the full state, then the differences
///     /healthz             "ok"
///
/// Each browser has at most one update in flight; all changes in the meantime are merged into the
/// next one. So a slow browser delays no other, and costs no more than the last state sent to it.
class PageServer : public base::Pinned {
 public:
  /// Listens immediately; serves after start(). Throws Error if it cannot listen on the address.
  PageServer(std::shared_ptr<registry::Discovery> discovery, PageOptions options);
  ~PageServer();

  void start();
  std::uint16_t port() const;
  /// "http://127.0.0.1:8002/".
  std::string url() const;
  std::size_t connections() const;
  /// Waits up to `grace` for open requests.
  void stop(std::chrono::milliseconds grace = std::chrono::seconds(2));

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace lookout::cmd::registry_cmd
