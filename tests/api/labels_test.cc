#include "lookout/api/labels.h"

#include <gtest/gtest.h>
#include <rapidjson/document.h>

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "lookout/k8s/meta/v1.h"
#include "tests/api/recordings.h"
#include "tests/api/selector_testing.h"
#include "tests/support/allocations.h"
#include "tests/support/files.h"
#include "tests/support/matchers.h"
#include "tests/support/text_case.h"

namespace lookout::api {
namespace {

using labels::Operator;

Object with_labels(std::string_view labels_json) {
  return Object::parse(R"({"metadata":{"labels":)" + std::string(labels_json) + "}}");
}

std::string reason_of(std::string_view selector) {
  return test::refusal_by([&] { labels::parse(selector); });
}

std::string reason_of(std::string key, Operator op, std::vector<std::string> values) {
  return test::refusal_by([&] { labels::Requirement(std::move(key), op, std::move(values)); });
}

TEST(LabelsTest, EqualsARealServer) {
  test::expect_recorded_answers("label.json",
                                [](const std::string& text) { return labels::parse(text); });
}

TEST(LabelsTest, ParsesToTheCanonicalText) {
  const lookout::test::TextCase cases[] = {
      {"", ""},
      {"  ", ""},
      {"app", "app"},
      {" ! app ", "!app"},
      {"app=web", "app=web"},
      {"app = web", "app=web"},
      {"app==web", "app==web"},
      {"app!=web", "app!=web"},
      {"app=", "app="},
      {"app=,b", "app=,b"},
      {"z,b=1,a", "a,b=1,z"},
      {"v>2,v<10", "v>2,v<10"},
      {"app in (web,api,web)", "app in (api,web)"},
      {"app in(web)", "app in (web)"},
      {"app in ()", "app in ()"},
      {"app in (,)", "app in ()"},
      {"app in (a,)", "app in (,a)"},
      {"app in (,a)", "app in (,a)"},
      {"app in (a,,b)", "app in (,a,b)"},
      {"app\tnotin\r\n( b , a )", "app notin (a,b)"},
      {"in in (in,notin)", "in in (in,notin)"},
      {"notin,in", "in,notin"},
      {"example.com/app in (x)", "example.com/app in (x)"},
  };
  for (const auto& [text, canonical] : cases) {
    SCOPED_TRACE(text);
    EXPECT_EQ(labels::parse(text).to_string(), canonical);
    EXPECT_EQ(labels::parse(canonical).to_string(), canonical);
  }
}

// Kubernetes' lexer ends the text at a NUL.
TEST(LabelsTest, ANulEndsATokenOrTheText) {
  using namespace std::string_view_literals;
  EXPECT_EQ(labels::parse("a=b\0,c"sv).to_string(), "a=b,c");
  EXPECT_EQ(labels::parse("a,b \0,c"sv).to_string(), "a,b");
  EXPECT_EQ(labels::parse("a=\0b"sv).to_string(), "a=b");
}

TEST(LabelsTest, RejectsWithTheServersMessages) {
  const std::string prefix = "unable to parse requirement: ";
  const struct {
    const char* text;
    std::string reason;
  } cases[] = {
      {"!", prefix + "found '', expected: identifier"},
      {"=", "found '=', expected: !, identifier, or 'end of string'"},
      {"app,,b", "found ',', expected: identifier after ','"},
      {"!app=web", "found '=', expected: ',' or 'end of string'"},
      {"app web", prefix + "found 'web', expected: in, notin, =, ==, !=, gt, lt"},
      {"app=web api", "found 'api', expected: ',' or 'end of string'"},
      {"app=web)", "found ')', expected: ',' or 'end of string'"},
      {"app===web", prefix + "found '=', expected: identifier"},
      {"app in web", prefix + "found 'web' expected: '('"},
      {"app in", prefix + "found '' expected: '('"},
      {"app in (", prefix + "found '', expected: ',', ')' or identifier"},
      {"app in (=", prefix + "found '=', expected: ',', ')' or identifier"},
      {"app in (a,", prefix + "found '', expected: ',', or identifier"},
      {"app in (a,=", prefix + "found '=', expected: ',', or identifier"},
      {"app in (a b)", prefix + "found 'b', expected: ',' or ')'"},
      {"v>a", prefix +
                  "values[0]: Invalid value: \"a\": for 'Gt', 'Lt' operators, the value must be "
                  "an integer"},
      {"v>9223372036854775808",
       prefix + "values[0]: Invalid value: \"9223372036854775808\": for 'Gt', 'Lt' operators, the "
                "value must be an integer"},
      {"v<-", prefix +
                  "[values[0]: Invalid value: \"-\": for 'Gt', 'Lt' operators, the value must "
                  "be an integer, values[0][v]: Invalid value: \"-\": a valid label must be an "
                  "empty string or consist of alphanumeric characters, '-', '_' or '.', and "
                  "must start and end with an alphanumeric character (e.g. 'MyValue',  or "
                  "'my_value',  or '12345', regex used for validation is "
                  "'(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')]"},
  };
  for (const auto& [text, reason] : cases) EXPECT_EQ(reason_of(text), reason) << text;
}

TEST(LabelsTest, AnErrorNamesThePosition) {
  test::expect_refusal_at(13, {"\"app=web,tier frontend\"", "found 'frontend'", "at character 14"},
                          [] { labels::parse("app=web,tier frontend"); });
}

TEST(LabelsTest, ARequirementIsChecked) {
  EXPECT_EQ(reason_of("a", Operator::kIn, {}),
            "values: Invalid value: null: for 'in', 'notin' operators, values set can't be empty");
  EXPECT_EQ(reason_of("a", Operator::kEquals, {"x", "y"}),
            "values: Invalid value: [\"x\",\"y\"]: exact-match compatibility requires one single "
            "value");
  EXPECT_EQ(reason_of("a", Operator::kExists, {"x"}),
            "values: Invalid value: [\"x\"]: values set must be empty for exists and does not "
            "exist");
  EXPECT_EQ(reason_of("a", Operator::kLessThan, {}),
            "values: Invalid value: null: for 'Gt', 'Lt' operators, exactly one value is required");
  EXPECT_THAT(reason_of("", Operator::kExists, {}),
              HasSubstr("key: Invalid value: \"\": name part must be non-empty; name part must"));
  EXPECT_THAT(reason_of("a", Operator::kIn, {"ok", "not ok"}),
              HasSubstr("values[1][a]: Invalid value: \"not ok\": a valid label must be"));

  const labels::Requirement in("a", Operator::kIn, {"y", "x", "y"});
  EXPECT_THAT(in.values(), ElementsAre("x", "y"));
  EXPECT_EQ(in.to_string(), "a in (x,y)");
}

TEST(LabelsTest, EachOperatorMatchesLikeKubernetes) {
  // Names that are symbols, short names, long names, and values likewise.
  const std::string key(63, 'k');
  const Object object =
      with_labels(R"({"app":"web","v":"5","empty":"","neg":"-3","plus":"+7",)"
                  R"("x.example.com/y":"1","word":"five","big":"9223372036854775807",")" +
                  key + R"(":")" + std::string(63, 'v') + R"("})");
  const struct {
    std::string text;
    bool matches;
  } cases[] = {
      {"app", true},
      {"!app", false},
      {"none", false},
      {"!none", true},
      {"app=web", true},
      {"app==web", true},
      {"app!=web", false},
      {"app=api", false},
      {"app!=api", true},
      {"none=web", false},
      {"none!=web", true},
      {"none=", false},
      {"none!=", true},
      {"empty=", true},
      {"empty!=", false},
      {"app in (api,web)", true},
      {"app in (api)", false},
      {"none in (web)", false},
      {"app notin (api,web)", false},
      {"app notin (api)", true},
      {"none notin (web)", true},
      {"v>4", true},
      {"v>5", false},
      {"v<6", true},
      {"v<5", false},
      {"none>0", false},
      {"none<9", false},
      {"word>0", false},
      {"word<9", false},
      {"empty<1", false},
      {"neg<0", true},
      {"neg>0", false},
      {"plus>6", true},
      {"big>9223372036854775806", true},
      {"x.example.com/y=1", true},
      {"x.example.com/y", true},
      {"y", false},
      {key, true},
      {key + "=" + std::string(63, 'v'), true},
      {key + "=v", false},
      {"app=web,v>4,!none", true},
      {"app=web,v>5", false},
      {"app=web,app=api", false},
  };
  for (const auto& [text, matches] : cases)
    EXPECT_EQ(labels::parse(text).matches(object), matches) << text;
}

