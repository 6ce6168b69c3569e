#include "apiserver/resources/pod_defaults.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "apiserver/quota/resource_list.h"
#include "apiserver/resources/strategies.h"

namespace lookout::apiserver::resources {
namespace {

using json::Allocator;

bool is_lower_alnum(char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); }

/// Whether the text is a component of a repository's path: lower-case letters and digits, with ".",
/// "_", "__" or hyphens between them.
bool is_path_component(std::string_view text) {
  std::size_t at = 0;
  const auto skip = [&](auto matches) {
    const std::size_t start = at;
    while (at < text.size() && matches(text[at])) ++at;
    return text.substr(start, at - start);
  };
  for (;;) {
    if (skip(is_lower_alnum).empty()) return false;
    if (at == text.size()) return true;
    const std::string_view separator = skip([](char c) { return !is_lower_alnum(c); });
    const bool is_hyphens = separator.find_first_not_of('-') == std::string_view::npos;
    if (separator != "." && separator != "_" && separator != "__" && !is_hyphens) return false;
  }
}

/// Whether the first part of a path is the host of a registry (splitDockerDomain).
bool is_registry(std::string_view part) {
  const auto is_upper = [](char c) { return c >= 'A' && c <= 'Z'; };
  return part.find_first_of(".:") != std::string_view::npos || part == "localhost" ||
         std::any_of(part.begin(), part.end(), is_upper);
}

/// Whether the text names a repository, with or without its registry.
bool is_repository(std::string_view name) {
  constexpr std::size_t kIdentifier =
      64;  // hexadecimal digits, which name an image, not a repository
  if (name.size() == kIdentifier &&
      name.find_first_not_of("0123456789abcdef") == std::string_view::npos)
    return false;
  const std::size_t slash = name.find('/');
  if (slash != std::string_view::npos && is_registry(name.substr(0, slash))) {
    constexpr std::string_view kHost =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-:[]";
    if (slash == 0 || name.substr(0, slash).find_first_not_of(kHost) != std::string_view::npos)
      return false;
    name.remove_prefix(slash + 1);
  }
  for (;;) {
    const std::size_t end = std::min(name.find('/'), name.size());
    if (!is_path_component(name.substr(0, end))) return false;
    if (end == name.size()) return true;
    name.remove_prefix(end + 1);
  }
}

/// Always, for the tag "latest" and for images with neither tag nor digest; otherwise, and for
/// invalid names, IfNotPresent.
std::string_view pull_policy(std::string_view image) {
  constexpr const char* kSometimes = "IfNotPresent";
  const std::size_t at = image.find('@');
  std::string_view name = image.substr(0, at);
  const std::size_t colon = name.rfind(':');
  const std::size_t slash = name.rfind('/');
  const bool tagged =
      colon != std::string_view::npos && (slash == std::string_view::npos || colon > slash);
  if (tagged ? name.substr(colon + 1) != "latest" : at != std::string_view::npos) return kSometimes;
  if (tagged) name = name.substr(0, colon);
  return is_repository(name) ? "Always" : kSometimes;
}

void default_probe(json::Value& container, std::string_view name, Allocator& allocator) {
  json::Value* probe = json::find(container, name);
  if (probe == nullptr || !probe->IsObject()) return;
  const auto number = [&](std::string_view field, int value) {
    if (json::integer(*probe, field, 0) == 0)
      json::set(*probe, field, json::Value(value), allocator);
  };
  number("timeoutSeconds", 1);
  number("periodSeconds", 10);
  number("successThreshold", 1);
  number("failureThreshold", 3);
  if (json::Value* grpc = json::find(*probe, "grpc"); grpc != nullptr && grpc->IsObject())
    json::set_default(*grpc, "service", "", allocator);
  if (json::Value* get = json::find(*probe, "httpGet"); get != nullptr && get->IsObject()) {
    json::set_default(*get, "path", "/", allocator);
    json::set_default(*get, "scheme", "HTTP", allocator);
  }
}

/// The API version of a fieldRef.
void default_field_version(json::Value& source, Allocator& allocator) {
  if (json::Value* field = json::find(source, "fieldRef"); field != nullptr && field->IsObject())
    json::set_default(*field, "apiVersion", "v1", allocator);
}

void default_hook(json::Value& container, std::string_view name, Allocator& allocator) {
  json::Value* lifecycle = json::find(container, "lifecycle");
  json::Value* hook = lifecycle == nullptr ? nullptr : json::find(*lifecycle, name);
  json::Value* get = hook == nullptr ? nullptr : json::find(*hook, "httpGet");
  if (get == nullptr || !get->IsObject()) return;
  json::set_default(*get, "path", "/", allocator);
  json::set_default(*get, "scheme", "HTTP", allocator);
}

void default_volume(json::Value& volume, Allocator& allocator) {
  if (!volume.IsObject()) return;
  if (volume.MemberCount() == (json::find(volume, "name") == nullptr ? 0u : 1u))
    json::set(volume, "emptyDir", json::object(), allocator);
  constexpr int kMode = 0644;
  constexpr int kTokenSeconds = 3600;
  for (const char* source : {"secret", "configMap", "downwardAPI", "projected"}) {
    json::Value* found = json::find(volume, source);
    if (found == nullptr || !found->IsObject()) continue;
    json::set_default(*found, "defaultMode", json::Value(kMode), allocator);
    const auto items = [&](json::Value& item) { default_field_version(item, allocator); };
    json::for_each(*found, "items", items);
    json::for_each(*found, "sources", [&](json::Value& part) {
      if (json::Value* token = json::find(part, "serviceAccountToken");
          token != nullptr && token->IsObject())
        json::set_default(*token, "expirationSeconds", json::Value(kTokenSeconds), allocator);
      if (json::Value* downward = json::find(part, "downwardAPI"))
        json::for_each(*downward, "items", items);
    });
  }
  if (json::Value* image = json::find(volume, "image"); image != nullptr && image->IsObject())
    json::set_default(*image, "pullPolicy", pull_policy(json::text(*image, "reference")),
                      allocator);
  default_volume_source(volume, allocator);
  json::Value* ephemeral = json::find(volume, "ephemeral");
  json::Value* claim =
      ephemeral == nullptr ? nullptr : json::find(*ephemeral, "volumeClaimTemplate");
  json::Value* claim_spec = claim == nullptr ? nullptr : json::find(*claim, "spec");
  if (claim_spec != nullptr && claim_spec->IsObject())
    json::set_default(*claim_spec, "volumeMode", "Filesystem", allocator);
}

void default_container(json::Value& container, Allocator& allocator) {
  if (!container.IsObject()) return;
  json::for_each(container, "env", [&](json::Value& variable) {
    json::Value* source = json::find(variable, "valueFrom");
    if (source == nullptr) return;
    default_field_version(*source, allocator);
    if (json::Value* file = json::find(*source, "fileKeyRef"); file != nullptr && file->IsObject())
      json::set_default(*file, "optional", json::Value(false), allocator);
  });
  for (const char* hook : {"postStart", "preStop"}) default_hook(container, hook, allocator);
  json::set_default(container, "imagePullPolicy", pull_policy(json::text(container, "image")),
                    allocator);
  json::set_default(container, "terminationMessagePath", "/dev/termination-log", allocator);
  json::set_default(container, "terminationMessagePolicy", "File", allocator);
  json::set_default(container, "resources", json::object(), allocator);
  json::for_each(container, "ports", [&](json::Value& port) {
    if (port.IsObject()) json::set_default(port, "protocol", "TCP", allocator);
  });
  for (const char* probe : {"livenessProbe", "readinessProbe", "startupProbe"})
    default_probe(container, probe, allocator);
}

/// The requests of a container default to its limits.
void default_requests(json::Value& container, Allocator& allocator) {
  json::Value* resources = json::find(container, "resources");
  json::Value* limits = resources == nullptr ? nullptr : json::find(*resources, "limits");
  if (limits == nullptr || !limits->IsObject() || limits->ObjectEmpty()) return;
  json::Value& requests = json::child(*resources, "requests", allocator);
  for (auto& limit : json::find(*resources, "limits")->GetObject())
    json::set_default(requests, json::text_of(limit.name), json::deep_copy(limit.value, allocator),
                      allocator);
}

/// With hostNetwork, host ports default to the container ports.
void default_host_ports(json::Value& spec, Allocator& allocator) {
  const json::Value* host = json::find(spec, "hostNetwork");
  if (host == nullptr || !host->IsTrue()) return;
  for (const char* list : {"containers", "initContainers"}) {
    json::for_each(spec, list, [&](json::Value& container) {
      json::for_each(container, "ports", [&](json::Value& port) {
        const std::int64_t number = json::integer(port, "containerPort", 0);
        if (number != 0 && json::integer(port, "hostPort", 0) == 0)
          json::set(port, "hostPort", json::Value(number), allocator);
      });
    });
  }
}

/// If there are pod-level resources, missing requests default to the sum of the containers' requests,
/// or else to the pod's limits.
void default_pod_resources(json::Value& spec, Allocator& allocator) {
  json::Value* resources = json::find(spec, "resources");
  if (resources == nullptr || !resources->IsObject()) return;
  const auto is_huge = [](std::string_view name) { return name.starts_with("hugepages-"); };
  const auto has_any = [&](const char* part) {
    const json::Value* amounts = json::find(*resources, part);
    return amounts != nullptr && amounts->IsObject() && !amounts->ObjectEmpty();
  };
  if (!has_any("limits") && !has_any("requests")) return;
  const api::Object containers = api::Object::from(spec);
  const auto set_missing = [&](const char* part, const std::string& name, std::string_view amount) {
    json::set_default(json::child(*resources, part, allocator), name, amount, allocator);
  };
  for (const auto& [name, amount] : quota::resources_of_containers(containers.body(), "limits")) {
    const bool is_asked_for = containers["resources"]["requests"][name].exists();
    if (is_huge(name) && !is_asked_for) set_missing("limits", name, amount.to_string());
  }
  if (!has_any("limits")) return;
  for (const auto& [name, amount] : quota::resources_of_containers(containers.body(), "requests")) {
    if (name == "cpu" || name == "memory") set_missing("requests", name, amount.to_string());
  }
  // A copy, because a new member moves the others.
  const json::Value limits = json::deep_copy(*json::find(*resources, "limits"), allocator);
  for (const auto& limit : limits.GetObject()) {
    const std::string name(json::text_of(limit.name));
    if ((name == "cpu" || name == "memory" || is_huge(name)) && limit.value.IsString())
      set_missing("requests", name, json::text_of(limit.value));
  }
}

}  // namespace

