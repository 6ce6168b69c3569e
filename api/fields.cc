#include "lookout/api/fields.h"

#include <fmt/format.h>

#include <algorithm>

#include "lookout/api/detail/encoding.h"
#include "lookout/api/detail/go_text.h"

namespace lookout::api::fields {
namespace {

constexpr std::string_view kSpecial = "\\,=";

/// The path of a field. Invalid fields get a path that no object has.
FieldPath path_of(const std::string& field) {
  try {
    return FieldPath(field);
  } catch (const InvalidArgument&) {
    return FieldPath("[*]");
  }
}

bool has_text(Value value, const std::string& text) {
  switch (value.kind()) {
    case Value::Kind::kString:
      return value.as_string() == text;
    case Value::Kind::kBool:
    case Value::Kind::kNumber:
      return value.to_json() == text;
    default:
      return text.empty();
  }
}

/// Splits at commas that are not escaped with a backslash.
std::vector<std::string_view> split_terms(std::string_view text) {
  std::vector<std::string_view> terms;
  std::size_t begin = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\\') {
      ++i;
    } else if (text[i] == ',') {
      terms.push_back(text.substr(begin, i - begin));
      begin = i + 1;
    }
  }
  terms.push_back(text.substr(begin));
  return terms;
}

class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  Selector parse() const {
    auto terms = split_terms(text_);
    std::sort(terms.begin(), terms.end());
    std::vector<Requirement> requirements;
    for (const auto term : terms) {
      if (term.empty()) continue;
      Requirement requirement = parse_term(term);
      if (!requirement.field.empty() || !requirement.value.empty())
        requirements.push_back(std::move(requirement));
    }
    return Selector(std::move(requirements));
  }

 private:
  [[noreturn]] void fail(std::string_view at, std::string reason) const {
    throw SelectorError(std::move(reason), text_,
                        static_cast<std::size_t>(at.data() - text_.data()));
  }

  Requirement parse_term(std::string_view term) const {
    // Split at the first operator: field names have no escapes.
    const std::size_t equals = term.find('=');
    if (equals == std::string_view::npos) {
      fail(term, fmt::format("invalid selector: '{}'; can't understand '{}'", text_, term));
    }
    const bool equal = equals == 0 || term[equals - 1] != '!';
    std::string_view value = term.substr(equals + 1);
    if (equal && value.starts_with('=')) value.remove_prefix(1);
    return {std::string(term.substr(0, equal ? equals : equals - 1)), unescape(value), equal};
  }

  std::string unescape(std::string_view value) const {
    if (value.find_first_of(kSpecial) == std::string_view::npos) return std::string(value);
    const auto bad_escape = [&](std::string_view at, std::string_view what) {
      fail(at, fmt::format("invalid field selector: invalid escape sequence: \\{}", what));
    };
    std::string out;
    bool escaped = false;
    while (!value.empty()) {
      const detail::Rune rune = detail::first_rune(value);
      const std::string_view text = rune.valid ? value.substr(0, rune.size) : "\uFFFD";
      const bool special = kSpecial.find(text) != std::string_view::npos;
      if (escaped) {
        if (!special) bad_escape(value, text);
        out += text;
        escaped = false;
      } else if (text == "\\") {
        escaped = true;
      } else if (special) {
        fail(value, fmt::format("invalid field selector: unescaped character in value: {}",
                                static_cast<std::uint32_t>(rune.code)));
      } else {
        out += text;
      }
      value.remove_prefix(rune.size);
    }
    if (escaped) bad_escape(value, "");
    return out;
  }

  std::string_view text_;
};

}  // namespace

Selector::Selector(std::vector<Requirement> requirements) : requirements_(std::move(requirements)) {
  for (const auto& requirement : requirements_) {
    Location location{{}, path_of(requirement.field)};
    for (const auto& step : location.path.steps()) {
      const auto* name = std::get_if<std::string>(&step);
      if (name == nullptr) {
        location.encoded_keys.clear();
        break;
      }
      location.encoded_keys.push_back(detail::encode_whole_key(*name));
    }
    locations_.push_back(std::move(location));
  }
}

bool Selector::matches(const Object& object) const {
  for (std::size_t i = 0; i < requirements_.size(); ++i) {
    const auto& [keys, path] = locations_[i];
    const std::uint8_t* value = object.body().data();
    for (const auto& key : keys) value = detail::find_member(value, key);
    const Value field = keys.empty() ? object.at(path) : Value(value);
    if (has_text(field, requirements_[i].value) != requirements_[i].equal) return false;
  }
  return true;
}

std::string Selector::to_string() const {
  std::string out;
  for (const auto& [field, value, equal] : requirements_) {
    if (!out.empty()) out += ',';
    out += field + (equal ? "=" : "!=") + escape_value(value);
  }
  return out;
}

Selector parse(std::string_view text) { return Parser(text).parse(); }

std::string escape_value(std::string_view value) {
  std::string out;
  for (const char c : value) {
    if (kSpecial.find(c) != std::string_view::npos) out += '\\';
    out += c;
  }
  return out;
}

}  // namespace lookout::api::fields
