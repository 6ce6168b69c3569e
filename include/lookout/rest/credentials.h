// Credentials: the current credentials of a client.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <stop_token>
#include <string>

#include "lookout/base/attributes.h"
#include "lookout/rest/config.h"

namespace lookout::rest {

/// The credentials of one request. Immutable: requests with the same pointer have the same ones.
struct Credential {
  /// The value of the Authorization header ("Bearer ...", "Basic ..."); empty: no header.
  std::string authorization;
  /// For the TLS connection, PEM; both or neither. A request must not use a connection that was
  /// made with another certificate.
  std::string client_certificate;
  std::string client_key;

  bool operator==(const Credential&) const = default;
};

struct CredentialsOptions {
  /// The current time; tests replace it.
  LOOKOUT_OPTION std::function<std::chrono::system_clock::time_point()> now =
      std::chrono::system_clock::now;
  /// A plugin that runs longer is killed. Some wait for a person to log in with a browser.
  std::chrono::milliseconds exec_timeout = std::chrono::minutes(5);
  std::size_t exec_max_output = 1u << 20;
};

/// The credentials of a Config: fixed ones, files that change (a pod's token changes about every
/// hour), or an exec plugin. Safe to use from several threads.
///
/// * Files (client-go's transport.NewCachedFileTokenSource and its certificate loader): checked at
/// most once a second, and read when they have changed, but at least once a minute. If that fails
/// (the file is missing for a moment, a certificate and its key do not match yet), the last good
/// content stays in use.
/// * Exec plugin (plugin/pkg/client/auth/exec): runs if there is no credential, if the current one
/// has expired, or if it was invalidated. Never runs twice at the same time: other callers wait for
/// the run and share its result. A failure is remembered for a second, so that many callers do not
/// run a broken plugin over and over.
///
/// Errors are ConfigError. No message or log line contains tokens, passwords or keys.
class Credentials {
 public:
  /// Throws ConfigError if `config` is not valid (Config::normalized()). Reads no files and runs no
  /// plugin.
  explicit Credentials(const Config& config, CredentialsOptions options = {});
  ~Credentials();
  Credentials(const Credentials&) = delete;
  Credentials& operator=(const Credentials&) = delete;

  /// Returns the current credential. May block while a plugin runs; without a plugin it only reads
  /// small files. Returns null only if `stop` was requested, which also ends the plugin. Throws
  /// ConfigError if it cannot get a credential.
  std::shared_ptr<const Credential> current(std::stop_token stop = {});

  /// Like current(), but returns null where current() would block. For threads that must not block:
  /// if it returns null, call current() on another thread. Throws as current() does.
  std::shared_ptr<const Credential> try_current();

  /// True if current() would run a plugin or wait for one. The answer may be outdated immediately;
  /// try_current() has no such race.
  bool would_block() const;

  /// Call when the server answered 401 to a request with `used`: unless the credential has changed
  /// already, the next call gets a new one (runs the plugin, reads the files). Fixed credentials do
  /// not change.
  void invalidate(const std::shared_ptr<const Credential>& used);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace lookout::rest
