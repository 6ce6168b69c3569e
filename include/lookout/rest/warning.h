// Warnings in the API server's responses.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>

namespace lookout::rest {

/// A Warning header of a response (RFC 7234, 5.5; Kubernetes sends code 299): a deprecated API, an
/// unknown field, a policy violation.
struct Warning {
  int code = 0;
  std::string agent = {};
  std::string text = {};     ///< decoded; no control characters
  std::string request = {};  ///< the request: "create pods web"
};

/// Receives warnings (client-go's rest.WarningHandler): any function that takes a `const Warning&`.
/// It is called on threads of the event loop, possibly at the same time, and must not block;
/// exceptions are logged. Copies are equal to their original.
class WarningHandler {
 public:
  WarningHandler() = default;
  template <class F>
    requires std::is_invocable_v<F&, const Warning&>
  WarningHandler(F function)  // NOLINT(google-explicit-constructor): config.on_warning = [] ...
      : function_(
            std::make_shared<const std::function<void(const Warning&)>>(std::move(function))) {}

  explicit operator bool() const { return function_ != nullptr; }
  void operator()(const Warning& warning) const { (*function_)(warning); }
  bool operator==(const WarningHandler&) const = default;

 private:
  std::shared_ptr<const std::function<void(const Warning&)>> function_;
};

}  // namespace lookout::rest
