// The patches for registering and deregistering.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <rapidjson/stringbuffer.h>
#include <rapidjson/writer.h>

#include <cstdint>
#include <set>
#include <utility>

#include "lookout/api/validation.h"
#include "lookout/base/ascii.h"
#include "lookout/base/json_text.h"
#include "lookout/base/structural_scanner.h"
#include "lookout/k8s/core/v1.h"
#include "lookout/registry/kratos/registry.h"
#include "registry/string_map.h"
#include "registry/url.h"

namespace lookout::registry::kratos {
namespace {

void check_label(const char* field, std::string_view label, const std::string& value) {
  const auto wrong = api::validation::check_label_value(value);
  if (wrong.empty()) return;
  throw RegistrationError(fmt::format("the {} \"{}\" cannot be the value of label {}: {}", field,
                                      value, label, fmt::join(wrong, "; ")));
}

/// JSON is UTF-8. (Go replaces other bytes, so instances would have other metadata than announced.)
void check_metadata(const detail::StringMap& metadata) {
  for (const auto& [key, value] : metadata) {
    if (find_invalid_utf8(key) == std::string_view::npos &&
        find_invalid_utf8(value) == std::string_view::npos)
      continue;
    throw RegistrationError(fmt::format("metadata {:?} is not UTF-8 text", key));
  }
}

std::string patch(const std::string& id, const std::string& name, const std::string& version,
                  const detail::StringMap& metadata, const detail::StringMap& protocols,
                  const std::string& uid) {
  rapidjson::StringBuffer buffer;
  rapidjson::Writer<rapidjson::StringBuffer> writer(buffer);
  writer.StartObject();
  base::write_key(writer, "metadata");
  writer.StartObject();
  if (!uid.empty()) base::write_text(writer, "uid", uid);
  base::write_key(writer, "labels");
  writer.StartObject();
  base::write_text(writer, kServiceIdLabel, id);
  base::write_text(writer, kServiceNameLabel, name);
  base::write_text(writer, kServiceVersionLabel, version);
  writer.EndObject();
  base::write_key(writer, "annotations");
  writer.StartObject();
  base::write_text(writer, kMetadataAnnotation, detail::encode_string_map(metadata));
  base::write_text(writer, kProtocolsAnnotation, detail::encode_string_map(protocols));
  writer.EndObject();
  writer.EndObject();
  writer.EndObject();
  return {buffer.GetString(), buffer.GetSize()};
}

/// Protocol and port of "protocol://host:port".
std::pair<std::string, std::string> parts_of(const Endpoint& endpoint) {
  if (!endpoint.valid()) {
    throw RegistrationError(fmt::format("the endpoint \"{}\" is not a URL: {}",
                                        registry::detail::without_secrets(endpoint.text()),
                                        endpoint.defect()));
  }
  if (endpoint.port() == 0) {
    throw RegistrationError(fmt::format(
        "the endpoint \"{}\" has no port: it must be protocol://host:port", endpoint.text()));
  }
  return {base::lower_case(endpoint.scheme()), std::to_string(endpoint.port())};
}

}  // namespace

std::map<std::string, std::string> protocols_of(const std::vector<Endpoint>& endpoints) {
  std::map<std::string, std::string> out;
  for (const auto& endpoint : endpoints) {
    const auto [protocol, port] = parts_of(endpoint);
    const auto [it, first] = out.emplace(port, protocol);
    if (!first && it->second != protocol) {
      throw RegistrationError(
          fmt::format("port {} has two protocols, {} and {}: annotation {} holds one for each port",
                      port, it->second, protocol, kProtocolsAnnotation));
    }
  }
  return out;
}

std::string registration_patch(const ServiceInstance& instance, const std::string& uid) {
  if (instance.name.empty()) {
    throw RegistrationError(
        fmt::format("the name is empty: instances are found by label {}", kServiceNameLabel));
  }
  check_label("name", kServiceNameLabel, instance.name);
  check_label("id", kServiceIdLabel, instance.id);
  check_label("version", kServiceVersionLabel, instance.version);
  check_metadata(instance.metadata);
  return patch(instance.id, instance.name, instance.version, instance.metadata,
               protocols_of(instance.endpoints), uid);
}

std::string deregistration_patch(const std::string& uid) { return patch("", "", "", {}, {}, uid); }

std::vector<std::string> undeclared_ports(const ServiceInstance& instance,
                                          const api::Object& object) {
  std::set<std::int64_t> declared;
  const k8s::core::v1::Pod pod(object);
  for (const auto container : pod.spec().containers()) {
    for (const auto port : container.ports()) declared.insert(port.container_port());
  }
  std::vector<std::string> out;
  for (const auto& endpoint : instance.endpoints) {
    if (endpoint.port() == 0 || declared.contains(endpoint.port())) continue;
    out.push_back(fmt::format(
        "service {}: {} will not be called, because no container of pod {} declares port {}: add "
        "\"ports: [{{containerPort: {}}}]\" to the container",
        instance.name, endpoint.text(), object.key(), endpoint.port(), endpoint.port()));
  }
  if (instance.endpoints.empty() && declared.empty()) {
    out.push_back(
        fmt::format("service {}: this instance will not be called: it has no endpoints, and no "
                    "container of pod {} declares a port",
                    instance.name, object.key()));
  }
  return out;
}

}  // namespace lookout::registry::kratos
