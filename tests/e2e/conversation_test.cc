// Sends the same sequence of requests to the embedded server and to a real kube-apiserver: the responses
// must be equal. The requests are in tests/testdata/conversation/*.http, with comments for the allowed
// differences:
//
//     # differs: reason         the whole response may differ
//     # message: reason         only an error's message may differ
//     # random: reason          only the status code must be equal
//     # embedded: reason        not sent to the real server
//     # answer: code            the embedded server's status code in this case
//
// A listed difference that does not occur fails the test, too. The real server is an old one (1.20), the
// embedded one responds like 1.36: the code below removes fields that are new in all responses.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <rapidjson/document.h>
#include <rapidjson/stringbuffer.h>
#include <rapidjson/writer.h>

#include <algorithm>
#include <boost/asio/connect.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <boost/beast/ssl.hpp>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "lookout/apiserver/server.h"
#include "tests/e2e/kube_apiserver.h"
#include "tests/support/files.h"

namespace lookout {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;
using rapidjson::Value;

// ------------------------------------------------------------------------------ the conversation

struct Request {
  std::string title;
  /// "differs", "message", "embedded": the reason.
  std::map<std::string, std::string> notes;
  std::string method;
  std::string target;
  std::vector<std::pair<std::string, std::string>> headers;
  std::string body;
};

std::vector<Request> read_conversation(const std::string& name) {
  std::istringstream in(test::read_file(test::testdata("conversation/" + name + ".http")));
  std::vector<Request> out;
  enum class At { kTitle, kHeaders, kBody } at = At::kTitle;
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with("### ")) {
      out.emplace_back().title = line.substr(4);
      at = At::kTitle;
      continue;
    }
    if (out.empty()) continue;
    Request& request = out.back();
    if (at == At::kBody) {
      if (!request.body.empty()) request.body += '\n';
      request.body += line;
    } else if (at == At::kTitle && line.starts_with("# ")) {
      const std::size_t colon = line.find(": ");
      request.notes[line.substr(2, colon - 2)] = line.substr(colon + 2);
    } else if (at == At::kTitle) {
      const std::size_t space = line.find(' ');
      request.method = line.substr(0, space);
      request.target = line.substr(space + 1);
      at = At::kHeaders;
    } else if (line.empty()) {
      at = At::kBody;
    } else {
      const std::size_t colon = line.find(':');
      const std::size_t value = line.find_first_not_of(' ', colon + 1);
      request.headers.emplace_back(line.substr(0, colon),
                                   value == std::string::npos ? "" : line.substr(value));
    }
  }
  for (Request& request : out) {
    while (request.body.ends_with('\n')) request.body.pop_back();
  }
  return out;
}

// ----------------------------------------------------------------------------------- the servers

struct Answer {
  int code = 0;
  std::string type;
  std::string warning;
  std::string body;
};

/// One connection for all requests; reconnects when the server closes it.
class Connection {
 public:
  Connection(int port, std::string token) : port_(port), token_(std::move(token)) {
    tls_.set_verify_mode(asio::ssl::verify_none);
  }

  Answer ask(const Request& request) {
    http::request<http::string_body> message;
    message.method_string(request.method);
    message.target(request.target);
    message.version(11);
    message.set(http::field::host, "127.0.0.1");
    message.set(http::field::user_agent, "conversation");
    if (!token_.empty()) message.set(http::field::authorization, "Bearer " + token_);
    if (!request.body.empty()) message.set(http::field::content_type, "application/json");
    for (const auto& [name, value] : request.headers) {
      if (value.empty()) {
        message.erase(name);
      } else {
        message.set(name, value);
      }
    }
    message.body() = request.body;
    message.prepare_payload();
    http::response_parser<http::string_body> parser;
    parser.body_limit(64u << 20);
    parser.skip(request.method == "HEAD");
    beast::flat_buffer buffer;
    if (token_.empty()) {
      beast::tcp_stream stream(context_);
      stream.connect({asio::ip::make_address("127.0.0.1"), static_cast<std::uint16_t>(port_)});
      http::write(stream, message);
      http::read(stream, buffer, parser);
    } else {
      beast::ssl_stream<beast::tcp_stream> stream(context_, tls_);
      beast::get_lowest_layer(stream).connect(
          {asio::ip::make_address("127.0.0.1"), static_cast<std::uint16_t>(port_)});
      stream.handshake(asio::ssl::stream_base::client);
      http::write(stream, message);
      http::read(stream, buffer, parser);
    }
    const auto& response = parser.get();
    return {static_cast<int>(response.result_int()), std::string(response["Content-Type"]),
            std::string(response["Warning"]), response.body()};
  }

