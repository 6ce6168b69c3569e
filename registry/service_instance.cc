#include "lookout/registry/service_instance.h"

#include <algorithm>
#include <string_view>

namespace lookout::registry {
namespace {

bool same_endpoints(const std::vector<Endpoint>& a, const std::vector<Endpoint>& b) {
  if (a.size() != b.size()) return false;
  if (a == b) return true;
  std::vector<std::string_view> left;
  std::vector<std::string_view> right;
  left.reserve(a.size());
  right.reserve(b.size());
  for (const auto& endpoint : a) left.push_back(endpoint.text());
  for (const auto& endpoint : b) right.push_back(endpoint.text());
  std::sort(left.begin(), left.end());
  std::sort(right.begin(), right.end());
  return left == right;
}

}  // namespace

const Endpoint* ServiceInstance::endpoint(std::string_view scheme) const {
  const auto found = std::ranges::find_if(endpoints, [&](const Endpoint& e) {
    return e.valid() && e.announced() && (scheme.empty() || e.has_scheme(scheme));
  });
  return found == endpoints.end() ? nullptr : &*found;
}

bool operator==(const ServiceInstance& a, const ServiceInstance& b) {
  return a.id == b.id && a.name == b.name && a.version == b.version && a.metadata == b.metadata &&
         same_endpoints(a.endpoints, b.endpoints);
}

bool identical(const ServiceInstance& a, const ServiceInstance& b) {
  return a.ready == b.ready && a.origin == b.origin && a.zone == b.zone && a == b &&
         std::ranges::equal(a.endpoints, b.endpoints, {}, &Endpoint::announced,
                            &Endpoint::announced);
}

}  // namespace lookout::registry
