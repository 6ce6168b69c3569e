// Impersonation.
#pragma once

#include <cstddef>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "apiserver/auth/authorizer.h"
#include "apiserver/auth/user.h"
#include "lookout/base/http/message.h"

namespace lookout::apiserver::auth {

/// The impersonated user of a request.
struct Impersonated {
  User user;
  /// The verb that allowed it: "impersonate:user-info", for instance; empty for "impersonate".
  std::string constraint = {};
};

/// The groups implied by a user name: those of a service account, or none.
std::vector<std::string> implied_groups(const std::string& user);

/// Authorizes impersonation (k8s.io/apiserver/pkg/endpoints/filters/impersonation). The verb
/// `impersonate` allows everything that the impersonated user may do. Constrained verbs allow a
/// part of it: `impersonate:user-info`, `impersonate:serviceaccount`, `impersonate:arbitrary-node`
/// and `impersonate:associated-node` select the user, and `impersonate-on:user-info:list` (and so
/// on) the action. Thread-safe.
class Impersonator {
 public:
  /// `authorizer` must outlive it.
  explicit Impersonator(const Authorizer& authorizer) : authorizer_(authorizer) {}

  /// The user of the request's Impersonate-User, -Group, -Uid and -Extra- headers; nullopt if there are
  /// none. `action` is the request's action. Throws api::StatusError: 400 for other headers without a
  /// user, and 403 unless `user` may impersonate this user.
  std::optional<Impersonated> impersonate(const User& user, const Attributes& action,
                                          const http::Request& request) const;

 private:
  std::optional<std::size_t> last_mode(const std::string& user) const;
  void remember(const std::string& user, std::size_t mode) const;

  const Authorizer& authorizer_;
  mutable std::mutex mutex_;
  /// The last successful modes, by user; they are tried first. Guarded by mutex_.
  mutable std::unordered_map<std::string, std::size_t> last_;
};

}  // namespace lookout::apiserver::auth
