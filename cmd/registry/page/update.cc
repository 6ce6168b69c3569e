#include "cmd/registry/page/update.h"

#include "cmd/registry/instance_json.h"

namespace lookout::cmd::registry_cmd {
namespace {

using registry::InstancePtr;
using registry::InstanceSetPtr;

void write_change(JsonWriter& writer, const InstanceSetPtr& before, const InstanceSetPtr& after) {
  const auto diff = registry::diff(before, *after);
  writer.StartObject();
  write_text(writer, "name", after->service());
  writer.Key("put");
  writer.StartArray();
  for (const auto& instance : diff.added) write_instance(writer, *instance);
  for (const auto& change : diff.changed) write_instance(writer, *change.after);
  writer.EndArray();
  writer.Key("drop");
  writer.StartArray();
  for (const auto& instance : diff.removed) write_text(writer, instance->key());
  writer.EndArray();
  writer.EndObject();
}

}  // namespace

std::string encode_update(const CatalogState* before, const CatalogState& after) {
  static const CatalogState kNothing;
  const CatalogState& known = before != nullptr ? *before : kNothing;
  return json_text([&](JsonWriter& writer) {
    writer.StartObject();
    writer.Key("reset");
    writer.Bool(before == nullptr);
    writer.Key("revision");
    writer.Uint64(after.revision);
    writer.Key("synced");
    writer.Bool(after.synced);
    writer.Key("live");
    writer.Bool(after.freshness.live);
    writer.Key("since");
    writer.Int64(std::chrono::duration_cast<std::chrono::milliseconds>(
                     after.freshness.since.time_since_epoch())
                     .count());

    // Both are in the order of the names.
    std::vector<const std::string*> gone;
    auto old = known.services.begin();
    const auto pass_until = [&](const std::string* name) {
      for (; old != known.services.end() && (name == nullptr || (*old)->service() < *name); ++old) {
        gone.push_back(&(*old)->service());
      }
    };
    writer.Key("services");
    writer.StartArray();
    for (const auto& set : after.services) {
      pass_until(&set->service());
      InstanceSetPtr was;
      if (old != known.services.end() && (*old)->service() == set->service()) was = *old++;
      if (was != set) write_change(writer, was, set);
    }
    writer.EndArray();
    pass_until(nullptr);
    writer.Key("gone");
    writer.StartArray();
    for (const auto* name : gone) write_text(writer, *name);
    writer.EndArray();
    writer.EndObject();
  });
}

std::string encode_event(const std::string& name, const std::string& data) {
  return "event: " + name + "\ndata: " + data + "\n\n";
}

UpdateEncoder::Text UpdateEncoder::encode(const CatalogStatePtr& before,
                                          const CatalogStatePtr& after) {
  const std::uint64_t from = before ? before->revision : 0;
  const std::lock_guard lock(mutex_);
  if (!last_ || before_ != from || after_ != after->revision) {
    last_ = std::make_shared<const std::string>(
        encode_event("update", encode_update(before.get(), *after)));
    before_ = from;
    after_ = after->revision;
  }
  return last_;
}

}  // namespace lookout::cmd::registry_cmd
