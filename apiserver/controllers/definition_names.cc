#include "apiserver/controllers/definition_names.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "apiserver/controllers/own_writes.h"
#include "apiserver/fields/field_manager.h"
#include "apiserver/json.h"
#include "apiserver/resources/api_approval.h"
#include "apiserver/resources/conditions.h"
#include "apiserver/resources/field_owners.h"
#include "apiserver/storage/revision.h"
#include "lookout/api/detail/texts.h"
#include "lookout/api/status.h"

namespace lookout::apiserver::controllers {
namespace {

using api::Object;
using json::Allocator;
using resources::ApiApproval;
using resources::Condition;
using resources::is_condition_true;
using resources::set_condition;

/// The maximum number of rounds of settle(): released names become available to other definitions,
/// and other servers may write definitions concurrently.
constexpr int kRounds = 10;

using Names = std::set<std::string, std::less<>>;

/// The accepted names of the definitions of a group.
struct Taken {
  Names resources;
  Names kinds;

  void add(api::Value accepted) {
    for (const char* field : {"plural", "singular"}) resources.emplace(accepted[field].as_string());
    for (const api::Value name : accepted["shortNames"].elements())
      resources.emplace(name.as_string());
    for (const char* field : {"kind", "listKind"}) kinds.emplace(accepted[field].as_string());
  }
};

/// Compares a definition's requested names with its accepted names and those of others.
class Decision {
 public:
  Decision(const Object& definition, const Taken& taken)
      : asked_(definition["spec"]["names"]), has_(definition["status"]["acceptedNames"]) {
    decide("plural", taken.resources, "PluralConflict");
    decide("singular", taken.resources, "SingularConflict");
    decide_short_names(taken.resources);
    decide("kind", taken.kinds, "KindConflict");
    decide("listKind", taken.kinds, "ListKindConflict");
  }

  Condition condition() const { return condition_; }

  /// Sets the accepted names in a definition's status.
  void put(json::Value& document, Allocator& allocator) const {
    json::Value& accepted =
        json::child(json::child(document, "status", allocator), "acceptedNames", allocator);
    const json::Value& names = *json::find(*json::find(document, "spec"), "names");
    for (const char* field :
         {"plural", "singular", "shortNames", "kind", "listKind", "categories"}) {
      if (!refused_.contains(field)) json::take(accepted, names, field, allocator);
    }
  }

 private:
  void decide(const char* field, const Names& taken, const char* reason) {
    const std::string_view name = asked_[field].as_string();
    if (name != has_[field].as_string() && taken.contains(name))
      refuse(field, reason, in_use(name));
  }

  void decide_short_names(const Names& taken) {
    const auto own = api::detail::texts_of(has_["shortNames"]);
    std::vector<std::string> conflicts;
    for (const std::string& name : api::detail::texts_of(asked_["shortNames"])) {
      const bool is_own = std::find(own.begin(), own.end(), name) != own.end() ||
                          name == has_["plural"].as_string() ||
                          name == has_["singular"].as_string();
      if (!is_own && taken.contains(name)) conflicts.push_back(in_use(name));
    }
    if (conflicts.empty()) return;
    refuse("shortNames", "ShortNamesConflict",
           conflicts.size() == 1 ? conflicts[0] : fmt::format("[{}]", fmt::join(conflicts, ", ")));
  }

  /// If there are several conflicts, the condition reports the last one.
  void refuse(const char* field, const char* reason, std::string message) {
    refused_.emplace(field);
    condition_ = {"NamesAccepted", false, reason, std::move(message)};
  }

  static std::string in_use(std::string_view name) {
    return fmt::format("\"{}\" is already in use", name);
  }

