// A load server in a process of its own.
#pragma once

#include <sys/types.h>

#include <string>

#include "bench/load/load_server.h"

namespace lookout::cmd::bench {

/// Runs a load server as a child process, so that what it uses is not counted as ours; ends it with
/// this object, or with this process. To be made before there are other threads.
class LoadChild {
 public:
  /// Throws lookout::Error if it cannot be started.
  explicit LoadChild(lookout::bench::LoadServerOptions options);
  ~LoadChild();
  LoadChild(const LoadChild&) = delete;
  LoadChild& operator=(const LoadChild&) = delete;

  /// "http://127.0.0.1:41234"
  const std::string& url() const { return url_; }

 private:
  pid_t child_ = -1;
  std::string url_;
};

}  // namespace lookout::cmd::bench
