// Request limits, the audit log, and compressed responses.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <boost/asio/socket_base.hpp>
#include <list>
#include <sstream>
#include <string>
#include <vector>

#include "apiserver/endpoints/in_flight.h"
#include "tests/apiserver/client_fixture.h"
#include "tests/apiserver/http_client.h"
#include "tests/support/files.h"
#include "tests/support/held.h"
#include "tests/support/matchers.h"

namespace lookout::apiserver {
namespace {

using endpoints::InFlight;

TEST(InFlight, CountsTheRequestsOfEachUser) {
  InFlight in_flight;
  const auth::User ann{"ann"};
  endpoints::RequestInfo info;
  info.verb = "list";
  const auto refused = [&](const auth::User& user) {
    try {
      in_flight.enter(user.name, user, info, 2);
    } catch (const api::StatusError& e) {
      return e.status().code == 429;
    }
    return false;
  };
  {
    const InFlight::Slot first = in_flight.enter("ann", ann, info, 2);
    EXPECT_FALSE(refused(ann));
    const InFlight::Slot second = in_flight.enter("ann", ann, info, 2);
    EXPECT_TRUE(refused(ann));
    EXPECT_FALSE(refused({"bob"}));
    EXPECT_FALSE(refused({"ann", "", {"system:masters"}}));
    info.verb = "watch";
    EXPECT_FALSE(refused(ann));
    info.verb = "list";
  }
  EXPECT_FALSE(refused(ann));
}

constexpr const char* kOther = "127.0.0.2";

TEST(AddressLimits, OneAddressCannotTakeAllRequests) {
  ServerOptions options;
  options.max_requests_per_address = 1;
  options.future_wait = std::chrono::seconds(30);
  Server server(options);
  // Requests without credentials are in system:masters, so use another user.
  const HttpClient::Headers bob = {{"Impersonate-User", "bob"}};
  const rest::ResourceClient maps =
      rest::Client(server.client_config()).resource(kConfigMaps, "default");
  // A request that waits for a future revision.
  const std::int64_t revision = std::stoll(maps.list().resource_version) + 20;
  // Requests while bob is served are rejected, so this may take several attempts.
  std::list<HttpClient> waiting;
  HttpAnswer answer;
  ASSERT_TRUE(eventually([&] {
    waiting.emplace_back(server.port())
        .send(fmt::format("GET {}?resourceVersion={} HTTP/1.1\r\nHost: localhost\r\n"
                          "Impersonate-User: ann\r\n\r\n",
                          kConfigMapsPath, revision));
    answer = HttpClient(server.port()).get(kConfigMapsPath, bob);
    return answer.code == 429;
  }));
  EXPECT_EQ(answer.headers.at("retry-after"), "1");
  EXPECT_THAT(answer.body, HasSubstr("Too many requests"));
  EXPECT_EQ(HttpClient(server.port(), kOther).get(kConfigMapsPath, bob).code, 200);
  EXPECT_EQ(HttpClient(server.port()).get(kConfigMapsPath).code, 200) << "system:masters";
  for (int i = 0; i < 20; ++i) maps.create(config_map(fmt::format("map-{}", i)));
  EXPECT_GE(
      std::ranges::count_if(waiting, [](HttpClient& c) { return c.read_answer().code == 200; }), 1);
  EXPECT_TRUE(
      eventually([&] { return HttpClient(server.port()).get(kConfigMapsPath, bob).code == 200; }));
}

/// Lists of this size do not fit into the buffers of a connection.
void create_large_objects(const Server& server) {
  const rest::ResourceClient maps =
      rest::Client(server.client_config()).resource(kConfigMaps, "default");
  for (int i = 0; i < 12; ++i)
    maps.create(config_map(fmt::format("map-{}", i), std::string(1'000'000, 'x')));
}

/// A client that reads only the first bytes of a response.
void begin_to_read(HttpClient& client, const std::string& path) {
  client.socket().set_option(boost::asio::socket_base::receive_buffer_size(4096));
  client.send(
      fmt::format("GET {} HTTP/1.1\r\nHost: localhost\r\nImpersonate-User: ann\r\n\r\n", path));
  EXPECT_THAT(client.read_some(), HasSubstr("200 OK"));
}

/// The number of running read requests, including this one.
std::string running_reads(const Server& server) {
  const std::string metric = "\napiserver_current_inflight_requests{request_kind=\"readOnly\"} ";
  const std::string body = http(server.port(), "GET", "/metrics").body;
  const std::size_t at = body.find(metric);
  if (at == std::string::npos) return {};
  const std::size_t begin = at + metric.size();
  return body.substr(begin, body.find('\n', begin) - begin);
}

/// The response to a short request of an impersonated user.
int code_for(const Server& server, const char* user) {
  return HttpClient(server.port())
      .get("/api/v1/namespaces/default/configmaps/none", {{"Impersonate-User", user}})
      .code;
}

TEST(RunningRequests, AListCountsUntilItHasBeenSent) {
  ServerOptions options;
  options.max_requests_per_address = 1;
  Server server(options);
  create_large_objects(server);
  EXPECT_EQ(code_for(server, "bob"), 404);
  HttpClient slow(server.port());
  begin_to_read(slow, kConfigMapsPath);
  EXPECT_EQ(code_for(server, "bob"), 429);
  EXPECT_EQ(running_reads(server), "2");
  slow.close();
  EXPECT_TRUE(eventually([&] { return code_for(server, "bob") == 404; }));
  EXPECT_TRUE(eventually([&] { return running_reads(server) == "1"; }));
}

TEST(RunningRequests, AListOfAUserCountsUntilItHasBeenSent) {
  ServerOptions options;
  options.max_requests_per_user = 1;
  Server server(options);
  create_large_objects(server);
  HttpClient slow(server.port());
  begin_to_read(slow, kConfigMapsPath);
  EXPECT_EQ(code_for(server, "ann"), 429);
  EXPECT_EQ(code_for(server, "bob"), 404);
  slow.close();
  EXPECT_TRUE(eventually([&] { return code_for(server, "ann") == 404; }));
}

TEST(RunningRequests, AnOpenWatchDoesNotCount) {
  ServerOptions options;
  options.max_requests_per_address = 1;
  Server server(options);
  HttpClient watch(server.port());
  begin_to_read(watch, std::string(kConfigMapsPath) + "?watch=1");
  EXPECT_EQ(HttpClient(server.port()).get(kConfigMapsPath, {{"Impersonate-User", "bob"}}).code,
            200);
  EXPECT_TRUE(eventually([&] { return running_reads(server) == "1"; }));
}

TEST(AddressLimits, OneAddressCannotTakeAllConnections) {
  ServerOptions options;
  options.max_connections_per_address = 2;
  Server server(options);
  HttpClient first(server.port());
  HttpClient second(server.port());
  EXPECT_EQ(first.get("/version").code, 200);
  EXPECT_EQ(second.get("/version").code, 200);
  const auto served = [&](const char* from) {
    try {
      return HttpClient(server.port(), from).get("/version").code == 200;
    } catch (const boost::system::system_error&) {
      return false;
    }
  };
  EXPECT_FALSE(served("127.0.0.1"));
  EXPECT_TRUE(served(kOther));
  EXPECT_EQ(first.get("/version").code, 200);
  second.close();
  EXPECT_TRUE(eventually([&] { return served("127.0.0.1"); }));
}

class Compression : public ClientTest {};

TEST_F(Compression, IsUsedForLargeResponsesIfAccepted) {
  // (Random, so that it does not compress well.)
  std::string text;
  for (unsigned i = 0, state = 1; i < 5000; ++i) {
    state = state * 1664525 + 1013904223;
    text += static_cast<char>('a' + (state >> 24) % 26);
  }
  for (int i = 0; i < 60; ++i) in(kConfigMaps).create(config_map(fmt::format("map-{}", i), text));
  const auto get = [&](const std::string& path, const char* encodings) {
    return http(server_.port(), "GET", path, "", {{"Accept-Encoding", encodings}});
  };
  const HttpAnswer plain = http(server_.port(), "GET", kConfigMapsPath);
  ASSERT_GT(plain.body.size(), 300000U);
  EXPECT_FALSE(plain.headers.contains("content-encoding"));
  const HttpAnswer packed = get(kConfigMapsPath, "deflate, gzip;q=0.5");
  EXPECT_EQ(packed.headers.at("content-encoding"), "gzip");
  EXPECT_EQ(packed.headers.at("vary"), "Accept-Encoding");
  EXPECT_TRUE(packed.body.starts_with("\x1f\x8b"));
  EXPECT_LT(packed.body.size(), plain.body.size());
  for (const char* encodings : {"", "deflate", "gzip;q=0", "gzip;q=0.0"})
    EXPECT_FALSE(get(kConfigMapsPath, encodings).headers.contains("content-encoding")) << encodings;
  const std::string one = std::string(kConfigMapsPath) + "/map-1";
  EXPECT_FALSE(get(one, "gzip").headers.contains("content-encoding"));
  const HttpAnswer few = get(std::string(kConfigMapsPath) + "?limit=2", "gzip");
  EXPECT_EQ(held(api::Object::parse(few.body))["items"].size(), 2U);
  // The document of the built-in types is one piece.
  EXPECT_EQ(get("/openapi/v2", "gzip").headers.at("content-encoding"), "gzip");
  // The client library decompresses it.
  EXPECT_EQ(in(kConfigMaps).list({}).items.size(), 60U);
  HttpClient watch(server_.port());
  watch.send(
      fmt::format("GET {}?watch=1 HTTP/1.1\r\nHost: localhost\r\nAccept-Encoding: gzip\r\n\r\n",
                  kConfigMapsPath));
  EXPECT_THAT(watch.read_some(), Not(HasSubstr("gzip")));
}

class Audit : public testing::Test {
 protected:
  /// The events of some requests.
  std::vector<api::Object> events(AuditLevel level, const std::function<void(Server&)>& requests) {
    const lookout::test::TempDir dir;
    ServerOptions options;
    options.authorization = Authorization::kRbac;
    options.audit_log_file = (dir / "audit").string();
    options.audit_level = level;
    {
      Server server(options);
      requests(server);
    }
    std::istringstream lines(lookout::test::read_file(options.audit_log_file));
    std::vector<api::Object> out;
    for (std::string line; std::getline(lines, line);) out.push_back(api::Object::parse(line));
    return out;
  }
  static void create(const rest::Client& client, const api::Resource& resource, const char* text) {
    client.resource(resource, "default").create(from_json(text));
  }
};

TEST_F(Audit, RecordsUsersAndRequests) {
  const auto found = events(AuditLevel::kMetadata, [](Server& server) {
    create(rest::Client(server.client_config()), kConfigMaps, R"({"metadata":{"name":"a"}})");
    rest::Config config = server.client_config();
    config.as.user = "bob";
    EXPECT_THROW(rest::Client(config).resource(kPods, "default").get("web"), api::StatusError);
  });
  ASSERT_EQ(found.size(), 2U);
  EXPECT_EQ(found[0]["verb"].as_string(), "create");
  EXPECT_EQ(found[0]["user"]["username"].as_string(), "system:unsecured");
  EXPECT_EQ(found[0]["responseStatus"]["code"].as_int(), 201);
  EXPECT_EQ(found[0]["objectRef"].to_json(),
            R"({"apiVersion":"v1","namespace":"default","resource":"configmaps"})");
  EXPECT_FALSE(found[0]["requestObject"].exists());
  EXPECT_EQ(found[1]["impersonatedUser"]["username"].as_string(), "bob");
  EXPECT_EQ(found[1]["objectRef"]["name"].as_string(), "web");
  EXPECT_EQ(found[1]["responseStatus"]["code"].as_int(), 403);
  EXPECT_EQ(found[1]["annotations"]["authorization.k8s.io/decision"].as_string(), "forbid");
}

TEST_F(Audit, RecordsTheImpersonationPermission) {
  const auto found = events(AuditLevel::kMetadata, [](Server& server) {
    for (const char* groups : {"dev", "system:masters"}) {
      rest::Config config = server.client_config();
      config.as.user = "bob";
      config.as.groups = {groups};
      rest::Client(config).get_raw("/version");
    }
  });
  ASSERT_EQ(found.size(), 2U);
  EXPECT_EQ(found[0]["authenticationMetadata"].to_json(),
            R"({"impersonationConstraint":"impersonate:user-info"})");
  // Constrained impersonation excludes this group.
  EXPECT_FALSE(found[1]["authenticationMetadata"].exists());
}

TEST_F(Audit, HasTheAuditIdOfTheResponse) {
  std::string name;
  const auto found = events(AuditLevel::kMetadata, [&](Server& server) {
    name = http(server.port(), "GET", kConfigMapsPath).headers.at("audit-id");
    const auto named = http(server.port(), "GET", kConfigMapsPath, {}, {{"Audit-Id", "mine"}});
    EXPECT_EQ(named.headers.at("audit-id"), "mine");
  });
  ASSERT_EQ(found.size(), 2U);
  EXPECT_EQ(found[0]["auditID"].as_string(), name);
  EXPECT_EQ(found[1]["auditID"].as_string(), "mine");
}

TEST_F(Audit, RecordsBodiesWithoutSecrets) {
  const auto found = events(AuditLevel::kRequest, [](Server& server) {
    const rest::Client client(server.client_config());
    create(client, kLeases, R"({"metadata":{"name":"a"},"spec":{"holderIdentity":"me"}})");
    create(client, kSecrets, R"({"metadata":{"name":"a"},"stringData":{"password":"geheim"}})");
    create(client, kConfigMaps, R"({"metadata":{"name":"a"},"data":{"password":"geheim"}})");
  });
  ASSERT_EQ(found.size(), 3U);
  EXPECT_EQ(found[0]["requestObject"]["spec"]["holderIdentity"].as_string(), "me");
  for (const api::Object& event : found) EXPECT_THAT(event.to_json(), Not(HasSubstr("geheim")));
}

}  // namespace
}  // namespace lookout::apiserver
