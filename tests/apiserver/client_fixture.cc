#include "tests/apiserver/client_fixture.h"

#include "lookout/api/merge_patch.h"

namespace lookout::apiserver {

api::Object changed(const api::Object& object, const std::string& patch) {
  rapidjson::Document document = object.to_document();
  rapidjson::Document change;
  change.Parse(patch.c_str());
  EXPECT_FALSE(change.HasParseError()) << patch;
  api::apply_merge_patch(document, change, document.GetAllocator());
  return api::Object::from(document);
}

api::Status status_of(const std::function<void()>& operation) {
  try {
    operation();
  } catch (const api::StatusError& e) {
    return e.status();
  }
  ADD_FAILURE() << "nothing was thrown";
  return {};
}

}  // namespace lookout::apiserver
