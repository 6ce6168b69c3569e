// YamlTree. (Limits and hostile documents: tests/rest/kubeconfig_test.cc.)
#include "lookout/base/yaml_tree.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

namespace lookout {
namespace {

std::string json_of(std::string_view yaml) { return to_json(YamlTree(yaml).root()); }

TEST(YamlTreeTest, DecodesTheEscapesOfYaml) {
  EXPECT_EQ(json_of(R"("\0\a\b\t\n\v\f\r\e")"), R"("\u0000\u0007\b\t\n\u000B\f\r\u001B")");
  EXPECT_EQ(json_of(R"("\ \"\/\\")"), R"(" \"/\\")");
  EXPECT_EQ(json_of(R"("\x41\xe9\u20ac\U0001F600")"), "\"A\u00e9\u20ac\U0001F600\"");
  EXPECT_EQ(json_of(R"("\L\P")"), "\"\u2028\u2029\"");
}

// yaml-cpp decodes each of them to one byte, which is invalid UTF-8.
TEST(YamlTreeTest, EncodesNextLineAndNoBreakSpaceAsUtf8) {
  EXPECT_EQ(json_of(R"(a: "x\Ny")"), "{\"a\":\"x\u0085y\"}");
  EXPECT_EQ(json_of(R"(a: "\_")"), "{\"a\":\"\u00a0\"}");
  EXPECT_EQ(json_of("\"\u00e9\\N\\_\u20ac\\N\": 1"), "{\"\u00e9\u0085\u00a0\u20ac\u0085\":1}");
  EXPECT_EQ(json_of("a: 'x\\Ny'"), R"({"a":"x\\Ny"})") << "no escape between single quotes";
}

// The results equal those of kubectl.
TEST(YamlTreeTest, ReadsNumbersOfYaml11) {
  EXPECT_EQ(json_of("[0400, 0644, -07, 0o17, 0b11, -0b1, 0x1F, 0X1f]"),
            "[256,420,-7,15,3,-1,31,31]");
  EXPECT_EQ(json_of("[+5, 1_000, 0, -0, 08, 0_7]"), "[5,1000,0,0,8,7]");
  EXPECT_EQ(json_of("[.5, 1., 1.0, -2.50, +1.5, 1e3, 1E-7, 1.5e+2]"),
            "[0.5,1,1,-2.5,1.5,1000,1e-07,150]");
  EXPECT_EQ(json_of("[9223372036854775807, -9223372036854775808, 18446744073709551615]"),
            "[9223372036854775807,-9223372036854775808,18446744073709551615]");
  EXPECT_EQ(json_of("[18446744073709551616, -9223372036854775809]"),
            "[18446744073709551616,-9223372036854775808]");
}

TEST(YamlTreeTest, APrefixOfANumberIsText) {
  for (const char* text : {"12e3456", "1.2.3", "10.0.0.1", "2026-11-27", "12:30",    "0x",  "0b2",
                           "0xG",     "1e",    "+",        ".",          "..",       "+-1", "._5",
                           "5m",      "1Gi",   "1_0x",     "08x",        "Infinity", ".in"}) {
    EXPECT_EQ(json_of(std::string("- ") + text), std::string("[\"") + text + "\"]");
  }
  EXPECT_EQ(json_of(R"(["0400", '1', !!str 5])"), R"(["0400","1","5"])");
}

TEST(YamlTreeTest, FieldNamesAreText) {
  EXPECT_EQ(json_of("{0400: a, 1.50: b, yes: c, Off: d, 'on': e, 1.2.3: f}"),
            R"({"1.2.3":"f","1.5":"b","256":"a","false":"d","on":"e","true":"c"})");
  for (const char* text : {"~: 1", "{[a]: 1}", "? {a: b}\n: 1"}) {
    EXPECT_THROW(json_of(text), YamlError) << text;
  }
}

// The following results equal those of sigs.k8s.io/yaml.
TEST(YamlTreeTest, RejectsInfinity) {
  for (const char* text : {".inf", "-.Inf", "[+.INF]", "a: .nan"})
    EXPECT_THROW(json_of(text), YamlError) << text;
  EXPECT_EQ(json_of("'.inf'"), R"(".inf")");
}

TEST(YamlTreeTest, TagsGiveScalarsTheirType) {
  EXPECT_EQ(json_of("[!!int '3', !!int 0x1F, !!float 1e3, !!float 3, !!bool 'yes', !!null '']"),
            "[3,31,1000,3,true,null]");
  EXPECT_EQ(json_of("[!!binary aGVsbG8=, !!binary '/w==', !!str 12, !other 12]"),
            "[\"hello\",\"\uFFFD\",\"12\",\"12\"]");
  for (const char* text : {"!!int abc", "!!int 1.5", "!!float abc", "!!bool 5", "!!binary ="})
    EXPECT_THROW(json_of(std::string("a: ") + text), YamlError) << text;
}

TEST(YamlTreeTest, MergedFieldsReplaceEarlierOnes) {
  EXPECT_EQ(json_of("{a: 1, <<: {a: 2, b: 2}}"), R"({"a":2,"b":2})");
  EXPECT_EQ(json_of("{<<: {a: 2, b: 2}, a: 1}"), R"({"a":1,"b":2})");
  EXPECT_EQ(json_of("{<<: [{a: 1}, {a: 2, b: 2}]}"), R"({"a":1,"b":2})");
  EXPECT_THROW(json_of("{<<: 1}"), YamlError);
}

TEST(YamlTreeTest, AKeyNeedsAColon) {
  for (const char* text : {"a: 1\nb", "m:\n  name: x\n  namespace\n", "a:\n- b: 1\n  c\n- d\n",
                           "a: |\n  x\nb", "a: 1\n\"b\"", "a: 1\n&b c", "a: 1\nb\nc: 2"}) {
    EXPECT_THROW(json_of(text), YamlError) << text;
  }
  EXPECT_EQ(json_of("a: 1\nb:\n"), R"({"a":1,"b":null})");
  EXPECT_EQ(json_of("? a\n? b\n: 1\n? c\n"), R"({"a":null,"b":1,"c":null})");
  EXPECT_EQ(json_of("{a: 1, b, c}"), R"({"a":1,"b":null,"c":null})");
}

TEST(YamlTreeTest, AQuoteNeedsItsEnd) {
  for (const char* text : {"a: 'x\n", "a: \"x\n\n", "- \"x\n  y: z\n", "'x\n", "? 'a\n"})
    EXPECT_THROW(json_of(text), YamlError) << text;
  EXPECT_EQ(json_of("a: 'x\n\n  y'\n"), R"({"a":"x\ny"})");
  EXPECT_EQ(json_of("a: |+\n  x\n\n"), R"({"a":"x\n\n"})");
  EXPECT_EQ(json_of("--- |\n x\n"), R"("x\n")");
  EXPECT_EQ(json_of("# none\n"), "null");
}

TEST(YamlTreeTest, AQuoteBeforeBlanksNeedsItsEnd) {
  for (const char* text : {"a: \"b ", "a: 'b\t", "a: \"b\n  ", "a: 'b\n \t", "- \"b\n- c\n  "})
    EXPECT_THROW(json_of(text), YamlError) << text;
  EXPECT_EQ(json_of("a: \"b\"  "), R"({"a":"b"})");
  EXPECT_EQ(json_of("a: b  "), R"({"a":"b"})");
  EXPECT_EQ(json_of("a: |\n  b\n  "), R"({"a":"b\n"})");
}

TEST(YamlTreeTest, ReadsYaml11Only) {
  EXPECT_EQ(json_of("%YAML 1.1\n---\na: yes\n"), R"({"a":true})");
  EXPECT_EQ(json_of("# x\n%YAML 1.1  # x\n---\na: b\n"), R"({"a":"b"})");
  for (const char* text : {"%YAML 1.2\n---\na: yes\n", "# x\n\n%YAML 1.2\n---\na: yes\n",
                           "%YAML 1.2", "%YAML\n---\na: b\n"})
    EXPECT_THROW(json_of(text), YamlError) << text;
}

TEST(YamlTreeTest, ACarriageReturnIsALineBreak) {
  EXPECT_EQ(json_of("a: 1\rb:\r- c\r- d\r"), R"({"a":1,"b":["c","d"]})");
  EXPECT_EQ(json_of("a: 1\r\nb: 2\r\n"), R"({"a":1,"b":2})");
  EXPECT_EQ(json_of("a: |\r  b\r  c\r"), R"({"a":"b\nc\n"})");
}

TEST(YamlTreeTest, NeverDropsPartsOfADocument) {
  for (const char* text : {"- a\nb: c", "- a\n- b\n-c", "a: 1\n%b: 2\n", "m:\n% a: |\n  x\nb: 1"})
    EXPECT_THROW(json_of(text), YamlError) << text;
  for (const char* text : {"a: 1\n---\nb: 2", "a: 1\n...\nb: 2", "a: 1\n---\n@", "  a: 1\nb: 2"})
    EXPECT_EQ(json_of(text), R"({"a":1})") << text;
  for (const char* text : {"[a,,b]", "[,a]", "{a: [b, ,c]}"})
    EXPECT_THROW(json_of(text), YamlError) << text;
  EXPECT_EQ(json_of("[~, null, a, ]"), R"([null,null,"a"])");
  EXPECT_EQ(json_of("a: 1\r\nb: [1,\r\n~,\r\n1]\r\nc: [~, ~, \u00e9, ~]\r\n---\r\nb: 2\r\n"),
            "{\"a\":1,\"b\":[1,null,1],\"c\":[null,null,\"\u00e9\",null]}");
  EXPECT_EQ(json_of("\uFEFF[1,~,1,~]"), "[1,null,1,null]");
  EXPECT_EQ(json_of("\uFEFFa: 1\n---\nb: 2"), R"({"a":1})");
  EXPECT_THROW(json_of("a: 1\r\nb: [1,\r\n,1]\r\n"), YamlError);
}

TEST(YamlTreeTest, RejectsControlCharacters) {
  for (const char* text :
       {"a: \x01", "a: \"\x1F\"", "a: \x7F", "a: \u0080", "a: \uFFFE", "a: \uFFFF"})
    EXPECT_THROW(json_of(text), YamlError) << text;
  EXPECT_EQ(json_of("a: \"\\x01\t\u00a0\uFFFD\uE000\""),
            "{\"a\":\"\\u0001\\t\u00a0\uFFFD\uE000\"}");
}

/// Each document's first line and JSON.
std::vector<std::string> documents_of(std::string_view text) {
  std::vector<std::string> out;
  for (const YamlDocument& document : split_yaml_documents(text))
    out.push_back(std::to_string(document.first_line) + ":" + to_json(YamlTree(document).root()));
  return out;
}

TEST(YamlDocumentsTest, ConsecutiveJsonObjectsAreDocuments) {
  const std::vector<std::string> wanted = {R"(1:{"a":1})", R"(2:{"b":{}})", R"(4:{"c":"}"})"};
  EXPECT_EQ(documents_of("{\"a\":1}\n{\"b\":\n{}}\n{\"c\":\"}\"}\n"), wanted);
  EXPECT_EQ(documents_of(R"({"a":1}{"b":2} {"c":3})"),
            (std::vector<std::string>{R"(1:{"a":1})", R"(1:{"b":2})", R"(1:{"c":3})"}));
  EXPECT_EQ(documents_of("# none\n---\n\n{\"a\":1}\n{\"b\":2}\n---\nc: 3\n"),
            (std::vector<std::string>{"1:null", R"(4:{"a":1})", R"(5:{"b":2})", R"(6:{"c":3})"}));
}

TEST(YamlDocumentsTest, OneJsonObjectMayBeFollowedByYaml) {
  EXPECT_EQ(documents_of("{\"a\":1}\nb: 2\n"),
            (std::vector<std::string>{R"(1:{"a":1})", R"(1:{"b":2})"}));
  EXPECT_EQ(documents_of("{\"a\":1}\n# the end\n"),
            (std::vector<std::string>{R"(1:{"a":1})", "1:null"}));
  EXPECT_EQ(documents_of("{a: yes, b: 0400}"), std::vector<std::string>{R"(1:{"a":true,"b":256})"});
}

TEST(YamlDocumentsTest, RejectsTextBetweenDocuments) {
  for (const char* text : {"{\"a\":1},\n{\"b\":2}", "{\"a\":1} b: [", "{\"a\":1}{\"b\":2}\nc: 3",
                           "{\"a\":1}{\"b\":2}{c: 3}", "{\"a\":1}{\"b\":2}{\"c\":"}) {
    EXPECT_THROW(documents_of(text), YamlError) << text;
  }
  try {
    YamlTree tree(split_yaml_documents("{\"a\":1}\n{\"b\":2}\n\n}").back());
    FAIL() << "no error";
  } catch (const YamlError& e) {
    EXPECT_EQ(e.line(), 3) << "counted from the end of the last object";
  }
}

TEST(YamlDocumentsTest, JsonIsReadAsJson) {
  EXPECT_EQ(documents_of(R"({"k":"deploy \ud83d\ude80"})"),
            std::vector<std::string>{"1:{\"k\":\"deploy \U0001F680\"}"});
  const std::string name(2000, 'x');
  EXPECT_EQ(documents_of("{\"" + name + "\":1}"),
            std::vector<std::string>{"1:{\"" + name + "\":1}"});
  EXPECT_EQ(
      documents_of(R"({"0400":true,"yes":"yes","<<":null,"n":[1e3,-0,2.0,1.50,"1"]})"),
      std::vector<std::string>{R"(1:{"0400":true,"<<":null,"n":[1000,0,2,1.5,"1"],"yes":"yes"})"});
}

TEST(YamlDocumentsTest, JsonErrorsNameTheLine) {
  const auto documents = split_yaml_documents("\n{\n\"a\":\n{\"b\":\n1}}");
  const YamlTree tree(documents.front());
  EXPECT_EQ(documents.front().first_line, 2);
  EXPECT_EQ(tree.root().line, 1);
  EXPECT_EQ(tree.root().find("a")->line, 3);
  EXPECT_EQ(tree.root().find("a")->find("b")->line, 4);
}

TEST(YamlDocumentsTest, JsonHasTheLimitsOfYaml) {
  std::string deep;
  for (int i = 0; i < 100'000; ++i) deep += "{\"a\":";
  deep += "1" + std::string(100'000, '}');
  EXPECT_THROW(documents_of(deep), YamlError);
  YamlLimits limits;
  limits.nodes = 3;
  const auto documents = split_yaml_documents(R"({"a":[1,2,3]})");
  EXPECT_TRUE(documents.front().is_json);
  EXPECT_THROW(YamlTree(documents.front(), limits), YamlError);
  EXPECT_THROW(documents_of("{\"a\":\"\xff\"}"), YamlError);
}

TEST(YamlDocumentsTest, HalfOfASurrogatePairIsReplaced) {
  EXPECT_EQ(documents_of(R"({"a":"\ud83d"}{"\ude80":"\\ud83d"})"),
            (std::vector<std::string>{"1:{\"a\":\"\uFFFD\"}", "1:{\"\uFFFD\":\"\\\\ud83d\"}"}));
}

}  // namespace
}  // namespace lookout
