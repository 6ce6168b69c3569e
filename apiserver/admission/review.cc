#include "apiserver/admission/review.h"

#include <fmt/format.h>
#include <rapidjson/stringbuffer.h>
#include <rapidjson/writer.h>

#include <algorithm>
#include <utility>

#include "apiserver/endpoints/body.h"
#include "apiserver/names.h"
#include "lookout/api/detail/go_text.h"
#include "lookout/api/json_patch.h"
#include "lookout/base/base64.h"
#include "lookout/base/json_text.h"

namespace lookout::apiserver::admission {
namespace {

using api::detail::quote;
using base::write_text;
using Writer = rapidjson::Writer<rapidjson::StringBuffer>;

/// Omits an empty text, like Go's omitempty.
void write_optional(Writer& writer, const char* name, std::string_view text) {
  if (!text.empty()) write_text(writer, name, text);
}

void write_raw(Writer& writer, const char* name, std::string_view json) {
  writer.Key(name);
  writer.RawValue(json.data(), json.size(), rapidjson::kObjectType);
}

/// A kind or a resource; `last` is the name of its third member.
void write_type(Writer& writer, const char* name, std::string_view group, std::string_view version,
                const char* last, std::string_view text) {
  writer.Key(name);
  writer.StartObject();
  write_text(writer, "group", group);
  write_text(writer, "version", version);
  write_text(writer, last, text);
  writer.EndObject();
}

void write_kind(Writer& writer, const char* name, const api::GroupVersionKind& kind) {
  write_type(writer, name, kind.group, kind.version, "kind", kind.kind);
}

void write_resource(Writer& writer, const char* name, const Version& version) {
  write_type(writer, name, version.group, version.version, "resource", version.resource);
}

void write_user(Writer& writer, const auth::User& user) {
  writer.Key("userInfo");
  writer.StartObject();
  write_optional(writer, "username", user.name);
  write_optional(writer, "uid", user.uid);
  const auto write_list = [&](const char* name, const std::vector<std::string>& list) {
    writer.Key(name);
    writer.StartArray();
    for (const std::string& one : list) write_text(writer, one);
    writer.EndArray();
  };
  if (!user.groups.empty()) write_list("groups", user.groups);
  if (!user.extra.empty()) {
    writer.Key("extra");
    writer.StartObject();
    for (const auto& [name, values] : user.extra) write_list(name.c_str(), values);
    writer.EndObject();
  }
  writer.EndObject();
}

CallError invalid(const std::string& why) {
  return CallError("received invalid webhook response: " + why, kServiceUnavailable);
}

/// The rejection with kube-apiserver's message (ToStatusErr).
api::Status refusal_of(const Hook& hook, const json::Value* result) {
  api::Status status;
  if (result != nullptr && result->IsObject()) {
    Document document;
    auto& allocator = document.GetAllocator();
    static_cast<json::Value&>(document) = json::deep_copy(*result, allocator);
    json::set(document, "kind", "Status", allocator);
    json::set(document, "apiVersion", "v1", allocator);
    try {
      status = api::Status::from(Object::from(document)).value_or(api::Status());
    } catch (const Error&) {
      throw invalid("status cannot be decoded");
    }
  }
  // An HTTP status has three digits.
  constexpr int kMostCode = 999;
  if (status.code < kBadRequest || status.code > kMostCode) status.code = kBadRequest;
  status.status = "Failure";
  const std::string denied =
      fmt::format("admission webhook {} denied the request", quote(hook.name));
  status.message = !status.message.empty()  ? fmt::format("{}: {}", denied, status.message)
                   : !status.reason.empty() ? fmt::format("{}: {}", denied, status.reason)
                                            : denied + " without explanation";
  return status;
}

/// The patch in a response.
std::string patch_of(const json::Value& response, bool mutating, bool is_v1) {
  const json::Value* type = json::find(response, "patchType");
  const bool typed = type != nullptr && !type->IsNull();
  const std::string_view text = json::text(response, "patch");
  if (!mutating) {
    if (!is_v1) return {};
    if (!text.empty()) throw invalid("validating webhook may not return response.patch");
    if (typed) throw invalid("validating webhook may not return response.patchType");
    return {};
  }
  if (is_v1) {
    if (!text.empty() && !typed)
      throw invalid("webhook returned response.patch but not response.patchType");
    if (text.empty() && typed)
      throw invalid("webhook returned response.patchType but not response.patch");
    const std::string_view name = json::text(response, "patchType");
    if (typed && name.empty())
      throw invalid(fmt::format("webhook returned invalid response.patchType of {}", quote(name)));
    if (typed && name != "JSONPatch")
      throw CallError(fmt::format("unsupported patch type {}", quote(name)));
  }
  const auto patch = decode_base64(text);
  if (!patch) throw CallError("failed to call webhook: response.patch is not base64");
  return *patch;
}

}  // namespace

std::string_view review_version(const Hook& hook) {
  for (const std::string& version : hook.review_versions) {
    if (version == "v1" || version == "v1beta1") return version;
  }
  throw CallError(
      "could not create admission objects: webhook does not accept known AdmissionReview versions "
      "(v1, v1beta1)",
      kBadRequest);
}

std::string make_review(const Hook& hook, const std::string& uid, const RequestFacts& facts,
                        const Version& seen, const Object& object, const Object& old) {
  rapidjson::StringBuffer buffer;
  Writer writer(buffer);
  writer.StartObject();
  write_text(writer, "kind", "AdmissionReview");
  write_text(writer, "apiVersion", fmt::format("admission.k8s.io/{}", review_version(hook)));
  writer.Key("request");
  writer.StartObject();
  write_text(writer, "uid", uid);
  write_kind(writer, "kind", seen.kind);
  write_resource(writer, "resource", seen);
  write_optional(writer, "subResource", facts.subresource);
  write_kind(writer, "requestKind", facts.requested.kind);
  write_resource(writer, "requestResource", facts.requested);
  write_optional(writer, "requestSubResource", facts.subresource);
  write_optional(writer, "name", facts.name);
  write_optional(writer, "namespace", facts.ns);
  write_text(writer, "operation", facts.operation);
  write_user(writer, facts.user);
  write_raw(writer, "object", object ? object.to_json() : "null");
  write_raw(writer, "oldObject", old ? old.to_json() : "null");
  writer.Key("dryRun");
  writer.Bool(facts.dry_run);
  write_raw(writer, "options", facts.options.empty() ? "null" : facts.options);
  writer.EndObject();
  writer.EndObject();
  return {buffer.GetString(), buffer.GetSize()};
}

Verdict read_verdict(const Hook& hook, bool mutating, const std::string& uid,
                     const std::string& body) {
  Document review;
  try {
    review = endpoints::decode_json(body, "");
  } catch (const StatusError& e) {
    throw CallError(fmt::format(
        "failed to call webhook: couldn't get version/kind; json parse error: {}", e.what()));
  }
  const bool is_v1 = review_version(hook) == "v1";
  const std::string expected = fmt::format("admission.k8s.io/{}", review_version(hook));
  const std::string_view version = json::text(review, "apiVersion");
  const std::string_view kind = json::text(review, "kind");
  const json::Value* response = json::find(review, "response");
  if (response == nullptr || !response->IsObject()) throw invalid("webhook response was absent");
  if (is_v1) {
    if (const std::string_view got = json::text(*response, "uid"); got != uid)
      throw invalid(fmt::format("expected response.uid={}, got {}", quote(uid), quote(got)));
  }
  // v1beta1 reviews need no apiVersion and kind.
  const bool untyped = version.empty() && kind.empty() && !is_v1;
  if (!untyped && (version != expected || kind != "AdmissionReview")) {
    const std::string_view slash = version.find('/') == std::string_view::npos ? "/" : "";
    throw invalid(
        fmt::format("expected webhook response of {}, Kind=AdmissionReview, got {}{}, Kind={}",
                    expected, slash, version, kind));
  }
  Verdict verdict;
  if (const json::Value* allowed = json::find(*response, "allowed"); allowed != nullptr) {
    if (!allowed->IsBool() && !allowed->IsNull()) throw invalid("response.allowed is not a bool");
    verdict.allowed = allowed->IsTrue();
  }
  if (const json::Value* list = json::find(*response, "warnings");
      list != nullptr && list->IsArray()) {
    verdict.warnings.reserve(list->Size());
    for (const json::Value& warning : list->GetArray()) {
      if (warning.IsString()) verdict.warnings.emplace_back(json::text_of(warning));
    }
  }
  verdict.patch = patch_of(*response, mutating, is_v1);
  if (!verdict.allowed) verdict.refusal = refusal_of(hook, json::find(*response, "status"));
  return verdict;
}

Document parse_patch(const std::string& patch) {
  Document document;
  try {
    document = endpoints::decode_json(patch, "");
  } catch (const StatusError& e) {
    throw StatusError::internal_error(e.what());
  }
  if (!document.IsArray())
    throw StatusError::internal_error("the patch is not a list of operations");
  return document;
}

Object apply_patch(const Object& object, const Document& patch) {
  Document document = object.to_document();
  try {
    api::apply_json_patch(document, patch, document.GetAllocator());
    return Object::from(document);
  } catch (const api::PatchError& e) {
    throw StatusError::internal_error(e.what());
  } catch (const api::DecodeError& e) {
    throw StatusError::internal_error(e.what());
  }
}

}  // namespace lookout::apiserver::admission
