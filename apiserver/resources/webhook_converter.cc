#include "apiserver/resources/webhook_converter.h"

#include <fmt/format.h>

#include <chrono>
#include <optional>
#include <utility>

#include "apiserver/json.h"
#include "apiserver/resources/names.h"
#include "apiserver/resources/object_meta.h"
#include "apiserver/resources/structural_schema.h"
#include "lookout/api/detail/go_text.h"
#include "lookout/api/detail/json_writer.h"
#include "lookout/api/status.h"

namespace lookout::apiserver::resources {
namespace {

using webhooks::CallError;

constexpr std::chrono::seconds kTimeout{30};
/// The size of one review, unless a single object is larger.
constexpr std::size_t kReviewBytes = 16u << 20;
/// Versions may differ in size.
constexpr std::size_t kMaxAnswer = 64u << 20;
constexpr std::string_view kGroup = "apiextensions.k8s.io/";

/// "stable.example.com/v1, Kind=CronTab".
std::string type_of(const Object& object) {
  return fmt::format("{}, Kind={}", object.api_version(), object.kind());
}

StatusError failed(const std::string& type, std::string_view why) {
  return StatusError::internal_error(
      fmt::format("conversion webhook for {} failed: {}", type, why));
}

/// The webhook has returned different objects than requested.
struct WrongObjects : CallError {
  using CallError::CallError;
};

/// Throws CallError unless both are equal.
void expect_same(std::string_view what, std::string_view wanted, std::string_view found) {
  if (wanted == found) return;
  throw CallError(fmt::format("must have the same {}: {} != {}", what, wanted, found));
}

bool are_strings(const json::Value& map) {
  for (const auto& member : map.GetObject()) {
    if (!member.value.IsString()) return false;
  }
  return true;
}

/// Restores the metadata, except labels and annotations.
void restore_metadata(json::Value& converted, const json::Value& before,
                      json::Allocator& allocator) {
  const json::Value* metadata = json::find(converted, "metadata");
  if (metadata == nullptr) throw CallError("missing metadata in converted object");
  if (!metadata->IsObject()) throw CallError("invalid metadata in converted object");
  json::Value restored = json::deep_copy(before, allocator);
  for (const char* part : {"labels", "annotations"}) {
    const json::Value* map = json::find(*metadata, part);
    if (map != nullptr && !map->IsNull() && (!map->IsObject() || !are_strings(*map)))
      throw CallError(fmt::format("metadata.{}: invalid type", part));
    if (map == nullptr || map->IsNull() || map->ObjectEmpty()) {
      json::erase(restored, part);
    } else {
      json::take(restored, *metadata, part, allocator);
    }
  }
  json::set(converted, "metadata", std::move(restored), allocator);
}

/// Checks and prunes an object of a response.
Object accepted(json::Value& converted, const Object& original, const std::string& api_version,
                const Object& schema, json::Allocator& allocator) {
  if (!converted.IsObject()) throw CallError("it is not an object");
  const std::string_view version = json::text(converted, "apiVersion");
  if (version != api_version) {
    throw CallError(
        fmt::format("invalid groupVersion (expected {}, received {})", api_version, version));
  }
  expect_same("kind", original.kind(), json::text(converted, "kind"));
  if (const json::Value* metadata = json::find(converted, "metadata")) {
    expect_same("name", original.name(), json::text(*metadata, "name"));
    expect_same("namespace", original.ns(), json::text(*metadata, "namespace"));
    expect_same("UID", original.uid(), json::text(*metadata, "uid"));
  }
  json::Document before = original.to_document();
  restore_metadata(converted, json::child(before, "metadata", before.GetAllocator()), allocator);
  if (schema) prune(converted, schema.body());
  return Object::from(converted);
}

}  // namespace

WebhookConverter::WebhookConverter(webhooks::WebhookClient& client, api::Value spec,
                                   std::shared_ptr<const VersionSchemas> schemas)
    : client_(client),
      address_(webhooks::address_of(spec["conversion"]["webhook"]["clientConfig"])),
      schemas_(std::move(schemas)) {
  for (const api::Value version :
       spec["conversion"]["webhook"]["conversionReviewVersions"].elements()) {
    const std::string_view name = version.as_string();
    if (name != "v1" && name != "v1beta1") continue;
    review_version_ = name;
    break;
  }
}

std::string WebhookConverter::make_review(const std::vector<Object>& objects, const Places& places,
                                          const std::string& uid,
                                          const std::string& api_version) const {
  std::string out =
      fmt::format(R"({{"kind":"ConversionReview","apiVersion":"{}{}","request":{{"uid":"{}",)"
                  R"("desiredAPIVersion":"{}","objects":[)",
                  kGroup, review_version_, uid, api_version);
  bool first = true;
  for (const std::size_t place : places) {
    if (!std::exchange(first, false)) out += ',';
    api::detail::write_json(objects[place].body(), out);
  }
  return out + "]}}";
}

/// Throws CallError.
void WebhookConverter::read_answer(const std::string& body, const std::string& uid,
                                   const std::string& api_version, const Places& places,
                                   std::vector<Object>& objects) const {
  json::Document review;
  try {
    review = Object::parse(body).to_document();
  } catch (const Error&) {
    throw CallError("the response is not a JSON object");
  }
  const std::string wanted = std::string(kGroup) + review_version_;
  const std::string_view version = json::text(review, "apiVersion");
  const std::string_view kind = json::text(review, "kind");
  if (version != wanted || kind != "ConversionReview") {
    throw CallError(
        fmt::format("expected webhook response of {}, Kind=ConversionReview, got {}, Kind={}",
                    wanted, version, kind));
  }
  json::Value* response = json::find(review, "response");
  if (response == nullptr || !response->IsObject()) throw CallError("no response provided");
  const std::string_view id = json::text(*response, "uid");
  if (id != uid && !(id.empty() && review_version_ != "v1"))
    throw CallError(fmt::format("expected response.uid={}, got {}", quote(uid), quote(id)));
  const json::Value* result = json::find(*response, "result");
  const std::string_view status = result == nullptr ? "" : json::text(*result, "status");
  if (status != "Success") {
    const std::string_view message = result == nullptr ? "" : json::text(*result, "message");
    if (!message.empty()) throw CallError(std::string(message));
    throw CallError(fmt::format("response.result.status was '{}', not 'Success'", status));
  }
  std::vector<json::Value*> converted;
  json::for_each(*response, "convertedObjects",
                 [&](json::Value& one) { converted.push_back(&one); });
  if (converted.size() != places.size()) {
    throw WrongObjects(
        fmt::format("returned {} objects, expected {}", converted.size(), places.size()));
  }
  const Object& schema = schemas_->find(api_version);
  for (std::size_t i = 0; i < places.size(); ++i) {
    Object& object = objects[places[i]];
    try {
      object = accepted(*converted[i], object, api_version, schema, review.GetAllocator());
    } catch (const Error& e) {
      throw WrongObjects(
          fmt::format("returned invalid converted object at index {}: {}", i, e.what()));
    }
  }
}

Awaitable<std::vector<Object>> WebhookConverter::convert(std::vector<Object> objects,
                                                         std::string api_version,
                                                         std::stop_token gone) const {
  std::size_t next = 0;
  while (next < objects.size()) {
    Places places;
    std::size_t bytes = 0;
    for (; next < objects.size(); ++next) {
      const Object& object = objects[next];
      if (!object || object.api_version() == api_version) continue;
      // The memory size is about the size in JSON.
      const std::size_t size = object.memory_size();
      if (!places.empty() && bytes + size > kReviewBytes) break;
      bytes += size;
      places.push_back(next);
    }
    if (places.empty()) break;
    const std::string type = type_of(objects[places.front()]);
    if (review_version_.empty())
      throw failed(type, "it accepts neither v1 nor v1beta1 of ConversionReview");
    std::optional<std::string> failure;
    try {
      const std::string uid = new_uid();
      std::string body = make_review(objects, places, uid, api_version);
      webhooks::Address address = address_;
      const std::string answer =
          co_await client_.post(std::move(address), std::move(body), kTimeout, gone, kMaxAnswer);
      read_answer(answer, uid, api_version, places, objects);
    } catch (const WrongObjects& e) {
      throw StatusError::internal_error(
          fmt::format("conversion webhook for {} {}", type, e.what()));
    } catch (const CallError& e) {
      failure = e.what();
    }
    if (failure) throw failed(type, *failure);
  }
  co_return objects;
}

Awaitable<Object> WebhookConverter::convert(Object object, std::string api_version,
                                            std::stop_token gone) const {
  std::vector<Object> one;
  one.push_back(std::move(object));
  one = co_await convert(std::move(one), std::move(api_version), std::move(gone));
  co_return std::move(one.front());
}

Awaitable<std::vector<Object>> WebhookConverter::show(std::vector<Object> stored,
                                                      std::string api_version,
                                                      std::stop_token gone) const {
  for (Object& object : stored) object = schemas_->read(object);
  return convert(std::move(stored), std::move(api_version), std::move(gone));
}

Awaitable<Object> WebhookConverter::show(Object stored, std::string api_version) const {
  return convert(schemas_->read(stored), std::move(api_version));
}

}  // namespace lookout::apiserver::resources