void default_volume_source(json::Value& holder, Allocator& allocator) {
  struct Default {
    const char* source;
    const char* field;
    const char* value;
  };
  constexpr std::array<Default, 9> kDefaults = {{
      {"rbd", "pool", "rbd"},
      {"rbd", "user", "admin"},
      {"rbd", "keyring", "/etc/ceph/keyring"},
      {"iscsi", "iscsiInterface", "default"},
      {"azureDisk", "cachingMode", "ReadWrite"},
      {"azureDisk", "fsType", "ext4"},
      {"azureDisk", "kind", "Shared"},
      {"scaleIO", "storageMode", "ThinProvisioned"},
      {"scaleIO", "fsType", "xfs"},
  }};
  for (const auto& [source, field, value] : kDefaults) {
    json::Value* found = json::find(holder, source);
    if (found != nullptr && found->IsObject()) json::set_default(*found, field, value, allocator);
  }
  if (json::Value* disk = json::find(holder, "azureDisk"); disk != nullptr && disk->IsObject())
    json::set_default(*disk, "readOnly", json::Value(false), allocator);
  if (json::Value* path = json::find(holder, "hostPath"); path != nullptr && path->IsObject())
    json::set_default(*path, "type", json::Value(""), allocator);
}

void default_pod_spec(json::Value& spec, Allocator& allocator) {
  if (!spec.IsObject()) return;
  json::set_default(spec, "restartPolicy", "Always", allocator);
  json::set_default(spec, "terminationGracePeriodSeconds", json::Value(30), allocator);
  json::set_default(spec, "dnsPolicy", "ClusterFirst", allocator);
  json::set_default(spec, "securityContext", json::object(), allocator);
  json::set_default(spec, "schedulerName", "default-scheduler", allocator);
  const auto visit = [&](json::Value& container) { default_container(container, allocator); };
  json::for_each(spec, "containers", visit);
  json::for_each(spec, "initContainers", visit);
  json::for_each(spec, "ephemeralContainers", visit);
  json::for_each(spec, "volumes", [&](json::Value& volume) { default_volume(volume, allocator); });
  // serviceAccount is the older name of serviceAccountName.
  std::string account(json::text(spec, "serviceAccountName"));
  if (account.empty()) account = json::text(spec, "serviceAccount");
  if (!account.empty()) {
    json::set(spec, "serviceAccountName", account, allocator);
    json::set(spec, "serviceAccount", account, allocator);
  }
}

void default_pod(json::Value& pod, Allocator& allocator) {
  json::Value* spec = json::find(pod, "spec");
  if (spec == nullptr || !spec->IsObject()) return;
  default_pod_spec(*spec, allocator);
  json::set_default(*spec, "enableServiceLinks", json::Value(true), allocator);
  // Only for pods, not for templates.
  if (json::integer(*spec, "terminationGracePeriodSeconds", 0) < 0)
    json::set(*spec, "terminationGracePeriodSeconds", json::Value(1), allocator);
  const auto visit = [&](json::Value& container) { default_requests(container, allocator); };
  json::for_each(*spec, "containers", visit);
  json::for_each(*spec, "initContainers", visit);
  default_pod_resources(*spec, allocator);
  default_host_ports(*spec, allocator);
}

}  // namespace lookout::apiserver::resources
