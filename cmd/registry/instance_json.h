// Instances as JSON, for the commands and the page.
#pragma once

#include <rapidjson/stringbuffer.h>
#include <rapidjson/writer.h>

#include <string>
#include <string_view>

#include "lookout/registry/instance_set.h"

namespace lookout::cmd::registry_cmd {

using JsonWriter = rapidjson::Writer<rapidjson::StringBuffer>;

/// A string.
void write_text(JsonWriter& writer, std::string_view text);
/// A member that is a string.
void write_text(JsonWriter& writer, const char* key, std::string_view text);
void write_instance(JsonWriter& writer, const registry::ServiceInstance& instance);
/// {"service", "version", "live", "since", "instances"}.
void write_set(JsonWriter& writer, const registry::InstanceSet& set);

/// The text that a function writes.
template <class Write>
std::string json_text(const Write& write) {
  rapidjson::StringBuffer buffer;
  JsonWriter writer(buffer);
  write(writer);
  return {buffer.GetString(), buffer.GetSize()};
}

}  // namespace lookout::cmd::registry_cmd
