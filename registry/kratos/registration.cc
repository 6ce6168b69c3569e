// The patches of register and deregister.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <rapidjson/stringbuffer.h>
#include <rapidjson/writer.h>

#include <utility>

#include "lookout/api/validation.h"
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

std::string patch(const std::string& id, const std::string& name, const std::string& version,
                  const detail::StringMap& metadata, const detail::StringMap& protocols) {
  rapidjson::StringBuffer buffer;
  rapidjson::Writer<rapidjson::StringBuffer> writer(buffer);
  const auto key = [&](std::string_view text) {
    writer.Key(text.data(), static_cast<rapidjson::SizeType>(text.size()));
  };
  const auto member = [&](std::string_view label, const std::string& value) {
    key(label);
    writer.String(value.data(), static_cast<rapidjson::SizeType>(value.size()));
  };
  writer.StartObject();
  key("metadata");
  writer.StartObject();
  key("labels");
  writer.StartObject();
  member(kServiceIdLabel, id);
  member(kServiceNameLabel, name);
  member(kServiceVersionLabel, version);
  writer.EndObject();
  key("annotations");
  writer.StartObject();
  member(kMetadataAnnotation, detail::encode_string_map(metadata));
  member(kProtocolsAnnotation, detail::encode_string_map(protocols));
  writer.EndObject();
  writer.EndObject();
  writer.EndObject();
  return {buffer.GetString(), buffer.GetSize()};
}

/// Protocol and port of "protocol://host:port".
std::pair<std::string, std::string> parse_endpoint(const std::string& endpoint) {
  const detail::Url url(endpoint);
  if (!url.valid()) {
    throw RegistrationError(
        fmt::format("the endpoint \"{}\" is no URL: {}", endpoint, url.defect()));
  }
  std::string port = url.part(CURLUPART_PORT);
  if (port.empty()) {
    throw RegistrationError(
        fmt::format("the endpoint \"{}\" has no port: it must be protocol://host:port", endpoint));
  }
  return {url.part(CURLUPART_SCHEME), std::move(port)};
}

}  // namespace

std::map<std::string, std::string> protocols_of(const std::vector<std::string>& endpoints) {
  std::map<std::string, std::string> out;
  for (const auto& endpoint : endpoints) {
    const auto [protocol, port] = parse_endpoint(endpoint);
    const auto [it, first] = out.emplace(port, protocol);
    if (!first && it->second != protocol) {
      throw RegistrationError(
          fmt::format("port {} has two protocols, {} and {}: annotation {} holds one for each port",
                      port, it->second, protocol, kProtocolsAnnotation));
    }
  }
  return out;
}

std::string registration_patch(const ServiceInstance& instance) {
  if (instance.name.empty()) {
    throw RegistrationError(fmt::format(
        "the name is empty: label {} is what instances are found by", kServiceNameLabel));
  }
  check_label("name", kServiceNameLabel, instance.name);
  check_label("id", kServiceIdLabel, instance.id);
  check_label("version", kServiceVersionLabel, instance.version);
  return patch(instance.id, instance.name, instance.version, instance.metadata,
               protocols_of(instance.endpoints));
}

std::string deregistration_patch() { return patch("", "", "", {}, {}); }

}  // namespace lookout::registry::kratos
