// Warning headers.
#include "rest/warnings.h"

#include <gtest/gtest.h>

#include <future>
#include <mutex>
#include <stdexcept>
#include <string>
#include <utility>

#include "tests/rest/client_testing.h"
#include "tests/support/bounded_wait.h"
#include "tests/support/matchers.h"

namespace lookout::test {
namespace {

using rest::Warning;
using rest::detail::parse_warnings;

std::vector<std::string> texts(std::string_view header) {
  std::vector<std::string> out;
  for (const Warning& warning : parse_warnings(header)) out.push_back(warning.text);
  return out;
}

TEST(WarningHeaderTest, IsDecoded) {
  const auto one = parse_warnings(R"(299 - "unknown field \"spec.foo\"")");
  ASSERT_EQ(one.size(), 1u);
  EXPECT_EQ(one[0].code, 299);
  EXPECT_EQ(one[0].agent, "-");
  EXPECT_EQ(one[0].text, R"(unknown field "spec.foo")");
  EXPECT_THAT(texts(R"(299 - "a, b" "Tue, 15 Nov 1994 08:12:31 GMT", 299 kube "c")"),
              ElementsAre("a, b", "c"));
  EXPECT_THAT(texts(R"(299 - "=?utf-8?q?gr=C3=BCn_?= =?UTF-8?B?w6Q=?= =?x?q?y?=")"),
              ElementsAre("gr\u00fcn  \u00e4 =?x?q?y?="));
}

TEST(WarningHeaderTest, StopsAtMalformedText) {
  for (const char* header :
       {"", "299", "299 -", "299 - text", R"(299 - "open)", R"(29 - "a")", R"(x99 - "a")",
        R"(-99 - "a")", "299 - \"a\x01\"", R"(299 - "a\)", R"(299 - "=?utf-8?q?=0D=0A?=")"})
    EXPECT_THAT(texts(header), ElementsAre()) << header;
  EXPECT_THAT(texts(R"(299 - "a" x, 299 - "b")"), ElementsAre("a"));
}

TEST(WarningsTest, AreReportedOnceEach) {
  HttpServer server(HttpServer::answering([](const HttpRequest&) -> HttpResponse {
    return {.body = pod_json("web"),
            .headers = {R"(Warning: 299 - "it is \"old\"")", R"(Warning: 110 - "stale")",
                        R"(Warning: 299 - "another")"}};
  }));
  std::mutex mutex;
  std::vector<Warning> told;
  rest::Config config = config_for(server);
  config.on_warning = [&](const Warning& warning) {
    const std::lock_guard lock(mutex);
    told.push_back(warning);
    throw std::runtime_error("of no importance");
  };
  const rest::Client client{config};
  client.resource<k8s::core::v1::Pod>("shop").get("web");
  client.resource<k8s::core::v1::Pod>("shop").get("web");
  const std::lock_guard lock(mutex);
  ASSERT_EQ(told.size(), 2u);
  EXPECT_EQ(told[0].text, R"(it is "old")");
  EXPECT_EQ(told[0].request, "get pods web");
  EXPECT_EQ(told[1].text, "another");
}

/// The texts come from outside: the memory of them is limited.
TEST(WarningsTest, AreReportedAgainAfterAThousandOthers) {
  int told = 0;
  rest::detail::Warnings warnings([&](const Warning&) { ++told; });
  const auto tell = [&](const std::string& text) {
    warnings.tell({"299 - \"" + text + "\""}, "get pods");
    return std::exchange(told, 0);
  };
  EXPECT_EQ(tell("first"), 1);
  for (int i = 0; i < 900; ++i) EXPECT_EQ(tell(std::to_string(i)), 1);
  EXPECT_EQ(tell("first"), 0);
  for (int i = 900; i < 1100; ++i) EXPECT_EQ(tell(std::to_string(i)), 1);
  EXPECT_EQ(tell("first"), 1);
}

TEST(WarningsTest, OfARejectionAreReported) {
  HttpServer server(HttpServer::answering([](const HttpRequest&) -> HttpResponse {
    return {.status = 422, .body = "{}", .headers = {R"(Warning: 299 - "it is old")"}};
  }));
  std::promise<std::string> told;
  rest::Config config = config_for(server);
  config.on_warning = [&](const Warning& warning) { told.set_value(warning.text); };
  const rest::Client client{config};
  EXPECT_THROW(client.resource<k8s::core::v1::Pod>("shop").get("web"), api::StatusError);
  auto text = told.get_future();
  EXPECT_EQ(get(text), "it is old");
}

}  // namespace
}  // namespace lookout::test
