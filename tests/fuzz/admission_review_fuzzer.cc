// AdmissionReviews: an accepted review gets a response; a patch between its objects can be created.
#include "controller/webhook_review.h"
#include "lookout/api/object.h"
#include "lookout/api/status.h"
#include "tests/fuzz/fuzzing.h"

using namespace lookout;
using namespace lookout::controller;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    const auto request = detail::decode_admission_review(fuzz::text_of(data, size));
    fuzz::require(!request.uid.empty());
    std::string patch;
    if (request.object && request.old_object) {
      patch = detail::json_patch(request.old_object, request.object);
      fuzz::require(patch.empty() == (request.object == request.old_object));
    }
    const auto answer =
        api::Object::parse(detail::encode_admission_review(request.uid, allowed(), patch));
    fuzz::require(answer["response"]["uid"].as_string() == request.uid);
  } catch (const api::StatusError& e) {
    fuzz::require(e.code() == 400);
  }
  return 0;
}
