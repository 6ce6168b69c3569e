// Acting as somebody else.
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

/// Whom a request acts as.
struct Impersonated {
  User user;
  /// The verb that allowed it: "impersonate:user-info", for instance; empty for "impersonate".
  std::string constraint = {};
};

/// The groups that a user is in because of the name: those of a service account, or none.
std::vector<std::string> implied_groups(const std::string& user);

/// Decides who may act as whom (k8s.io/apiserver/pkg/endpoints/filters/impersonation). There are two
/// ways. The verb `impersonate` allows everything that the other user may do. The constrained verbs
/// allow some of it: `impersonate:user-info`, `impersonate:serviceaccount`,
/// `impersonate:arbitrary-node` and `impersonate:associated-node` say as whom, and
/// `impersonate-on:user-info:list` (and so on) on what. Safe to use from many threads.
class Impersonator {
 public:
  /// `authorizer` must outlive it.
  explicit Impersonator(const Authorizer& authorizer) : authorizer_(authorizer) {}

  /// Whom the Impersonate-User, -Group, -Uid and -Extra- headers of the request name; nothing if it
  /// has none. `action` is what the request does. Throws api::StatusError: 400 for groups and such
  /// without a user, and 403 unless `user` may act so.
  std::optional<Impersonated> impersonate(const User& user, const Attributes& action,
                                          const http::Request& request) const;

 private:
  std::optional<std::size_t> last_mode(const std::string& user) const;
  void remember(const std::string& user, std::size_t mode) const;

  const Authorizer& authorizer_;
  mutable std::mutex mutex_;
  /// The ways that worked last, by user: they are tried first. Guarded by mutex_.
  mutable std::unordered_map<std::string, std::size_t> last_;
};

}  // namespace lookout::apiserver::auth