 private:
  asio::io_context context_;
  asio::ssl::context tls_{asio::ssl::context::tls_client};
  const int port_;
  const std::string token_;
};

// -------------------------------------------------------------------------------- the comparison

/// Fields that differ each time, and fields that only a server of 1.36 has.
const std::set<std::string, std::less<>>& left_out() {
  static const std::set<std::string, std::less<>> kNames = {
      "uid", "resourceVersion", "creationTimestamp", "deletionTimestamp", "managedFields",
      "lastTransitionTime", "clusterIP", "clusterIPs", "continue",
      // since 1.20
      "generation", "kubernetes.io/metadata.name", "internalTrafficPolicy", "ipFamilies",
      "ipFamilyPolicy", "persistentVolumeClaimRetentionPolicy", "availableReplicas", "maxSurge",
      "completionMode", "suspend", "manualSelector", "podReplacementPolicy",
      "batch.kubernetes.io/controller-uid", "batch.kubernetes.io/job-name", "controller-uid",
      "lastPhaseTransitionTime", "allocateLoadBalancerNodePorts",
      // removed since 1.20
      "selfLink", "clusterName",
      // descriptions of OpenAPI
      "description"};
  return kNames;
}

std::string text_of(const Value& value) {
  rapidjson::StringBuffer buffer;
  rapidjson::Writer<rapidjson::StringBuffer> writer(buffer);
  value.Accept(writer);
  return buffer.GetString();
}

/// The members to compare, by name.
std::map<std::string, const Value*> members(const Value& object) {
  std::map<std::string, const Value*> out;
  for (const auto& member : object.GetObject()) {
    const std::string name(member.name.GetString(), member.name.GetStringLength());
    if (left_out().contains(name)) continue;
    out.emplace(name, &member.value);
  }
  return out;
}

/// "12s", as tables show it.
bool is_age(const Value& value) {
  if (!value.IsString()) return false;
  const std::string_view text(value.GetString(), value.GetStringLength());
  return text.find_first_not_of("0123456789") == text.size() - 1 && text.ends_with('s');
}

bool is_empty(const Value& value) { return value.IsObject() && members(value).empty(); }

/// The elements of an array; those of a list sorted by name, because the cache of 1.20 has no
/// order.
std::vector<const Value*> elements(const Value& array, const std::string& path) {
  std::vector<const Value*> out;
  for (const Value& element : array.GetArray()) out.push_back(&element);
  if (path != ".items") return out;
  const auto name = [](const Value* object) {
    return std::string((*object)["metadata"]["name"].GetString());
  };
  std::stable_sort(out.begin(), out.end(),
                   [&](const Value* a, const Value* b) { return name(a) < name(b); });
  return out;
}

void compare(const Value& real, const Value& ours, const std::string& path,
             std::vector<std::string>& out) {
  if (real.IsObject() && ours.IsObject()) {
    const auto a = members(real);
    const auto b = members(ours);
    for (const auto& [name, value] : a) {
      const auto other = b.find(name);
      if (other != b.end()) {
        compare(*value, *other->second, path + "." + name, out);
      } else if (!is_empty(*value)) {
        out.push_back(fmt::format("{}.{}: only the real one has {}", path, name, text_of(*value)));
      }
    }
    for (const auto& [name, value] : b) {
      if (!a.contains(name) && !is_empty(*value))
        out.push_back(fmt::format("{}.{}: only we have {}", path, name, text_of(*value)));
    }
  } else if (real.IsArray() && ours.IsArray() && real.Size() == ours.Size()) {
    const auto a = elements(real, path);
    const auto b = elements(ours, path);
    for (std::size_t i = 0; i < a.size(); ++i)
      compare(*a[i], *b[i], fmt::format("{}[{}]", path, i), out);
  } else if (real != ours && !(is_age(real) && is_age(ours))) {
    out.push_back(fmt::format("{}: {} is {} with us", path, text_of(real), text_of(ours)));
  }
}

