// Validation of config maps and secrets.
#include <fmt/format.h>

#include <cstddef>
#include <initializer_list>
#include <string>
#include <string_view>

#include "apiserver/resources/strategies.h"

namespace lookout::apiserver::resources {
namespace {

namespace rules = api::validation;
using api::Object;
using api::Value;

constexpr std::string_view kImmutableData = "field is immutable when `immutable` is set";

constexpr int kMaxData = 1 << 20;

void validate_data_keys(Value data, const std::string& field, std::size_t& size, Causes& causes) {
  for (const auto& [key, value] : data.members()) {
    for (const auto& message : rules::check_config_map_key(key))
      causes.push_back(rules::invalid(fmt::format("{}[{}]", field, key), key, message));
    size += value.as_string().size();
  }
}

/// The fields that an immutable object must not change.
void validate_immutable(const Object& object, const Object& old,
                        std::initializer_list<const char*> fields, Causes& causes) {
  if (!old["immutable"].as_bool()) return;
  if (!object["immutable"].as_bool())
    causes.push_back(rules::forbidden("immutable", kImmutableData));
  for (const char* field : fields) {
    if (!(object[field] == old[field])) causes.push_back(rules::forbidden(field, kImmutableData));
  }
}

}  // namespace

void validate_config_map(const Object& object, Causes& causes) {
  std::size_t size = 0;
  validate_data_keys(object["data"], "data", size, causes);
  for (const auto& [key, value] : object["data"].members()) {
    if (!object["binaryData"].contains(key)) continue;
    causes.push_back(rules::invalid(fmt::format("data[{}]", key), key,
                                    "duplicate of key present in binaryData"));
  }
  validate_data_keys(object["binaryData"], "binaryData", size, causes);
  if (size > kMaxData) causes.push_back(rules::too_long("", kMaxData));
}

void validate_secret(const Object& object, Causes& causes) {
  std::size_t size = 0;
  validate_data_keys(object["data"], "data", size, causes);
  if (size / 4 * 3 > kMaxData) causes.push_back(rules::too_long("data", kMaxData));
  // Readers rely on the keys that the type demands.
  const std::string_view type = object["type"].as_string();
  const auto demand = [&](const char* key) {
    if (!object["data"].contains(key))
      causes.push_back(rules::required(fmt::format("data[{}]", key), ""));
  };
  if (type == "kubernetes.io/tls") {
    demand("tls.crt");
    demand("tls.key");
  } else if (type == "kubernetes.io/dockerconfigjson") {
    demand(".dockerconfigjson");
  } else if (type == "kubernetes.io/dockercfg") {
    demand(".dockercfg");
  } else if (type == "kubernetes.io/ssh-auth") {
    demand("ssh-privatekey");
  } else if (type == "kubernetes.io/basic-auth") {
    if (!object["data"].contains("username") && !object["data"].contains("password")) {
      demand("username");
      demand("password");
    }
  } else if (type == "kubernetes.io/service-account-token") {
    constexpr const char* kAccount = "kubernetes.io/service-account.name";
    if (object["metadata"]["annotations"][kAccount].as_string().empty())
      causes.push_back(rules::required(fmt::format("metadata.annotations[{}]", kAccount), ""));
  }
}

void validate_config_map_update(const Object& object, const Object& old, Causes& causes) {
  validate_immutable(object, old, {"data", "binaryData"}, causes);
}

void validate_secret_update(const Object& object, const Object& old, Causes& causes) {
  if (object["type"].as_string() != old["type"].as_string())
    causes.push_back(rules::invalid("type", object["type"].as_string(), "field is immutable"));
  validate_immutable(object, old, {"data"}, causes);
}

}  // namespace lookout::apiserver::resources
