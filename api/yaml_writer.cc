#include "lookout/api/detail/yaml_writer.h"

#include <fmt/format.h>
#include <rapidjson/document.h>

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "lookout/api/detail/json_values.h"
#include "lookout/api/detail/json_writer.h"
#include "lookout/api/detail/limits.h"
#include "lookout/api/error.h"
#include "lookout/base/ascii.h"
#include "lookout/base/yaml_tree.h"

namespace lookout::api::detail {
namespace {

using api::detail::text_of;

using base::is_digit;

bool has_only(std::string_view text, std::string_view characters) {
  return text.find_first_not_of(characters) == std::string_view::npos;
}

/// Whether Go reads a text that begins with a digit as a number (also in base 60) or as a time. True for
/// some others, too.
bool reads_as_number(std::string_view given) {
  constexpr std::string_view kDigits = "0123456789";
  std::string plain(given);
  std::erase(plain, '_');
  const std::string_view text = plain;
  if (text.size() > 2 && text[0] == '0' && std::string_view("xXoObB").find(text[1]) < 6)
    return has_only(text.substr(2), "0123456789abcdefABCDEF");
  if (has_only(text, "0123456789:.")) return true;
  const std::size_t exponent = text.find_first_of("eE");
  if (exponent != std::string_view::npos && has_only(text.substr(0, exponent), "0123456789.")) {
    std::string_view digits = text.substr(exponent + 1);
    if (digits.starts_with('+') || digits.starts_with('-')) digits.remove_prefix(1);
    return !digits.empty() && has_only(digits, kDigits);
  }
  return text.find('-') == 4 && has_only(text.substr(0, 4), kDigits) &&
         has_only(text, "0123456789-:.+TtZz ");
}

/// Whether a plain scalar with this text would not be read as text.
bool reads_as_other(std::string_view text) {
  constexpr std::string_view kWords[] = {"", "~", "null", "Null", "NULL", "=", "<<"};
  if (std::find(std::begin(kWords), std::end(kWords), text) != std::end(kWords)) return true;
  if (is_yaml_true(text) || is_yaml_false(text)) return true;
  const std::size_t sign = text.front() == '+' || text.front() == '-' ? 1 : 0;
  const std::string_view rest = text.substr(sign);
  if (rest.starts_with('.')) return rest.size() > 1;
  if (rest.empty() || !is_digit(rest.front())) return false;
  // IP addresses and versions are not numbers.
  if (std::count(rest.begin(), rest.end(), '.') > 1) return false;
  return reads_as_number(rest);
}

/// Whether YAML's grammar allows the text without quotes.
bool can_be_plain(std::string_view text) {
  constexpr std::string_view kIndicators = ",[]{}#&*!|>'\"%@`";
  if (text.front() == ' ' || text.back() == ' ') return false;
  if (kIndicators.find(text.front()) != std::string_view::npos) return false;
  if (std::string_view("-?:").find(text.front()) != std::string_view::npos &&
      (text.size() == 1 || text[1] == ' '))
    return false;
  if (text.starts_with("---") || text.starts_with("...")) return false;
  return text.find(": ") == std::string_view::npos && text.find(" #") == std::string_view::npos &&
         text.back() != ':';
}

/// The size of a character that YAML 1.1 does not allow or reads as a line break, else 0. Go's reader
/// rejects the former, and folds the latter into a space.
std::size_t special_at(std::string_view text, std::size_t at) {
  const auto next = [&](std::size_t i) {
    return at + i < text.size() ? static_cast<unsigned char>(text[at + i]) : 0u;
  };
  switch (next(0)) {
    case 0x7F:
      return 1;
    case 0xC2:  // U+0080 to U+009F
      return next(1) < 0xA0 ? 2 : 0;
    case 0xE2:  // U+2028, U+2029
      return next(1) == 0x80 && (next(2) == 0xA8 || next(2) == 0xA9) ? 3 : 0;
    case 0xEF:  // U+FEFF, U+FFFE, U+FFFF
      return (next(1) == 0xBB && next(2) == 0xBF) || (next(1) == 0xBF && next(2) >= 0xBE) ? 3 : 0;
    default:
      return 0;
  }
}

bool needs_escapes(std::string_view text) {
  for (std::size_t at = 0; at < text.size(); ++at) {
    const auto c = static_cast<unsigned char>(text[at]);
    if ((c < 0x20 && c != '\n') || (c >= 0x7F && special_at(text, at) != 0)) return true;
  }
  return false;
}

/// The escape of a character of at most three bytes.
std::string escape(std::string_view bytes) {
  unsigned code = static_cast<unsigned char>(bytes[0]);
  if (bytes.size() > 1) code &= bytes.size() == 2 ? 0x1Fu : 0x0Fu;
  for (const char c : bytes.substr(1)) code = code << 6 | (static_cast<unsigned char>(c) & 0x3Fu);
  return fmt::format("\\u{:04X}", code);
}

class Writer {
 public:
  explicit Writer(std::string& out) : out_(out) {}