struct Differences {
  /// Differences in a failure's message, and other ones.
  std::vector<std::string> words;
  std::vector<std::string> rest;
};

Differences compare(const Answer& real, const Answer& ours) {
  Differences out;
  if (real.code != ours.code) out.rest.push_back(fmt::format("{} is {}", real.code, ours.code));
  if (real.type != ours.type) out.rest.push_back(fmt::format("{} is {}", real.type, ours.type));
  if (real.warning != ours.warning)
    out.rest.push_back(fmt::format("warning '{}' is '{}'", real.warning, ours.warning));
  rapidjson::Document a;
  rapidjson::Document b;
  a.Parse(real.body.c_str());
  b.Parse(ours.body.c_str());
  if (a.HasParseError() || b.HasParseError()) {
    if (a.HasParseError() != b.HasParseError() ||
        (real.type.starts_with("text/") && real.body != ours.body))
      out.rest.push_back(fmt::format("{} is {}", real.body, ours.body));
    return out;
  }
  std::vector<std::string> all;
  compare(a, b, "", all);
  for (std::string& one : all) {
    const bool words =
        one.starts_with(".message:") ||
        (one.starts_with(".details.causes[") && one.find("].message:") != std::string::npos);
    (words ? out.words : out.rest).push_back(std::move(one));
  }
  return out;
}

class EmbeddedConversation : public testing::TestWithParam<std::string> {};

/// Without a real server: checks that requests fail only where they must.
TEST_P(EmbeddedConversation, AnswersEveryRequest) {
  apiserver::Server server;
  Connection connection(server.port(), "");
  for (const Request& request : read_conversation(GetParam())) {
    if (request.target.find("999999999999") != std::string::npos) continue;  // these requests wait
    SCOPED_TRACE(request.title);
    const Answer answer = connection.ask(request);
    EXPECT_GE(answer.code, 200);
    if (answer.code >= 400 && answer.type == "application/json") {
      rapidjson::Document status;
      status.Parse(answer.body.c_str());
      ASSERT_TRUE(request.method == "HEAD" || status.IsObject()) << answer.body;
      if (status.IsObject()) {
        EXPECT_STREQ(status["kind"].GetString(), "Status");
      }
    }
    if (const auto note = request.notes.find("answer"); note != request.notes.end()) {
      EXPECT_EQ(std::to_string(answer.code), note->second) << answer.body;
    }
  }
}
INSTANTIATE_TEST_SUITE_P(All, EmbeddedConversation,
                         testing::Values("reading", "writing", "deleting", "limits"),
                         [](const auto& one) { return one.param; });

TEST(RealConversation, IsEqualForBothServers) {
  const auto program = test::KubeApiserver::find_program();
  if (!program) GTEST_SKIP() << test::kNoKubeApiserver;
  test::KubeApiserver real_server(*program);
  apiserver::ServerOptions options;
  options.future_wait = std::chrono::milliseconds(10);
  apiserver::Server embedded(options);
  Connection real(real_server.port(), "SECRET");
  Connection ours(embedded.port(), "");
  for (const char* name : {"reading", "writing", "deleting", "limits"}) {
    for (const Request& request : read_conversation(name)) {
      SCOPED_TRACE(fmt::format("{}: {} {}", request.title, request.method, request.target));
      const Answer answer = ours.ask(request);
      if (request.notes.contains("embedded")) continue;
      const Answer expected = real.ask(request);
      if (request.notes.contains("random")) {
        EXPECT_EQ(answer.code, expected.code);
        continue;
      }
      const Differences differences = compare(expected, answer);
      if (request.notes.contains("differs")) {
        EXPECT_FALSE(differences.rest.empty() && differences.words.empty())
            << "there is no difference any more";
        continue;
      }
      EXPECT_EQ(differences.rest, std::vector<std::string>{});
      if (request.notes.contains("message")) {
        EXPECT_FALSE(differences.words.empty()) << "there is no difference any more";
      } else {
        EXPECT_EQ(differences.words, std::vector<std::string>{});
      }
    }
  }
}

}  // namespace
}  // namespace lookout
