#include "lookout/registry/service_instance.h"

#include <algorithm>
#include <string_view>

namespace lookout::registry {
namespace {

bool same_endpoints(const std::vector<std::string>& a, const std::vector<std::string>& b) {
  if (a.size() != b.size()) return false;
  if (a == b) return true;
  std::vector<std::string_view> left(a.begin(), a.end());
  std::vector<std::string_view> right(b.begin(), b.end());
  std::sort(left.begin(), left.end());
  std::sort(right.begin(), right.end());
  return left == right;
}

}  // namespace

bool operator==(const ServiceInstance& a, const ServiceInstance& b) {
  return a.id == b.id && a.name == b.name && a.version == b.version && a.metadata == b.metadata &&
         same_endpoints(a.endpoints, b.endpoints);
}

bool identical(const ServiceInstance& a, const ServiceInstance& b) {
  return a.ready == b.ready && a.origin == b.origin && a.zone == b.zone && a == b;
}

}  // namespace lookout::registry
