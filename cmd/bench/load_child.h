// LoadChild: a load server in a child process.
#pragma once

#include <sys/types.h>

#include <string>

#include "bench/load/load_server.h"
#include "lookout/base/pinned.h"

namespace lookout::cmd::bench {

/// Runs a load server as a child process, so that its resource usage is separate; ends it with this
/// object or this process. Create it before other threads.
class LoadChild : public base::Pinned {
 public:
  /// Throws lookout::Error if it cannot be started.
  explicit LoadChild(lookout::bench::LoadServerOptions options);
  ~LoadChild();

  /// "http://127.0.0.1:41234"
  const std::string& url() const { return url_; }

 private:
  pid_t child_ = -1;
  std::string url_;
};

}  // namespace lookout::cmd::bench
