#include "controller/webhook_review.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <vector>

#include "lookout/api/detail/texts.h"
#include "lookout/base/ascii.h"
#include "lookout/base/base64.h"
#include "lookout/base/enum_names.h"
#include "lookout/base/structural_scanner.h"
#include "lookout/tools/record/event.h"

namespace lookout::controller {
namespace {

using api::DraftPart;
using api::StatusError;
using api::Value;

constexpr std::string_view kApiVersion = "admission.k8s.io/v1";

std::string text(Value value) { return std::string(value.as_string()); }

api::GroupVersionKind type_in(Value value) {
  return {text(value["group"]), text(value["version"]), text(value["kind"])};
}

api::GroupVersionResource resource_in(Value value) {
  return {text(value["group"]), text(value["version"]), text(value["resource"])};
}

std::optional<Operation> operation_of(std::string_view name) {
  for (const Operation each :
       {Operation::kCreate, Operation::kUpdate, Operation::kDelete, Operation::kConnect}) {
    if (to_string(each) == name) return each;
  }
  return std::nullopt;
}

AdmissionUser user_of(Value value) {
  AdmissionUser out;
  out.username = text(value["username"]);
  out.uid = text(value["uid"]);
  out.groups = api::detail::texts_of(value["groups"]);
  for (const auto [name, values] : value["extra"].members())
    out.extra.emplace(std::string(name), api::detail::texts_of(values));
  return out;
}

/// The object in a member of the request; `type` completes a missing apiVersion and kind.
api::Object member_object(Value request, const char* name, const api::GroupVersionKind& type) {
  const Value value = request[name];
  if (!value.exists() || value.is_null()) return {};
  if (!value.is_object())
    throw StatusError::bad_request(fmt::format("request.{} is not an object", name));
  const api::ObjectDraft draft;
  draft.set(value);
  if (!type.kind.empty() && !value.contains("kind")) {
    draft["apiVersion"].set(type.api_version());
    draft["kind"].set(type.kind);
  }
  return draft.build();
}

/// Like Go's encoding/json, replaces invalid UTF-8 with U+FFFD.
std::string repaired(std::string given) {
  if (find_invalid_utf8(given) == std::string::npos) return given;
  constexpr std::size_t kSizeOfReplacement = 3;
  return record::limit_text(given, given.size() * kSizeOfReplacement);
}

/// RFC 6901.
std::string below(const std::string& path, std::string_view name) {
  return path + "/" + base::escape(name, {{'~', "~0"}, {'/', "~1"}});
}

/// Appends operations to a list.
class Patch {
 public:
  explicit Patch(const DraftPart& operations) : operations_(operations) {}

  void difference(const std::string& path, Value from, Value to) {
    if (from == to) return;
    if (from.is_object() && to.is_object()) {
      members(path, from, to);
    } else if (from.is_array() && to.is_array()) {
      elements(path, from, to);
    } else {
      write("replace", path, to);
    }
  }

 private:
  void members(const std::string& path, Value from, Value to) {
    // Finding a member is linear, so collect all members once.
    std::map<std::string_view, Value> wanted;
    for (const auto [name, value] : to.members()) wanted.emplace(name, value);
    for (const auto [name, value] : from.members()) {
      const auto found = wanted.find(name);
      if (found == wanted.end()) {
        operation("remove", below(path, name));
      } else {
        difference(below(path, name), value, found->second);
        wanted.erase(found);
      }
    }
    for (const auto& [name, value] : wanted) write("add", below(path, name), value);
  }

  void elements(const std::string& path, Value from, Value to) {
    const std::vector<Value> before(from.elements().begin(), from.elements().end());
    const std::vector<Value> after(to.elements().begin(), to.elements().end());
    const std::size_t shorter = std::min(before.size(), after.size());
    std::size_t head = 0;
    while (head < shorter && before[head] == after[head]) ++head;
    std::size_t tail = 0;
    while (tail < shorter - head &&
           before[before.size() - 1 - tail] == after[after.size() - 1 - tail])
      ++tail;
    const std::size_t before_end = before.size() - tail;
    const std::size_t after_end = after.size() - tail;
    const std::size_t both = std::min(before_end, after_end);
    for (std::size_t i = head; i < both; ++i)
      difference(below(path, std::to_string(i)), before[i], after[i]);
    // From the end, so that the indexes of remaining elements stay valid.
    for (std::size_t i = before_end; i > both; --i)
      operation("remove", below(path, std::to_string(i - 1)));
    for (std::size_t i = both; i < after_end; ++i)
      write("add", below(path, std::to_string(i)), after[i]);
  }

  DraftPart operation(std::string_view name, const std::string& path) const {
    const DraftPart out = operations_.append();
    out["op"].set(name);
    out["path"].set(path);
    return out;
  }
  void write(std::string_view name, const std::string& path, Value value) const {
    operation(name, path)["value"].set(value);
  }

