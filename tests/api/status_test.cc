#include "lookout/api/status.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidjson/document.h>

#include <chrono>
#include <map>
#include <stdexcept>
#include <string>

#include "lookout/api/validation.h"
#include "tests/api/recordings.h"
#include "tests/support/files.h"

namespace lookout::api {
namespace {

using namespace std::chrono_literals;

/// The Status objects of a real server, by the names of the requests.
std::map<std::string, Object> recorded() {
  std::map<std::string, Object> out;
  const auto answers =
      test::parse_json(lookout::test::read_file(lookout::test::testdata("kube-1.36/status.json")));
  for (const auto& [name, answer] : answers.GetObject()) {
    const auto body = answer.FindMember("body");
    if (body == answer.MemberEnd() || !body->value.IsObject()) continue;
    const Object object = Object::from(body->value);
    if (object.kind() == "Status") out.emplace(name.GetString(), object);
  }
  return out;
}

Object to_object(const StatusError& error) { return error.status().to_object(); }

TEST(StatusTest, EveryRecordedStatusRoundTrips) {
  const auto answers = recorded();
  ASSERT_GT(answers.size(), 15u);
  for (const auto& [name, object] : answers) {
    SCOPED_TRACE(name);
    const auto status = Status::from(object);
    ASSERT_TRUE(status);
    EXPECT_EQ(status->to_object(), object) << status->to_object().to_json();
    EXPECT_EQ(status->code, object["code"].as_int());
    EXPECT_EQ(status->message, object["message"].as_string());
    EXPECT_EQ(StatusError(*status).what(), status->message);
  }
}

TEST(StatusTest, ConstructorsEqualARealServer) {
  const auto answers = recorded();
  const auto expect = [&](const char* name, const StatusError& error) {
    EXPECT_EQ(to_object(error), answers.at(name)) << to_object(error).to_json() << "\n"
                                                  << answers.at(name).to_json();
  };
  expect("get_notfound", StatusError::not_found("", "pods", "nope"));
  expect("create_exists", StatusError::already_exists("", "pods", "p1"));
  expect("update_conflict",
         StatusError::conflict("", "configmaps", "app-config",
                               "the object has been modified; please apply your changes to the "
                               "latest version and try again"));
  expect("bad_fieldselector", StatusError::bad_request("field label not supported: spec.foo"));
  expect("rv_too_large", StatusError::too_large_resource_version(999999999, 41101, 1));
  expect("list_exact_old",
         StatusError::expired("The resourceVersion for the provided list is too old."));
  expect("unknown_resource", StatusError::generic(404, "GET", "", "", "", "", 0, false));
  expect("method_not_allowed", StatusError::generic(405, "PUT", "", "", "", "", 0, false));
  expect("badpatch", StatusError::generic(422, "PATCH", "", "", "", "", 0, false));
  expect("unsupported_media",
         StatusError::generic(415, "PATCH", "", "", "", "415: Unsupported Media Type", 0, false));
  const auto invalid = validation::check_dns1123_subdomain("Bad_Name");
  expect("create_invalid",
         StatusError::invalid("", "Pod", "Bad_Name",
                              {validation::invalid("metadata.name", "Bad_Name", invalid.front()),
                               validation::required("spec.containers", "")}));
  expect("rvmatch_without_rv",
         StatusError::invalid(
             "meta.k8s.io", "ListOptions", "",
             {validation::forbidden(
                 "resourceVersionMatch",
                 "resourceVersionMatch is forbidden unless resourceVersion is provided")}));
}

TEST(StatusTest, ConstructorsFollowApimachinery) {
  const struct {
    StatusError error;
    const char* json;
  } cases[] = {
      {StatusError::not_found("apps", "deployments", "a\"b"),
       R"({"message":"deployments.apps \"a\\\"b\" not found","reason":"NotFound","code":404,)"
       R"("details":{"name":"a\"b","group":"apps","kind":"deployments"}})"},
      {StatusError::forbidden("", "pods", "a", "no"),
       R"({"message":"pods \"a\" is forbidden: no","reason":"Forbidden","code":403,)"
       R"("details":{"name":"a","kind":"pods"}})"},
      {StatusError::forbidden("", "pods", "", "no"),
       R"({"message":"pods is forbidden: no","reason":"Forbidden","code":403,"details":{"kind":"pods"}})"},
      {StatusError::forbidden("", "", "", "no"),
       R"({"message":"forbidden: no","reason":"Forbidden","code":403,"details":{}})"},
      {StatusError::forbidden("", "pods", "a", ""),
       R"({"message":"pods \"a\" is forbidden","reason":"Forbidden","code":403,)"
       R"("details":{"name":"a","kind":"pods"}})"},
      {StatusError::unauthorized(),
       R"({"message":"Unauthorized","reason":"Unauthorized","code":401})"},
      {StatusError::unauthorized(""),
       R"({"message":"not authorized","reason":"Unauthorized","code":401})"},
      {StatusError::invalid("apps", "Deployment", "a", {}),
       R"({"message":"Deployment.apps \"a\" is invalid","reason":"Invalid","code":422,)"
       R"("details":{"name":"a","group":"apps","kind":"Deployment"}})"},
      {StatusError::gone("x"), R"({"message":"x","reason":"Gone","code":410})"},
      {StatusError::method_not_allowed("apps", "deployments", "patch"),
       R"({"message":"patch is not supported on resources of kind \"deployments.apps\"",)"
       R"("reason":"MethodNotAllowed","code":405,"details":{"group":"apps","kind":"deployments"}})"},
      {StatusError::timeout("slow", 3),
       R"({"message":"Timeout: slow","reason":"Timeout","code":504,"details":{"retryAfterSeconds":3}})"},
      {StatusError::server_timeout("", "pods", "list", 2),
       R"({"message":"The list operation against pods could not be completed at this time, please )"
       R"(try again.","reason":"ServerTimeout","code":500,)"
       R"("details":{"name":"list","kind":"pods","retryAfterSeconds":2}})"},
      {StatusError::too_many_requests("wait", 0),
       R"({"message":"wait","reason":"TooManyRequests","code":429,"details":{}})"},
      {StatusError::request_entity_too_large("limit is 3"),
       R"({"message":"Request entity too large: limit is 3","reason":"RequestEntityTooLarge","code":413})"},
      {StatusError::internal_error("boom"),
       R"({"message":"Internal error occurred: boom","reason":"InternalError","code":500,)"
       R"("details":{"causes":[{"message":"boom"}]}})"},
      {StatusError::service_unavailable("x"),
       R"({"message":"x","reason":"ServiceUnavailable","code":503})"},
      {StatusError::generic(409, "POST", "", "pods", "a", "", 0, false),
       R"j({"message":"the server reported a conflict (post pods a)","reason":"AlreadyExists",)j"
       R"("code":409,"details":{"name":"a","kind":"pods"}})"},
      {StatusError::generic(409, "PUT", "apps", "deployments", "", "", 0, false),
       R"j({"message":"the server reported a conflict (put deployments.apps)","reason":"Conflict",)j"
       R"("code":409,"details":{"group":"apps","kind":"deployments"}})"},
      {StatusError::generic(403, "GET", "", "", "", "because", 0, true),
       R"({"message":"because","reason":"Forbidden","code":403,)"
       R"("details":{"causes":[{"reason":"UnexpectedServerResponse","message":"because"}]}})"},
      {StatusError::generic(406, "GET", "", "", "", "unknown", 0, false),
       R"({"message":"the server was unable to respond with a content type that the client supports",)"
       R"("reason":"NotAcceptable","code":406,"details":{}})"},
      {StatusError::generic(502, "GET", "", "", "", "bad \"gateway\"", 7, false),
       R"j({"message":"an error on the server (\"bad \\\"gateway\\\"\") has prevented the request from )j"
       R"(succeeding","reason":"InternalError","code":502,"details":{"retryAfterSeconds":7}})"},
      {StatusError::generic(418, "GET", "", "", "", "", 0, false),
       R"({"message":"the server responded with the status code 418 but did not return more )"
       R"(information","code":418,"details":{}})"},
  };
  for (const auto& [error, json] : cases) {
    auto expected = test::parse_json(json);
    auto& allocator = expected.GetAllocator();
    expected.AddMember("kind", "Status", allocator);
    expected.AddMember("apiVersion", "v1", allocator);
    expected.AddMember("status", "Failure", allocator);
    expected.AddMember("metadata", rapidjson::Value(rapidjson::kObjectType), allocator);
    EXPECT_EQ(to_object(error), Object::from(expected)) << to_object(error).to_json() << "\n"
                                                        << json;
  }
}