  /// Writes a value on its own line, or after "-".
  void value(const JsonValue& value, std::size_t indent, std::size_t depth, bool behind_dash) {
    if (value.IsObject() && !value.ObjectEmpty()) {
      object(value, indent, depth, behind_dash);
    } else if (value.IsArray() && !value.Empty()) {
      array(value, indent, depth, behind_dash);
    } else {
      scalar(value, indent);
      out_ += '\n';
    }
  }

 private:
  /// Limits the depth: the writer is recursive, and a server may send deeply nested objects.
  static void check(std::size_t depth) {
    if (depth >= kMaxDepth) throw Error("the object is nested too deeply for YAML; use JSON");
  }

  void line(std::size_t indent) { out_.append(indent, ' '); }

  void object(const JsonValue& value, std::size_t indent, std::size_t depth, bool first_is_placed) {
    check(depth);
    std::vector<std::pair<std::string_view, const JsonValue*>> members;
    for (const auto& member : value.GetObject())
      members.emplace_back(text_of(member.name), &member.value);
    std::sort(members.begin(), members.end(),
              [](const auto& a, const auto& b) { return a.first < b.first; });
    for (const auto& [name, member] : members) {
      if (!std::exchange(first_is_placed, false)) line(indent);
      text(name, indent, false);
      out_ += ':';
      if (member->IsObject() && !member->ObjectEmpty()) {
        out_ += '\n';
        object(*member, indent + 2, depth + 1, false);
      } else if (member->IsArray() && !member->Empty()) {
        out_ += '\n';
        array(*member, indent, depth + 1, false);
      } else {
        out_ += ' ';
        scalar(*member, indent + 2);
        out_ += '\n';
      }
    }
  }

  void array(const JsonValue& value_, std::size_t indent, std::size_t depth, bool first_is_placed) {
    check(depth);
    for (const JsonValue& element : value_.GetArray()) {
      if (!std::exchange(first_is_placed, false)) line(indent);
      out_ += "- ";
      value(element, indent + 2, depth + 1, true);
    }
  }

  void scalar(const JsonValue& value, std::size_t indent) {
    if (value.IsString()) {
      text(text_of(value), indent, true);
    } else {
      out_ += api::detail::to_json(value);  // empty objects and arrays, too
    }
  }

  void text(std::string_view text, std::size_t indent, bool may_be_block) {
    const bool lines = text.find('\n') != std::string_view::npos;
    const bool in_block = lines && may_be_block;
    if (needs_escapes(text) || (!in_block && (lines || reads_as_other(text)))) {
      quoted(text);
    } else if (in_block) {
      block(text, indent);
    } else if (can_be_plain(text)) {
      out_ += text;
    } else {
      out_ += '\'';
      for (const char c : text) out_.append(c == '\'' ? 2 : 1, c);
      out_ += '\'';
    }
  }

  /// After these escapes, a JSON string is a double-quoted YAML string.
  void quoted(std::string_view text) {
    std::string json;
    api::detail::write_json_string(text, json);
    for (std::size_t at = 0; at < json.size();) {
      if (const std::size_t size = special_at(json, at); size != 0) {
        out_ += escape(std::string_view(json).substr(at, size));
        at += size;
      } else {
        out_ += json[at++];
      }
    }
  }

  /// Writes a multi-line literal if it can be read back unchanged.
  void block(std::string_view text, std::size_t indent) {
    const bool begins_blank = text.front() == ' ' || text.front() == '\n';
    const bool unclear = text.back() == ' ' || text.find(" \n") != std::string_view::npos ||
                         (begins_blank && indent == 0);
    if (unclear) return quoted(text);
    out_ += '|';
    // The first line does not show the indentation.
    if (begins_blank) out_ += '2';
    if (!text.ends_with('\n')) {
      out_ += '-';
    } else if (text == "\n" || text.ends_with("\n\n")) {
      out_ += '+';
    }
    if (text.ends_with('\n')) text.remove_suffix(1);
    for (std::size_t begin = 0; begin <= text.size();) {
      const std::size_t end = std::min(text.find('\n', begin), text.size());
      out_ += '\n';
      if (end > begin) {
        line(indent);
        out_ += text.substr(begin, end - begin);
      }
      begin = end + 1;
    }
  }

  std::string& out_;
};

}  // namespace

std::string to_yaml(std::string_view json) {
  rapidjson::Document document;
  if (!parse_json(json, document)) throw Error("the text is not JSON");
  std::string out;
  Writer(out).value(document, 0, 0, false);
  return out;
}

}  // namespace lookout::api::detail
