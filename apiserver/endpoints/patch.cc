#include "apiserver/endpoints/patch.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <utility>

#include "apiserver/endpoints/body.h"
#include "apiserver/endpoints/negotiation.h"
#include "apiserver/endpoints/patch_problems.h"
#include "apiserver/names.h"
#include "apiserver/resources/object_meta.h"
#include "lookout/api/detail/go_text.h"
#include "lookout/api/json_patch.h"
#include "lookout/api/merge_patch.h"
#include "lookout/api/status.h"
#include "lookout/api/strategic_merge_patch.h"
#include "lookout/api/validation.h"

namespace lookout::apiserver::endpoints {
namespace {

/// kube-apiserver's limit: a patch is small, but each operation may take long.
constexpr rapidjson::SizeType kMaxOperations = 10000;

constexpr std::string_view kJsonPatch = "application/json-patch+json";
constexpr std::string_view kMergePatch = "application/merge-patch+json";
constexpr std::string_view kStrategicPatch = "application/strategic-merge-patch+json";

using Apply = std::function<void(Document& target, const Document& patch)>;

/// The 422 of a patch that cannot be applied; clients get no details.
StatusError does_not_fit() { return StatusError::generic(422, "", "", "", "", "", 0, false); }

void apply_json(Document& target, const Document& patch) {
  try {
    api::apply_json_patch(target, patch, target.GetAllocator());
  } catch (const api::PatchError&) {
    throw does_not_fit();
  } catch (const api::DecodeError&) {
    // An unknown operation, or one without its path.
    throw does_not_fit();
  }
}

/// Checks the operations like kube-apiserver's decoder. A missing `value` becomes null.
void prepare_operations(Document& patch) {
  constexpr std::string_view kRefusal =
      "error decoding patch: json: cannot unmarshal {} into Go {}";
  for (json::Value& operation : patch.GetArray()) {
    if (operation.IsNull()) operation.SetObject();
    if (!operation.IsObject()) {
      throw StatusError::bad_request(
          fmt::format(kRefusal, json::type_name(operation), "value of type handlers.jsonPatchOp"));
    }
    for (const char* name : {"op", "path", "from"}) {
      const json::Value* text = json::find(operation, name);
      if (text == nullptr || text->IsNull() || text->IsString()) continue;
      throw StatusError::bad_request(
          fmt::format(kRefusal, json::type_name(*text),
                      fmt::format("struct field jsonPatchOp.{} of type string", name)));
    }
    const std::string_view op = json::text(operation, "op");
    if ((op == "add" || op == "replace") && json::find(operation, "value") == nullptr)
      json::set(operation, "value", json::Value(), patch.GetAllocator());
  }
}

void apply_merge(Document& target, const Document& patch) {
  try {
    api::apply_merge_patch(target, patch, target.GetAllocator(), api::NullsInLists::kDrop);
  } catch (const api::DecodeError& e) {
    throw StatusError::bad_request(e.what());
  }
}

Apply apply_strategic(const api::GroupVersionKind& type) {
  return [type](Document& target, const Document& patch) {
    api::apply_strategic_merge_patch(target, patch, type, target.GetAllocator());
  };
}

/// A value as Go prints it with "%+v".
std::string go_text(const json::Value& value) {
  std::vector<std::string> parts;
  if (value.IsObject()) {
    for (const auto& member : value.GetObject())
      parts.push_back(fmt::format("{}:{}", json::text_of(member.name), go_text(member.value)));
    std::sort(parts.begin(), parts.end());
    return fmt::format("map[{}]", fmt::join(parts, " "));
  }
  if (value.IsArray()) {
    for (const auto& element : value.GetArray()) parts.push_back(go_text(element));
    return fmt::format("[{}]", fmt::join(parts, " "));
  }
  if (value.IsString()) return std::string(json::text_of(value));
  if (value.IsNull()) return "<nil>";
  if (value.IsBool()) return value.GetBool() ? "true" : "false";
  return value.IsInt64() ? std::to_string(value.GetInt64()) : fmt::format("{}", value.GetDouble());
}

/// The decoding errors in the result of a patch.
class OutcomeCheck {
 public:
  OutcomeCheck(resources::ServedResourcePtr resource, ExpectedKind expected,
               FieldValidation validation, std::shared_ptr<std::vector<std::string>> warnings)
      : resource_(std::move(resource)),
        expected_(std::move(expected)),
        validation_(validation),
        warnings_(std::move(warnings)) {}

  /// Checks the patch before it is applied.
  void look_at(std::string_view patch, PatchForm form) {
    if (validation_ != FieldValidation::kIgnore) in_patch_ = find_patch_problems(patch, form);
  }

