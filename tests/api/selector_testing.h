// Helpers for tests of label and field selectors.
#pragma once

#include <gtest/gtest.h>
#include <rapidjson/document.h>

#include <cstddef>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "lookout/api/labels.h"
#include "tests/api/recordings.h"
#include "tests/support/files.h"
#include "tests/support/matchers.h"

namespace lookout::api::test {

/// The error of `f` for a selector; empty if it accepts it.
template <class F>
std::string refusal_by(const F& f) {
  try {
    f();
  } catch (const SelectorError& e) {
    return e.reason();
  }
  return "";
}

/// Checks that `f` rejects a selector at this byte, with all `parts` in the error.
template <class F>
void expect_refusal_at(std::size_t position, std::initializer_list<const char*> parts, const F& f) {
  try {
    f();
    FAIL() << "it was taken";
  } catch (const SelectorError& e) {
    EXPECT_EQ(e.position(), position);
    for (const char* part : parts) EXPECT_THAT(e.what(), HasSubstr(part));
  }
}

/// Compares `parse` with a real server's responses to the selectors in `file`. Skips errors that begin
/// with `not_the_parsers`.
template <class Parse>
void expect_recorded_answers(const char* file, const Parse& parse,
                             std::string_view not_the_parsers = {}) {
  const auto folder = lookout::test::testdata("kube-1.36/selectors");
  const auto list = decode_list(lookout::test::read_file(folder / "pods.json"));
  ASSERT_EQ(list.items.size(), 10u);
  const auto cases = parse_json(lookout::test::read_file(folder / file));
  for (const auto& one : cases.GetArray()) {
    const std::string text = one["selector"].GetString();
    SCOPED_TRACE(text);
    if (one["code"].GetInt() != 200) {
      const std::string message = one["message"].GetString();
      if (!not_the_parsers.empty() && message.starts_with(not_the_parsers)) continue;
      EXPECT_EQ(refusal_by([&] { parse(text); }), message);
      continue;
    }
    const auto selector = parse(text);
    std::vector<std::string> expected;
    for (const auto& name : one["names"].GetArray()) expected.emplace_back(name.GetString());
    std::vector<std::string> actual;
    for (const auto& pod : list.items) {
      if (selector.matches(pod)) actual.emplace_back(pod.name());
    }
    EXPECT_EQ(actual, expected);
  }
}

}  // namespace lookout::api::test
