// Request: the key of a reconcile.
#pragma once

#include <compare>
#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <utility>

#include "lookout/api/value.h"

namespace lookout::controller {

/// Names the object to reconcile; reconcile.Request. It does not say what happened: several events
/// become one request, and the object may be gone when the request runs.
struct Request {
  std::string ns;  ///< empty for cluster-scoped objects
  std::string name;

  Request() = default;
  Request(std::string_view ns_of, std::string_view name_of) : ns(ns_of), name(name_of) {}
  /// Takes the name from a field of an object, such as a label. An absent field gives an empty
  /// name, which Enqueue ignores.
  Request(std::string_view ns_of, api::Value name_of) : ns(ns_of), name(name_of.as_string()) {}

  /// "namespace/name", or "name" for cluster-scoped objects.
  std::string key() const { return ns.empty() ? name : ns + "/" + name; }

  friend bool operator==(const Request&, const Request&) = default;
  friend std::strong_ordering operator<=>(const Request&, const Request&) = default;
};

}  // namespace lookout::controller

template <>
struct std::hash<lookout::controller::Request> {
  std::size_t operator()(const lookout::controller::Request& request) const noexcept {
    const std::size_t ns = std::hash<std::string>()(request.ns);
    return std::hash<std::string>()(request.name) ^ (ns * 31 + 7);
  }
};
