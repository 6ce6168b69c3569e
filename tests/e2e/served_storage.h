// The storages of `lookout serve`.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tests/apiserver/storage/etcd3/etcd_process.h"
#include "tests/cmd/program.h"

namespace lookout::test {

/// A test's storage; starts an etcd if needed.
class ServedStorage {
 public:
  /// "memory", and "etcd" where there is one.
  static std::vector<std::string> names() {
    std::vector<std::string> out{"memory"};
    if (etcd_is_there()) out.emplace_back("etcd");
    return out;
  }

  explicit ServedStorage(const std::string& name) {
    if (name == "etcd") etcd_.emplace();
  }

  /// The flags of `lookout serve` for this storage, and `more`.
  ProgramEnvironment::Arguments flags(ProgramEnvironment::Arguments more = {}) const {
    if (etcd_) {
      more.insert(more.end(), {"--storage", "etcd", "--etcd-endpoints", etcd_->endpoint()});
    }
    return more;
  }

 private:
  std::optional<EtcdCluster> etcd_;
};

}  // namespace lookout::test
