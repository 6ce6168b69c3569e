// Decoding and encoding of AdmissionReviews.
#pragma once

#include <string>
#include <string_view>

#include "lookout/controller/webhook_admission.h"

namespace lookout::controller::detail {

/// Decodes the review in the body of a request, of any kind. Throws api::StatusError (400) if it cannot be
/// decoded.
api::Object review_in(std::string_view body);

/// The request of an AdmissionReview of v1. Throws api::StatusError (400) for any other text. Messages do
/// not quote the objects.
Admission<api::Object> decode_admission_review(std::string_view body);

/// The response review. `patch`: a JSON patch, or empty.
std::string encode_admission_review(const std::string& uid, const AdmissionResponse& response,
                                    const std::string& patch);

/// A JSON patch (RFC 6902) from `from` to `to`; empty if they are equal. It contains only the differences;
/// in a list, the elements between the first and the last difference.
std::string json_patch(const api::Object& from, const api::Object& to);

/// The object in a value; empty for null or an absent value.
api::Object object_of(api::Value value);

}  // namespace lookout::controller::detail
