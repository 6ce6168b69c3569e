#include "apiserver/endpoints/owner_references.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <optional>
#include <string_view>
#include <unordered_set>
#include <utility>

#include "apiserver/json.h"

namespace lookout::apiserver::endpoints {
namespace {

using api::Value;

/// A key that is equal for equal references.
std::string owner_key(Value owner) {
  std::string out;
  for (const char* field : {"apiVersion", "kind", "name", "uid"}) {
    out += owner[field].as_string();
    out += '\0';
  }
  for (const char* field : {"controller", "blockOwnerDeletion"}) {
    const std::optional<bool> flag = owner[field].to_bool();
    out += flag ? *flag ? '1' : '0' : '-';
  }
  return out;
}

}  // namespace

api::Object with_distinct_owners(const api::Object& object, OwnersFrom from,
                                 std::vector<std::string>& warnings) {
  const Value references = object["metadata"]["ownerReferences"];
  if (references.size() < 2) return object;
  std::unordered_set<std::string> kept;
  std::vector<bool> repeats;
  std::vector<std::string_view> uids;
  for (const Value owner : references.elements()) {
    const bool repeated = !kept.insert(owner_key(owner)).second;
    repeats.push_back(repeated);
    if (repeated) uids.push_back(owner["uid"].as_string());
  }
  if (uids.empty()) return object;
  warnings.push_back(fmt::format(
      ".metadata.ownerReferences contains duplicate entries{}; API server dedups owner references "
      "in 1.20+, and may reject such requests as early as 1.24; please fix your requests; "
      "duplicate UID(s) observed: {}",
      from == OwnersFrom::kPatch ? " after mutating admission happens" : "",
      fmt::join(uids, ", ")));
  json::Document document = object.to_document();
  json::Value& owners = *json::find(*json::find(document, "metadata"), "ownerReferences");
  json::Value distinct(rapidjson::kArrayType);
  for (rapidjson::SizeType i = 0; i < owners.Size(); ++i) {
    if (!repeats[i]) distinct.PushBack(std::move(owners[i]), document.GetAllocator());
  }
  owners = std::move(distinct);
  return api::Object::from(document);
}

}  // namespace lookout::apiserver::endpoints
