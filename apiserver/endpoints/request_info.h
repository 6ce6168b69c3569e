// RequestInfo: the verb and the object of a request, from its method and path.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "apiserver/auth/policy_rule.h"
#include "lookout/base/http/message.h"

namespace lookout::apiserver::endpoints {

/// k8s.io/apiserver/pkg/endpoints/request.RequestInfo.
struct RequestInfo {
  bool is_resource_request = false;
  /// "get", "list", "watch", "create", "update", "patch", "delete", "deletecollection"; for other
  /// requests the method in lower case.
  std::string verb;
  std::string path;
  std::string group;
  std::string version;
  /// Whether the path names a namespace, and which one.
  bool in_namespace = false;
  std::string ns;
  std::string resource;
  std::string name;
  std::string subresource;
  /// The remaining parts of the path.
  bool has_more_parts = false;
  /// The old form of a watch: /api/v1/watch/...
  bool watch_by_path = false;
};

/// The action to be authorized. As in kube-apiserver, a list or watch whose field selector requires
/// one metadata.name is authorized for the object with that name.
auth::Attributes attributes_of(const http::Request& request, const RequestInfo& info);

RequestInfo parse_request_info(const http::Request& request);

/// As metav1.Convert_Slice_string_To_bool: everything but "0" and "false" is true.
bool is_true(std::string_view parameter);

/// The value of a parameter that is a number. Throws api::StatusError (400) with Go's message.
std::int64_t parse_number(std::string_view parameter);

}  // namespace lookout::apiserver::endpoints
