// CertificateWatcher: replaces the certificate of a running server.
#pragma once

#include <atomic>
#include <boost/asio/ssl/context.hpp>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "lookout/base/metrics.h"
#include "lookout/base/watched_file.h"

namespace lookout::controller::detail {

/// controller-runtime's certwatcher.
class CertificateWatcher {
 public:
  /// `server`: the name of the server in log messages. `client_ca_file` may be empty. Throws Error
  /// that names the file if one cannot be used.
  CertificateWatcher(std::string server, std::string certificate_file, std::string key_file,
                     std::string client_ca_file);
  CertificateWatcher(const CertificateWatcher&) = delete;
  CertificateWatcher& operator=(const CertificateWatcher&) = delete;

  /// For a server. Each handshake uses the last valid certificate; the watcher must outlive handshakes.
  const std::shared_ptr<boost::asio::ssl::context>& context() const { return serving_; }

  /// Reads changed files, at most once a second. Keeps the last valid pair if the new files are invalid.
  /// One thread at a time.
  void poll();

  void collect(std::vector<metrics::Sample>& out) const;

 private:
  using Context = std::shared_ptr<boost::asio::ssl::context>;

  Context read();
  Context current() const;
  static int choose(void* ssl, void* self);
  bool apply_to(void* ssl) const;

  const std::string server_;
  const std::string certificate_file_;
  const std::string key_file_;
  const std::string client_ca_file_;
  std::vector<WatchedFile> files_;
  bool stale_ = false;     // the files have changed and are invalid since
  std::string complaint_;  // the last logged error
  Context serving_;
  std::atomic<std::uint64_t> reads_{0};
  std::atomic<std::uint64_t> errors_{0};

  mutable std::mutex mutex_;
  Context current_;  // guarded by mutex_
};

}  // namespace lookout::controller::detail
