#include "cmd/registry/page/update.h"

#include <chrono>

#include "cmd/registry/instance_json.h"
#include "cmd/registry/page/notes.h"

namespace lookout::cmd::registry_cmd {
namespace {

using registry::InstanceSetPtr;

template <class T>
std::int64_t milliseconds(T time) {
  return std::chrono::duration_cast<std::chrono::milliseconds>(time.time_since_epoch()).count();
}

void write_set_change(JsonWriter& writer, const InstanceSetPtr& before,
                      const InstanceSetPtr& after) {
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

void write_services(JsonWriter& writer, const CatalogState& before, const CatalogState& after) {
  std::vector<std::string> gone;
  writer.Key("services");
  writer.StartArray();
  for_each_difference(before, after, [&](const InstanceSetPtr& was, const InstanceSetPtr& is) {
    if (is) {
      write_set_change(writer, was, is);
    } else {
      gone.push_back(was->service());
    }
  });
  writer.EndArray();
  writer.Key("gone");
  writer.StartArray();
  for (const auto& name : gone) write_text(writer, name);
  writer.EndArray();
}

void write_problems(JsonWriter& writer, const Notes& notes) {
  writer.Key("problems");
  writer.StartArray();
  for (const auto& problem : *notes.problems) {
    writer.StartObject();
    write_text(writer, "kind", problem.kind);
    write_text(writer, "where", problem.where);
    write_text(writer, "service", problem.service);
    write_text(writer, "reason", problem.reason);
    writer.Key("code");
    writer.Int(problem.code);
    writer.Key("at");
    writer.Int64(milliseconds(problem.at));
    writer.EndObject();
  }
  writer.EndArray();
  writer.Key("problemsInAll");
  writer.Uint64(notes.problems_in_all);
}

void write_pods(JsonWriter& writer, const PodFacts& before, const PodFacts& after) {
  writer.Key("pods");
  writer.StartObject();
  for (const auto& [pod, fact] : after) {
    const auto was = before.find(pod);
    if (was != before.end() && was->second == fact) continue;
    write_key(writer, pod);
    writer.StartObject();
    writer.Key("leaving");
    writer.Bool(fact.leaving);
    write_text(writer, "why", fact.why);
    writer.EndObject();
  }
  for (const auto& [pod, fact] : before) {
    if (after.contains(pod)) continue;
    write_key(writer, pod);
    writer.Null();
  }
  writer.EndObject();
}

/// [picks per second, errors per second, ejected, callers].
void write_rates(JsonWriter& writer, const Rates& rates) {
  writer.StartArray();
  writer.Double(rates.picks);
  writer.Double(rates.errors);
  writer.Uint(rates.ejected);
  writer.Uint(rates.callers);
  writer.EndArray();
}

void write_traffic(JsonWriter& writer, const Traffic& traffic) {
  writer.StartObject();
  writer.Key("asked");
  writer.Uint64(traffic.asked);
  writer.Key("answered");
  writer.Uint64(traffic.answered);
  writer.Key("services");
  writer.StartObject();
  for (const auto& [name, service] : traffic.services) {
    write_key(writer, name);
    writer.StartObject();
    writer.Key("all");
    write_rates(writer, service.all);
    writer.Key("instances");
    writer.StartObject();
    for (const auto& [pod, rates] : service.instances) {
      write_key(writer, pod);
      write_rates(writer, rates);
    }
    writer.EndObject();
    writer.EndObject();
  }
  writer.EndObject();
  writer.EndObject();
}

void write_notes(JsonWriter& writer, const Notes& before, const Notes& after) {
  if (before.problems != after.problems || before.problems_in_all != after.problems_in_all) {
    write_problems(writer, after);
  }
  if (before.pods != after.pods) write_pods(writer, *before.pods, *after.pods);
  if (before.traffic == after.traffic) return;
  writer.Key("traffic");
  if (after.traffic) {
    write_traffic(writer, *after.traffic);
  } else {
    writer.Null();
  }
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
    writer.Int64(milliseconds(after.freshness.since));
    write_text(writer, "error", after.freshness.error);
    write_services(writer, known, after);
    write_notes(writer, notes_of(known), notes_of(after));
    writer.EndObject();
  });
}

std::string encode_history(const std::string& service, const std::vector<Change>& changes) {
  return json_text([&](JsonWriter& writer) {
    writer.StartObject();
    write_text(writer, "service", service);
    writer.Key("changes");
    writer.StartArray();
    for (const auto& change : changes) {
      writer.StartObject();
      writer.Key("at");
      writer.Int64(milliseconds(change.at));
      write_text(writer, "pod", change.pod);
      write_text(writer, "event", change.event);
      write_text(writer, "detail", change.detail);
      writer.EndObject();
    }
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
