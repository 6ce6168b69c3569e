// The common part of `serve` and `xds`, which serve a registry until a signal arrives.
#pragma once

#include <fmt/format.h>

#include <string>

#include "cmd/connection.h"
#include "cmd/registry/flags.h"
#include "cmd/stop_signals.h"
#include "lookout/api/error.h"
#include "lookout/rest/client.h"

namespace lookout::cmd::registry_cmd {

/// The registry and the signals of such a command.
class Serving {
 public:
  /// Throws Error if the registry cannot be read.
  Serving(const ConnectionFlags& connection, const Flags& flags);

  const rest::Client& client() const { return client_; }
  /// The source of the data, for messages: "kratos, namespace shop, https://10.0.0.1:6443".
  const std::string& source() const { return source_; }
  /// Prints the announcement, and returns when a signal has arrived.
  void announce_and_wait(const std::string& announcement) const;

 private:
  StopSignals signals_;  // first: before other threads
  const rest::Client client_;
  const std::string source_;
};

/// Returns make(). Adds advice to the error if the server cannot listen on the address.
template <class Make>
auto make_server(const Make& make) {
  try {
    return make();
  } catch (const Error& e) {
    throw Error(fmt::format("{}: choose another address with --listen (port 0 takes a free one)",
                            e.what()));
  }
}

}  // namespace lookout::cmd::registry_cmd
