// AdmissionReview, in and out.
#pragma once

#include <string>
#include <string_view>

#include "lookout/controller/webhook_admission.h"

namespace lookout::controller::detail {

/// The review, of whatever kind, that is the body of a request. Throws api::StatusError (400) if it
/// cannot be decoded.
api::Object review_in(std::string_view body);

/// The request of an AdmissionReview of v1. Throws api::StatusError (400) if the text is none.
/// Messages have nothing of the objects in it.
Admission<api::Object> decode_admission_review(std::string_view body);

/// The review that answers. `patch`: a JSON patch, or empty.
std::string encode_admission_review(const std::string& uid, const AdmissionResponse& response,
                                    const std::string& patch);

/// A JSON patch (RFC 6902) that makes `to` of `from`; empty if they are equal. It names what
/// differs and nothing else: of a list, the elements between the first and the last that differ.
std::string json_patch(const api::Object& from, const api::Object& to);

/// The object inside another one; empty for null or nothing.
api::Object object_of(api::Value value);

}  // namespace lookout::controller::detail
