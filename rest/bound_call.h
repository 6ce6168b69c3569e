// The options of a call and of its client.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <stop_token>
#include <vector>

#include "lookout/rest/options.h"

namespace lookout::rest::detail {

/// Options that Client::with() and Client::with_write_defaults() add to every call.
struct Binding {
  std::vector<std::stop_token> stops;  // each of them ends the call
  std::vector<std::function<bool()>> may_send;
  std::chrono::milliseconds timeout{0};  // 0: Config::timeout
  WriteDefaults writes = {};
};
using BindingPtr = std::shared_ptr<const Binding>;

/// Combines `before` with `call`: stops and guards add up; the deadline of `call` takes precedence.
inline BindingPtr bind(const BindingPtr& before, const CallOptions& call) {
  auto out = before ? std::make_shared<Binding>(*before) : std::make_shared<Binding>();
  if (call.stop.stop_possible()) out->stops.push_back(call.stop);
  if (call.may_send) out->may_send.push_back(call.may_send);
  if (call.timeout.count() > 0) out->timeout = call.timeout;
  return out;
}

/// Combines `before` with `defaults`, which take precedence where they are set.
inline BindingPtr bind(const BindingPtr& before, const WriteDefaults& defaults) {
  auto out = before ? std::make_shared<Binding>(*before) : std::make_shared<Binding>();
  WriteDefaults& writes = out->writes;
  if (!defaults.field_manager.empty()) writes.field_manager = defaults.field_manager;
  if (!defaults.field_validation.empty()) writes.field_validation = defaults.field_validation;
  writes.dry_run = writes.dry_run || defaults.dry_run;
  return out;
}

/// Fills the unset options of a write with the client's defaults.
template <class Options>
void add_defaults(Options& options, const BindingPtr& binding) {
  if (!binding) return;
  const WriteDefaults& writes = binding->writes;
  options.dry_run = options.dry_run || writes.dry_run;
  if constexpr (requires { options.field_manager; }) {
    if (options.field_manager.empty()) options.field_manager = writes.field_manager;
    if (options.field_validation.empty()) options.field_validation = writes.field_validation;
  }
}

/// One call.
struct BoundCall {
  CallOptions options;
  BindingPtr binding;  // may be null

  /// The time limit of a request that is not a watch; `otherwise` if none was set.
  std::chrono::milliseconds timeout_or(std::chrono::milliseconds otherwise) const {
    if (options.timeout.count() > 0) return options.timeout;
    return binding && binding->timeout.count() > 0 ? binding->timeout : otherwise;
  }
};

}  // namespace lookout::rest::detail