TEST(LabelsTest, AnObjectWithoutLabelsMatchesByAbsence) {
  for (const auto& object :
       {Object(), Object::parse("{}"), with_labels("{}"), with_labels("null")}) {
    EXPECT_TRUE(labels::Selector().matches(object));
    EXPECT_TRUE(labels::parse("!app,app!=web,app notin (a)").matches(object));
    EXPECT_FALSE(labels::parse("app").matches(object));
    EXPECT_FALSE(labels::parse("v<1").matches(object));
  }
}

TEST(LabelsTest, MatchingAllocatesNothing) {
  const Object object = with_labels(R"({"app":"web","v":"5","some.example.com/name":"value"})");
  const auto selector =
      labels::parse("app in (web,api),v>4,!canary,some.example.com/name!=x,some.example.com/name");
  bool matched = false;
  EXPECT_EQ(lookout::test::allocations_of([&] { matched = selector.matches(object); }), 0u);
  EXPECT_TRUE(matched);
  EXPECT_GT(lookout::test::allocations_of([] { labels::parse("app=web"); }), 0u)
      << "the counter does not count";
}

TEST(LabelsTest, TheNothingSelectorMatchesNothing) {
  const auto nothing = labels::nothing();
  EXPECT_FALSE(nothing.matches(with_labels(R"({"app":"web"})")));
  EXPECT_FALSE(nothing.matches(Object()));
  EXPECT_FALSE(nothing.empty());
  EXPECT_EQ(nothing.to_string(), "");
  EXPECT_TRUE(labels::Selector().empty());
  EXPECT_TRUE(labels::parse("").empty());
  EXPECT_FALSE(labels::parse("app").empty());
}

