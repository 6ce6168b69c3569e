// Validation of config maps and secrets.
#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <initializer_list>
#include <string>
#include <string_view>

#include "apiserver/json.h"
#include "apiserver/resources/names.h"
#include "apiserver/resources/strategies.h"
#include "lookout/base/base64.h"

namespace lookout::apiserver::resources {
namespace {

constexpr std::string_view kImmutableData = "field is immutable when `immutable` is set";

constexpr int kMaxData = 1 << 20;

/// The decoded size of a base64 value.
std::size_t decoded_size(Value value) {
  const std::string_view text = value.as_string();
  const auto digits = std::count_if(text.begin(), text.end(),
                                    [](char c) { return c != '=' && c != '\r' && c != '\n'; });
  return static_cast<std::size_t>(digits) * 3 / 4;
}

void check_keys(Value data, const std::string& field, Causes& causes) {
  for (const auto& [key, value] : data.members()) {
    for (const auto& message : rules::check_config_map_key(key))
      causes.push_back(rules::invalid(fmt::format("{}[{}]", field, key), key, message));
  }
}

std::size_t decoded_size_of_all(Value data) {
  std::size_t size = 0;
  for (const auto& [key, value] : data.members()) size += decoded_size(value);
  return size;
}

/// The credentials for registries in a secret: a JSON object.
void check_registry_credentials(Value data, const char* key, Causes& causes) {
  const auto content = decode_base64(data[key].as_string());
  if (!content) return;
  const auto refuse = [&](std::string_view why) {
    causes.push_back(
        rules::invalid(fmt::format("data[{}]", key), "<secret contents redacted>", why));
  };
  json::Document document;
  document.Parse<rapidjson::kParseIterativeFlag>(content->data(), content->size());
  if (content->empty()) return refuse("unexpected end of JSON input");
  if (document.HasParseError()) {
    // Go's message shows the invalid character, but it belongs to a secret.
    return refuse(fmt::format("invalid JSON at byte {}", document.GetErrorOffset()));
  }
  if (document.IsObject() || document.IsNull()) return;
  refuse(fmt::format("json: cannot unmarshal {} into Go value of type map[string]interface {{}}",
                     json::type_name(document)));
}

/// Reports changed fields of an immutable object.
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
  std::size_t size = decoded_size_of_all(object["binaryData"]);
  check_keys(object["data"], "data", causes);
  for (const auto& [key, value] : object["data"].members()) {
    size += value.as_string().size();
    if (!object["binaryData"].contains(key)) continue;
    causes.push_back(rules::invalid(fmt::format("data[{}]", key), key,
                                    "duplicate of key present in binaryData"));
  }
  check_keys(object["binaryData"], "binaryData", causes);
  if (size > kMaxData) causes.push_back(rules::too_long("", kMaxData));
}

void validate_secret(const Object& object, Causes& causes) {
  check_keys(object["data"], "data", causes);
  if (decoded_size_of_all(object["data"]) > kMaxData)
    causes.push_back(rules::too_long("data", kMaxData));
  // Readers rely on the keys that the type requires.
  const std::string_view type = object["type"].as_string();
  const auto demand = [&](const char* key) {
    if (object["data"].contains(key)) return true;
    causes.push_back(rules::required(fmt::format("data[{}]", key), ""));
    return false;
  };
  const auto demand_credentials = [&](const char* key) {
    if (demand(key)) check_registry_credentials(object["data"], key, causes);
  };
  if (type == "kubernetes.io/tls") {
    demand("tls.crt");
    demand("tls.key");
  } else if (type == "kubernetes.io/dockerconfigjson") {
    demand_credentials(".dockerconfigjson");
  } else if (type == "kubernetes.io/dockercfg") {
    demand_credentials(".dockercfg");
  } else if (type == "kubernetes.io/ssh-auth") {
    if (object["data"]["ssh-privatekey"].as_string().empty())
      causes.push_back(rules::required("data[ssh-privatekey]", ""));
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