  const api::Value asked_;
  const api::Value has_;
  Names refused_;
  Condition condition_ = {"NamesAccepted", true, "NoConflicts", "no conflicts found"};
};

/// The approval condition of a definition in a Kubernetes group; nullopt if its status has it.
std::optional<Condition> new_approval(const Object& definition) {
  constexpr std::string_view kType = "KubernetesAPIApprovalPolicyConformant";
  if (!resources::is_protected_group(definition["spec"]["group"].as_string())) return std::nullopt;
  using State = ApiApproval::State;
  ApiApproval approval = ApiApproval::of(definition);
  const char* reason = "InvalidAnnotation";
  if (approval.state == State::kApproved) reason = "ApprovedAnnotation";
  if (approval.state == State::kBypassed) reason = "UnapprovedAnnotation";
  if (approval.state == State::kMissing) reason = "MissingAnnotation";
  for (const api::Value one : definition["status"]["conditions"].elements()) {
    if (one["type"].as_string() == kType && one["reason"].as_string() == reason &&
        one["message"].as_string() == approval.reason)
      return std::nullopt;
  }
  return Condition{kType, approval.state == State::kApproved, reason, std::move(approval.reason)};
}

/// Whether all requested names of a definition are accepted.
bool has_its_names(const Object& definition) {
  return is_condition_true(definition, "NamesAccepted") &&
         definition["spec"]["names"] == definition["status"]["acceptedNames"];
}

void decide_names(const Object& definition, const Taken& taken, json::Document& document) {
  Allocator& allocator = document.GetAllocator();
  const Decision decision(definition, taken);
  const Condition accepted = decision.condition();
  decision.put(document, allocator);
  json::Value& status = *json::find(document, "status");
  set_condition(status, accepted, allocator);
  if (is_condition_true(definition, "Established")) return;
  set_condition(status,
                accepted.is_true
                    ? Condition{"Established", true, "InitialNamesAccepted",
                                "the initial names have been accepted"}
                    : Condition{"Established", false, "NotAccepted", "not all names are accepted"},
                allocator);
}

/// The definition with the names that it may have, and its approval; nullopt if nothing changes.
std::optional<Object> decided(const Object& definition, const Taken& taken) {
  const std::optional<Condition> approval = new_approval(definition);
  const bool is_named = has_its_names(definition);
  if (is_named && !approval) return std::nullopt;
  json::Document document = definition.to_document();
  Allocator& allocator = document.GetAllocator();
  if (approval) set_condition(json::child(document, "status", allocator), *approval, allocator);
  if (!is_named) decide_names(definition, taken, document);
  Object out = Object::from(document);
  if (out == definition) return std::nullopt;
  return out;
}

}  // namespace

DefinitionNames::DefinitionNames(Context context)
    : context_(context),
      definitions_(context_.resources.table()->find("apiextensions.k8s.io", "v1",
                                                    "customresourcedefinitions")) {}

Awaitable<void> DefinitionNames::settle() const {
  for (int round = 0; round < kRounds; ++round) {
    const bool changed = co_await settle_once();
    if (!changed) co_return;
  }
}

Awaitable<bool> DefinitionNames::settle_once() const {
  storage::ListOptions options;
  storage::ListResult list = co_await definitions_->storage->list("", true, std::move(options));
  std::vector<Object> definitions = co_await storage::read_all(std::move(list));
  // If several definitions request a name, the one with the smallest resourceVersion gets it.
  std::sort(definitions.begin(), definitions.end(), [](const Object& a, const Object& b) {
    return storage::revision_of(a) < storage::revision_of(b);
  });
  std::map<std::string, Taken, std::less<>> groups;
  for (const Object& one : definitions)
    groups[std::string(one["spec"]["group"].as_string())].add(one["status"]["acceptedNames"]);
  bool any = false;
  for (const Object& one : definitions) {
    Taken& taken = groups[std::string(one["spec"]["group"].as_string())];
    std::optional<Object> wanted = decided(one, taken);
    if (!wanted) continue;
    any = true;
    taken.add((*wanted)["status"]["acceptedNames"]);
    const bool written = co_await write(*std::move(wanted));
    if (!written) break;
  }
  co_return any;
}

Awaitable<bool> DefinitionNames::write(Object definition) const {
  resources::Target target;
  target.resource = definitions_;
  target.name = definition.name();
  std::optional<fields::FieldManager> owner;
  if (context_.managed_fields) {
    owner = resources::field_manager(std::string(kServerManager), context_.resources.table(),
                                     definitions_, "status");
  }
  target.fields = owner ? &*owner : nullptr;
  resources::Store::Change change = [definition](const Object& /*present*/) { return definition; };
  storage::Preconditions none;
  try {
    co_await context_.store.update(std::move(target), std::move(change), resources::Part::kStatus,
                                   std::move(none));
  } catch (const api::StatusError& e) {
    if (!api::is_conflict(e) && !api::is_not_found(e)) throw;
    co_return false;
  }
  co_return true;
}

}  // namespace lookout::apiserver::controllers