  /// `blamed`: a strategic merge patch to show in the error; empty: show the result.
  void operator()(const Object& present, const Object& patched, const std::string& blamed) const {
    const api::GroupVersionKind& type = expected_.type;
    const auto is_or_unset = [](std::string_view text, std::string_view wanted) {
      return text.empty() || text == wanted;
    };
    // A strategic merge patch cannot change kind and apiVersion.
    if (expected_.custom && !is_or_unset(patched.kind(), type.kind)) {
      throw StatusError::invalid(
          type.group, type.kind, patched.name(),
          {api::validation::invalid("kind", patched.kind(), fmt::format("must be {}", type.kind))});
    }
    if (blamed.empty() && (!is_or_unset(patched.kind(), type.kind) ||
                           !is_or_unset(patched.api_version(), type.api_version()))) {
      const bool known =
          patched.kind() == type.kind || api::find_builtin("", "v1", patched.kind()) != nullptr;
      throw refuse(patched.to_json(),
                   known && patched.api_version() == type.api_version()
                       ? fmt::format("{} in version {} cannot be handled as a {}", patched.kind(),
                                     api::detail::quote(type.version), type.kind)
                       : fmt::format("no kind {} is registered for version {}",
                                     api::detail::quote(patched.kind()),
                                     api::detail::quote(patched.api_version())));
    }
    DecodingProblems problems = find_decoding_problems(patched, expected_);
    if (problems.error && !blamed.empty()) throw refuse(blamed, problems.converter_error);
    if (problems.error) throw refuse(patched.to_json(), *problems.error);
    if (validation_ == FieldValidation::kIgnore) return;
    std::vector<std::string>& strict = problems.strict;
    if (!strict.empty()) {
      const auto before = find_decoding_problems(present, expected_).strict;
      std::erase_if(strict, [&](const std::string& problem) {
        return std::find(before.begin(), before.end(), problem) != before.end();
      });
    }
    strict.insert(strict.begin(), in_patch_.begin(), in_patch_.end());
    if (strict.empty()) return;
    if (validation_ == FieldValidation::kStrict)
      throw refuse(blamed.empty() ? patched.to_json() : blamed, strict_decoding_error(strict));
    // The patch may be applied several times, so this replaces the warnings.
    *warnings_ = std::move(strict);
  }

 private:
  static StatusError refuse(const std::string& value, const std::string& why) {
    return StatusError::invalid("", "", "", {api::validation::invalid("patch", value, why)});
  }

  resources::ServedResourcePtr resource_;  // owns the schema
  ExpectedKind expected_;
  FieldValidation validation_;
  std::shared_ptr<std::vector<std::string>> warnings_;
  std::vector<std::string> in_patch_;
};

resources::Store::Change make_change(Document patch, Apply apply, const OutcomeCheck& check,
                                     bool strategic) {
  // Shared, because changes are copied.
  auto shared = std::make_shared<const Document>(std::move(patch));
  const std::string blamed = strategic ? go_text(*shared) : std::string();
  return [shared, apply = std::move(apply), check, blamed](const Object& present) {
    Document document = present.to_document();
    apply(document, *shared);
    try {
      Object patched = Object::from(document);
      check(present, patched, blamed);
      if (!present.ns().empty()) resources::check_same_namespace(patched.ns(), present.ns());
      return patched;
    } catch (const api::DecodeError& e) {
      throw StatusError::bad_request(e.what());
    }
  };
}

/// The prefix of messages; empty for strategic merge patches.
constexpr std::string_view kCannotDecode = "error decoding patch: ";

/// `type` is Go's type of such patches.
StatusError is_no_patch(const Document& patch, std::string_view prefix, std::string_view type) {
  return StatusError::bad_request(
      fmt::format("{}json: cannot unmarshal {} into Go value of type {}", prefix,
                  json::type_name(patch), type));
}

}  // namespace

void check_patch_type(const http::Request& request, bool custom) {
  const std::string type = media_type(request.header("content-type"));
  if (type == kJsonPatch || type == kMergePatch || type == kApplyPatch) return;
  if (!custom) {
    if (type == kStrategicPatch) return;
    throw StatusError::generic(415, "", "", "", "", "415: Unsupported Media Type", 0, false);
  }
  api::Status status;
  status.code = 415;
  status.reason = api::reason::kUnsupportedMediaType;
  status.message = fmt::format(
      "the body of the request was in an unknown format - accepted media types include: {}, {}, {}",
      kJsonPatch, kMergePatch, kApplyPatch);
  throw StatusError(std::move(status));
}

resources::Store::Change parse_patch(const http::Request& request,
                                     const resources::ServedResourcePtr& resource,
                                     const ExpectedKind& expected, FieldValidation validation,
                                     std::shared_ptr<std::vector<std::string>> warnings) {
  OutcomeCheck check(resource, expected, validation, std::move(warnings));
  const std::string type = media_type(request.header("content-type"));
  if (type == kJsonPatch) {
    Document patch = decode_json(request.body, kCannotDecode);
    if (patch.IsNull()) patch.SetArray();
    if (!patch.IsArray()) throw is_no_patch(patch, kCannotDecode, "[]handlers.jsonPatchOp");
    if (patch.Size() > kMaxOperations) {
      throw StatusError::request_entity_too_large(
          fmt::format("The allowed maximum operations in a JSON patch is {}, got {}",
                      kMaxOperations, patch.Size()));
    }
    prepare_operations(patch);
    check.look_at(request.body, PatchForm::kOperations);
    return make_change(std::move(patch), apply_json, check, false);
  }
  const api::GroupVersionKind& kind = expected.type;
  const bool strategic =
      type == kStrategicPatch && !resource->custom && api::supports_strategic_merge_patch(kind);
  if (type == kMergePatch || strategic) {
    const std::string_view prefix = strategic ? std::string_view() : kCannotDecode;
    Document patch = decode_json(request.body, prefix);
    if (patch.IsNull() && !strategic) throw StatusError::bad_request("Invalid JSON Patch");
    if (patch.IsNull()) patch.SetObject();
    if (!patch.IsObject()) throw is_no_patch(patch, prefix, "map[string]interface {}");
    check.look_at(request.body, PatchForm::kObject);
    return make_change(std::move(patch), strategic ? apply_strategic(kind) : apply_merge, check,
                       strategic);
  }
  if (type == kApplyPatch) {
    api::Status status;
    status.code = 415;
    status.reason = api::reason::kUnsupportedMediaType;
    status.message = "server-side apply needs managedFields, which this server does not keep";
    throw StatusError(std::move(status));
  }
  throw StatusError::generic(415, "", "", "", "", "415: Unsupported Media Type", 0, false);
}

}  // namespace lookout::apiserver::endpoints
