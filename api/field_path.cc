#include "lookout/api/field_path.h"

#include <fmt/format.h>

#include <charconv>

#include "lookout/api/error.h"
#include "lookout/base/ascii.h"

namespace lookout::api {
namespace {

bool is_name_char(char c) {
  return base::is_alnum(c) || c == '-' || c == '_' || c == '$' || c == '/';
}

[[noreturn]] void fail(std::string_view text, std::size_t at, std::string_view why) {
  throw InvalidArgument(fmt::format("field path \"{}\": {} at character {}", text, why, at + 1));
}

}  // namespace

FieldPath::FieldPath(std::string_view text) {
  std::size_t i = 0;
  while (i < text.size()) {
    if (text[i] == '[') {
      const std::size_t open = i++;
      if (i < text.size() && (text[i] == '\'' || text[i] == '"')) {
        const char quote = text[i++];
        std::string name;
        while (i < text.size() && text[i] != quote) {
          if (text[i] == '\\' && i + 1 < text.size()) ++i;
          name += text[i++];
        }
        if (i >= text.size()) fail(text, open, "the quote is not closed");
        ++i;
        steps_.emplace_back(std::move(name));
      } else if (i < text.size() && text[i] == '*') {
        ++i;
        steps_.emplace_back(EveryElement{});
      } else {
        std::size_t index = 0;
        const auto [end, error] =
            std::from_chars(text.data() + i, text.data() + text.size(), index);
        if (error != std::errc{}) fail(text, i, "expected an index, '*' or a quoted name");
        i = static_cast<std::size_t>(end - text.data());
        steps_.emplace_back(index);
      }
      if (i >= text.size() || text[i] != ']') fail(text, i, "expected ']'");
      ++i;
      continue;
    }
    if (text[i] == '.') {
      ++i;
    } else if (!steps_.empty()) {
      fail(text, i, "expected '.' or '['");
    }
    const std::size_t begin = i;
    while (i < text.size() && is_name_char(text[i])) ++i;
    if (i == begin) fail(text, i, "expected a name");
    steps_.emplace_back(std::string(text.substr(begin, i - begin)));
  }
}

}  // namespace lookout::api
