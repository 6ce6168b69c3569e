// The same random operations, sequentially, on the embedded server and on a real
// kube-apiserver: three managers create, update, patch, apply and delete the same objects, with
// states that are current or stale. The codes, the Statuses, the objects and the owners of their
// fields must be equal.
//
//     LOOKOUT_WALK_OPERATIONS   the number of operations (800)
//     LOOKOUT_WALK_OBJECTS      the number of objects of each kind (40)
//     LOOKOUT_WALK_SEED         the seed (1)
//
// The comparison omits what a server of 1.20 does not support, with the reason.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <rapidjson/document.h>
#include <rapidjson/stringbuffer.h>
#include <rapidjson/writer.h>

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "lookout/api/merge_patch.h"
#include "lookout/api/status.h"
#include "lookout/apiserver/server.h"
#include "lookout/rest/client.h"
#include "tests/e2e/kube_apiserver.h"

namespace lookout {
namespace {

using api::Object;
using rapidjson::Document;
using rapidjson::Value;

int setting(const char* name, int otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr ? otherwise : std::atoi(text);
}

// ------------------------------------------------------------------------------------ operations

class Dice {
 public:
  explicit Dice(unsigned seed) : engine_(seed) {}
  int below(int end) { return static_cast<int>(engine_() % static_cast<unsigned>(end)); }
  bool one_in(int n) { return below(n) == 0; }
  template <class T>
  const T& one_of(const std::vector<T>& all) {
    return all[static_cast<std::size_t>(below(static_cast<int>(all.size())))];
  }