TEST(LabelsTest, FromSetRequiresAllLabels) {
  const auto selector = labels::from_set({{"tier", "front"}, {"app", "web"}});
  EXPECT_EQ(selector.to_string(), "app=web,tier=front");
  EXPECT_TRUE(selector.matches(with_labels(R"({"app":"web","tier":"front","x":"y"})")));
  EXPECT_FALSE(selector.matches(with_labels(R"({"app":"web"})")));
  EXPECT_TRUE(labels::from_set({}).empty());
  EXPECT_THROW(labels::from_set({{"not a key", ""}}), SelectorError);
}

TEST(LabelsTest, FromSetAcceptsMaps) {
  const std::map<std::string, std::string> map{{"tier", "front"}, {"app", "web"}};
  EXPECT_EQ(labels::from_set(map).to_string(), "app=web,tier=front");
  const Object object = Object::parse(R"({"spec":{"selector":{"app":"web"}}})");
  const MapView<std::string_view> selector(object["spec"]["selector"]);
  EXPECT_EQ(labels::from_set(selector).to_string(), "app=web");
  EXPECT_TRUE(labels::from_set(MapView<std::string_view>()).empty());
}

TEST(LabelsTest, ConvertsALabelSelectorOfTheApi) {
  const auto convert = [](std::string_view json) {
    const Object object = Object::parse(R"({"spec":{"selector":)" + std::string(json) + "}}");
    return labels::from(k8s::meta::v1::LabelSelector(object["spec"]["selector"]));
  };
  EXPECT_EQ(convert(R"({"matchLabels":{"b":"1","a":"2"},"matchExpressions":[)"
                    R"({"key":"c","operator":"In","values":["y","x"]},)"
                    R"({"key":"d","operator":"NotIn","values":["z"]},)"
                    R"({"key":"e","operator":"Exists"},{"key":"f","operator":"DoesNotExist"}]})")
                .to_string(),
            "a=2,b=1,c in (x,y),d notin (z),e,!f");
  EXPECT_TRUE(convert("{}").empty());
  EXPECT_FALSE(convert("null").matches(Object()));
  EXPECT_FALSE(labels::from(k8s::meta::v1::LabelSelector()).matches(Object()));
  const auto reason = [&](std::string_view json) {
    try {
      convert(json);
    } catch (const SelectorError& e) {
      return e.reason();
    }
    return std::string();
  };
  EXPECT_EQ(reason(R"({"matchExpressions":[{"key":"a","operator":"Gt","values":["1"]}]})"),
            "\"Gt\" is not a valid label selector operator");
  EXPECT_EQ(reason(R"({"matchExpressions":[{"key":"a","operator":"In"}]})"),
            "values: Invalid value: null: for 'in', 'notin' operators, values set can't be empty");
}

}  // namespace
}  // namespace lookout::api
