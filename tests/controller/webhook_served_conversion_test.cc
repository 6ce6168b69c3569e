// Conversions of a manager that the embedded API server calls: in one process, like a program's own
// tests.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>

#include "lookout/apiserver/server.h"
#include "lookout/base/base64.h"
#include "lookout/controller/manager.h"
#include "tests/controller/manager_fixture.h"
#include "tests/controller/webhook_testing.h"
#include "tests/support/eventually.h"
#include "tests/support/matchers.h"

namespace lookout::controller {
namespace {

using api::Object;

/// The hub.
struct Lamp : api::TypedObject {
  using TypedObject::TypedObject;
  static constexpr api::ResourceType kResource{"home.example.com", "v2", "Lamp", "lamps", true};
};
struct LampV1 : api::TypedObject {
  using TypedObject::TypedObject;
  static constexpr api::ResourceType kResource{"home.example.com", "v1", "Lamp", "lamps", true};
};
struct LampV1beta1 : api::TypedObject {
  using TypedObject::TypedObject;
  static constexpr api::ResourceType kResource{"home.example.com", "v1beta1", "Lamp", "lamps",
                                               true};
};

constexpr const char* kSchema =
    R"({"openAPIV3Schema":{"type":"object","x-kubernetes-preserve-unknown-fields":true}})";

class ServedConversionTest : public WebhookFixture {
 protected:
  /// Lamps in three versions, stored in v1, which is not the hub.
  void define(int port) const {
    const auto version = [](const char* name, bool stored) {
      return fmt::format(R"({{"name":"{}","served":true,"storage":{},"schema":{}}})", name, stored,
                         kSchema);
    };
    const auto all =
        client_.resource(api::Resource{"apiextensions.k8s.io", "v1", "CustomResourceDefinition",
                                       "customresourcedefinitions", false});
    all.create(Object::parse(fmt::format(
        R"({{"metadata":{{"name":"lamps.home.example.com"}},"spec":{{"group":"home.example.com",)"
        R"("scope":"Namespaced","names":{{"plural":"lamps","singular":"lamp","kind":"Lamp"}},)"
        R"("versions":[{},{},{}],"conversion":{{"strategy":"Webhook","webhook":{{)"
        R"("conversionReviewVersions":["v1"],)"
        R"("clientConfig":{{"url":"https://127.0.0.1:{}/convert","caBundle":"{}"}}}}}}}}}})",
        version("v1beta1", false), version("v1", true), version("v2", false), port,
        encode_base64(authority_->certificate()))));
  }
  static Object lamp(const std::string& version, const std::string& field,
                     const std::string& value) {
    return Object::parse(fmt::format(
        R"({{"apiVersion":"home.example.com/{}","kind":"Lamp","metadata":{{"name":"desk"}},)"
        R"("spec":{{"{}":"{}"}}}})",
        version, field, value));
  }
  rest::ResourceClient lamps(const api::ResourceType& type) const {
    return client_.resource(api::Resource(type), "default");
  }

  apiserver::Server server_;
  const rest::Client client_{server_.client_config()};
};

TEST_F(ServedConversionTest, ObjectsAreServedInAllVersions) {
  Manager manager{client_};
  WebhookServer webhooks(manager, options());
  webhooks.convert<Lamp, LampV1>(
      [](const LampV1& from, api::ObjectDraft& to) {
        const auto color = from["spec"]["colour"].as_string();
        if (color == "ultraviolet") throw Error("nobody sees this colour");
        to["spec"]["color"].set(color);
      },
      moving("color", "colour"));
  webhooks.convert<Lamp, LampV1beta1>(moving("hue", "color"), moving("color", "hue"));
  define(webhooks.port());
  std::optional<Running> running(manager);
  const auto healthy = webhooks.started_checker();
  ASSERT_TRUE(test::eventually([&] { return !healthy(); }));

  auto watch = lamps(Lamp::kResource).watch({});
  const Object made = lamps(LampV1beta1::kResource).create(lamp("v1beta1", "hue", "red"));
  EXPECT_EQ(made["spec"].to_json(), R"({"hue":"red"})");
  const Object hub = lamps(Lamp::kResource).get("desk");
  EXPECT_EQ(hub["spec"].to_json(), R"({"color":"red"})");
  EXPECT_EQ(hub.uid(), made.uid());
  const auto added = watch.next();
  ASSERT_TRUE(added);
  EXPECT_EQ(added->object, hub);
  lamps(Lamp::kResource).patch("desk", rest::PatchType::kMerge, R"({"spec":{"color":"blue"}})");
  const auto list = lamps(LampV1::kResource).list();
  ASSERT_EQ(list.items.size(), 1u);
  EXPECT_EQ(list.items[0]["spec"].to_json(), R"({"colour":"blue"})");
  const auto modified = watch.next();
  ASSERT_TRUE(modified);
  EXPECT_EQ(modified->object["spec"].to_json(), R"({"color":"blue"})");

  // A failed conversion is reported to the requests that need it.
  lamps(LampV1::kResource)
      .patch("desk", rest::PatchType::kMerge, R"({"spec":{"colour":"ultraviolet"}})");
  EXPECT_THAT(refusal([&] { lamps(Lamp::kResource).get("desk"); }),
              AllOf(HasSubstr("500 "),
                    HasSubstr("conversion webhook for home.example.com/v1, "
                              "Kind=Lamp failed: "),
                    HasSubstr("nobody sees this colour")));
  const auto error = watch.next();
  ASSERT_TRUE(error);
  EXPECT_EQ(error->type, api::EventType::kError);
  EXPECT_FALSE(watch.next());

  running.reset();
  EXPECT_THAT(refusal([&] { lamps(Lamp::kResource).list(); }),
              HasSubstr("conversion webhook for home.example.com/v1, Kind=Lamp failed: Post "));
  lamps(LampV1::kResource).remove("desk");
}

}  // namespace
}  // namespace lookout::controller
