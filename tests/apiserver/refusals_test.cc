// What built-in kinds have to be, beside the answers of a real kube-apiserver 1.36.2.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "lookout/api/json_patch.h"
#include "tests/apiserver/client_fixture.h"
#include "tests/apiserver/http_client.h"
#include "tests/support/files.h"

namespace lookout::apiserver {
namespace {

using api::Object;

class Refusals : public ClientTest {};

/// Each cause of a refusal, in order: its field, its reason and its message.
std::vector<std::string> causes_in(api::Value causes) {
  std::vector<std::string> out;
  for (const api::Value cause : causes.elements()) {
    out.push_back(std::string(cause["field"].as_string()) + ": " +
                  std::string(cause["reason"].as_string()) + ": " +
                  std::string(cause["message"].as_string()));
  }
  return out;
}

/// Each case changes a valid object at one place.
TEST_F(Refusals, AreThoseOfARealServer) {
  const Object recorded =
      Object::parse(lookout::test::read_file(lookout::test::testdata("kube-1.36/refusals.json")));
  std::size_t compared = 0;
  for (const api::Value kind : recorded["kinds"].elements()) {
    const std::string path(kind["path"].as_string());
    const Object valid = Object::parse(kind["object"].to_json());
    const auto create = [&](const Object& object) {
      return http(server_.port(), "POST", path + "?dryRun=All", object.to_json(),
                  {{"Content-Type", "application/json"}});
    };
    EXPECT_EQ(create(valid).code, 201) << path;
    for (const api::Value one : kind["cases"].elements()) {
      SCOPED_TRACE(path + " " + one["change"].to_json());
      rapidjson::Document object = valid.to_document();
      const rapidjson::Document change =
          Object::parse(R"({"change":[)" + one["change"].to_json() + "]}").to_document();
      api::apply_json_patch(object, change["change"], object.GetAllocator());
      const HttpAnswer answer = create(Object::from(object));
      EXPECT_EQ(answer.code, 422) << answer.body;
      const Object told = Object::parse(answer.body);
      EXPECT_EQ(causes_in(told["details"]["causes"]), causes_in(one["causes"]));
      ++compared;
    }
  }
  EXPECT_GT(compared, 500u);
}

}  // namespace
}  // namespace lookout::apiserver