 private:
  std::minstd_rand engine_;
};

struct Kind {
  api::Resource resource;
  /// An object's content without its metadata: ,"spec":{...}.
  std::function<std::string(Dice&)> content;
  /// A change of the content: a merge patch that is also a valid strategic merge patch.
  std::function<std::string(Dice&)> change;
  /// The content that a manager applies.
  std::function<std::string(Dice&)> applied;
  /// A merge patch of the status; null: no status.
  std::function<std::string(Dice&)> status;
};

std::string config_map_data(Dice& dice) {
  // (An empty map has an owner in 1.36, and none in 1.20.)
  std::string out = fmt::format(R"("z":"{}")", dice.below(3));
  for (const char* key : {"a", "b", "c", "d"}) {
    if (dice.one_in(2)) continue;
    out += fmt::format(R"({}"{}":"{}")", out.empty() ? "" : ",", key, dice.below(3));
  }
  return "{" + out + "}";
}

std::string containers(Dice& dice) {
  std::string out;
  for (const char* name : {"main", "side"}) {
    if (name[0] == 's' && dice.one_in(2)) continue;
    std::string ports;
    for (const int port : {80, 443}) {
      if (dice.one_in(2)) continue;
      ports += fmt::format(R"({}{{"containerPort":{},"protocol":"TCP"}})", ports.empty() ? "" : ",",
                           port);
    }
    std::string env;
    if (dice.one_in(2)) env = fmt::format(R"(,"env":[{{"name":"A","value":"{}"}}])", dice.below(3));
    // (No empty list of ports: docs/apiserver.md describes its owner.)
    if (!ports.empty()) ports = fmt::format(R"(,"ports":[{}])", ports);
    out += fmt::format(R"({}{{"name":"{}","image":"{}:{}"{}{}}})", out.empty() ? "" : ",", name,
                       name, dice.below(3), ports, env);
  }
  return out;
}

std::string deployment(Dice& dice) {
  return fmt::format(
      R"(,"spec":{{"replicas":{},"selector":{{"matchLabels":{{"app":"web"}}}},"template":{{"metadata":{{"labels":{{"app":"web"}}}},"spec":{{"containers":[{}]}}}}}})",
      dice.below(4), containers(dice));
}

std::string service_ports(Dice& dice) {
  std::string out;
  for (const char* name : {"http", "https"}) {
    if (name[4] == 's' && dice.one_in(2)) continue;
    out +=
        fmt::format(R"({}{{"name":"{}","port":{},"protocol":"TCP","targetPort":{}}})",
                    out.empty() ? "" : ",", name, name[4] == 's' ? 443 : 80, 8000 + dice.below(3));
  }
  return out;
}

// No selectors: since 1.21 a selector has one owner, before that each of its members had one.
std::string service(Dice& dice) {
  return fmt::format(R"(,"spec":{{"clusterIP":"None","ports":[{}]}})", service_ports(dice));
}

std::vector<Kind> kinds() {
  return {
      {{"", "v1", "ConfigMap", "configmaps", true},
       [](Dice& dice) { return fmt::format(R"(,"data":{})", config_map_data(dice)); },
       [](Dice& dice) {
         return fmt::format(R"(,"data":{{"{}":{}}})", dice.one_of<std::string>({"a", "b", "e"}),
                            dice.one_of<std::string>({"null", "\"1\"", "\"2\""}));
       },
       [](Dice& dice) { return fmt::format(R"(,"data":{})", config_map_data(dice)); },
       nullptr},
      {{"apps", "v1", "Deployment", "deployments", true},
       deployment,
       [](Dice& dice) {
         if (dice.one_in(2)) return fmt::format(R"(,"spec":{{"replicas":{}}})", dice.below(4));
         return fmt::format(R"(,"spec":{{"template":{{"spec":{{"containers":[{}]}}}}}})",
                            containers(dice));
       },
       deployment,
       [](Dice& dice) {
         return fmt::format(R"({{"status":{{"replicas":{},"readyReplicas":{}}}}})", dice.below(3),
                            dice.below(3));
       }},
      {{"", "v1", "Service", "services", true},
       service,
       [](Dice& dice) {
         return fmt::format(R"(,"spec":{{"publishNotReadyAddresses":{}}})", dice.one_in(2));
       },
       service,
       // (Since 1.30 only load balancers may have a status.)
       nullptr},
  };
}

/// Labels, annotations and finalizers, as members of metadata.
std::string metadata(Dice& dice, bool may_erase) {
  std::string out;
  const auto map = [&](const char* name) {
    if (dice.one_in(2)) return;
    const std::string value =
        may_erase && dice.one_in(3) ? "null" : fmt::format("\"{}\"", dice.below(3));
    out += fmt::format(R"(,"{}":{{"{}":{}}})", name, dice.one_of<std::string>({"x", "y"}), value);
  };
  map("labels");
  map("annotations");
  if (dice.one_in(8))
    out += fmt::format(R"(,"finalizers":[{}])", dice.one_in(2) ? "" : R"("example.com/hold")");
  return out;
}

enum class Verb { kCreate, kUpdate, kMerge, kStrategic, kApply, kStatus, kDelete, kGet };

struct Operation {
  Verb verb = Verb::kGet;
  std::size_t kind = 0;
  std::string name;
  std::string manager;
  std::string body;
  bool force = false;
  /// Uses the state before the last one.
  bool stale = false;
  /// 0: none, 1: the uid, 2: another uid, 3: the resourceVersion.
  int precondition = 0;

