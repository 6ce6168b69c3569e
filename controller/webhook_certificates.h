// The certificate of a server that goes on while it is replaced.
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
  /// `client_ca_file` may be empty. Throws Error that names the file if one cannot be used.
  CertificateWatcher(std::string certificate_file, std::string key_file,
                     std::string client_ca_file);
  CertificateWatcher(const CertificateWatcher&) = delete;
  CertificateWatcher& operator=(const CertificateWatcher&) = delete;

  /// For a server. Each handshake takes what was read last; the watcher must outlive them.
  const std::shared_ptr<boost::asio::ssl::context>& context() const { return serving_; }

  /// Reads the files that have changed, once a second at most. Keeps the last good ones if the new
  /// ones do not fit. One thread at a time.
  void poll();

  void collect(std::vector<metrics::Sample>& out) const;

 private:
  using Context = std::shared_ptr<boost::asio::ssl::context>;

  Context read();
  Context current() const;
  static int choose(void* ssl, void* self);
  bool apply_to(void* ssl) const;

  const std::string certificate_file_;
  const std::string key_file_;
  const std::string client_ca_file_;
  std::vector<WatchedFile> files_;
  bool stale_ = false;     // the files have changed, and were not good since
  std::string complaint_;  // what was logged last
  Context serving_;
  std::atomic<std::uint64_t> reads_{0};
  std::atomic<std::uint64_t> errors_{0};

  mutable std::mutex mutex_;
  Context current_;  // guarded by mutex_
};

}  // namespace lookout::controller::detail