TEST(StatusTest, AcceptsOnlyAStatus) {
  EXPECT_FALSE(Status::from(Object()));
  EXPECT_FALSE(Status::from(Object::parse(R"({"kind":"Pod","apiVersion":"v1"})")));
  EXPECT_FALSE(Status::from(Object::parse(R"({"kind":"Status","apiVersion":"example.com/v1"})")));
  EXPECT_TRUE(Status::from(Object::parse(R"({"kind":"Status","apiVersion":"meta.k8s.io/v1"})")));
}

// A name in a URL may have any bytes; clients reject JSON that is not UTF-8.
TEST(StatusTest, TextsAreUtf8) {
  const StatusError error = StatusError::not_found("", "pods", "a\xff\xC3\u00e9");
  const Object object = to_object(error);
  EXPECT_EQ(object["details"]["name"].as_string(), "a\uFFFD\uFFFD\u00e9");
  EXPECT_NO_THROW(Object::parse(object.to_json()));
}

TEST(StatusTest, SuccessAndContinueTokensRoundTrip) {
  const Object success =
      Object::parse(R"({"kind":"Status","apiVersion":"v1","metadata":{},"status":"Success",)"
                    R"("details":{"name":"a","kind":"pods","uid":"u"}})");
  EXPECT_EQ(Status::from(success)->status, "Success");
  EXPECT_EQ(Status::from(success)->uid, "u");
  EXPECT_EQ(Status::from(success)->to_object(), success);
  const Object expired = Object::parse(
      R"({"kind":"Status","apiVersion":"v1","metadata":{"continue":"abc"},"status":"Failure",)"
      R"("reason":"Expired","code":410})");
  EXPECT_EQ(Status::from(expired)->continue_token, "abc");
  EXPECT_EQ(Status::from(expired)->to_object(), expired);
}

