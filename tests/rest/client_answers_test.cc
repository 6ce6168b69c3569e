// The server's responses: objects, errors and retries.
#include <gtest/gtest.h>
#include <rapidjson/document.h>
#include <rapidjson/stringbuffer.h>
#include <rapidjson/writer.h>
#include <sys/stat.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <mutex>

#include "tests/rest/client_testing.h"
#include "tests/support/files.h"
#include "tests/support/matchers.h"

namespace lookout::test {
namespace {

using api::DecodeError;
using api::StatusError;
using k8s::core::v1::Pod;
using rest::Client;

/// Answers each request with the next of some responses, and repeats the last one.
class AnswersInTurn {
 public:
  AnswersInTurn(std::initializer_list<HttpResponse> responses)
      : responses_(responses),
        server_(HttpServer::answering([this](const HttpRequest& request) -> HttpResponse {
          const std::lock_guard lock(mutex_);
          requests_.push_back(request);
          return responses_[std::min(requests_.size(), responses_.size()) - 1];
        })) {}

  HttpServer& server() { return server_; }
  Client client() const { return Client{config_for(server_)}; }
  std::vector<HttpRequest> requests() {
    const std::lock_guard lock(mutex_);
    return requests_;
  }

 private:
  const std::vector<HttpResponse> responses_;
  std::mutex mutex_;
  std::vector<HttpRequest> requests_;
  HttpServer server_;
};

/// Every kind of request; all must behave alike.
struct Verb {
  const char* name;
  std::function<void(const Client&, rest::CallOptions)> call;
};
void PrintTo(const Verb& verb, std::ostream* out) { *out << verb.name; }

const Verb kVerbs[] = {
    {"get",
     [](const Client& c, rest::CallOptions o) { c.resource<Pod>("shop").get("web", {}, o); }},
    {"list", [](const Client& c, rest::CallOptions o) { c.resource<Pod>("shop").list({}, o); }},
    {"watch", [](const Client& c,
                 rest::CallOptions o) { c.resource<Pod>("shop").dynamic().watch({}, {}, o); }},
    {"create",
     [](const Client& c, rest::CallOptions o) {
       c.resource<Pod>("shop").create(api::Object::parse(pod_json("web")), {}, o);
     }},
    {"update",
     [](const Client& c, rest::CallOptions o) {
       c.resource<Pod>("shop").update(Pod(api::Object::parse(pod_json("web"))), {}, "", o);
     }},
    {"patch",
     [](const Client& c, rest::CallOptions o) {
       c.resource<Pod>("shop").patch("web", rest::PatchType::kMerge, R"({"a":1})", {}, "", o);
     }},
    {"remove",
     [](const Client& c, rest::CallOptions o) { c.resource<Pod>("shop").remove("web", {}, o); }},
    {"remove_collection",
     [](const Client& c, rest::CallOptions o) {
       c.resource<Pod>("shop").remove_collection({}, {}, o);
     }},
    {"get_raw", [](const Client& c, rest::CallOptions o) { c.get_raw("/version", o); }},
};

class EveryVerbAnswerTest : public testing::TestWithParam<Verb> {
 protected:
  static void call(const Client& client, rest::CallOptions options = {}) {
    GetParam().call(client, std::move(options));
  }
  static bool is(std::string_view verb) { return GetParam().name == verb; }
  static bool reads() { return is("get") || is("list") || is("get_raw"); }
};

INSTANTIATE_TEST_SUITE_P(Verbs, EveryVerbAnswerTest, testing::ValuesIn(kVerbs),
                         [](const auto& test) { return test.param.name; });

// ---------------------------------------------------------------------------------------- Failures

TEST_P(EveryVerbAnswerTest, AStatusBecomesAStatusErrorWithAllFields) {
  constexpr std::string_view kBody =
      R"({"kind":"Status","apiVersion":"v1","metadata":{"continue":"token"},"status":"Failure",)"
      R"("message":"Pod \"web\" is invalid: spec: wrong","reason":"Invalid","details":{"name":"web",)"
      R"("group":"g","kind":"Pod","uid":"u-1","causes":[{"reason":"FieldValueInvalid",)"
      R"("message":"wrong","field":"spec"},{"reason":"FieldValueRequired","message":"missing",)"
      R"("field":"spec.x"}],"retryAfterSeconds":3},"code":422})";
  AnswersInTurn answers{{.status = 422, .body = std::string(kBody)}};
  const auto error = thrown<StatusError>([&] { call(answers.client()); });
  ASSERT_TRUE(error);
  EXPECT_EQ(error->status(), *api::Status::from(api::Object::parse(kBody)));
  EXPECT_STREQ(error->what(), "Pod \"web\" is invalid: spec: wrong");
  EXPECT_EQ(error->status().causes.size(), 2u);
  EXPECT_TRUE(api::is_invalid(*error));
  EXPECT_EQ(answers.requests().size(), 1u);
}

TEST_P(EveryVerbAnswerTest, AFailureWithoutAStatusQuotesTheBody) {
  AnswersInTurn answers{{.status = 502,
                         .body = "<html>\n<h1>\"Bad\" gateway</h1>\x01\xff",
                         .content_type = "text/html"}};
  const auto error = thrown<StatusError>([&] { call(answers.client()); });
  ASSERT_TRUE(error);
  EXPECT_EQ(error->code(), 502);
  EXPECT_TRUE(api::is_unexpected_server_error(*error));
  EXPECT_THAT(error->what(), HasSubstr(R"("<html>\n<h1>\"Bad\" gateway</h1>\x01\xff")"));
  if (!is("get_raw")) {
    EXPECT_THAT(error->what(), HasSubstr("pods"));
  }
}

TEST_P(EveryVerbAnswerTest, AFailureStatusWithCode200IsAnError) {
  AnswersInTurn answers{{.body = status_json(403, "Forbidden", "no")}};
  const Client client = answers.client();
  if (is("get_raw")) {
    EXPECT_THAT(client.get_raw("/"), HasSubstr("Forbidden"));
    return;
  }
  if (is("list") || is("watch")) return;  // they expect another kind of body
  const auto error = thrown<StatusError>([&] { call(client); });
  ASSERT_TRUE(error);
  EXPECT_TRUE(api::is_forbidden(*error));
}

TEST(ClientAnswersTest, ACodeWithoutAStatusHasTheReasonOfKubernetes) {
  const auto reason = [](const Verb& verb, int code) {
    AnswersInTurn answers{{.status = code, .body = "no", .content_type = "text/plain"}};
    const auto error = thrown<StatusError>([&] { verb.call(answers.client(), {}); });
    return error ? std::string(error->reason()) : "none";
  };
  const auto verb = [](std::string_view name) {
    return *std::ranges::find_if(kVerbs, [&](const Verb& one) { return one.name == name; });
  };
  EXPECT_EQ(reason(verb("get"), 502), "InternalError");
  EXPECT_EQ(reason(verb("get"), 500), "InternalError");
  EXPECT_EQ(reason(verb("get"), 503), "ServiceUnavailable");
  EXPECT_EQ(reason(verb("get"), 504), "Timeout");
  EXPECT_EQ(reason(verb("get"), 404), "NotFound");
  EXPECT_EQ(reason(verb("get"), 418), "");
  EXPECT_EQ(reason(verb("update"), 409), "Conflict");
  EXPECT_EQ(reason(verb("create"), 409), "AlreadyExists");
}

TEST(ClientAnswersTest, ARedirectIsAnErrorWithItsTarget) {
  AnswersInTurn answers{
      {.status = 307, .headers = {"Location: https://user:pw@other:6443/api?token=secret#x"}}};
  const auto error =
      thrown<StatusError>([&] { answers.client().resource<Pod>("shop").get("web"); });
  ASSERT_TRUE(error);
  EXPECT_EQ(error->code(), 307);
  EXPECT_THAT(error->what(), AllOf(HasSubstr("redirects to \"other:6443/api\""),
                                   Not(HasSubstr("secret")), Not(HasSubstr("pw"))));
}

TEST(ClientAnswersTest, EveryRecordedStatusIsReadInFull) {
  rapidjson::Document recorded;
  recorded.Parse(read_file(testdata("kube-1.36/status.json")).c_str());
  ASSERT_FALSE(recorded.HasParseError());
  int failures = 0;
  for (const auto& exchange : recorded.GetObject()) {
    SCOPED_TRACE(exchange.name.GetString());
    const int code = exchange.value["code"].GetInt();
    const auto& body = exchange.value["body"];
    if (code < 400 || !body.IsObject()) continue;
    rapidjson::StringBuffer text;
    rapidjson::Writer<rapidjson::StringBuffer> writer(text);
    body.Accept(writer);
    AnswersInTurn answers{{.status = code, .body = text.GetString()}};
    const auto error =
        thrown<StatusError>([&] { answers.client().resource<Pod>("shop").get("web"); });
    ASSERT_TRUE(error);
    EXPECT_EQ(error->status(), *api::Status::from(api::Object::parse(text.GetString())));
    EXPECT_EQ(error->code(), code);
    ++failures;
  }
  EXPECT_GE(failures, 5);
}

// The responses of kube-apiserver and of other servers for an unknown resource.
TEST(ClientAnswersTest, AnUnknownResourceIsRecognised) {
  for (const auto& [body, type] :
       {std::pair<std::string, std::string>{"404 page not found\n", "text/plain"},
        {status_json(404, "NotFound", "the server could not find the requested resource"),
         "application/json"}}) {
    HttpServer server(HttpServer::answering([&](const HttpRequest&) -> HttpResponse {
      return {.status = 404, .body = body, .content_type = type};
    }));
    const Client client{config_for(server)};
    const api::Resource crontabs("stable.example.com", "v1", "CronTab", "crontabs", true);
    const auto error = thrown<StatusError>([&] { client.resource(crontabs, "shop").list(); });
    ASSERT_TRUE(error);
    EXPECT_TRUE(api::is_not_found(*error));
    EXPECT_THAT(error->what(),
                AllOf(HasSubstr("crontabs.stable.example.com"), HasSubstr("is it installed?")));
    const auto scale = thrown<StatusError>(
        [&] { client.resource(crontabs, "shop").get_subresource("one", "scale"); });
    ASSERT_TRUE(scale);
    EXPECT_THAT(scale->what(), AllOf(HasSubstr("does not know crontabs.stable.example.com/scale"),
                                     HasSubstr("does it have this subresource?")));
  }
}

TEST(ClientAnswersTest, A404WithoutAStatusIsNotAnAbsentObject) {
  for (const auto& [body, type] :
       {std::pair<std::string, std::string>{"<html>no such page</html>", "text/html"},
        {"404 page not found\n", "text/plain"},
        {status_json(404, "NotFound", "the server could not find the requested resource"),
         "application/json"}}) {
    AnswersInTurn answers{{.status = 404, .body = body, .content_type = type}};
    const auto pods = answers.client().resource<Pod>("shop");
    EXPECT_TRUE(thrown<StatusError>([&] { pods.find("web"); })) << body;
    EXPECT_TRUE(thrown<StatusError>([&] { pods.find_subresource("web", "status"); })) << body;
  }
  AnswersInTurn answers{
      {.status = 404, .body = status_json(404, "NotFound", R"(pods \"web\" not found)")}};
  EXPECT_FALSE(answers.client().resource<Pod>("shop").find("web"));
}

TEST(ClientAnswersTest, AStatusWithoutACodeHasThatOfTheResponse) {
  AnswersInTurn answers{
      {.status = 409, .body = R"({"kind":"Status","apiVersion":"v1","status":"Failure"})"}};
  const auto error =
      thrown<StatusError>([&] { answers.client().resource<Pod>("shop").get("web"); });
  ASSERT_TRUE(error);
  EXPECT_EQ(error->code(), 409);
}

TEST(ClientAnswersTest, RetryAfterIsReadFromTheHeaderWithoutDetails) {
  AnswersInTurn answers{{.status = 404,
                         .body = status_json(404, "NotFound", "gone for now"),
                         .headers = {"Retry-After: 7"}}};
  const auto error =
      thrown<StatusError>([&] { answers.client().resource<Pod>("shop").get("web"); });
  ASSERT_TRUE(error);
  EXPECT_EQ(error->status().retry_after_seconds, 7);
}

struct OddBody {
  const char* name;
  int status;
  std::string body;
  const char* content_type;
  const char* quoted;
};
void PrintTo(const OddBody& body, std::ostream* out) { *out << body.name; }

class OddBodyTest : public testing::TestWithParam<OddBody> {};

INSTANTIATE_TEST_SUITE_P(
    Bodies, OddBodyTest,
    testing::Values(OddBody{"Empty", 503, "", "", "an empty body"},
                    OddBody{"EmptyJson", 500, "", "application/json", "an empty body"},
                    OddBody{"Text", 404, "404 page not found\n", "text/plain",
                            "404 page not found"},
                    OddBody{"Binary", 500, std::string("\0\x01\xfe\xff", 4),
                            "application/octet-stream", R"(\x00\x01\xfe\xff)"},
                    OddBody{"BrokenJson", 400, R"({"kind":"Status","code":4)", "application/json",
                            R"({\"kind\":\"Status\")"},
                    OddBody{"OtherJson", 403, R"({"error":"denied"})",
                            "application/json; charset=utf-8", R"({\"error\":\"denied\"})"},
                    OddBody{"JsonArray", 403, R"([1,2,3])", "application/json", "[1,2,3]"},
                    OddBody{"Redirect", 302, "Found", "text/html", "Found"}),
    [](const auto& test) { return test.param.name; });

void expect_quoted_from_its_beginning(const OddBody& odd) {
  AnswersInTurn answers{{.status = odd.status, .body = odd.body, .content_type = odd.content_type}};
  const Client client = answers.client();
  const auto error = thrown<StatusError>([&] { client.resource<Pod>("shop").get("web"); });
  ASSERT_TRUE(error);
  EXPECT_EQ(error->code(), odd.status);
  EXPECT_THAT(error->what(), AllOf(HasSubstr(odd.quoted), HasSubstr("get pods web"),
                                   HasSubstr(std::to_string(odd.status))));
  EXPECT_LT(std::string(error->what()).size(), 1000u);
  EXPECT_TRUE(api::is_unexpected_server_error(*error));
}

TEST_P(OddBodyTest, IsQuotedFromItsStartWithABound) {
  expect_quoted_from_its_beginning(GetParam());
}

// (Not a parameter, which would be created at each start of the program.)
TEST(OddBodies, TenMegabytesAreQuotedFromTheStart) {
  expect_quoted_from_its_beginning(
      {"TenMegabytes", 500, std::string(10u << 20, 'x'), "text/plain", "xxxxxxxxxxxxxxx"});
}

// ------------------------------------------------------------------------ Malformed success bodies

struct OddObject {
  const char* name;
  std::string body;
  const char* content_type;
  std::vector<const char*> says;
};
void PrintTo(const OddObject& body, std::ostream* out) { *out << body.name; }

class OddObjectTest : public testing::TestWithParam<OddObject> {};

INSTANTIATE_TEST_SUITE_P(
    Bodies, OddObjectTest,
    testing::Values(
        OddObject{"Html", "<html>login</html>", "text/html", {"text/html", "<html>login</html>"}},
        OddObject{"Empty", "", "application/json", {"empty"}},
        OddObject{"Truncated",
                  R"({"kind":"Pod","metadata":{)",
                  "application/json",
                  {"like JSON", "unexpected end"}},
        OddObject{"Malformed",
                  R"({"kind":"Pod","metadata":nonsense})",
                  "application/json",
                  {"like JSON", "byte 26"}},
        OddObject{"Array", "[]", "application/json", {"like JSON"}},
        OddObject{"Protobuf",
                  std::string("k8s\0\n\x0b", 6),
                  "application/vnd.kubernetes.protobuf",
                  {"application/vnd.kubernetes.protobuf", "it is not a string"}}),
    [](const auto& test) { return test.param.name; });

TEST_P(OddObjectTest, IsADecodeErrorThatNamesFieldAndRequest) {
  AnswersInTurn answers{{.body = GetParam().body, .content_type = GetParam().content_type}};
  const Client client = answers.client();
  const auto pods = client.resource<Pod>("shop");
  const auto object = thrown<DecodeError>([&] { pods.get("web"); });
  ASSERT_TRUE(object);
  EXPECT_THAT(object->what(), HasSubstr("get pods web"));
  for (const char* text : GetParam().says) EXPECT_THAT(object->what(), HasSubstr(text));

  const auto list = thrown<DecodeError>([&] { pods.list(); });
  ASSERT_TRUE(list);
  EXPECT_THAT(list->what(), HasSubstr("list pods"));
  if (std::string_view(GetParam().content_type) != "application/json") {
    for (const char* text : GetParam().says) EXPECT_THAT(list->what(), HasSubstr(text));
    const auto watch = thrown<DecodeError>([&] { pods.watch(); });
    ASSERT_TRUE(watch);
    EXPECT_THAT(watch->what(), HasSubstr("watch pods"));
    for (const char* text : GetParam().says) EXPECT_THAT(watch->what(), HasSubstr(text));
  }
}

TEST(ClientAnswersTest, AMalformedListNamesThePosition) {
  AnswersInTurn answers{{.body = R"({"kind":"PodList","items":[{]})"}};
  const auto error = thrown<DecodeError>([&] { answers.client().resource<Pod>("shop").list(); });
  ASSERT_TRUE(error);
  EXPECT_THAT(error->what(), AllOf(HasSubstr("list pods"), HasSubstr("within the first 30 bytes")));
}

TEST(ClientAnswersTest, TheContentTypeIsParsedLeniently) {
  for (const char* type : {"application/json", "Application/JSON", "application/json;charset=utf-8",
                           "application/json ; charset=\"utf-8\""}) {
    AnswersInTurn answers{{.body = list_json({pod_json("web")}), .content_type = type}};
    EXPECT_EQ(answers.client().resource<Pod>("shop").list().items.size(), 1u) << type;
  }
  AnswersInTurn answers{{.body = list_json({}), .content_type = "application/json-patch+json"}};
  EXPECT_THROW(answers.client().resource<Pod>("shop").list(), DecodeError);
}

TEST(ClientAnswersTest, RawResponsesNeedNoContentType) {
  AnswersInTurn answers{{.body = "ok", .content_type = ""}};
  EXPECT_EQ(answers.client().get_raw("/readyz"), "ok");
}

TEST(ClientAnswersTest, ADeletionMayReturnAStatusOrTheObject) {
  AnswersInTurn answers{
      {.body = R"({"kind":"Status","apiVersion":"v1","metadata":{},"status":"Success"})"},
      {.body = pod_json("web")}};
  const Client client = answers.client();
  EXPECT_EQ(client.resource<Pod>("shop").remove("web").kind(), "Status");
  EXPECT_EQ(client.resource<Pod>("shop").remove("web").key(), "shop/web");
}

TEST(ClientAnswersTest, InterimResponsesAreSkipped) {
  HttpServer server([](HttpConnection& c) {
    while (c.read_request()) {
      c.write("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nRetry-After: 5\r\n\r\n");
      c.respond({.body = pod_json("web")});
    }
  });
  const Client client{config_for(server)};
  EXPECT_EQ(client.resource<Pod>("shop").get("web").name(), "web");
}

// ----------------------------------------------------------------------- Retries with Retry-After

HttpResponse come_back(int status, const std::string& when, const char* reason = "") {
  return {.status = status,
          .body = status_json(status, reason, "later"),
          .headers = {"Retry-After: " + when}};
}

TEST_P(EveryVerbAnswerTest, TooManyRequestsAreRetriedUnchanged) {
  if (is("watch")) return;  // its caller retries
  AnswersInTurn answers{come_back(429, "0"), come_back(429, "0"), {.body = list_json({})}};
  call(answers.client());
  const auto requests = answers.requests();
  ASSERT_EQ(requests.size(), 3u);
  for (const auto& again : requests) {
    EXPECT_EQ(again.method, requests[0].method);
    EXPECT_EQ(again.target, requests[0].target);
    EXPECT_EQ(again.body, requests[0].body);
    EXPECT_EQ(again.headers, requests[0].headers);
  }
}

TEST_P(EveryVerbAnswerTest, RetriesEndAfterTen) {
  if (is("watch")) return;
  AnswersInTurn answers{come_back(429, "0", "TooManyRequests")};
  const auto error = thrown<StatusError>([&] { call(answers.client()); });
  ASSERT_TRUE(error);
  EXPECT_TRUE(api::is_too_many_requests(*error));
  EXPECT_EQ(answers.requests().size(), 11u);
}

TEST_P(EveryVerbAnswerTest, ServerErrorsAreRetriedOnlyWithRetryAfter) {
  if (is("watch")) return;
  for (const int status : {500, 503, 504}) {
    SCOPED_TRACE(status);
    AnswersInTurn asked{come_back(status, "0"), {.body = list_json({})}};
    call(asked.client());
    EXPECT_EQ(asked.requests().size(), 2u);
    AnswersInTurn not_asked{{.status = status, .body = status_json(status, "", "")}};
    EXPECT_THROW(call(not_asked.client()), StatusError);
    EXPECT_EQ(not_asked.requests().size(), 1u);
  }
}

TEST(ClientAnswersTest, RetryAfterOfAWatchIsReturnedToItsCaller) {
  for (const int status : {429, 503}) {
    SCOPED_TRACE(status);
    AnswersInTurn answers{come_back(status, "1")};
    const auto error =
        thrown<StatusError>([&] { answers.client().resource<Pod>("shop").dynamic().watch(); });
    ASSERT_TRUE(error);
    EXPECT_EQ(error->code(), status);
    EXPECT_EQ(api::suggests_client_delay(*error), std::chrono::seconds(1));
    EXPECT_EQ(answers.requests().size(), 1u);
  }
}

TEST(ClientAnswersTest, AVersionOfTheFutureIsNotRetried) {
  const auto future = StatusError::too_large_resource_version(20, 10, 1);
  AnswersInTurn answers{{.status = 504,
                         .body = future.status().to_object().to_json(),
                         .headers = {"Retry-After: 0"}}};
  const auto error =
      thrown<StatusError>([&] { answers.client().resource<Pod>("shop").get("web"); });
  ASSERT_TRUE(error);
  EXPECT_TRUE(api::is_too_large_resource_version(*error));
  EXPECT_EQ(answers.requests().size(), 1u);
}

TEST(ClientAnswersTest, OtherFailuresAreNotRetried) {
  for (const int status : {400, 403, 404, 409, 410, 422}) {
    AnswersInTurn answers{come_back(status, "0")};
    EXPECT_THROW(answers.client().resource<Pod>("shop").get("web"), StatusError) << status;
    EXPECT_EQ(answers.requests().size(), 1u) << status;
  }
}

TEST(ClientAnswersTest, AnInvalidRetryAfterIsIgnored) {
  for (const char* when : {"Wed, 21 Oct 2015 07:28:00 GMT", "-1", "soon", "", "1x", "0.5",
                           "99999999999999999999", "9223372036854775807", "0x0"}) {
    AnswersInTurn answers{come_back(429, when)};
    const auto error =
        thrown<StatusError>([&] { answers.client().resource<Pod>("shop").get("web"); });
    ASSERT_TRUE(error);
    EXPECT_EQ(error->status().retry_after_seconds, 0) << when;
    EXPECT_EQ(answers.requests().size(), 1u) << when;
  }
}

TEST(ClientAnswersTest, RetryAfterIsHonoured) {
  AnswersInTurn answers{come_back(429, "1"), {.body = pod_json("web")}};
  const Client client = answers.client();
  const auto begin = std::chrono::steady_clock::now();
  client.resource<Pod>("shop").get("web");
  EXPECT_GE(std::chrono::steady_clock::now() - begin, std::chrono::seconds(1));
}

TEST(ClientAnswersTest, APauseBeyondTheDeadlineIsNotStarted) {
  AnswersInTurn answers{come_back(429, "3600", "TooManyRequests")};
  const auto error = thrown<StatusError>([&] {
    answers.client().resource<Pod>("shop").get("web", {}, {.timeout = std::chrono::minutes(1)});
  });
  ASSERT_TRUE(error);
  EXPECT_EQ(api::suggests_client_delay(*error), std::chrono::seconds(3600));
}

TEST(ClientAnswersTest, AStopEndsThePause) {
  Gate answered;
  HttpServer server([&](HttpConnection& c) {
    c.read_request();
    c.respond(come_back(429, "3600"));
    answered.open();
    c.wait_for_close();
  });
  std::stop_source stop;
  std::jthread stopper([&] {
    EXPECT_TRUE(answered.wait());
    stop.request_stop();
  });
  const Client client{config_for(server)};
  EXPECT_EQ(kind_thrown([&] {
              client.resource<Pod>("shop").get(
                  "web", {}, {.stop = stop.get_token(), .timeout = rest::kNoTimeout});
            }),
            Kind::kCancelled);
}

// -------------------------------------------------------------- Retries after broken connections

/// Breaks the first `broken` connections after reading a request, and answers on the others.
class BreaksAtFirst {
 public:
  using Break = std::function<void(HttpConnection&)>;

  BreaksAtFirst(int broken, Break how)
      : server_([=, this](HttpConnection& c) {
          while (const auto request = c.read_request()) {
            ++requests_;
            if (c.index() < broken) return how(c);
            c.respond({.body = list_json({})});
          }
        }) {}

  Client client() const { return Client{config_for(server_)}; }
  int requests() const { return requests_; }

 private:
  std::atomic<int> requests_{0};
  HttpServer server_;
};

const std::pair<const char*, BreaksAtFirst::Break> kBreaks[] = {
    {"closed", [](HttpConnection&) {}},
    {"reset", [](HttpConnection& c) { c.reset(); }},
    {"in the middle of the head",
     [](HttpConnection& c) { c.write("HTTP/1.1 200 OK\r\nContent-Ty"); }},
};

TEST_P(EveryVerbAnswerTest, OnlyReadsAreRetriedAfterABrokenConnection) {
  for (const auto& [how, breaks] : kBreaks) {
    SCOPED_TRACE(how);
    BreaksAtFirst server(1, breaks);
    if (reads()) {
      call(server.client());
      EXPECT_EQ(server.requests(), 2);
    } else {
      EXPECT_EQ(kind_thrown([&] { call(server.client()); }), Kind::kBroken);
      EXPECT_EQ(server.requests(), 1);
    }
  }
}

// When a kept connection breaks, the client cannot know if the server has executed the request.
TEST_P(EveryVerbAnswerTest, WritesAreNotRetriedOnAKeptConnection) {
  std::atomic<int> requests{0};
  HttpServer server([&](HttpConnection& c) {
    while (const auto request = c.read_request()) {
      if (request->target == "/first") {
        c.respond({.body = "{}"});
        continue;
      }
      ++requests;
      if (c.index() == 0) return c.reset();
      c.respond({.body = list_json({})});
    }
  });
  const Client client{config_for(server)};
  client.get_raw("/first");
  if (reads() || is("watch")) {
    call(client);
    EXPECT_EQ(requests, 2);
  } else {
    EXPECT_EQ(kind_thrown([&] { call(client); }), Kind::kBroken);
    EXPECT_EQ(requests, 1);
  }
}

// A server may close idle connections at any time. Nothing was sent on this one.
TEST_P(EveryVerbAnswerTest, AClosedIdleConnectionIsReplaced) {
  Gate closed;
  HttpServer server([&](HttpConnection& c) {
    const auto first = c.read_request();
    c.respond({.body = list_json({})});
    if (c.index() == 0) {
      c.close();
      closed.open();
    } else {
      c.wait_for_close();
    }
  });
  const Client client{config_for(server)};
  client.get_raw("/first");
  ASSERT_TRUE(closed.wait());
  call(client);
  EXPECT_EQ(server.connections(), 2);
}

TEST(ClientAnswersTest, TruncatedResponsesAreBroken) {
  struct Cut {
    const char* name;
    std::string answer;
  };
  const std::string head = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n";
  for (const auto& [name, answer] :
       {Cut{"length", head + "Content-Length: 1000\r\n\r\n{\"kind\":"},
        Cut{"chunked", head + "Transfer-Encoding: chunked\r\n\r\n8\r\n{\"kind\":"},
        Cut{"in a chunk", head + "Transfer-Encoding: chunked\r\n\r\nff\r\n{\"kind\":"}}) {
    SCOPED_TRACE(name);
    HttpServer server([&, text = answer](HttpConnection& c) {
      c.read_request();
      c.write(text);
    });
    const Client client{config_for(server)};
    EXPECT_EQ(kind_thrown([&] { client.resource<Pod>("shop").get("web"); }), Kind::kBroken);
    EXPECT_EQ(kind_thrown([&] { client.resource<Pod>("shop").list(); }), Kind::kBroken);
    EXPECT_EQ(kind_thrown([&] { client.get_raw("/version"); }), Kind::kBroken);
    EXPECT_EQ(server.connections(), 3) << "they were tried again, or one connection was used twice";
  }
}

TEST(ClientAnswersTest, InvalidHttpIsAProtocolError) {
  for (const char* answer :
       {"SSH-2.0-OpenSSH_9.2\r\n", "\r\n\r\n\r\n", "HTTP/7.1 200 OK\r\n\r\n"}) {
    HttpServer server([&](HttpConnection& c) {
      c.read_request();
      c.write(answer);
    });
    const Client client{config_for(server)};
    EXPECT_EQ(kind_thrown([&] { client.resource<Pod>("shop").get("web"); }), Kind::kProtocol)
        << answer;
  }
}

TEST(ClientAnswersTest, AnOversizedHeadIsAProtocolErrorAtOnce) {
  const std::string line = "X-Long: " + std::string(50'000, 'x') + "\r\n";
  std::string many;
  for (int i = 0; i < 8; ++i) many += line;
  const std::string one = "X-Long: " + std::string(400'000, 'x') + "\r\n";
  for (const std::string& headers : {one, many}) {
    HttpServer server([&](HttpConnection& c) {
      c.read_request();
      c.write("HTTP/1.1 200 OK\r\n" + headers + "Content-Length: 0\r\n\r\n");
      c.wait_for_close();
    });
    const Client client{config_for(server)};
    const auto error =
        thrown<rest::TransportError>([&] { client.resource<Pod>("shop").get("web"); });
    ASSERT_TRUE(error);
    EXPECT_EQ(error->kind(), Kind::kProtocol) << error->what();
    EXPECT_THAT(error->what(), HasSubstr("header"));
    EXPECT_EQ(server.connections(), 1);
  }
}

TEST(ClientAnswersTest, AnotherProtocolIsAnErrorAtOnce) {
  HttpServer server([](HttpConnection& c) {
    c.read_request();
    c.write("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n");
    c.wait_for_close();
  });
  const Client client{config_for(server)};
  const auto error = thrown<rest::TransportError>([&] { client.resource<Pod>("shop").get("web"); });
  ASSERT_TRUE(error);
  EXPECT_EQ(error->kind(), Kind::kProtocol) << error->what();
  EXPECT_THAT(error->what(), HasSubstr("101"));
}

// ------------------------------------------------------------------ Retries with other credentials

/// Accepts only this token, and counts the requests.
struct TokenServer {
  explicit TokenServer(std::string token)
      : http(HttpServer::answering(
            [this, token = std::move(token)](const HttpRequest& request) -> HttpResponse {
              ++requests;
              if (request.header("Authorization") == "Bearer " + token)
                return {.body = list_json({})};
              return {.status = 401, .body = status_json(401, "Unauthorized", "Unauthorized")};
            })) {}

  std::atomic<int> requests{0};
  const HttpServer http;
};

TEST_P(EveryVerbAnswerTest, ATokenFileIsReadAgainAfterA401) {
  TokenServer server("new");
  const TempDir dir;
  write_file(dir / "token", "old");
  rest::Config config = config_for(server.http);
  config.token_file = (dir / "token").string();
  const Client client{config};
  EXPECT_THROW(client.get_raw("/version"), StatusError);
  EXPECT_EQ(server.requests, 2) << "a file that says the same is no reason for a third attempt";
  write_file(dir / "token", "new\n");
  call(client);
  EXPECT_LE(server.requests, 4);
}

/// A configuration with the plugin `dir`/plugin, which records its runs in `dir`/runs. It runs the
/// shell's `script`, whose variables `token` may name ('$n').
rest::Config config_with_plugin(const TokenServer& server, const TempDir& dir,
                                const std::string& script, const std::string& token) {
  const auto plugin = dir / "plugin";
  write_file(
      plugin,
      "#!/bin/sh\necho run >>" + (dir / "runs").string() + "\n" + script +
          "\necho '{\"apiVersion\":\"client.authentication.k8s.io/v1\",\"kind\":\"ExecCredential\","
          "\"status\":{\"token\":\"" +
          token + "\"}}'\n");
  EXPECT_EQ(chmod(plugin.c_str(), 0700), 0);
  rest::Config out = config_for(server.http);
  out.exec.emplace();
  out.exec->command = plugin.string();
  return out;
}

std::size_t runs_in(const TempDir& dir) { return lines(read_file(dir / "runs")).size(); }

TEST(ClientAnswersTest, APluginIsRunAgainAfterA401) {
  TokenServer server("token-2");
  const TempDir dir;
  const Client client{
      config_with_plugin(server, dir, "n=$(wc -l <" + (dir / "runs").string() + ")", "token-'$n'")};
  client.resource<Pod>("shop").list();
  EXPECT_EQ(server.requests, 2);
  client.resource<Pod>("shop").list();
  EXPECT_EQ(server.requests, 3);
  EXPECT_EQ(runs_in(dir), 2u);
}

// The plugin may wait for a user who logs in; the next call uses its result.
TEST(ClientAnswersTest, APluginOutlivesTheCallThatStartedIt) {
  TokenServer server("slow");
  const TempDir dir;
  const auto go = dir / "go";
  ASSERT_EQ(mkfifo(go.c_str(), 0600), 0);
  const Client client{config_with_plugin(server, dir, "read line <" + go.string(), "slow")};
  const auto error = thrown<rest::TransportError>(
      [&] { client.resource<Pod>("shop").list({}, {.timeout = std::chrono::milliseconds(20)}); });
  ASSERT_TRUE(error);
  EXPECT_EQ(error->kind(), rest::TransportError::Kind::kTimeout);
  EXPECT_THAT(error->what(),
              HasSubstr("no answer of the credential plugin " + (dir / "plugin").string()));
  std::ofstream(go) << "go\n";
  client.resource<Pod>("shop").list();
  EXPECT_EQ(server.requests, 1);
  EXPECT_EQ(runs_in(dir), 1u);
}

TEST(ClientAnswersTest, A401ForAFixedTokenIsNotRetried) {
  TokenServer server("other");
  rest::Config config = config_for(server.http);
  config.bearer_token = "fixed";
  const auto error = thrown<StatusError>([&] { Client{config}.resource<Pod>("shop").list(); });
  ASSERT_TRUE(error);
  EXPECT_TRUE(api::is_unauthorized(*error));
  EXPECT_EQ(server.requests, 1);
}

}  // namespace
}  // namespace lookout::test
