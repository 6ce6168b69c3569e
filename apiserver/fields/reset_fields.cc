#include "apiserver/fields/reset_fields.h"

#include <span>

namespace lookout::apiserver::fields {
namespace {

using Path = std::vector<std::string_view>;
using Paths = std::vector<Path>;

FieldSet set_of(const Paths& paths) {
  FieldSet out;
  for (const Path& path : paths) {
    std::vector<PathElement> elements;
    elements.reserve(path.size());
    for (const std::string_view name : path) elements.push_back(PathElement::field(name));
    out.insert(elements);
  }
  return out;
}

/// The part of a set below the paths.
FieldSet matching(const FieldSet& set,
                  const std::vector<std::span<const std::string_view>>& paths) {
  FieldSet out;
  for (const FieldSet::Node& node : set.nodes()) {
    std::vector<std::span<const std::string_view>> below;
    bool whole = false;
    for (const auto& path : paths) {
      const bool fits = path.front() == "*" || (node.element.kind == PathElement::Kind::kField &&
                                                node.element.text == path.front());
      if (!fits) continue;
      if (path.size() == 1) whole = true;
      if (path.size() > 1) below.push_back(path.subspan(1));
    }
    if (whole) {
      out.append(node.element, node.member, node.below);
    } else if (!below.empty()) {
      out.append(node.element, node.member, matching(node.below, below));
    }
  }
  return out;
}

/// The resources whose status strategy also resets metadata.
struct StatusRule {
  std::string_view group;
  std::string_view plural;
  Paths reset;  // in addition to the spec
};

const std::vector<StatusRule>& status_rules() {
  static const std::vector<StatusRule> kRules = {
      {"", "pods", {{"metadata", "deletionTimestamp"}, {"metadata", "ownerReferences"}}},
      {"apps", "deployments", {{"metadata", "labels"}}},
      {"apiregistration.k8s.io", "apiservices", {{"metadata"}}},
      {"flowcontrol.apiserver.k8s.io", "flowschemas", {{"metadata"}}},
      {"flowcontrol.apiserver.k8s.io", "prioritylevelconfigurations", {{"metadata"}}},
      {"storage.k8s.io", "volumeattachments", {{"metadata"}}},
      {"resource.k8s.io", "resourceclaims", {{"metadata"}}},
      {"admissionregistration.k8s.io", "validatingadmissionpolicies", {{"metadata"}}},
      {"certificates.k8s.io", "certificatesigningrequests", {{"status", "conditions"}}},
  };
  return kRules;
}

Paths reset_by_status(std::string_view group, std::string_view plural, bool custom) {
  Paths out = {{"spec"}};
  if (custom) out.push_back({"metadata"});
  for (const StatusRule& rule : status_rules()) {
    if (!custom && rule.group == group && rule.plural == plural)
      out.insert(out.end(), rule.reset.begin(), rule.reset.end());
  }
  return out;
}

}  // namespace

OwnableFields OwnableFields::of(std::string_view group, std::string_view plural,
                                std::string_view subresource, bool custom, bool has_status) {
  OwnableFields out;
  // The strategy of this kind resets nothing.
  if (group == "networking.k8s.io" && plural == "servicecidrs") return out;
  if (subresource.empty()) {
    Paths reset;
    if (has_status) reset.push_back({"status"});
    // The spec of a signing request is immutable.
    if (!custom && group == "certificates.k8s.io" && plural == "certificatesigningrequests")
      reset.push_back({"spec"});
    out.reset_ = set_of(reset);
  } else if (subresource == "status") {
    out.reset_ = set_of(reset_by_status(group, plural, custom));
  } else if (subresource == "approval") {
    out.reset_ = set_of({{"spec"}, {"status", "certificate"}});
  } else if (subresource == "ephemeralcontainers") {
    out.only_ = {{"spec", "ephemeralContainers"}};
  } else if (subresource == "resize") {
    for (const char* list : {"containers", "initContainers"}) {
      for (const char* field : {"resources", "resizePolicy"})
        out.only_.push_back({"spec", list, "*", field});
    }
  }
  return out;
}

FieldSet OwnableFields::filtered(const FieldSet& set) const {
  if (!only_.empty())
    return matching(set,
                    std::vector<std::span<const std::string_view>>(only_.begin(), only_.end()));
  return reset_.empty() ? set : set.without_below(reset_);
}

Comparison OwnableFields::filtered(Comparison comparison) const {
  if (only_.empty() && reset_.empty()) return comparison;
  return {filtered(comparison.removed), filtered(comparison.modified), filtered(comparison.added)};
}

const FieldSet& unowned_metadata() {
  static const FieldSet kSet = set_of({{"apiVersion"},
                                       {"kind"},
                                       {"metadata"},
                                       {"metadata", "name"},
                                       {"metadata", "namespace"},
                                       {"metadata", "creationTimestamp"},
                                       {"metadata", "selfLink"},
                                       {"metadata", "uid"},
                                       {"metadata", "clusterName"},
                                       {"metadata", "generation"},
                                       {"metadata", "managedFields"},
                                       {"metadata", "resourceVersion"}});
  return kSet;
}

}  // namespace lookout::apiserver::fields
