// AdmissionReview: the request to a webhook, and its response.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "apiserver/admission/hook.h"
#include "apiserver/auth/user.h"
#include "apiserver/json.h"
#include "apiserver/webhooks/webhook_client.h"
#include "lookout/api/object.h"
#include "lookout/api/status.h"

namespace lookout::apiserver::admission {

/// The request without its objects; the same for all hooks.
struct RequestFacts {
  Version requested;
  std::string subresource;
  /// Empty if it is not known yet, and for objects of a deleted collection.
  std::string name;
  std::string ns;
  /// "CREATE", "UPDATE", "DELETE".
  std::string operation;
  auth::User user;
  bool dry_run = false;
  /// CreateOptions, UpdateOptions or DeleteOptions in JSON.
  std::string options;
};

/// The status codes of requests whose webhook call failed.
inline constexpr int kBadRequest = 400;
inline constexpr int kServiceUnavailable = 503;

/// A failed call; failurePolicy decides about the request.
using webhooks::CallError;

/// The version of AdmissionReview that a hook accepts: "v1" or "v1beta1". Throws CallError if it
/// accepts neither.
std::string_view review_version(const Hook& hook);

/// The body of the request to a hook, with objects in the version `seen`.
std::string make_review(const Hook& hook, const std::string& uid, const RequestFacts& facts,
                        const Version& seen, const api::Object& object, const api::Object& old);

/// The response of a hook.
struct Verdict {
  bool allowed = false;
  std::vector<std::string> warnings;
  /// Set if the request is not allowed.
  api::Status refusal;
  /// The received JSON patch, decoded from base64; empty if there is none.
  std::string patch;
};

/// Parses a response (k8s.io/apiserver's VerifyAdmissionResponse). Throws CallError if it is
/// malformed or for another request.
Verdict read_verdict(const Hook& hook, bool mutating, const std::string& uid,
                     const std::string& body);

/// The operations of a patch. Throws api::StatusError (500) if the text is not a list.
json::Document parse_patch(const std::string& patch);
/// The object after a patch. Throws api::StatusError (500) if the patch cannot be applied.
api::Object apply_patch(const api::Object& object, const json::Document& patch);

}  // namespace lookout::apiserver::admission