  std::string text(const Kind& of) const {
    constexpr const char* kVerbs[] = {"create", "update", "merge",  "strategic",
                                      "apply",  "status", "delete", "get"};
    return fmt::format("{} {} {}/{}{}{}{} {}", manager, kVerbs[static_cast<int>(verb)],
                       of.resource.plural, name, force ? " force" : "", stale ? " stale" : "",
                       precondition == 0 ? "" : fmt::format(" precondition {}", precondition),
                       body);
  }
};

Operation next(Dice& dice, const std::vector<Kind>& all, int objects) {
  Operation out;
  out.kind = static_cast<std::size_t>(dice.below(static_cast<int>(all.size())));
  const Kind& kind = all[out.kind];
  out.name = fmt::format("o{}", dice.below(objects));
  out.manager = dice.one_of<std::string>({"ann", "bob", "cat"});
  constexpr Verb kVerbs[] = {Verb::kCreate,    Verb::kCreate, Verb::kUpdate, Verb::kUpdate,
                             Verb::kMerge,     Verb::kMerge,  Verb::kApply,  Verb::kApply,
                             Verb::kStrategic, Verb::kApply,  Verb::kStatus, Verb::kDelete,
                             Verb::kGet};
  out.verb = kVerbs[dice.below(static_cast<int>(std::size(kVerbs)))];
  if (out.verb == Verb::kStatus && !kind.status) out.verb = Verb::kMerge;
  const std::string head =
      fmt::format(R"({{"apiVersion":"{}","kind":"{}","metadata":{{"name":"{}")",
                  kind.resource.api_version(), kind.resource.kind, out.name);
  switch (out.verb) {
    case Verb::kCreate:
      out.body = head + metadata(dice, false) + "}" + kind.content(dice) + "}";
      break;
    case Verb::kApply:
      out.body = head + metadata(dice, false) + "}" + kind.applied(dice) + "}";
      out.force = dice.one_in(2);
      break;
    case Verb::kUpdate:
      out.stale = dice.one_in(5);
      [[fallthrough]];
    case Verb::kMerge:
    case Verb::kStrategic: {
      // (In 1.20 a strategic merge patch that should remove a label adds it, with "" for null.)
      std::string meta = metadata(dice, out.verb != Verb::kStrategic);
      if (!meta.empty()) meta.erase(0, 1);
      out.body = fmt::format(R"({{"metadata":{{{}}}{}}})", meta, kind.change(dice));
      break;
    }
    case Verb::kStatus:
      out.body = kind.status(dice);
      break;
    case Verb::kDelete:
      out.precondition = dice.below(4);
      out.stale = dice.one_in(4);
      break;
    case Verb::kGet:
      break;
  }
  return out;
}

// --------------------------------------------------------------------------------------- servers

struct Answer {
  int code = 0;
  /// Empty after a failure.
  Object object;
  api::Status status;
};

/// A server, and a client's knowledge of its objects.
class Side {
 public:
  explicit Side(rest::Config config) : client_(std::move(config)) {}

  Answer run(const Operation& operation, const Kind& kind) {
    const auto objects = client_.resource(kind.resource, "default");
    const std::string key = kind.resource.plural + "/" + operation.name;
    std::vector<Object>& known = known_[key];
    Answer out;
    try {
      out.object = perform(operation, objects, known);
      out.code = 200;
    } catch (const api::StatusError& e) {
      out.status = e.status();
      out.code = out.status.code;
    }
    if (out.object && out.object.kind() == kind.resource.kind) {
      if (known.empty() || known.back().resource_version() != out.object.resource_version())
        known.push_back(out.object);
    }
    // (For a service that stays for its finalizers, 1.20 reports only the deletion.)
    const bool is_deleted = operation.verb == Verb::kDelete && out.code == 200;
    if (out.code == 404 || is_deleted) known.clear();
    return out;
  }

  /// Starts another walk of this object.
  void forget(const Operation& operation, const Kind& kind) {
    const auto objects = client_.resource(kind.resource, "default");
    known_.erase(kind.resource.plural + "/" + operation.name);
    try {
      objects.remove(operation.name);
      objects.patch(operation.name, rest::PatchType::kMerge, R"({"metadata":{"finalizers":null}})");
    } catch (const api::StatusError& e) {
      if (!api::is_not_found(e)) throw;
    }
  }

 private:
  static Object perform(const Operation& operation, const rest::ResourceClient& objects,
                        const std::vector<Object>& known) {
    const Object last = known.empty() ? Object() : known.back();
    const Object used = operation.stale && known.size() > 1 ? known[known.size() - 2] : last;
    rest::PatchOptions patch;
    patch.field_manager = operation.manager;
    switch (operation.verb) {
      case Verb::kCreate:
        return objects.create(Object::parse(operation.body), options(operation));
      case Verb::kUpdate: {
        if (!used) return objects.get(operation.name);
        Document document = used.to_document();
        Document change;
        change.Parse(operation.body.c_str());
        api::apply_merge_patch(document, change, document.GetAllocator());
        return objects.update(Object::from(document), options(operation));
      }
      case Verb::kMerge:
        return objects.patch(operation.name, rest::PatchType::kMerge, operation.body, patch);
      case Verb::kStrategic:
        return objects.patch(operation.name, rest::PatchType::kStrategicMerge, operation.body,
                             patch);
      case Verb::kApply:
        patch.force = operation.force;
        return objects.patch(operation.name, rest::PatchType::kApply, operation.body, patch);
      case Verb::kStatus:
        return objects.patch(operation.name, rest::PatchType::kMerge, operation.body, patch,
                             "status");
      case Verb::kDelete: {
        rest::DeleteOptions remove;
        if (operation.precondition == 1 && last) remove.precondition_uid = last.uid();
        if (operation.precondition == 2) remove.precondition_uid = "another";
        if (operation.precondition == 3 && used)
          remove.precondition_resource_version = used.resource_version();
        return objects.remove(operation.name, remove);
      }
      case Verb::kGet:
        return objects.get(operation.name);
    }
    return {};
  }

