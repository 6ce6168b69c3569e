// Discovery: the resources of an API server.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lookout/api/resource.h"
#include "lookout/base/attributes.h"
#include "lookout/rest/client.h"

namespace lookout::rest {

/// A resource as the server describes it (metav1.APIResource).
struct ApiResource {
  api::Resource resource;
  std::string singular;
  std::vector<std::string> short_names;
  std::vector<std::string> verbs;
  std::vector<std::string> categories;

  bool has_verb(std::string_view verb) const;
};

/// Lists all resources of the server, without subresources, in its order of preference: the core
/// group first, and the preferred version of each group first. Takes one or two requests if the
/// server supports aggregated discovery (Kubernetes 1.26), otherwise one for each group and
/// version. A group that cannot be read (its server is down) is skipped with a warning.
std::vector<ApiResource> discover(const Client& client, const CallOptions& call = {});

/// Sends a GET to any path and returns the object in the JSON response, such as a table. If the
/// response is not an object, throws api::DecodeError with its beginning. Also throws what
/// Client::get_raw() throws.
api::Object get_json(const Client& client, const std::string& path, const CallOptions& call = {},
                     const std::string& accept = "application/json");

/// The resource for a name as users write it: "pods", "pod", "po", "Pod",
/// "crontabs.stable.example.com" or "crontabs.v1.stable.example.com"; the first in order of
/// preference. Null if there is none.
const ApiResource* find_resource(std::span<const ApiResource> resources LOOKOUT_LIFETIME_BOUND,
                                 std::string_view name);
const ApiResource* find_resource(std::vector<ApiResource>&& resources,
                                 std::string_view name) = delete;

/// The resource of the objects of a kind, such as that of a manifest (Object::gvk()): client-go's
/// RESTMapping. Null if the server does not serve this version of it.
const ApiResource* find_resource(std::span<const ApiResource> resources LOOKOUT_LIFETIME_BOUND,
                                 const api::GroupVersionKind& kind);
const ApiResource* find_resource(std::vector<ApiResource>&& resources,
                                 const api::GroupVersionKind& kind) = delete;

}  // namespace lookout::rest
