#include "cmd/registry/instance_json.h"

#include "lookout/api/time.h"

namespace lookout::cmd::registry_cmd {

void write_instance(JsonWriter& writer, const registry::ServiceInstance& instance) {
  writer.StartObject();
  write_text(writer, "id", instance.id);
  write_text(writer, "name", instance.name);
  write_text(writer, "version", instance.version);
  writer.Key("metadata");
  writer.StartObject();
  for (const auto& [key, value] : instance.metadata) write_text(writer, key, value);
  writer.EndObject();
  writer.Key("endpoints");
  writer.StartArray();
  for (const auto& endpoint : instance.endpoints) write_text(writer, endpoint.text());
  writer.EndArray();
  write_text(writer, "pod", instance.origin);
  write_text(writer, "zone", instance.zone);
  writer.Key("ready");
  writer.Bool(instance.ready);
  writer.EndObject();
}

void write_set(JsonWriter& writer, const registry::InstanceSet& set) {
  const registry::Freshness freshness = set.freshness();
  writer.StartObject();
  write_text(writer, "service", set.service());
  writer.Key("version");
  writer.Uint64(set.version());
  writer.Key("live");
  writer.Bool(freshness.live);
  write_text(
      writer, "since",
      api::format_time(std::chrono::time_point_cast<std::chrono::microseconds>(freshness.since)));
  writer.Key("instances");
  writer.StartArray();
  for (const auto& instance : set) write_instance(writer, instance);
  writer.EndArray();
  writer.EndObject();
}

}  // namespace lookout::cmd::registry_cmd
