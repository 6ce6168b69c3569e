#include "cmd/registry/xds/session.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "lookout/base/detail/log.h"

namespace lookout::cmd::registry_cmd::xds {
namespace {

constexpr const char* kWildcard = "*";
constexpr std::size_t kMaxShown = 200;

/// Types whose responses are complete, and that can be subscribed to without names.
bool is_whole(Type type) { return type == Type::kCluster || type == Type::kListener; }

/// A client's text for the log: truncated, without control characters.
std::string shown(const std::string& text) {
  std::string out = text.substr(0, kMaxShown);
  std::ranges::replace_if(
      out, [](unsigned char c) { return c < 0x20 || c >= 0x7f; }, '?');
  return out;
}

void pack(Type type, const Resource& resource, google::protobuf::Any& any) {
  any.set_type_url(type_url(type));
  any.set_value(resource.value);
}

std::string version_text(Type type, const Snapshot& snapshot) {
  return std::to_string(snapshot.revision(type));
}

}  // namespace

bool Interest::has(const std::string& name, const Resource& resource) const {
  const auto found = sent.find(name);
  return found != sent.end() && found->second == resource.version;
}

void Interest::prune() {
  std::erase_if(sent, [&](const auto& item) { return !wants(item.first); });
}

std::optional<Type> SessionBase::due(const Snapshot& snapshot) {
  for (const Type type : kTypes) {
    Interest& about = interest(type);
    if (!about.asked || (!about.changed && about.revision == snapshot.revision(type))) continue;
    about.changed = false;
    about.revision = snapshot.revision(type);
    return type;
  }
  return std::nullopt;
}

void SessionBase::note_node(const envoy::config::core::v3::Node& node) {
  if (!node.id().empty()) node_ = shown(node.id());
}

void SessionBase::note_rejection(Type type, const std::string& nonce,
                                 const google::rpc::Status& why) {
  ++rejections_;
  log::warn("xDS: {} rejected response {} with {}: {}", node_, shown(nonce), type_url(type),
            shown(why.message()));
}

Problem SessionBase::add_name(Interest& interest, const std::string& name) const {
  if (name.size() > limits_.name_size) {
    return fmt::format("a resource name has more than {} bytes", limits_.name_size);
  }
  interest.names.insert(name);
  if (interest.names.size() <= limits_.names) return std::nullopt;
  return fmt::format("more than {} resources are subscribed to by name", limits_.names);
}

void SessionBase::note_sent(Type type, const Resource& resource) {
  auto& version = interest(type).sent[resource.name];
  if (type == Type::kCluster && version != resource.version) {
    Interest& endpoints = interest(Type::kEndpoints);
    endpoints.changed = endpoints.sent.erase(resource.name) > 0 || endpoints.changed;
  }
  version = resource.version;
}

template <class Visit>
void SessionBase::each_wanted(Type type, const Snapshot& snapshot, Visit visit) {
  const Interest& about = interest(type);
  // Listeners are requested by name: they are the targets of gRPC clients.
  if (type == Type::kCluster && about.wildcard) {
    for (const Service& service : snapshot.services()) {
      if (!visit(service.name(), service.cluster)) return;
    }
    return;
  }
  for (const auto& name : about.names) {
    if (!visit(name, snapshot.find(type, name))) return;
  }
}

std::vector<ResourcePtr> SessionBase::take_changed(Type type, const Snapshot& snapshot,
                                                   bool clear_gone) {
  Interest& about = interest(type);
  std::vector<ResourcePtr> out;
  std::size_t size = 0;
  each_wanted(type, snapshot, [&](const std::string& name, ResourcePtr resource) {
    const bool is_gone = !resource && about.sent.contains(name);
    if (is_gone && clear_gone && type == Type::kEndpoints) resource = make_no_endpoints(name);
    if (!resource || about.has(name, *resource)) return true;
    size += resource->value.size();
    if (!out.empty() && size > limits_.response) {
      about.changed = true;  // the rest comes with the next response
      return false;
    }
    note_sent(type, *resource);
    out.push_back(std::move(resource));
    return true;
  });
  return out;
}

// --- State of the world

Problem StateSession::on_request(const Request& request) {
  if (request.has_node()) note_node(request.node());
  const auto type = type_of(request.type_url());
  if (!type) return std::nullopt;
  Interest& about = interest(*type);
  if (request.response_nonce() != about.nonce) {
    // The client sent it before the last response arrived; its reply to that follows.
    if (about.asked && !request.response_nonce().empty()) return std::nullopt;
    // gRPC's client drops a type and its nonce with its last subscription.
    about = Interest();
  }
  if (request.has_error_detail()) {
    note_rejection(*type, request.response_nonce(), request.error_detail());
  }
  return subscribe(*type, request);
}

Problem StateSession::subscribe(Type type, const Request& request) {
  Interest& about = interest(type);
  about.answer_due = about.answer_due || (!about.asked && is_whole(type));
  about.asked = true;
  about.changed = true;
  about.named = about.named || request.resource_names_size() > 0;
  about.wildcard = is_whole(type) && !about.named;
  about.names.clear();
  for (const auto& name : request.resource_names()) {
    if (name == kWildcard) {
      about.wildcard = is_whole(type);
    } else if (auto problem = add_name(about, name)) {
      return problem;
    }
  }
  about.prune();
  return std::nullopt;
}

std::optional<StateSession::Response> StateSession::next(const Snapshot& snapshot) {
  while (const auto type = due(snapshot)) {
    std::optional<std::vector<ResourcePtr>> resources;
    if (is_whole(*type)) {
      resources = take_all(*type, snapshot);
    } else {
      resources = take_changed(*type, snapshot, true);
      if (resources->empty()) resources.reset();
    }
    if (!resources) continue;
    Response response;
    for (const auto& resource : *resources) pack(*type, *resource, *response.add_resources());
    Interest& about = interest(*type);
    about.nonce = next_nonce();
    response.set_type_url(type_url(*type));
    response.set_version_info(version_text(*type, snapshot));
    response.set_nonce(about.nonce);
    return response;
  }
  return std::nullopt;
}

std::optional<std::vector<ResourcePtr>> StateSession::take_all(Type type,
                                                               const Snapshot& snapshot) {
  Interest& about = interest(type);
  std::vector<ResourcePtr> all;
  bool changed = std::exchange(about.answer_due, false);
  each_wanted(type, snapshot, [&](const std::string& name, const ResourcePtr& resource) {
    if (!resource) return true;
    all.push_back(resource);
    changed = changed || !about.has(name, *resource);
    return true;
  });
  // `sent` has only wanted resources. If it has more than `all`, some were removed.
  if (!changed && all.size() == about.sent.size()) return std::nullopt;
  std::set<std::string_view> names;
  for (const auto& resource : all) {
    names.insert(resource->name);
    note_sent(type, *resource);
  }
  std::erase_if(about.sent, [&](const auto& item) { return !names.contains(item.first); });
  return all;
}

// --- Delta

Problem DeltaSession::on_request(const Request& request) {
  if (request.has_node()) note_node(request.node());
  const auto type = type_of(request.type_url());
  if (!type) return std::nullopt;
  if (request.has_error_detail()) {
    note_rejection(*type, request.response_nonce(), request.error_detail());
  }
  const bool first = !interest(*type).asked;
  if (first) {
    if (auto problem = begin(*type, request)) return problem;
  }
  if (auto problem = subscribe(*type, request, first)) return problem;
  unsubscribe(*type, request);
  if (first) interest(*type).prune();
  return std::nullopt;
}

Problem DeltaSession::begin(Type type, const Request& request) {
  Interest& about = interest(type);
  about.asked = true;
  if (is_whole(type) && request.resource_names_subscribe().empty()) {
    about.wildcard = true;
    about.answer_due = true;
  }
  const auto& versions = request.initial_resource_versions();
  if (versions.size() > limits_.names) {
    return fmt::format("more than {} initial resource versions", limits_.names);
  }
  for (const auto& [name, version] : versions) {
    if (name.size() > limits_.name_size) continue;
    // Versions of this server are not that long.
    about.sent[name] = version.size() > limits_.name_size ? std::string() : version;
  }
  return std::nullopt;
}

Problem DeltaSession::subscribe(Type type, const Request& request, bool first) {
  Interest& about = interest(type);
  for (const auto& name : request.resource_names_subscribe()) {
    about.changed = true;
    if (name == kWildcard) {
      if (!is_whole(type) || about.wildcard) continue;
      about.wildcard = true;
      about.answer_due = true;
      continue;
    }
    if (auto problem = add_name(about, name)) return problem;
    // A client that resubscribes may have dropped the resource. Only its first request lists the
    // resources that it has.
    if (!first) about.sent.erase(name);
    about.owed.insert(name);
  }
  return std::nullopt;
}

void DeltaSession::unsubscribe(Type type, const Request& request) {
  Interest& about = interest(type);
  for (const auto& name : request.resource_names_unsubscribe()) {
    if (name == kWildcard) {
      about.wildcard = false;
      about.prune();
      continue;
    }
    const bool had_it = about.names.erase(name) > 0;
    about.owed.erase(name);
    about.sent.erase(name);
    if (!had_it || !about.wildcard) continue;
    // The wildcard still covers the resource, which the client has dropped: send it again.
    about.owed.insert(name);
    about.changed = true;
  }
}

std::optional<DeltaSession::Response> DeltaSession::next(const Snapshot& snapshot) {
  while (const auto type = due(snapshot)) {
    Response response;
    add_gone(*type, snapshot, response);
    for (const auto& resource : take_changed(*type, snapshot, false)) {
      auto& added = *response.add_resources();
      added.set_name(resource->name);
      added.set_version(resource->version);
      pack(*type, *resource, *added.mutable_resource());
    }
    const bool empty = response.resources().empty() && response.removed_resources().empty();
    if (!std::exchange(interest(*type).answer_due, false) && empty) continue;
    response.set_type_url(type_url(*type));
    response.set_system_version_info(version_text(*type, snapshot));
    response.set_nonce(next_nonce());
    return response;
  }
  return std::nullopt;
}

void DeltaSession::add_gone(Type type, const Snapshot& snapshot, Response& response) {
  Interest& about = interest(type);
  std::erase_if(about.sent, [&](const auto& item) {
    if (snapshot.find(type, item.first)) return false;
    about.owed.insert(item.first);
    return true;
  });
  for (const auto& name : about.owed) {
    if (!snapshot.find(type, name)) response.add_removed_resources(name);
  }
  about.owed.clear();
}

}  // namespace lookout::cmd::registry_cmd::xds
