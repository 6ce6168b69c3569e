// The page of `lookout registry serve`, and what it asks for.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "cmd/listen_address.h"
#include "cmd/registry/page/notes.h"
#include "lookout/registry/registry.h"

namespace lookout::cmd::registry_cmd {

struct PageOptions {
  ListenAddress listen = {.address = "127.0.0.1", .port = 0};
  /// Names that the page is asked for under, besides addresses and "localhost".
  std::vector<std::string> allowed_hosts = {};
  /// Shown on the page: where its data is from ("kratos, all namespaces, https://...").
  std::string source = {};
  /// The sources of notes about problems, pods and traffic.
  NoteSources notes = {};
  /// How often changes are looked for, and thus told at most.
  std::chrono::milliseconds interval{200};
  /// How long a browser may be told nothing: so that either side notices that the other is gone.
  std::chrono::milliseconds heartbeat{15'000};
  /// How long a browser may take for a piece of what it is told before it is cut off (it comes back
  /// by itself, and starts afresh).
  std::chrono::milliseconds write_timeout{60'000};
  /// Browsers and others at the same time.
  std::size_t max_connections = 500;
};

/// Serves over HTTP, for reading only:
///
///     /                    the page: one document that asks nobody else for anything
///     /api/services        all services, as `registry ls -o json` prints them
///     /api/services/NAME   one, as `registry get NAME -o json` prints it
///     /api/history/NAME    the last changes of one; of a name that is not known, none
///     /api/events          what changes, as server-sent events: everything first, then differences
///     /healthz             "ok"
///
/// Each browser has one update under way at a time; what happens meanwhile is one update
/// afterwards. So a slow one keeps nobody waiting, and costs no more than the set it was told last.
class PageServer {
 public:
  /// Listens at once; serves from start() on. Throws Error if the address cannot be had.
  PageServer(std::shared_ptr<registry::Discovery> discovery, PageOptions options);
  ~PageServer();
  PageServer(const PageServer&) = delete;
  PageServer& operator=(const PageServer&) = delete;

  void start();
  std::uint16_t port() const;
  /// "http://127.0.0.1:8002/".
  std::string url() const;
  std::size_t connections() const;
  /// Ends what is under way, for up to `grace`.
  void stop(std::chrono::milliseconds grace = std::chrono::seconds(2));

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace lookout::cmd::registry_cmd
