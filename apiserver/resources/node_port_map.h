// NodePortMap: the node ports that are allocated.
#pragma once

#include <bitset>
#include <cstddef>
#include <cstdint>
#include <set>
#include <string_view>

#include "lookout/api/object.h"

namespace lookout::apiserver::resources {

/// A bitmap in a RangeAllocation. As in kube-apiserver, its bytes are those of a Go big.Int: the most
/// significant one first, without leading zeros.
class NodePortMap {
 public:
  /// The key of the RangeAllocation.
  static constexpr const char* kKey = "servicenodeports";
  static constexpr std::string_view kRange = "30000-32767";
  static constexpr int kFirst = 30000;
  static constexpr int kCount = 2768;

  static bool covers(std::int64_t port) { return port >= kFirst && port < kFirst + kCount; }

  /// `allocation` is a RangeAllocation, possibly of another range, whose ports outside of this one are
  /// ignored; or empty.
  explicit NodePortMap(const api::Object& allocation);

  bool is_taken(std::int64_t port) const { return covers(port) && bits_[index(port)]; }
  /// Does nothing for a port that the map does not cover.
  void set(std::int64_t port, bool taken) {
    if (covers(port)) bits_[index(port)] = taken;
  }
  /// The first free port at or behind the `start`th one, or else before it; 0 if there is none.
  int free_from(std::uint32_t start) const;
  std::set<std::int64_t> taken() const;

  api::Object object() const;

 private:
  static std::size_t index(std::int64_t port) { return static_cast<std::size_t>(port - kFirst); }

  std::bitset<kCount> bits_;
};

}  // namespace lookout::apiserver::resources
