// Instances as JSON, for the commands and the page.
#pragma once

#include <rapidjson/stringbuffer.h>
#include <rapidjson/writer.h>

#include <string>

#include "lookout/base/json_text.h"
#include "lookout/registry/instance_set.h"

namespace lookout::cmd::registry_cmd {

using base::write_key;
using base::write_text;
using JsonWriter = rapidjson::Writer<rapidjson::StringBuffer>;

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
