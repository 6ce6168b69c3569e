#include "lookout/base/structural_scanner.h"

#include <gtest/gtest.h>

#include <random>
#include <string>

namespace lookout::api::detail {
namespace {

/// The same result, computed one byte at a time.
std::size_t plain_scan(std::string_view text) {
  std::size_t depth = 0;
  bool in_string = false;
  bool escaped = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (escaped) {
      escaped = false;
      if (c == '"' || c == '\\') continue;
    } else if (c == '\\') {
      escaped = true;
      continue;
    }
    if (c == '"') {
      in_string = !in_string;
    } else if (!in_string && (c == '{' || c == '[')) {
      ++depth;
    } else if (!in_string && (c == '}' || c == ']') && --depth == 0) {
      return i + 1;
    }
  }
  return StructuralScanner::npos;
}

std::size_t scan_in_pieces(std::string_view text, std::mt19937& random) {
  StructuralScanner scanner;
  std::size_t at = 0;
  while (at < text.size()) {
    const std::size_t size = std::min<std::size_t>(random() % 100, text.size() - at);
    const std::size_t end = scanner.scan(text.substr(at, size));
    if (end != StructuralScanner::npos) return at + end;
    at += size;
  }
  return StructuralScanner::npos;
}

TEST(StructuralScannerTest, FindsTheEnd) {
  for (const std::string text :
       {"{}", "[]", "[[],{}]", R"({"a":"}"})", R"(["\"]"])", R"(["\\"])", R"(["\\\"]"])"}) {
    for (std::size_t pad = 0; pad < 140; ++pad) {
      const std::string padded = "[" + std::string(pad, ' ') + text + "]";
      EXPECT_EQ(StructuralScanner().scan(padded + "]]}}"), padded.size()) << padded;
      EXPECT_EQ(StructuralScanner().scan(padded.substr(0, padded.size() - 1)),
                StructuralScanner::npos);
    }
  }
}

TEST(StructuralScannerTest, TheResultDoesNotDependOnTheSplit) {
  std::mt19937 random(1);
  constexpr std::string_view kAlphabet = "{}[]\"\"\\\\a: ,";
  for (int round = 0; round < 20000; ++round) {
    std::string text = "{";
    const std::size_t size = random() % 300;
    // Mostly letters; otherwise the text ends too early.
    const std::size_t letters = random() % 20;
    for (std::size_t i = 0; i < size; ++i) {
      const std::size_t pick = random() % (kAlphabet.size() + letters);
      text += pick < kAlphabet.size() ? kAlphabet[pick] : 'x';
    }
    const std::size_t expected = plain_scan(text);
    ASSERT_EQ(StructuralScanner().scan(text), expected) << text;
    ASSERT_EQ(StructuralScanner().scan_portably(text), expected) << text;
    ASSERT_EQ(scan_in_pieces(text, random), expected) << text;
  }
}

TEST(StructuralScannerTest, CanBeReset) {
  StructuralScanner scanner;
  EXPECT_EQ(scanner.scan("{\"a\\"), StructuralScanner::npos);
  scanner.start();
  EXPECT_EQ(scanner.scan("{}x"), 2u);
}

TEST(StructuralScannerTest, InvalidUtf8IsReportedAtItsStart) {
  // (ASCII is skipped in blocks of up to 128 bytes.)
  for (std::size_t before = 0; before < 300; ++before) {
    const std::string text(before, 'x');
    EXPECT_EQ(find_invalid_utf8(text), std::string_view::npos);
    EXPECT_EQ(find_invalid_utf8(text + "\xC3\xA9\xE4\xBD\xA0\xF0\x9F\x98\x80" + text),
              std::string_view::npos);
    for (const std::string bad : {"\x80", "\xC3", "\xC3(", "\xE4\xBD", "\xF0\x9F\x98", "\xC0\x80",
                                  "\xED\xA0\x80", "\xF4\x90\x80\x80", "\xFF"}) {
      EXPECT_EQ(find_invalid_utf8(text + bad), before);
      EXPECT_EQ(find_invalid_utf8(text + bad + "12345678"), before);
      EXPECT_EQ(find_invalid_utf8(text + "\xC3\xA9" + bad), before + 2);
    }
  }
}

}  // namespace
}  // namespace lookout::api::detail
