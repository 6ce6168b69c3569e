// Patterns in the schemas of custom resources, and warnings about definitions.
#include <gtest/gtest.h>

#include <string>

#include "tests/apiserver/client_fixture.h"
#include "tests/apiserver/http_client.h"
#include "tests/support/matchers.h"

namespace lookout::apiserver {
namespace {

const api::Resource kTabs{"stable.example.com", "v1", "CronTab", "crontabs", true};

/// A definition whose objects have a string at `spec.text`, with this schema.
api::Object definition(const std::string& of_text, const std::string& of_spec = "") {
  return from_json(
      R"({"metadata":{"name":"crontabs.stable.example.com"},
          "spec":{"group":"stable.example.com","scope":"Namespaced",
            "names":{"plural":"crontabs","kind":"CronTab"})" +
      of_spec + R"(,"versions":[{"name":"v1","served":true,"storage":true,
            "schema":{"openAPIV3Schema":{"type":"object","properties":{"spec":{"type":"object",
              "properties":{"text":{"type":"string")" +
      of_text + R"(}}}}}}}]}})");
}

api::Object tab(const std::string& text) {
  return from_json(
      R"({"apiVersion":"stable.example.com/v1","kind":"CronTab","metadata":{"name":"a"},)"
      R"("spec":{"text":")" +
      text + R"("}})");
}

class CustomPatterns : public ClientTest {};

TEST_F(CustomPatterns, HaveTheSyntaxOfGo) {
  all(kDefinitions).create(definition(R"(,"pattern":"^\\pL+(?P<n>[0-9]{2})$")"));
  EXPECT_EQ(in(kTabs).create(tab("äö12"), {.dry_run = true}).name(), "a");
  for (const char* text : {"äö1", "12", "äö12x", R"(äö12\n)", R"(x\näö12\nx)"}) {
    const auto status = status_of([&] { in(kTabs).create(tab(text)); });
    EXPECT_EQ(status.code, 422) << text;
    EXPECT_THAT(status.message, HasSubstr("spec.text in body should match")) << text;
  }
}

// Group names have two forms, and similar texts may have another meaning.
TEST_F(CustomPatterns, SupportBothFormsOfNamedGroups) {
  const auto takes = [&](const std::string& pattern, const std::string& text) {
    all(kDefinitions).create(definition(R"(,"pattern":")" + pattern + "\""));
    const auto status = status_of([&] { in(kTabs).create(tab(text), {.dry_run = true}); });
    all(kDefinitions).remove("crontabs.stable.example.com");
    return status.code == 0;
  };
  EXPECT_TRUE(takes("^(?<x>a)(?P<y>b)$", "ab"));
  EXPECT_TRUE(takes(R"(^\\(?<a$)", "(<a"));
  EXPECT_TRUE(takes(R"(^\\Q(?<a\\E$)", "(?<a"));
  EXPECT_TRUE(takes("^[(?<a]+$", "(?<a"));
  EXPECT_FALSE(takes("^[(?<a]+$", "P"));
  EXPECT_FALSE(takes("^[](?<a[:digit:](?<a]+$", "P"));
}

TEST_F(CustomPatterns, MayRepeatClassesOften) {
  for (const char* often : {"63", "1000"}) {
    all(kDefinitions)
        .create(definition(R"(,"pattern":"^[\\p{L}\\p{N}]{1,)" + std::string(often) + R"(}$")"));
    EXPECT_EQ(in(kTabs).create(tab("äöü1"), {.dry_run = true}).name(), "a") << often;
    EXPECT_EQ(status_of([&] { in(kTabs).create(tab("äöü.1")); }).code, 422) << often;
    all(kDefinitions).remove("crontabs.stable.example.com");
  }
}

// A pattern with exponential time in backtracking engines, and long texts.
TEST_F(CustomPatterns, AreMatchedInLinearTime) {
  all(kDefinitions).create(definition(R"(,"pattern":"^(([a-z])+.)+[A-Z]([a-z])+$")"));
  const auto status = status_of([&] { in(kTabs).create(tab(std::string(5000, 'a'))); });
  EXPECT_EQ(status.code, 422);
  EXPECT_THAT(status.message, HasSubstr("should match"));
}

TEST_F(CustomPatterns, AreRejectedIfUnsupported) {
  const std::string path = "spec.validation.openAPIV3Schema.properties[spec].properties[text]";
  const auto cause_of = [&](const std::string& of_text) {
    const auto status = status_of([&] { all(kDefinitions).create(definition(of_text)); });
    EXPECT_EQ(status.code, 422) << of_text;
    if (status.causes.size() != 1) {
      ADD_FAILURE() << status.message;
      return std::string();
    }
    return status.causes[0].field + ": " + status.causes[0].message;
  };
  EXPECT_THAT(cause_of(R"(,"pattern":"a(b")"),
              AllOf(StartsWith(path + ".pattern: "),
                    HasSubstr("must be a valid regular expression, but isn't")));
  // Constructs that Go does not support, because they cannot be matched in linear time.
  for (const char* backtracks : {R"((?=a)b)", R"((a)\\1)", R"((?<!a)b)"})
    EXPECT_THAT(cause_of(std::string(R"(,"pattern":")") + backtracks + "\""),
                HasSubstr("must be a valid regular expression, but isn't"));
  EXPECT_THAT(cause_of(R"(,"pattern":"(((a{1,100}){1,100}){1,100}){1,100}")"),
              HasSubstr("regular expression"));
  EXPECT_THAT(cause_of(R"(,"pattern":"\\pL{1,1000}\\pL{0,1000}\\pL{0,1000}")"),
              HasSubstr("too hard"));
  // At any position in the schema.
  EXPECT_THAT(cause_of(R"(,"anyOf":[{"pattern":"a"},{"not":{"pattern":"("}}])"),
              StartsWith(path + ".anyOf[1].not.pattern: "));
  // Larger than patterns of common definitions.
  all(kDefinitions)
      .create(definition(
          R"(,"pattern":"^[a-z0-9]([-a-z0-9]{0,251}[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]{0,251})?)*$")"));
}

// ---------------------------------------------------------------------------- unenforced rules

class Unenforced : public ClientTest {
 protected:
  /// The Warning header in the response to a POST.
  std::string warning(const std::string& path, const api::Object& object) const {
    const HttpAnswer answer = http(server_.port(), "POST", path, object.to_json(),
                                   {{"Content-Type", "application/json"}});
    EXPECT_EQ(answer.code, 201) << answer.body;
    const auto found = answer.headers.find("warning");
    return found == answer.headers.end() ? "" : found->second;
  }
};

TEST_F(Unenforced, CausesAWarning) {
  const std::string admission = "/apis/admissionregistration.k8s.io/v1/";
  const std::string in_default = "/api/v1/namespaces/default/";
  for (const char* plural : {"validatingwebhookconfigurations", "mutatingwebhookconfigurations"})
    EXPECT_EQ(warning(admission + plural, from_json(R"({"metadata":{"name":"a"},"webhooks":[]})")),
              "");
  EXPECT_EQ(
      warning(admission + "validatingadmissionpolicies",
              from_json(R"({"metadata":{"name":"a"},"spec":{"validations":[{"expression":"true"}],
                        "matchConstraints":{"resourceRules":[{"apiGroups":[""],"apiVersions":["v1"],
                        "operations":["CREATE"],"resources":["pods"]}]}}})")),
      R"(299 - "this server keeps the object, but admission policies are not applied")");
  EXPECT_EQ(warning(in_default + "resourcequotas", from_json(R"({"metadata":{"name":"a"}})")), "");
  EXPECT_EQ(warning(in_default + "limitranges",
                    from_json(R"({"metadata":{"name":"a"},"spec":{"limits":[]}})")),
            "");
  EXPECT_EQ(warning(in_default + "configmaps", config_map("a")), "");
}

TEST_F(Unenforced, RulesOfDefinitionsCauseWarnings) {
  const std::string path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
  EXPECT_EQ(warning(path + "?dryRun=All", definition("")), "");
  EXPECT_EQ(warning(path + "?dryRun=All",
                    definition(R"(,"x-kubernetes-validations":[{"rule":"self != ''"}])")),
            "299 - \"this server keeps the object, but rules in x-kubernetes-validations are not "
            "enforced\"");
  EXPECT_EQ(warning(path, definition("", R"(,"conversion":{"strategy":"Webhook","webhook":{
      "conversionReviewVersions":["v1"],"clientConfig":{"url":"https://localhost"}}})")),
            "");
}

}  // namespace
}  // namespace lookout::apiserver
