#include "controller/webhook_conversion.h"

#include <fmt/format.h>

#include <exception>
#include <utility>

#include "controller/webhook_review.h"
#include "lookout/api/error.h"
#include "lookout/api/status.h"
#include "lookout/base/detail/log.h"

namespace lookout::controller::detail {
namespace {

using api::StatusError;
using api::Value;

constexpr std::string_view kReviewVersion = "apiextensions.k8s.io/v1";

std::string key_of(const std::string& group, const std::string& kind) { return kind + "." + group; }

/// The base of a conversion, which the function completes.
api::Object base_for(const api::Object& from, const std::string& api_version) {
  const api::ObjectDraft draft;
  draft["apiVersion"].set(api_version);
  draft["kind"].set(from.kind());
  draft["metadata"].set(from["metadata"]);
  return draft.build();
}

api::Object convert_by(const ConvertFunction& function, const api::Object& from,
                       const std::string& api_version) {
  const api::Object base = base_for(from, api_version);
  api::Object out = function(from, base);
  if (out.api_version() != api_version || out.kind() != base.kind() || out.name() != base.name() ||
      out.ns() != base.ns() || out.uid() != base.uid()) {
    throw Error(
        fmt::format("the conversion to {} has changed the object's type or identity", api_version));
  }
  return out;
}

}  // namespace

void Conversions::add(Spoke spoke) {
  const api::Resource hub = spoke.hub;
  const api::Resource version = spoke.spoke;
  if (hub.group != version.group || hub.kind != version.kind) {
    throw InvalidArgument(fmt::format("{} and {} are not versions of one kind",
                                      hub.gvk().to_string(), version.gvk().to_string()));
  }
  if (hub.version == version.version) {
    throw InvalidArgument(
        fmt::format("{} is the hub and cannot be a spoke", version.gvk().to_string()));
  }
  if (!spoke.to_hub || !spoke.from_hub) {
    throw InvalidArgument(fmt::format("the conversion of {} {} its hub is empty",
                                      version.gvk().to_string(), spoke.to_hub ? "from" : "to"));
  }
  const std::lock_guard lock(mutex_);
  Versions& versions =
      kinds_.try_emplace(key_of(hub.group, hub.kind), Versions{hub, {}}).first->second;
  if (versions.hub.version != hub.version) {
    throw InvalidArgument(
        fmt::format("{} has the hub {} already", hub.gvk().to_string(), versions.hub.version));
  }
  if (!versions.spokes.try_emplace(version.version, std::move(spoke)).second) {
    throw InvalidArgument(
        fmt::format("a conversion of {} is already registered", version.gvk().to_string()));
  }
}

std::optional<Conversions::Versions> Conversions::find(const std::string& group,
                                                       const std::string& kind) const {
  const std::lock_guard lock(mutex_);
  const auto found = kinds_.find(key_of(group, kind));
  if (found == kinds_.end()) return std::nullopt;
  return found->second;
}

api::Object Conversions::convert(const api::Object& from,
                                 const api::GroupVersionKind& wanted) const {
  const api::GroupVersionKind given = from.gvk();
  if (given.group != wanted.group) {
    throw Error(fmt::format("{} and {} do not belong to the same API group", given.to_string(),
                            wanted.api_version()));
  }
  if (given.version == wanted.version)
    throw Error(fmt::format("{} is in that version already", given.to_string()));
  const auto versions = find(given.group, given.kind);
  if (!versions) throw Error(fmt::format("no conversion of {} is known", given.to_string()));
  const auto spoke_of = [&](const std::string& version) -> const Spoke& {
    const auto found = versions->spokes.find(version);
    if (found == versions->spokes.end()) {
      throw Error(fmt::format("no conversion of {} version {} is known", given.kind, version));
    }
    return found->second;
  };
  const std::string& hub = versions->hub.version;
  if (given.version == hub)
    return convert_by(spoke_of(wanted.version).from_hub, from, wanted.api_version());
  const Spoke& source = spoke_of(given.version);
  if (wanted.version == hub) return convert_by(source.to_hub, from, wanted.api_version());
  const Spoke& target = spoke_of(wanted.version);
  const api::Object between = convert_by(source.to_hub, from, versions->hub.api_version());
  return convert_by(target.from_hub, between, wanted.api_version());
}

std::string Conversions::answer(std::string_view body) {
  const api::Object review = review_in(body);
  if (review.api_version() != kReviewVersion || review.kind() != "ConversionReview") {
    throw StatusError::bad_request(
        "the request's body is not a ConversionReview of apiextensions.k8s.io/v1: add v1 to the "
        "conversionReviewVersions of the CustomResourceDefinition");
  }
  const Value request = review["request"];
  if (!request.is_object()) throw StatusError::bad_request("the ConversionReview has no request");
  const std::string_view uid = request["uid"].as_string();
  if (uid.empty()) throw StatusError::bad_request("the ConversionReview's request has no uid");
  const std::string_view desired = request["desiredAPIVersion"].as_string();

  const api::ObjectDraft out;
  out["apiVersion"].set(kReviewVersion);
  out["kind"].set("ConversionReview");
  const api::DraftPart response = out["response"];
  response["uid"].set(uid);
  const api::DraftPart converted = response["convertedObjects"];
  converted.set_empty_list();
  std::string failure;
  try {
    for (const Value each : request["objects"].elements()) {
      const api::Object from = object_of(each);
      if (!from) throw Error("request.objects contains something that is not an object");
      const auto wanted = api::GroupVersionKind::from(desired, from.kind());
      const api::Object to = convert(from, wanted);
      converted.append().set(to);
    }
  } catch (const Error& e) {
    failure = e.what();
  } catch (const std::exception& e) {
    ++panics_;
    log::error("conversion webhook: a conversion to {} threw: {}", desired, e.what());
    failure = "internal error occurred during conversion";
  } catch (...) {
    ++panics_;
    log::error(
        "conversion webhook: a conversion to {} threw something that is not a std::exception",
        desired);
    failure = "internal error occurred during conversion";
  }
  if (failure.empty()) {
    response["result"]["status"].set("Success");
  } else {
    log::warn("conversion webhook: {}", failure);
    converted.set_empty_list();
    response["result"]["status"].set("Failure");
    response["result"]["message"].set(failure);
  }
  return out.build().to_json();
}

}  // namespace lookout::controller::detail
