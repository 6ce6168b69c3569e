#include "tests/apiserver/client_fixture.h"

#include "lookout/api/merge_patch.h"
#include "tests/support/thrown.h"

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
  const auto error = lookout::test::thrown<api::StatusError>(operation);
  return error ? error->status() : api::Status{};
}

}  // namespace lookout::apiserver
