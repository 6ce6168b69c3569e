// Hook: a webhook of a configuration.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "apiserver/webhooks/webhook_client.h"
#include "lookout/api/labels.h"
#include "lookout/api/object.h"
#include "lookout/api/resource.h"

namespace lookout::apiserver::admission {

using webhooks::Address;

/// admissionregistration/v1.RuleWithOperations.
struct Rule {
  std::vector<std::string> operations;
  std::vector<std::string> groups;
  std::vector<std::string> versions;
  /// "pods", "pods/status", "*", "*/*", "pods/*", "*/scale".
  std::vector<std::string> resources;
  /// "Cluster", "Namespaced"; "*" and empty for both.
  std::string scope;
};

/// A label selector, or the reason why it is invalid.
struct HookSelector {
  api::labels::Selector selector;
  std::string error;
};

/// admissionregistration/v1.MutatingWebhook or ValidatingWebhook. Immutable.
struct Hook {
  std::string configuration;
  std::string name;
  /// Unique among all hooks, unlike names.
  std::string uid;
  std::vector<Rule> rules;
  /// matchPolicy: also selects requests for other versions of the same resource.
  bool equivalent = true;
  HookSelector namespaces;
  HookSelector objects;
  /// failurePolicy: Ignore.
  bool ignores_failures = false;
  std::chrono::seconds timeout{10};
  /// Empty if the configuration does not set it.
  std::string side_effects;
  /// reinvocationPolicy: IfNeeded.
  bool reinvoked = false;
  std::vector<std::string> review_versions;
  Address address;
};

/// The properties of a request that a rule matches.
struct Subject {
  std::string group;
  std::string version;
  std::string resource;
  std::string subresource;
  /// Empty for cluster-scoped resources. For a namespace, its own name, as in kube-apiserver.
  std::string ns;
  /// "CREATE", "UPDATE", "DELETE".
  std::string operation;
};

/// Whether a rule selects a request (k8s.io/apiserver's rules.Matcher).
bool matches(const Rule& rule, const Subject& subject);

/// A resource in one version, and the kind of the written objects: its own, or that of a subresource
/// such as scale.
struct Version {
  std::string group;
  std::string version;
  std::string resource;
  api::GroupVersionKind kind;
};

/// The version of a request that a hook's rules select: that of the request, or else the first match
/// in `equivalents`. nullopt if there is none. `subject` has the request's version.
std::optional<Version> wanted_version(const Hook& hook, const Subject& subject,
                                      const Version& requested,
                                      const std::vector<Version>& equivalents);

/// Whether the object selector selects one of the two; absent objects are not selected. Throws
/// api::StatusError (500) for an invalid selector.
bool selects_objects(const Hook& hook, const api::Object& object, const api::Object& old);

/// The hooks of a MutatingWebhookConfiguration or a ValidatingWebhookConfiguration, in order. Absent
/// fields have their defaults.
std::vector<std::shared_ptr<const Hook>> hooks_of(const api::Object& configuration);

}  // namespace lookout::apiserver::admission
