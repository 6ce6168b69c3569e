// User: the user of a request.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace lookout::apiserver::auth {

/// The group of all authenticated users.
inline constexpr const char* kAuthenticated = "system:authenticated";
/// The group of all unauthenticated users.
inline constexpr const char* kUnauthenticated = "system:unauthenticated";

/// The extra that names the credential of a request.
inline constexpr const char* kCredentialId = "authentication.kubernetes.io/credential-id";

/// k8s.io/apiserver/pkg/authentication/user.Info.
struct User {
  std::string name;
  std::string uid = {};
  std::vector<std::string> groups = {};
  std::map<std::string, std::vector<std::string>> extra = {};

  bool is_anonymous() const { return name == "system:anonymous"; }
};

}  // namespace lookout::apiserver::auth
