#include "tests/apiserver/client_fixture.h"

#include "lookout/api/json_patch.h"
#include "lookout/api/merge_patch.h"
#include "tests/apiserver/http_client.h"

namespace lookout::apiserver {

api::Object changed(const api::Object& object, const std::string& patch) {
  rapidjson::Document document = object.to_document();
  rapidjson::Document change;
  change.Parse(patch.c_str());
  EXPECT_FALSE(change.HasParseError()) << patch;
  api::apply_merge_patch(document, change, document.GetAllocator());
  return api::Object::from(document);
}

std::vector<std::string> causes_of(const HttpAnswer& answer) {
  std::vector<std::string> out;
  const api::Object told = api::Object::parse(answer.body);
  for (const api::Value cause : told["details"]["causes"].elements()) {
    out.push_back(std::string(cause["field"].as_string()) + ": " +
                  std::string(cause["message"].as_string()));
  }
  return out;
}

api::Object json_patched(const std::string& object, const std::string& operations) {
  rapidjson::Document document = api::Object::parse(object).to_document();
  const rapidjson::Document patch =
      api::Object::parse(R"({"patch":[)" + operations + "]}").to_document();
  api::apply_json_patch(document, patch["patch"], document.GetAllocator());
  return api::Object::from(document);
}

std::string add_to_spec(const std::string& path, const std::string& value) {
  return R"({"op":"add","path":"/spec)" + path + R"(","value":)" + value + "}";
}

api::Status status_of(const std::function<void()>& operation) {
  try {
    operation();
  } catch (const api::StatusError& e) {
    return e.status();
  }
  return {};
}

}  // namespace lookout::apiserver
