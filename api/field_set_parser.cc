#include "api/field_set_parser.h"

#include "api/flat_writer.h"
#include "api/limits.h"

namespace lookout::api::detail {
namespace {

bool is_plain(char c) { return c >= 0x20 && c < 0x7F && c != '"' && c != '\\'; }

}  // namespace

bool FieldSetParser::parse(std::string_view text) {
  const FlatWriter::Mark before = writer_.mark();
  if (read(text.data(), text.data() + text.size())) return true;
  writer_.rewind(before);
  return false;
}

bool FieldSetParser::read(const char* p, const char* const end) {
  const std::size_t outside = writer_.depth();
  for (;;) {
    // Before an object.
    if (p == end || *p != '{' || writer_.depth() >= kMaxDepth) return false;
    ++p;
    writer_.begin_object();
    bool first = true;
    for (;;) {
      // Behind its bracket or a member.
      if (p == end) return false;
      if (*p == '}') {
        ++p;
        writer_.end_object();
        if (writer_.overworked()) return false;
        if (writer_.depth() == outside) return p == end;
        first = false;
        continue;
      }
      if (!first) {
        if (*p != ',') return false;
        ++p;
      }
      break;
    }
    if (p == end || *p != '"') return false;
    const char* const begin = ++p;
    while (p != end && is_plain(*p)) ++p;
    std::string_view name(begin, static_cast<std::size_t>(p - begin));
    if (p != end && *p == '\\') {
      unescaped_ = name;
      for (; p != end && *p != '"'; ++p) {
        if (*p == '\\') {
          if (++p == end || (*p != '"' && *p != '\\')) return false;
        } else if (!is_plain(*p)) {
          return false;
        }
        unescaped_ += *p;
      }
      name = unescaped_;
    }
    if (end - p < 2 || *p != '"' || p[1] != ':') return false;
    p += 2;
    writer_.key(name);
  }
}

}  // namespace lookout::api::detail
