// The options of a call, and those of the client that it is made with.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <stop_token>
#include <utility>
#include <vector>

#include "lookout/rest/options.h"

namespace lookout::rest::detail {

/// Options that Client::with() adds to every call.
struct Binding {
  std::vector<std::stop_token> stops;  // each ends the call
  std::vector<std::function<bool()>> may_send;
  std::chrono::milliseconds timeout{0};  // 0: that of the Config
};
using BindingPtr = std::shared_ptr<const Binding>;

/// `before` and then `call`: stops and guards add up, and the later deadline replaces the earlier.
inline BindingPtr bind(const BindingPtr& before, const CallOptions& call) {
  auto out = before ? std::make_shared<Binding>(*before) : std::make_shared<Binding>();
  if (call.stop.stop_possible()) out->stops.push_back(call.stop);
  if (call.may_send) out->may_send.push_back(call.may_send);
  if (call.timeout.count() > 0) out->timeout = call.timeout;
  return out;
}

/// One call.
struct BoundCall {
  CallOptions options;
  BindingPtr binding;  // may be null

  /// The deadline for a request that is no watch; `otherwise` if nobody chose one.
  std::chrono::milliseconds timeout_or(std::chrono::milliseconds otherwise) const {
    if (options.timeout.count() > 0) return options.timeout;
    return binding && binding->timeout.count() > 0 ? binding->timeout : otherwise;
  }
};

}  // namespace lookout::rest::detail
