// What was stored by an older server, or under another schema, may stay: a change is refused only for
// what it changes. Beside the answers of a real kube-apiserver 1.36.2.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "tests/apiserver/client_fixture.h"
#include "tests/apiserver/http_client.h"
#include "tests/support/files.h"

namespace lookout::apiserver {
namespace {

using api::Object;

class Ratcheting : public ClientTest {
 protected:
  HttpAnswer send(const std::string& method, const std::string& path, const std::string& body) {
    return http(server_.port(), method, path, body,
                {{"Content-Type",
                  method == "PATCH" ? "application/merge-patch+json" : "application/json"}});
  }
};

/// Each cause of a refusal. (Kubernetes looks at the fields of a custom resource in any order.)
std::vector<std::string> sorted_causes(api::Value causes) {
  std::vector<std::string> out;
  for (const api::Value cause : causes.elements()) out.push_back(cause.to_json());
  std::sort(out.begin(), out.end());
  return out;
}

TEST_F(Ratcheting, OfCustomResourcesIsThatOfARealServer) {
  const Object recorded = Object::parse(
      lookout::test::read_file(lookout::test::testdata("kube-1.36/custom_ratcheting.json")));
  const std::string definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
  const api::Value definition = recorded["definition"];
  EXPECT_EQ(send("POST", definitions, definition.to_json()).code, 201);
  std::size_t compared = 0;
  const auto replay = [&](api::Value requests) {
    for (const api::Value one : requests.elements()) {
      SCOPED_TRACE(one.to_json());
      const api::Value body = one["body"];
      const HttpAnswer answer =
          send(std::string(one["method"].as_string()), std::string(one["path"].as_string()),
               body.exists() ? body.to_json() : "");
      EXPECT_EQ(answer.code, one["code"].as_int()) << answer.body;
      const Object object = Object::parse(answer.body);
      if (one["causes"].exists()) {
        EXPECT_EQ(sorted_causes(object["details"]["causes"]), sorted_causes(one["causes"]));
      }
      for (const auto& [name, value] : one["left"].members()) {
        EXPECT_TRUE(Object::parse(object[name].to_json()).to_document() ==
                    Object::parse(value.to_json()).to_document())
            << object[name].to_json();
      }
      ++compared;
    }
  };
  replay(recorded["before"]);
  const std::string strict =
      R"([{"op":"replace","path":"/spec/versions/0/schema/openAPIV3Schema","value":)" +
      recorded["schema"].to_json() + "}]";
  EXPECT_EQ(http(server_.port(), "PATCH",
                 definitions + "/" + std::string(definition["metadata"]["name"].as_string()),
                 strict, {{"Content-Type", "application/json-patch+json"}})
                .code,
            200);
  replay(recorded["after"]);
  EXPECT_GT(compared, 300u);
}

}  // namespace
}  // namespace lookout::apiserver