TEST(StatusTest, AnErrorWithoutAMessageHasADefaultText) {
  Status status;
  status.code = 503;
  status.reason = reason::kServiceUnavailable;
  EXPECT_STREQ(StatusError(status).what(), "the server answered 503 ServiceUnavailable");
}

/// Each predicate with its reason and code.
struct Predicate {
  bool (*ask)(const std::exception&);
  std::string_view reason;
  int code;  // 0: only the reason is checked
  bool code_always = false;
};

StatusError error_with(std::string_view reason, int code) {
  Status status;
  status.reason = reason;
  status.code = code;
  return StatusError(status);
}

TEST(StatusTest, PredicatesCheckTheReasonThenTheCode) {
  const Predicate predicates[] = {
      {is_not_found, reason::kNotFound, 404},
      {is_already_exists, reason::kAlreadyExists, 0},
      {is_conflict, reason::kConflict, 409},
      {is_invalid, reason::kInvalid, 422},
      {is_gone, reason::kGone, 410},
      {is_resource_expired, reason::kExpired, 0},
      {is_not_acceptable, reason::kNotAcceptable, 406},
      {is_unsupported_media_type, reason::kUnsupportedMediaType, 415},
      {is_method_not_supported, reason::kMethodNotAllowed, 405},
      {is_service_unavailable, reason::kServiceUnavailable, 503},
      {is_bad_request, reason::kBadRequest, 400},
      {is_unauthorized, reason::kUnauthorized, 401},
      {is_forbidden, reason::kForbidden, 403},
      {is_timeout, reason::kTimeout, 504},
      {is_server_timeout, reason::kServerTimeout, 0},
      {is_internal_error, reason::kInternalError, 500},
      {is_too_many_requests, reason::kTooManyRequests, 429, true},
      {is_request_entity_too_large, reason::kRequestEntityTooLarge, 413, true},
      {is_store_read_error, reason::kStoreReadError, 0},
  };
  for (const auto& [ask, reason, code, code_always] : predicates) {
    SCOPED_TRACE(reason);
    EXPECT_TRUE(ask(error_with(reason, 599))) << "by reason";
    EXPECT_EQ(ask(error_with("", code)), code != 0) << "by code without a reason";
    EXPECT_EQ(ask(error_with("SomethingNew", code)), code != 0) << "by code, unknown reason";
    const auto other = reason == reason::kConflict ? reason::kNotFound : reason::kConflict;
    EXPECT_EQ(ask(error_with(other, code)), code_always) << "another reason";
    EXPECT_FALSE(ask(error_with("", 200)));
    EXPECT_FALSE(ask(std::runtime_error("not found")));
  }
}

