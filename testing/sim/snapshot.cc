#include "testing/sim/snapshot.h"

#include <fmt/format.h>
#include <rapidjson/document.h>
#include <rapidjson/stringbuffer.h>
#include <rapidjson/writer.h>

#include <algorithm>
#include <string_view>
#include <vector>

#include "lookout/rest/discovery.h"

namespace lookout::sim {
namespace {

using Value = rapidjson::Value;

bool differs_between_runs(std::string_view key) {
  return key == "uid" || key == "resourceVersion" || key == "managedFields" ||
         key == "generation" || key == "observedGeneration" || key == "selfLink" ||
         key == "clusterIP" || key == "clusterIPs" ||  // drawn by the server
         key.ends_with("Time") || key.ends_with("Timestamp");
}

/// Writes a value without the fields that differ between runs; members sorted by key.
void write(const Value& value, rapidjson::Writer<rapidjson::StringBuffer>& out) {
  if (value.IsArray()) {
    out.StartArray();
    for (const auto& item : value.GetArray()) write(item, out);
    out.EndArray();
    return;
  }
  if (!value.IsObject()) {
    value.Accept(out);
    return;
  }
  std::vector<const Value::Member*> members;
  for (const auto& member : value.GetObject()) {
    if (!differs_between_runs({member.name.GetString(), member.name.GetStringLength()}))
      members.push_back(&member);
  }
  std::sort(members.begin(), members.end(), [](const auto* a, const auto* b) {
    return std::string_view(a->name.GetString()) < std::string_view(b->name.GetString());
  });
  out.StartObject();
  for (const auto* member : members) {
    out.Key(member->name.GetString(), member->name.GetStringLength());
    write(member->value, out);
  }
  out.EndObject();
}

std::string comparable(const std::string& json) {
  rapidjson::Document document;
  document.Parse(json.c_str(), json.size());
  rapidjson::StringBuffer buffer;
  rapidjson::Writer<rapidjson::StringBuffer> writer(buffer);
  write(document, writer);
  return {buffer.GetString(), buffer.GetSize()};
}

bool is_compared(const rest::ApiResource& resource) {
  const std::string& plural = resource.resource.plural;
  return resource.has_verb("list") && plural != "events" && plural != "leases" &&
         plural != "leasecandidates" && plural != "componentstatuses" && plural != "ipaddresses";
}

/// The first difference between two texts, with some context of both.
std::string around(const std::string& expected, const std::string& actual) {
  constexpr std::size_t kShown = 60;
  std::size_t i = 0;
  while (i < expected.size() && i < actual.size() && expected[i] == actual[i]) ++i;
  const std::size_t from = i > kShown / 3 ? i - kShown / 3 : 0;
  return fmt::format("...{}... where the run without faults has ...{}...",
                     actual.substr(from, kShown), expected.substr(from, kShown));
}

}  // namespace

std::map<std::string, std::string> snapshot_of(const rest::Client& client) {
  std::map<std::string, std::string> out;
  for (const rest::ApiResource& found : rest::discover(client)) {
    if (!is_compared(found)) continue;
    const std::string place = found.resource.group.empty()
                                  ? found.resource.plural
                                  : found.resource.plural + "." + found.resource.group;
    for (const api::Object& object : client.resource(found.resource).list().items) {
      out[fmt::format("{}/{}/{}", place, object.ns(), object.name())] =
          comparable(object.to_json());
    }
  }
  return out;
}

std::string difference(const std::map<std::string, std::string>& expected,
                       const std::map<std::string, std::string>& actual) {
  std::string out;
  for (const auto& [key, json] : expected) {
    const auto found = actual.find(key);
    if (found == actual.end()) {
      out += fmt::format("  missing:   {}\n", key);
    } else if (found->second != json) {
      out += fmt::format("  differs:   {}: {}\n", key, around(json, found->second));
    }
  }
  for (const auto& [key, json] : actual) {
    if (!expected.contains(key)) out += fmt::format("  left over: {}\n", key);
  }
  return out;
}

}  // namespace lookout::sim