  const DraftPart operations_;
};

}  // namespace

std::string_view to_string(Operation operation) {
  static constexpr auto kNames = base::enum_names<Operation>({{Operation::kCreate, "CREATE"},
                                                              {Operation::kUpdate, "UPDATE"},
                                                              {Operation::kDelete, "DELETE"},
                                                              {Operation::kConnect, "CONNECT"}});
  return kNames.name_of(operation);
}

AdmissionResponse allowed(std::string message) {
  AdmissionResponse out;
  out.status.message = std::move(message);
  return out;
}

AdmissionResponse denied(std::string message, std::string_view reason, std::int32_t code) {
  AdmissionResponse out;
  out.allowed = false;
  out.status.code = code;
  out.status.reason = std::string(reason);
  out.status.message = std::move(message);
  return out;
}

AdmissionResponse errored(std::int32_t code, std::string message) {
  return denied(std::move(message), api::reason::kUnknown, code);
}

AdmissionResponse denied(const StatusError& error) {
  AdmissionResponse out;
  out.allowed = false;
  out.status = error.status();
  return out;
}

namespace detail {

api::Object object_of(Value value) {
  if (!value.is_object()) return {};
  const api::ObjectDraft draft;
  draft.set(value);
  return draft.build();
}

api::Object review_in(std::string_view body) {
  try {
    return api::Object::parse(body);
  } catch (const api::DecodeError& e) {
    throw StatusError::bad_request(
        fmt::format("the request's body cannot be decoded: {}", e.what()));
  }
}

Admission<api::Object> decode_admission_review(std::string_view body) {
  const api::Object review = review_in(body);
  // A review without a type is accepted, as in controller-runtime.
  if (review.api_version() == "admission.k8s.io/v1beta1") {
    throw StatusError::bad_request(
        "admission.k8s.io/v1beta1 is not supported: add v1 to the admissionReviewVersions of the "
        "webhook's configuration");
  }
  if ((!review.api_version().empty() && review.api_version() != kApiVersion) ||
      (!review.kind().empty() && review.kind() != "AdmissionReview")) {
    throw StatusError::bad_request(
        "the request's body is not an AdmissionReview of admission.k8s.io/v1");
  }
  const Value request = review["request"];
  if (!request.is_object()) throw StatusError::bad_request("the AdmissionReview has no request");

  Admission<api::Object> out;
  out.uid = text(request["uid"]);
  if (out.uid.empty()) throw StatusError::bad_request("the AdmissionReview's request has no uid");
  const auto operation = operation_of(request["operation"].as_string());
  if (!operation) throw StatusError::bad_request("request.operation is not known");
  out.operation = *operation;
  out.kind = type_in(request["kind"]);
  out.resource = resource_in(request["resource"]);
  out.subresource = text(request["subResource"]);
  out.request_kind = type_in(request["requestKind"]);
  out.request_resource = resource_in(request["requestResource"]);
  out.request_subresource = text(request["requestSubResource"]);
  out.name = text(request["name"]);
  out.ns = text(request["namespace"]);
  out.user = user_of(request["userInfo"]);
  out.dry_run = request["dryRun"].as_bool();
  out.object = member_object(request, "object", out.kind);
  out.old_object = member_object(request, "oldObject", out.kind);
  out.options = member_object(request, "options", {});
  return out;
}

std::string encode_admission_review(const std::string& uid, const AdmissionResponse& response,
                                    const std::string& patch) {
  constexpr std::int32_t kOk = 200;
  constexpr std::int32_t kForbidden = 403;
  api::Status status = response.status;
  status.status = response.allowed ? "Success" : "Failure";
  if (status.code == 0) status.code = response.allowed ? kOk : kForbidden;
  const api::ObjectDraft review;
  review["apiVersion"].set(kApiVersion);
  review["kind"].set("AdmissionReview");
  const DraftPart out = review["response"];
  out["uid"].set(uid);
  out["allowed"].set(response.allowed);
  const api::Object status_object = status.to_object();
  out["status"].set(status_object);
  if (!patch.empty()) {
    out["patchType"].set("JSONPatch");
    out["patch"].set(encode_base64(patch));
  }
  for (const std::string& warning : response.warnings)
    out["warnings"].append().set(repaired(warning));
  for (const auto& [key, value] : response.audit_annotations)
    out["auditAnnotations"][repaired(key)].set(repaired(value));
  // The status is used unchanged.
  return repaired(review.build().to_json());
}

std::string json_patch(const api::Object& from, const api::Object& to) {
  if (from == to) return {};
  const api::ObjectDraft holder;
  Patch(holder["patch"]).difference("", from.body(), to.body());
  const api::Object held = holder.build();
  return held["patch"].to_json();
}

}  // namespace detail
}  // namespace lookout::controller