TEST(StatusTest, ReadsCausesAndDelays) {
  const auto too_large = StatusError::too_large_resource_version(9, 7, 1);
  EXPECT_TRUE(is_too_large_resource_version(too_large));
  EXPECT_TRUE(is_timeout(too_large));
  EXPECT_TRUE(has_status_cause(too_large, "ResourceVersionTooLarge"));
  EXPECT_FALSE(has_status_cause(too_large, "Other"));
  EXPECT_EQ(suggests_client_delay(too_large), 1s);
  // The form of servers before 1.19.
  EXPECT_TRUE(is_too_large_resource_version(
      StatusError::timeout("Too large resource version: 9, current: 7", 1)));
  EXPECT_FALSE(is_too_large_resource_version(StatusError::timeout("slow", 1)));
  EXPECT_FALSE(is_too_large_resource_version(
      StatusError::bad_request("Too large resource version: 9, current: 7")));

  EXPECT_EQ(suggests_client_delay(StatusError::server_timeout("", "pods", "get", 0)), 0s);
  EXPECT_EQ(suggests_client_delay(StatusError::too_many_requests("", 5)), 5s);
  EXPECT_EQ(suggests_client_delay(StatusError::too_many_requests("", 0)), std::nullopt);
  EXPECT_EQ(suggests_client_delay(StatusError::bad_request("")), std::nullopt);
  EXPECT_EQ(suggests_client_delay(std::runtime_error("")), std::nullopt);
  EXPECT_TRUE(
      is_unexpected_server_error(StatusError::generic(500, "GET", "", "", "", "", 0, true)));
  EXPECT_FALSE(
      is_unexpected_server_error(StatusError::generic(500, "GET", "", "", "", "", 0, false)));
  EXPECT_EQ(reason_for_error(StatusError::gone("")), "Gone");
  EXPECT_EQ(reason_for_error(std::runtime_error("")), "");
}

TEST(StatusTest, IsCaughtAsAnErrorOfLookout) {
  try {
    throw StatusError::not_found("", "pods", "a");
  } catch (const lookout::Error& e) {
    EXPECT_TRUE(is_not_found(e));
    EXPECT_STREQ(e.what(), "pods \"a\" not found");
  }
}

TEST(StatusTest, AWatchEndsWithTheRecordedStatus) {
  const auto watch = test::decode_watch(test::watch_body("gone"));
  ASSERT_EQ(watch.events.size(), 1u);
  EXPECT_EQ(watch.events[0].type, EventType::kError);
  const auto status = Status::from(watch.events[0].object);
  ASSERT_TRUE(status);
  EXPECT_TRUE(is_resource_expired(StatusError(*status)));
  EXPECT_FALSE(is_gone(StatusError(*status)));
}

}  // namespace
}  // namespace lookout::api
