// Lists: pages, resourceVersions, selectors.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "lookout/base/base64.h"
#include "tests/apiserver/client_fixture.h"
#include "tests/apiserver/http_client.h"
#include "tests/support/held.h"

namespace lookout::apiserver {
namespace {

using Names = std::vector<std::string>;

ServerOptions short_history() {
  ServerOptions options;
  options.history = 20;
  options.future_wait = std::chrono::milliseconds(50);
  return options;
}

class Lists : public ClientTest {
 protected:
  Lists() : ClientTest(short_history()) {}

  void create(int count) {
    for (int i = 0; i < count; ++i)
      in(kConfigMaps).create(config_map("c" + std::to_string(100 + i)));
  }
  static Names names(const rest::List<>& list) {
    Names out;
    for (const Object& object : list.items) out.emplace_back(object.name());
    return out;
  }
  Object get(const std::string& query) {
    return Object::parse(
        http(server_.port(), "GET", "/api/v1/namespaces/default/configmaps?" + query).body);
  }
};

TEST_F(Lists, HaveATypeAndItemsDoNot) {
  create(1);
  const Object list = get("");
  EXPECT_EQ(list.kind(), "ConfigMapList");
  EXPECT_EQ(list.api_version(), "v1");
  EXPECT_FALSE(list["items"][0].contains("kind"));
  EXPECT_EQ(list["items"][0]["metadata"]["name"].as_string(), "c100");
  EXPECT_FALSE(list["metadata"].contains("continue"));
}

TEST_F(Lists, AnEmptyListIsAList) {
  EXPECT_EQ(lookout::test::held(get(""))["items"].kind(), api::Value::Kind::kArray);
}

TEST_F(Lists, PagesShowOneRevisionAndCountTheRest) {
  create(7);
  rest::ListOptions options;
  options.limit = 3;
  auto page = in(kConfigMaps).list(options);
  const std::string version = page.resource_version;
  EXPECT_EQ(names(page), (Names{"c100", "c101", "c102"}));
  EXPECT_EQ(page.remaining_item_count, 4);
  in(kConfigMaps).create(config_map("c1025"));
  in(kConfigMaps).remove("c104");
  options.continue_token = page.continue_token;
  page = in(kConfigMaps).list(options);
  EXPECT_EQ(names(page), (Names{"c103", "c104", "c105"}));
  EXPECT_EQ(page.resource_version, version);
  EXPECT_EQ(page.remaining_item_count, 1);
  options.continue_token = page.continue_token;
  page = in(kConfigMaps).list(options);
  EXPECT_EQ(names(page), Names{"c106"});
  EXPECT_EQ(page.continue_token, "");
  EXPECT_FALSE(page.remaining_item_count);
}

TEST_F(Lists, PagesOfSelectedObjectsAreFull) {
  for (int i = 0; i < 10; ++i) {
    in(kConfigMaps)
        .create(from_json(R"({"metadata":{"name":"c)" + std::to_string(i) +
                          R"(","labels":{"odd":")" + (i % 2 == 0 ? "no" : "yes") + R"("}}})"));
  }
  rest::ListOptions options;
  options.limit = 3;
  options.label_selector = "odd=yes";
  auto page = in(kConfigMaps).list(options);
  EXPECT_EQ(names(page), (Names{"c1", "c3", "c5"}));
  EXPECT_FALSE(page.remaining_item_count);
  options.continue_token = page.continue_token;
  EXPECT_EQ(names(in(kConfigMaps).list(options)), (Names{"c7", "c9"}));
}

TEST_F(Lists, AnExpiredTokenReturnsAnInconsistentContinueToken) {
  create(5);
  rest::ListOptions options;
  options.limit = 2;
  const auto page = in(kConfigMaps).list(options);
  for (int i = 0; i < 30; ++i) in(kConfigMaps).update(config_map("c104", std::to_string(i)));
  options.continue_token = page.continue_token;
  const auto status = status_of([&] { in(kConfigMaps).list(options); });
  EXPECT_EQ(status.code, 410);
  EXPECT_EQ(status.reason, "Expired");
  EXPECT_TRUE(status.message.starts_with("The provided continue parameter is too old"));
  ASSERT_NE(status.continue_token, "");
  options.continue_token = status.continue_token;
  const auto rest = in(kConfigMaps).list(options);
  EXPECT_EQ(names(rest), (Names{"c102", "c103"}));
  EXPECT_NE(rest.resource_version, page.resource_version);
}

