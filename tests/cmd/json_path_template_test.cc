#include "cmd/json_path_template.h"

#include <gtest/gtest.h>

#include <string>

#include "lookout/api/object.h"
#include "lookout/base/error.h"

namespace lookout::cmd {
namespace {

struct TemplateCase {
  std::string text;
  std::string shown;
};
class Templates : public testing::TestWithParam<TemplateCase> {};

// The expectations are what kubectl prints.
TEST_P(Templates, ShowWhatKubectlShows) {
  const auto root = api::Object::parse(
      R"({"kind":"List","n":3,"half":0.5,"yes":true,"items":[{"name":"a","labels":{"x.y":"1"}},)"
      R"({"name":"b","ports":[80,81]}],"z":{"b":"<&>","a":[{"d":1,"c":{},"b":[]}]}})");
  EXPECT_EQ(JsonPathTemplate(GetParam().text).render(root.body()), GetParam().shown);
}

INSTANTIATE_TEST_SUITE_P(
    Cmd, Templates,
    testing::Values(
        TemplateCase{"{.kind}", "List"}, TemplateCase{"{$.kind} {@.kind}", "List List"},
        TemplateCase{"{ .n }{\"\\t\"}{.half}{'\\n'}{.yes}", "3\t0.5\ntrue"},
        TemplateCase{"{.items[*].name}", "a b"}, TemplateCase{"{.items[1].ports}", "[80,81]"},
        TemplateCase{"{.items[0].labels}", R"({"x.y":"1"})"},
        TemplateCase{"{.z}", R"({"a":[{"b":[],"c":{},"d":1}],"b":"\u003c\u0026\u003e"})"},
        TemplateCase{"{.z.b}", "<&>"}, TemplateCase{"{.items[0].labels.x\\.y}", "1"},
        TemplateCase{"{.items[?(@.name==\"b\")].ports[0]}", "80"},
        TemplateCase{"{.items[?(@.name=='}')].name}", ""}, TemplateCase{"{.nothing}", ""},
        TemplateCase{"{range .items[*]}{.name}={.ports[*]}{\"\\n\"}{end}.", "a=\nb=80 81\n."},
        TemplateCase{"{.items[0]['name','labels']}", R"(a {"x.y":"1"})"},
        TemplateCase{"{.items[0,1].name} {['kind','n']}", "a b List 3"},
        TemplateCase{"{.items[1:1]}", ""}, TemplateCase{"{range .items[*]}{.name};", "a;b;"},
        TemplateCase{"{range .nothing[*]}{.name}{end}.", "."},
        TemplateCase{"{range .items[*]}{range .ports[*]}<{@}>{end}{end}", "<80><81>"}));

TEST(TemplateBounds, AreErrorsAsInKubectl) {
  const auto root = api::Object::parse(R"({"kind":"List","items":[{"a":1},{"a":2}]})");
  const auto error_of = [&](const char* text) -> std::string {
    try {
      return "none: " + JsonPathTemplate(text).render(root.body());
    } catch (const Error& e) {
      return e.what();
    }
  };
  EXPECT_EQ(error_of("{.items[5]}"), "array index out of bounds: index 5, length 2");
  EXPECT_EQ(error_of("{.items[-3].a}"), "array index out of bounds: index -1, length 2");
  EXPECT_EQ(error_of("{.items[0,2]}"), "array index out of bounds: index 2, length 2");
  EXPECT_EQ(error_of("{.items[0:3]}"), "array index out of bounds: index 2, length 2");
  EXPECT_EQ(error_of("{.items[1:0]}"), "starting index 1 is greater than ending index 0");
  EXPECT_EQ(error_of("{.items[-2:].a}"), "none: 1 2");
  EXPECT_EQ(error_of("{.nothing[5]}"), "none: ");
}

class WrongTemplates : public testing::TestWithParam<TemplateCase> {};

TEST_P(WrongTemplates, AreRefusedWithAReason) {
  try {
    JsonPathTemplate{GetParam().text};
    FAIL() << "accepted";
  } catch (const Error& e) {
    EXPECT_EQ(std::string(e.what()), GetParam().shown);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Cmd, WrongTemplates,
    testing::Values(TemplateCase{".kind", "paths belong in braces: jsonpath={.metadata.name}"},
                    TemplateCase{"", "paths belong in braces: jsonpath={.metadata.name}"},
                    TemplateCase{"{.kind", "a brace is not closed"},
                    TemplateCase{"{'a}", "a quote is not closed"},
                    TemplateCase{"{}", "\"\" is not a path such as .metadata.name"},
                    TemplateCase{"{kind}", "\"kind\" is not a path such as .metadata.name"},
                    TemplateCase{"{.a[x]}", "\".a[x]\" is not a path such as .metadata.name"},
                    TemplateCase{"{.a}{end}", "{end} without {range}"}));

}  // namespace
}  // namespace lookout::cmd
