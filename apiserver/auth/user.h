// User: the user who makes a request.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace lookout::apiserver::auth {

/// The group of all users who have shown credentials.
inline constexpr const char* kAuthenticated = "system:authenticated";
/// The group of those who have not.
inline constexpr const char* kUnauthenticated = "system:unauthenticated";

/// k8s.io/apiserver/pkg/authentication/user.Info.
struct User {
  std::string name;
  std::string uid = {};
  std::vector<std::string> groups = {};
  std::map<std::string, std::vector<std::string>> extra = {};

  bool is_anonymous() const { return name == "system:anonymous"; }
};

}  // namespace lookout::apiserver::auth