TEST_F(Lists, TokensAreValidOnlyForTheirCollection) {
  const auto token = [](const std::string& text) {
    std::string out = encode_base64(text);
    while (out.ends_with('=')) out.pop_back();
    return out;
  };
  const auto message = [&](const std::string& text) {
    return std::string(
        lookout::test::held(get("limit=1&continue=" + token(text)))["message"].as_string());
  };
  EXPECT_EQ(message(R"({"v":"meta.k8s.io/v1","rv":1,"start":"../kube-system/x"})"),
            "invalid continue token: continue key is not valid: ../kube-system/x");
  EXPECT_EQ(message(R"({"v":"meta.k8s.io/v2","rv":1,"start":"x"})"),
            "invalid continue token: continue key is not valid: server does not recognize this "
            "encoded version meta.k8s.io/v2");
  EXPECT_EQ(message(R"({"v":"meta.k8s.io/v1","start":"x"})"),
            "invalid continue token: continue key is not valid: incorrect encoded start "
            "resourceVersion (version meta.k8s.io/v1)");
  EXPECT_EQ(message(R"({"v":"meta.k8s.io/v1","rv":1})"),
            "invalid continue token: continue key is not valid: encoded start key empty (version "
            "meta.k8s.io/v1)");
  EXPECT_EQ(
      lookout::test::held(get("limit=1&continue=!!!"))["message"].as_string(),
      "invalid continue token: continue key is not valid: illegal base64 data at input byte 0");
  EXPECT_EQ(
      lookout::test::held(get("limit=1&continue=abcde"))["message"].as_string(),
      "invalid continue token: continue key is not valid: illegal base64 data at input byte 4");
  EXPECT_EQ(message("{]"),
            "invalid continue token: continue key is not valid: invalid character ']' looking for "
            "beginning of object key string");
  // A valid token together with a version.
  create(3);
  rest::ListOptions options;
  options.limit = 1;
  const auto page = in(kConfigMaps).list(options);
  EXPECT_EQ(lookout::test::held(
                get("limit=1&resourceVersion=5&continue=" + page.continue_token))["message"]
                .as_string(),
            "specifying resource version is not allowed when using continue");
}

TEST_F(Lists, ExactVersionsReadThePast) {
  create(2);
  const std::string before = in(kConfigMaps).list().resource_version;
  in(kConfigMaps).remove("c100");
  rest::ListOptions exact;
  exact.resource_version = before;
  exact.resource_version_match = "Exact";
  const auto past = in(kConfigMaps).list(exact);
  EXPECT_EQ(names(past), (Names{"c100", "c101"}));
  EXPECT_EQ(past.resource_version, before);
  // The legacy form: a limit has the same meaning.
  rest::ListOptions legacy;
  legacy.resource_version = before;
  legacy.limit = 10;
  EXPECT_EQ(names(in(kConfigMaps).list(legacy)), (Names{"c100", "c101"}));
  rest::ListOptions newer;
  newer.resource_version = before;
  newer.resource_version_match = "NotOlderThan";
  EXPECT_EQ(names(in(kConfigMaps).list(newer)), Names{"c101"});
  // With any version, the list is not paged.
  rest::ListOptions any;
  any.resource_version = "0";
  any.limit = 1;
  create(0);
  EXPECT_EQ(names(in(kConfigMaps).list(any)), Names{"c101"});
}

TEST_F(Lists, OfOneNameIgnoreTheLimit) {
  create(1);
  const std::string old(in(kConfigMaps).get("c100").resource_version());
  for (int i = 0; i < 30; ++i)
    in(kConfigMaps)
        .patch("c100", rest::PatchType::kMerge, R"({"data":{"n":")" + std::to_string(i) + R"("}})");
  EXPECT_EQ(lookout::test::held(get("limit=5&resourceVersion=" + old))["code"].as_int(), 410);
  const Object one = get("fieldSelector=metadata.name%3Dc100&limit=5&resourceVersion=" + old);
  EXPECT_EQ(one["items"].size(), 1u) << one.to_json();
}

TEST_F(Lists, ContradictingOptionsAreRejected) {
  const auto message = [&](const std::string& query) {
    return std::string(lookout::test::held(get(query))["message"].as_string());
  };
  EXPECT_EQ(message("resourceVersion=0&resourceVersionMatch=Exact"),
            "ListOptions.meta.k8s.io \"\" is invalid: resourceVersionMatch: Forbidden: "
            "resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\"");
  EXPECT_EQ(message("resourceVersion=1&resourceVersionMatch=Foo"),
            "ListOptions.meta.k8s.io \"\" is invalid: resourceVersionMatch: Unsupported value: "
            "\"Foo\": supported values: \"Exact\", \"NotOlderThan\", \"\"");
  EXPECT_EQ(message("sendInitialEvents=true"),
            "ListOptions.meta.k8s.io \"\" is invalid: sendInitialEvents: Forbidden: "
            "sendInitialEvents is forbidden for list");
  EXPECT_EQ(message("watch=1&resourceVersionMatch=NotOlderThan&resourceVersion=1"),
            "ListOptions.meta.k8s.io \"\" is invalid: resourceVersionMatch: Forbidden: "
            "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided");
  EXPECT_EQ(message("timeoutSeconds=soon"), "strconv.ParseInt: parsing \"soon\": invalid syntax");
}

