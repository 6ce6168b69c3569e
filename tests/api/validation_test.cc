#include "lookout/api/validation.h"

#include <gtest/gtest.h>

#include <array>
#include <string>

#include "tests/support/matchers.h"

namespace lookout::api {
namespace {

using namespace validation;

std::string of(char c, std::size_t n) { return std::string(n, c); }

constexpr const char* kLabelKeyRule =
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an "
    "alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for "
    "validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";
constexpr const char* kSubdomainRule =
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or "
    "'.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used "
    "for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";

TEST(ValidationTest, QualifiedNames) {
  for (const auto& valid :
       {std::string("a"), std::string("A.b_c-9"), std::string("x.example.com/y"), of('a', 63),
        of('a', 253) + "/" + of('b', 63)}) {
    EXPECT_THAT(check_qualified_name(valid), IsEmpty()) << valid;
  }
  const std::string rule = std::string("name part ") + kLabelKeyRule;
  EXPECT_THAT(check_qualified_name(""), ElementsAre("name part must be non-empty", rule));
  EXPECT_THAT(check_qualified_name("x/"), ElementsAre("name part must be non-empty", rule));
  EXPECT_THAT(check_qualified_name("/x"), ElementsAre("prefix part must be non-empty"));
  EXPECT_THAT(check_qualified_name("X/y"),
              ElementsAre(std::string("prefix part ") + kSubdomainRule));
  EXPECT_THAT(check_qualified_name(of('a', 254) + "/y"),
              ElementsAre("prefix part must be no more than 253 bytes"));
  EXPECT_THAT(check_qualified_name(of('a', 64)),
              ElementsAre("name part must be no more than 63 bytes"));
  EXPECT_THAT(check_qualified_name("a/b/c"),
              ElementsAre(std::string("a valid label key ") + kLabelKeyRule +
                          " with an optional DNS subdomain prefix and '/' (e.g. "
                          "'example.com/MyName')"));
  for (const auto* invalid : {"-a", "a-", ".a", "a b", "a\xC3\xA9", "_"})
    EXPECT_THAT(check_qualified_name(invalid), ElementsAre(rule)) << invalid;
}

TEST(ValidationTest, LabelValues) {
  for (const auto& valid : {std::string(), std::string("v1.2_x-Y"), of('a', 63)})
    EXPECT_THAT(check_label_value(valid), IsEmpty()) << valid;
  EXPECT_THAT(check_label_value(of('a', 64)), ElementsAre("must be no more than 63 bytes"));
  for (const auto* invalid : {"-", "a/b", "a ", " "})
    EXPECT_THAT(check_label_value(invalid), ElementsAre(StartsWith("a valid label must be")))
        << invalid;
  EXPECT_THAT(check_label_value(of('-', 64)), SizeIs(2));
}

TEST(ValidationTest, DnsNames) {
  EXPECT_THAT(check_dns1123_label("a-1"), IsEmpty());
  EXPECT_THAT(check_dns1123_label("1"), IsEmpty());
  EXPECT_THAT(check_dns1123_label("a.b"), ElementsAre("must not contain dots"));
  EXPECT_THAT(check_dns1123_label(of('a', 64)), ElementsAre("must be no more than 63 characters"));
  for (const auto* invalid : {"", "A", "a-", "-a", "a_b", "a..b"}) {
    EXPECT_THAT(check_dns1123_label(invalid),
                ElementsAre(StartsWith("a lowercase RFC 1123 label must consist of")))
        << invalid;
  }
  EXPECT_THAT(check_dns1123_subdomain("a.b-c.9"), IsEmpty());
  EXPECT_THAT(check_dns1123_subdomain(of('a', 254)),
              ElementsAre("must be no more than 253 characters"));
  for (const auto* invalid : {"", ".", "a.", ".a", "a..b", "a.-b", "Bad_Name"})
    EXPECT_THAT(check_dns1123_subdomain(invalid), ElementsAre(kSubdomainRule)) << invalid;
  EXPECT_THAT(check_dns1035_label("a-1"), IsEmpty());
  for (const auto* invalid : {"", "1a", "A", "a."})
    EXPECT_THAT(check_dns1035_label(invalid), ElementsAre(StartsWith("a DNS-1035 label")))
        << invalid;
}

TEST(ValidationTest, OtherNames) {
  EXPECT_THAT(check_path_segment_name("system:anything goes"), IsEmpty());
  EXPECT_THAT(check_path_segment_name(".."), ElementsAre("may not be '..'"));
  EXPECT_THAT(check_path_segment_name("a/b%c"),
              ElementsAre("may not contain '/'", "may not contain '%'"));
  EXPECT_THAT(check_config_map_key("a.B_c-9"), IsEmpty());
  EXPECT_THAT(check_config_map_key("a b"), ElementsAre(StartsWith("a valid config key must")));
  EXPECT_THAT(check_config_map_key("."), ElementsAre("must not be '.'"));
  EXPECT_THAT(check_config_map_key(".."), ElementsAre("must not be '..'"));
  EXPECT_THAT(check_config_map_key("..a"), ElementsAre("must not start with '..'"));
  EXPECT_THAT(check_config_map_key(of('a', 254)),
              ElementsAre("must be no more than 253 characters"));
}

TEST(ValidationTest, FieldErrorsEqualTheServers) {
  constexpr std::array<std::string_view, 2> kSupported = {"Always", "Never"};
  const struct {
    StatusCause cause;
    const char* reason;
    const char* message;
  } cases[] = {
      {required("f", ""), "FieldValueRequired", "Required value"},
      {required("f", "must be set"), "FieldValueRequired", "Required value: must be set"},
      {invalid("f", "a\"b", "no"), "FieldValueInvalid", R"(Invalid value: "a\"b": no)"},
      {invalid("f", -1, "must be positive"), "FieldValueInvalid",
       "Invalid value: -1: must be positive"},
      {forbidden("f", "not now"), "FieldValueForbidden", "Forbidden: not now"},
      {duplicate("f", "x"), "FieldValueDuplicate", "Duplicate value: \"x\""},
      {not_supported("f", "x", kSupported), "FieldValueNotSupported",
       R"(Unsupported value: "x": supported values: "Always", "Never")"},
      {too_long("f", 10), "FieldValueTooLong", "Too long: may not be more than 10 bytes"},
      {too_long("f", 1), "FieldValueTooLong", "Too long: may not be more than 1 byte"},
  };
  for (const auto& [cause, reason, message] : cases)
    EXPECT_EQ(cause, (StatusCause{reason, message, "f"}));
}

TEST(ValidationTest, SeveralErrorsAreOneLine) {
  EXPECT_EQ(to_string(std::span<const StatusCause>()), "");
  const std::vector<StatusCause> causes = {required("a", ""), required("b", ""), required("a", "")};
  EXPECT_EQ(to_string(std::span(causes).first(1)), "a: Required value");
  EXPECT_EQ(to_string(causes), "[a: Required value, b: Required value]");
}

}  // namespace
}  // namespace lookout::api
