// The etcd for storage tests: a real one, or the simulator's model.
#pragma once

#include <array>
#include <memory>
#include <ostream>
#include <string>

#include "lookout/apiserver/storage/etcd3.h"
#include "testing/sim/etcd_model.h"

namespace lookout::test {

class EtcdCluster;

struct TestedEtcd {
  const char* name;
  /// The version of the model; null: a real etcd.
  const char* version;

  bool is_real() const { return version == nullptr; }
  /// The reason why it is not available; empty if it is.
  std::string missing() const;
};
void PrintTo(const TestedEtcd& etcd, std::ostream* out);

inline constexpr TestedEtcd kRealEtcd{"Real", nullptr};
/// Debian's version, and one with progress requests.
inline constexpr TestedEtcd kModel34{"Model34", "3.4.23"};
inline constexpr TestedEtcd kModel35{"Model35", "3.5.16"};
inline constexpr std::array kAllEtcds{kRealEtcd, kModel34, kModel35};

/// Options for the etcd that all tests of the program share.
apiserver::storage::EtcdOptions reach_shared(const TestedEtcd& etcd);

/// An etcd for one test.
class OwnEtcd {
 public:
  explicit OwnEtcd(const TestedEtcd& etcd, int members = 1);
  ~OwnEtcd();
  OwnEtcd(const OwnEtcd&) = delete;
  OwnEtcd& operator=(const OwnEtcd&) = delete;

  apiserver::storage::EtcdOptions reach() const;
  std::size_t size() const { return size_; }
  /// Kills a member.
  void kill(std::size_t member);
  void restart(std::size_t member);
  void wait_until_ready() const;
  /// A member whose failure interrupts the others for a while.
  std::size_t leader() const;
  void defragment() const;

 private:
  const std::size_t size_;
  std::unique_ptr<EtcdCluster> real_;
  std::shared_ptr<sim::EtcdModel> model_;
};

}  // namespace lookout::test
