// The credentials of a client, kept current.
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

/// Goes with one request. Immutable; two requests with the same pointer show the same.
struct Credential {
  /// The value of the Authorization header ("Bearer ...", "Basic ..."), or empty: send none.
  std::string authorization;
  /// For the TLS connection, PEM; both or neither. A connection that was made with another
  /// certificate must not carry the request.
  std::string client_certificate;
  std::string client_key;

  bool operator==(const Credential&) const = default;
};

struct CredentialsOptions {
  /// The time, for tests.
  LOOKOUT_OPTION std::function<std::chrono::system_clock::time_point()> now =
      std::chrono::system_clock::now;
  /// A plugin that takes longer is ended. Some wait for a person to log in with a browser.
  std::chrono::milliseconds exec_timeout = std::chrono::minutes(5);
  std::size_t exec_max_output = 1u << 20;
};

/// The credentials of a Config: fixed, or from files that change (the tokens of pods do, every hour
/// or so), or from an exec plugin. Safe to use from several threads.
///
/// * Files (client-go's transport.NewCachedFileTokenSource and its certificate loader): looked at
///   once a second at most, read again when they changed, and once a minute in any case. If that
///   fails (the file is away for a moment, a certificate and its key do not match yet), the last
///   good content stays in use.
/// * Exec plugin (plugin/pkg/client/auth/exec): run when there is no credential, when the one there
///   is has expired, or when it was invalidated. Never run twice at the same time: callers wait for
///   the one run and share what comes of it. A failure is remembered for a second, so that many
///   callers do not run a broken plugin over and over.
///
/// Errors are ConfigError. Neither they nor anything else repeats tokens, passwords or keys.
class Credentials {
 public:
  /// Throws ConfigError if `config` is not valid (Config::normalized()). Reads no files and runs
  /// nothing.
  explicit Credentials(const Config& config, CredentialsOptions options = {});
  ~Credentials();
  Credentials(const Credentials&) = delete;
  Credentials& operator=(const Credentials&) = delete;

  /// The credential to use now. May block for as long as a plugin runs; reads small files, no more,
  /// if there is no plugin. Null only if `stop` was requested meanwhile, which also ends the
  /// plugin. Throws ConfigError if there is no credential to be had.
  std::shared_ptr<const Credential> current(std::stop_token stop = {});

  /// The same, or null where current() would block. For threads that must not: if it is null, call
  /// current() on another. Throws as current() does.
  std::shared_ptr<const Credential> try_current();

  /// Whether current() would run a plugin or wait for one now. The answer may be out of date at
  /// once; try_current() has no such gap.
  bool would_block() const;

  /// To be called when the server answered 401 to a request with `used`: unless there is another
  /// credential by now, the next call gets a new one (runs the plugin, reads the files). Does
  /// nothing for what is fixed.
  void invalidate(const std::shared_ptr<const Credential>& used);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace lookout::rest