TEST_F(Lists, CoverAllNamespacesOrOne) {
  all(kNamespaces).create(from_json(R"({"metadata":{"name":"shop"}})"));
  in(kConfigMaps, "shop").create(config_map("a"));
  in(kConfigMaps).create(config_map("b"));
  EXPECT_EQ(names(all(kConfigMaps).list()), (Names{"b", "a"}));
  rest::ListOptions in_shop;
  in_shop.field_selector = "metadata.namespace=shop";
  EXPECT_EQ(names(all(kConfigMaps).list(in_shop)), Names{"a"});
  rest::ListOptions one;
  one.field_selector = "metadata.name=a,metadata.namespace=shop";
  EXPECT_EQ(names(all(kConfigMaps).list(one)), Names{"a"});
  rest::ListOptions not_one;
  not_one.field_selector = "metadata.name!=a";
  EXPECT_EQ(names(all(kConfigMaps).list(not_one)), Names{"b"});
}

TEST_F(Lists, FieldSelectorsEqualKubernetes) {
  all(kNodes).create(from_json(R"({"metadata":{"name":"n1"},"spec":{"unschedulable":true}})"));
  all(kNodes).create(from_json(R"({"metadata":{"name":"n2"}})"));
  pods().create(pod("p1", R"(,"hostNetwork":true,"nodeName":"n1")"));
  pods().create(pod("p2"));
  const auto found = [&](const rest::ResourceClient& client, const std::string& selector) {
    rest::ListOptions options;
    options.field_selector = selector;
    return names(client.list(options));
  };
  EXPECT_EQ(found(all(kNodes), "spec.unschedulable=false"), Names{"n2"});
  EXPECT_EQ(found(all(kNodes), "spec.unschedulable=true"), Names{"n1"});
  EXPECT_EQ(found(pods(), "spec.hostNetwork=false"), Names{"p2"});
  EXPECT_EQ(found(pods(), "spec.nodeName="), Names{"p2"});
  EXPECT_EQ(found(pods(), "spec.nodeName!="), Names{"p1"});
  EXPECT_EQ(found(pods(), "spec.restartPolicy=Always,status.phase=Pending"), (Names{"p1", "p2"}));
  EXPECT_EQ(status_of([&] { found(in(kDeployments), "spec.replicas=1"); }).message,
            "\"spec.replicas\" is not a known field selector: only \"metadata.name\", "
            "\"metadata.namespace\"");
  EXPECT_EQ(status_of([&] { found(in(kServices), "spec.foo=1"); }).message,
            "field label not supported: spec.foo");
}

TEST_F(Lists, ALongListArrivesCompleteInPieces) {
  ServerOptions options;
  options.history = 10;
  Server server(options);
  const rest::Client client(server.client_config());
  const auto maps = client.resource(kConfigMaps, "default");
  const std::string value(2000, 'x');
  constexpr int kCount = 1000;
  for (int i = 0; i < kCount; ++i) maps.create(config_map("c" + std::to_string(10000 + i), value));
  HttpClient raw(server.port());
  const auto answer = raw.get("/api/v1/configmaps");
  EXPECT_EQ(answer.headers.at("transfer-encoding"), "chunked");
  const Object list = Object::parse(answer.body);
  EXPECT_EQ(list["items"].size(), static_cast<std::size_t>(kCount));
  // The connection stays open.
  EXPECT_EQ(raw.get("/version").code, 200);
}

TEST_F(Lists, MetadataAlone) {
  create(2);
  const auto answer =
      http(server_.port(), "GET", "/api/v1/namespaces/default/configmaps", {},
           {{"Accept",
             "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json"}});
  const Object list = Object::parse(answer.body);
  EXPECT_EQ(list.kind(), "PartialObjectMetadataList");
  EXPECT_EQ(list["items"][0]["kind"].as_string(), "PartialObjectMetadata");
  EXPECT_FALSE(list["items"][0].contains("data"));
  const auto one =
      http(server_.port(), "GET", "/api/v1/namespaces/default/configmaps/c100", {},
           {{"Accept", "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"}});
  EXPECT_EQ(Object::parse(one.body).kind(), "PartialObjectMetadata");
  // A list cannot be PartialObjectMetadata.
  const auto not_a_list =
      http(server_.port(), "GET", "/api/v1/namespaces/default/configmaps", {},
           {{"Accept", "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"}});
  EXPECT_EQ(not_a_list.code, 406);
}

}  // namespace
}  // namespace lookout::apiserver
