#include "apiserver/endpoints/patch.h"

#include <fmt/format.h>

#include <functional>
#include <memory>
#include <utility>

#include "apiserver/endpoints/body.h"
#include "apiserver/endpoints/negotiation.h"
#include "lookout/api/json_patch.h"
#include "lookout/api/merge_patch.h"
#include "lookout/api/status.h"
#include "lookout/api/strategic_merge_patch.h"

namespace lookout::apiserver::endpoints {
namespace {

using api::Object;
using api::StatusError;
using json::Document;

/// As the API server's: a patch is small, and every operation costs time.
constexpr rapidjson::SizeType kMaxOperations = 10000;

constexpr std::string_view kJsonPatch = "application/json-patch+json";
constexpr std::string_view kMergePatch = "application/merge-patch+json";
constexpr std::string_view kStrategicPatch = "application/strategic-merge-patch+json";
constexpr std::string_view kApplyPatch = "application/apply-patch+yaml";

using Apply = std::function<void(Document& target, const Document& patch)>;

/// The 422 of a patch that cannot be carried out; clients get no details.
StatusError does_not_fit() { return StatusError::generic(422, "", "", "", "", "", 0, false); }

void apply_json(Document& target, const Document& patch) {
  try {
    api::apply_json_patch(target, patch, target.GetAllocator());
  } catch (const api::PatchError&) {
    throw does_not_fit();
  }
}

void apply_merge(Document& target, const Document& patch) {
  try {
    api::apply_merge_patch(target, patch, target.GetAllocator());
  } catch (const api::DecodeError& e) {
    throw StatusError::bad_request(e.what());
  }
}

Apply apply_strategic(const api::GroupVersionKind& type) {
  return [type](Document& target, const Document& patch) {
    api::apply_strategic_merge_patch(target, patch, type, target.GetAllocator());
  };
}

registry::Store::Change make_change(Document patch, Apply apply,
                                    const registry::ServedResourcePtr& resource) {
  // Changes are copied about; the patch need not be.
  auto shared = std::make_shared<const Document>(std::move(patch));
  return [shared, apply = std::move(apply), resource](const Object& present) {
    Document document = present.to_document();
    apply(document, *shared);
    try {
      Object patched = Object::from(document);
      check_metadata(patched, *resource);
      return patched;
    } catch (const api::DecodeError& e) {
      throw StatusError::bad_request(e.what());
    }
  };
}

}  // namespace

registry::Store::Change parse_patch(const http::Request& request,
                                    const registry::ServedResourcePtr& resource) {
  const std::string type = media_type(request.header("content-type"));
  if (type == kJsonPatch) {
    Document patch = decode_json(request.body, "error decoding patch: ");
    if (!patch.IsArray()) {
      throw StatusError::bad_request(
          "error decoding patch: json: cannot unmarshal object into Go value of type "
          "[]handlers.jsonPatchOp");
    }
    if (patch.Size() > kMaxOperations) {
      throw StatusError::request_entity_too_large(
          fmt::format("The allowed maximum operations in a JSON patch is {}, got {}",
                      kMaxOperations, patch.Size()));
    }
    return make_change(std::move(patch), apply_json, resource);
  }
  const api::GroupVersionKind kind = resource->type.gvk();
  const bool strategic = type == kStrategicPatch && api::supports_strategic_merge_patch(kind);
  if (type == kMergePatch || strategic) {
    Document patch = decode_json(request.body, "error decoding patch: ");
    if (!patch.IsObject()) {
      throw StatusError::bad_request(
          "error decoding patch: json: cannot unmarshal array into Go value of type "
          "map[string]interface {}");
    }
    return make_change(std::move(patch), strategic ? apply_strategic(kind) : apply_merge, resource);
  }
  if (type == kApplyPatch) {
    api::Status status;
    status.code = 415;
    status.reason = api::reason::kUnsupportedMediaType;
    status.message = "server-side apply is not served: use another kind of patch";
    throw StatusError(std::move(status));
  }
  if (resource->custom) {
    api::Status status;
    status.code = 415;
    status.reason = api::reason::kUnsupportedMediaType;
    status.message = fmt::format(
        "the body of the request was in an unknown format - accepted media types include: {}, {}",
        kJsonPatch, kMergePatch);
    throw StatusError(std::move(status));
  }
  throw StatusError::generic(415, "", "", "", "", "415: Unsupported Media Type", 0, false);
}

}  // namespace lookout::apiserver::endpoints
