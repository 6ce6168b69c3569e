#include "cmd/terminal.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "cmd/colours.h"
#include "cmd/columns.h"
#include "cmd/printable.h"

namespace lookout::cmd {
namespace {

TEST(Terminal, TextIsTruncatedOrPadded) {
  EXPECT_EQ(fitted("one\ntwo\nthree\n", 3, 80), "one\ntwo\nthree\n");
  EXPECT_EQ(fitted("one\ntwo\nthree\nfour\n", 3, 80), "one\ntwo\n... and 2 more\n");
  EXPECT_EQ(fitted("one\nthree\n", 5, 3), "one\nthr\n");
  EXPECT_EQ(fitted("\u00e4\u00f6\u00fc\u00df", 5, 3), "\u00e4\u00f6\u00fc\n")
      << "characters, not bytes";
  EXPECT_EQ(fitted("", 5, 3), "");
}

TEST(Terminal, WideCharactersTakeTwoColumns) {
  EXPECT_EQ(fitted("東京-1", 5, 4), "東京\n");
  EXPECT_EQ(fitted("東京-1", 5, 3), "東\n") << "half a character is none";
  EXPECT_EQ(fitted("東京-1", 5, 5), "東京-\n");
  EXPECT_EQ(fitted("e\u0301a\u0300o", 5, 2), "e\u0301a\u0300\n") << "accents take none";
  EXPECT_EQ(fitted("\x80\xe6z", 5, 3), "\x80\xe6z\n") << "what is not UTF-8 stays";
  EXPECT_EQ(align({{"ZONE", "READY"}, {"東京", "true"}, {"ü", "true"}}),
            "ZONE   READY\n東京   true\nü      true\n");
}

TEST(Terminal, ColoursHaveNoWidthAndEndAfterTruncation) {
  EXPECT_EQ(fitted("\x1b[1mone\x1b[0m two\n", 5, 7), "\x1b[1mone\x1b[0m two\n");
  EXPECT_EQ(fitted("\x1b[31mthree\x1b[0m four\n", 5, 3), "\x1b[31mthr\x1b[0m\n");
}

TEST(Terminal, TheEnvironmentDecidesAboutColoursAndCursor) {
  const char* const term = std::getenv("TERM");
  const std::string before = term == nullptr ? "" : term;
  setenv("TERM", "xterm", 1);
  EXPECT_TRUE(has_cursor());
  for (const char* plain : {"dumb", ""}) {
    setenv("TERM", plain, 1);
    EXPECT_FALSE(has_cursor()) << plain;
  }
  setenv("TERM", before.c_str(), 1);
  setenv("NO_COLOR", "1", 1);
  EXPECT_FALSE(use_colours());
  unsetenv("NO_COLOR");
  EXPECT_TRUE(use_colours());
}

TEST(Terminal, EscapesControlCharacters) {
  EXPECT_EQ(printable("a\x1b[2Jb\nc\x7f\td"), "a?[2Jb?c??d");
  EXPECT_EQ(printable("\u00e4 \u0085 \u009b1m \u20ac \u00c2"), "\u00e4 ? ?1m \u20ac \u00c2");
  EXPECT_EQ(printable(""), "");
}

}  // namespace
}  // namespace lookout::cmd
