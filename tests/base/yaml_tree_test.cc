// YamlTree. (Limits and hostile documents: tests/rest/kubeconfig_test.cc.)
#include "lookout/base/yaml_tree.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

namespace lookout {
namespace {

std::string json_of(std::string_view yaml) { return to_json(YamlTree(yaml).root()); }

TEST(YamlTreeTest, EscapesAreTheCharactersThatYamlNames) {
  EXPECT_EQ(json_of(R"("\0\a\b\t\n\v\f\r\e")"), R"("\u0000\u0007\b\t\n\u000B\f\r\u001B")");
  EXPECT_EQ(json_of(R"("\ \"\/\\")"), R"(" \"/\\")");
  EXPECT_EQ(json_of(R"("\x41\xe9\u20ac\U0001F600")"), "\"A\u00e9\u20ac\U0001F600\"");
  EXPECT_EQ(json_of(R"("\L\P")"), "\"\u2028\u2029\"");
}

// yaml-cpp makes one byte of each, which is no UTF-8.
TEST(YamlTreeTest, ANextLineAndANoBreakSpaceAreUtf8) {
  EXPECT_EQ(json_of(R"(a: "x\Ny")"), "{\"a\":\"x\u0085y\"}");
  EXPECT_EQ(json_of(R"(a: "\_")"), "{\"a\":\"\u00a0\"}");
  EXPECT_EQ(json_of("\"\u00e9\\N\\_\u20ac\\N\": 1"), "{\"\u00e9\u0085\u00a0\u20ac\u0085\":1}");
  EXPECT_EQ(json_of("a: 'x\\Ny'"), R"({"a":"x\\Ny"})") << "no escape between single quotes";
}

// What kubectl makes of them.
TEST(YamlTreeTest, NumbersAreReadAsYaml11HasThem) {
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

TEST(YamlTreeTest, WhatOnlyBeginsLikeANumberIsText) {
  for (const char* text : {"12e3456", "1.2.3", "10.0.0.1", "2026-11-27", "12:30",    "0x",  "0b2",
                           "0xG",     "1e",    "+",        ".",          "..",       "+-1", "._5",
                           "5m",      "1Gi",   "1_0x",     "08x",        "Infinity", ".inf"}) {
    EXPECT_EQ(json_of(std::string("- ") + text), std::string("[\"") + text + "\"]");
  }
  EXPECT_EQ(json_of(R"(["0400", '1', !!str 5])"), R"(["0400","1","5"])");
}

TEST(YamlTreeTest, NamesOfFieldsAreText) {
  EXPECT_EQ(json_of("{0400: a, 1.50: b, yes: c, Off: d, 'on': e, 1.2.3: f}"),
            R"({"1.2.3":"f","1.5":"b","256":"a","false":"d","on":"e","true":"c"})");
  for (const char* text : {"~: 1", "{[a]: 1}", "? {a: b}\n: 1"}) {
    EXPECT_THROW(json_of(text), YamlError) << text;
  }
}

}  // namespace
}  // namespace lookout