  static rest::CreateOptions options(const Operation& operation) {
    rest::CreateOptions out;
    out.field_manager = operation.manager;
    return out;
  }

  rest::Client client_;
  std::map<std::string, std::vector<Object>> known_;
};

// ------------------------------------------------------------------------------------ comparison

std::string text_of(const Value& value) {
  rapidjson::StringBuffer buffer;
  rapidjson::Writer<rapidjson::StringBuffer> writer(buffer);
  value.Accept(writer);
  return buffer.GetString();
}

/// A document as sorted lines: ".spec.replicas=3". Empty objects, which Go's types produce for
/// absent ones, are omitted.
void flatten(const Value& value, const std::string& path, std::map<std::string, std::string>& out) {
  if (value.IsObject()) {
    for (const auto& member : value.GetObject())
      flatten(member.value, path + "." + member.name.GetString(), out);
  } else if (value.IsArray()) {
    // Sorted by content: 1.20 appends applied elements; 1.36 uses the order of the apply.
    std::vector<const Value*> elements;
    for (const Value& element : value.GetArray()) elements.push_back(&element);
    std::sort(elements.begin(), elements.end(),
              [](const Value* a, const Value* b) { return text_of(*a) < text_of(*b); });
    for (std::size_t i = 0; i < elements.size(); ++i)
      flatten(*elements[i], fmt::format("{}[{}]", path, i), out);
    if (value.Empty()) out[path] = "[]";
  } else {
    out[path] = text_of(value);
  }
}

/// The fields of an owner: 1.20 has no subresources in managedFields, so a manager's entry for the
/// status and its other entry are one.
void add_owned(const Value& fields, const std::string& path, const std::string& owner,
               std::map<std::string, std::string>& out) {
  for (const auto& member : fields.GetObject()) {
    const std::string name = member.name.GetString();
    const std::string here = path + "/" + name;
    if (name == "f:internalTrafficPolicy") continue;  // absent in services of 1.20
    if (!member.value.IsObject() || member.value.ObjectEmpty()) {
      out[owner + here] = "";
    } else {
      add_owned(member.value, here, owner, out);
    }
  }
}

/// Omits lines that differ each time, and fields that are newer than 1.20.
bool is_left_out(const std::string& line) {
  for (const char* part :
       {".metadata.uid", ".metadata.resourceVersion", ".metadata.creationTimestamp",
        ".metadata.deletionTimestamp", ".metadata.selfLink", ".metadata.managedFields",
        // Fields of services since 1.20: dual stack.
        ".spec.ipFamilies", ".spec.ipFamilyPolicy", ".spec.internalTrafficPolicy",
        ".spec.clusterIPs"}) {
    if (line.starts_with(part)) return true;
  }
  return line.ends_with(".creationTimestamp");
}

std::map<std::string, std::string> lines_of(const Object& object) {
  std::map<std::string, std::string> all;
  std::map<std::string, std::string> out;
  if (!object) return out;
  const Document document = object.to_document();
  flatten(document, "", all);
  for (const auto& [line, value] : all) {
    if (!is_left_out(line)) out[line] = value;
  }
  for (const api::Value entry : object["metadata"]["managedFields"].elements()) {
    Document fields;
    fields.Parse(entry["fieldsV1"].to_json().c_str());
    const std::string owner =
        fmt::format("{} {} {} ", entry["manager"].as_string(), entry["operation"].as_string(),
                    entry["apiVersion"].as_string());
    if (fields.IsObject()) add_owned(fields, "", owner, out);
  }
  return out;
}

/// The message up to a failed precondition, which has another value each time, and without the
/// number of conflicts: of two adjacent fields, 1.20 names the last one twice.
std::string words_of(const api::Status& status) {
  const std::string& text = status.message;
  if (text.starts_with("Apply failed with")) return text.substr(0, text.find(':'));
  return text.substr(
      0, std::min(text.find(" in the precondition ("), text.find(" in precondition: ")));
}

/// True if an owner owns a list or a map itself and none of its elements. At the next write a
/// server of 1.20 treats it as the owner of a formerly atomic list, and gives it all elements; a
/// current server does so only if the schema has changed.
bool has_hollow_owner(const std::map<std::string, std::string>& lines) {
  std::set<std::string> inner;
  std::vector<std::string> leaves;
  for (const auto& [line, value] : lines) {
    const std::size_t begin = line.find("/f:");
    if (begin == std::string::npos) continue;
    const std::string path = line.substr(begin);
    leaves.push_back(path);
    for (std::size_t at = path.find('/', 1); at != std::string::npos; at = path.find('/', at + 1))
      inner.insert(path.substr(0, at));
  }
  return std::any_of(leaves.begin(), leaves.end(),
                     [&](const std::string& leaf) { return inner.contains(leaf); });
}

/// `restart`: the rest of the object's walk will differ, for a known reason.
std::vector<std::string> differences(const Answer& real, const Answer& ours, bool& restart) {
  std::vector<std::string> out;
  if (real.code != ours.code)
    out.push_back(fmt::format("{} is {}: {} | {}", real.code, ours.code, real.status.message,
                              ours.status.message));
  if (!out.empty()) return out;
  if (words_of(real.status) != words_of(ours.status))
    out.push_back(fmt::format("'{}' is '{}'", real.status.message, ours.status.message));
  if (real.status.reason != ours.status.reason)
    out.push_back(fmt::format("{} is {}", real.status.reason, ours.status.reason));
  // A deletion of a service returns the service in 1.36, and a Status in 1.20.
  if ((real.object && real.object.kind() == "Status") ||
      (ours.object && ours.object.kind() == "Status"))
    return out;
  const auto a = lines_of(real.object);
  const auto b = lines_of(ours.object);
  restart = has_hollow_owner(b);
  for (const auto& [line, value] : a) {
    const auto other = b.find(line);
    if (other == b.end()) {
      out.push_back(fmt::format("only the real one has {} {}", line, value));
    } else if (other->second != value) {
      out.push_back(fmt::format("{}: {} is {}", line, value, other->second));
    }
  }
  for (const auto& [line, value] : b) {
    if (!a.contains(line)) out.push_back(fmt::format("only we have {} {}", line, value));
  }
  return out;
}

TEST(RealRandomWalk, IsEqualForBothServers) {
  const auto program = test::KubeApiserver::find_program();
  if (!program) GTEST_SKIP() << test::kNoKubeApiserver;
  test::KubeApiserver real_server(*program);
  apiserver::Server embedded;
  Side real(real_server.config());
  Side ours(embedded.client_config());
  const std::vector<Kind> all = kinds();
  const int objects = setting("LOOKOUT_WALK_OBJECTS", 40);
  Dice dice(static_cast<unsigned>(setting("LOOKOUT_WALK_SEED", 1)));
  std::map<std::string, std::vector<std::string>> story;
  int failures = 0;
  std::map<int, int> codes;
  for (int i = 0; i < setting("LOOKOUT_WALK_OPERATIONS", 800) && failures < 10; ++i) {
    const Operation operation = next(dice, all, objects);
    const Kind& kind = all[operation.kind];
    std::vector<std::string>& told = story[kind.resource.plural + "/" + operation.name];
    told.push_back(operation.text(kind));
    const Answer expected = real.run(operation, kind);
    const Answer answer = ours.run(operation, kind);
    ++codes[expected.code];
    told.back() += fmt::format(" -> {}", expected.code);
    bool restart = false;
    const std::vector<std::string> found = differences(expected, answer, restart);
    if (restart && found.empty()) {
      told.clear();
      real.forget(operation, kind);
      ours.forget(operation, kind);
    }
    if (found.empty()) continue;
    ++failures;
    std::string text = fmt::format("operation {}:", i);
    for (const std::string& one : found) text += "\n  " + one;
    text += "\nafter";
    for (const std::string& one : told) text += "\n  " + one;
    ADD_FAILURE() << text;
    told.clear();
    real.forget(operation, kind);
    ours.forget(operation, kind);
  }
  // The walk covers successes, conflicts and other failures.
  for (const int code : {200, 404, 409}) EXPECT_GT(codes[code], 0) << code;
}

}  // namespace
}  // namespace lookout
