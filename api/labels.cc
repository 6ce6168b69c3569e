#include "lookout/api/labels.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <utility>

#include "lookout/api/detail/encoding.h"
#include "lookout/api/detail/go_text.h"
#include "lookout/api/validation.h"
#include "lookout/k8s/meta/v1.h"

namespace lookout::api {

SelectorError::SelectorError(std::string reason, std::string_view selector, std::size_t position)
    : Error(selector.empty() ? reason
                             : fmt::format("selector {}: {} (at character {})",
                                           detail::quote(selector), reason, position + 1)),
      reason_(std::move(reason)),
      position_(position) {}

namespace labels {
namespace {

// The texts of k8s.io/apimachinery/pkg/selection, in the order of Operator.
constexpr std::array<std::string_view, 9> kOperatorTexts = {"=",      "==", "!=", "in", "notin",
                                                            "exists", "!",  "gt", "lt"};
constexpr std::string_view kBinaryOperators = "in, notin, =, ==, !=, gt, lt";

bool is_one_of(const std::uint8_t* value, const std::vector<std::string>& encoded_values) {
  if (*value == detail::kTagAgain) value = detail::first_string(value);
  const auto size = static_cast<std::size_t>(detail::skip_value(value) - value);
  return std::any_of(encoded_values.begin(), encoded_values.end(), [&](const std::string& one) {
    return one.size() == size && std::memcmp(one.data(), value, size) == 0;
  });
}

void sort_by_key(std::vector<Requirement>& requirements) {
  std::stable_sort(requirements.begin(), requirements.end(),
                   [](const Requirement& a, const Requirement& b) { return a.key() < b.key(); });
}

/// A list of strings as Go's json package prints it; Kubernetes passes an empty list as nil.
std::string list_text(const std::vector<std::string>& values) {
  if (values.empty()) return "null";
  std::string out;
  for (const auto& value : values) out += (out.empty() ? "[" : ",") + detail::quote(value);
  return out + "]";
}

/// The error in a key, reported for `field`.
std::optional<StatusCause> check_key(std::string_view field, std::string_view key) {
  const auto messages = validation::check_qualified_name(key);
  if (messages.empty()) return std::nullopt;
  return validation::invalid(field, key, fmt::format("{}", fmt::join(messages, "; ")));
}

std::vector<StatusCause> check_requirement(const std::string& key, Operator op,
                                           const std::vector<std::string>& values) {
  std::vector<StatusCause> errors;
  if (const auto error = check_key("key", key)) errors.push_back(*error);
  const auto wrong_count = [&](std::string_view why) {
    errors.push_back({"FieldValueInvalid",
                      fmt::format("Invalid value: {}: {}", list_text(values), why), "values"});
  };
  switch (op) {
    case Operator::kIn:
    case Operator::kNotIn:
      if (values.empty()) wrong_count("for 'in', 'notin' operators, values set can't be empty");
      break;
    case Operator::kEquals:
    case Operator::kDoubleEquals:
    case Operator::kNotEquals:
      if (values.size() != 1) wrong_count("exact-match compatibility requires one single value");
      break;
    case Operator::kExists:
    case Operator::kDoesNotExist:
      if (!values.empty()) wrong_count("values set must be empty for exists and does not exist");
      break;
    case Operator::kGreaterThan:
    case Operator::kLessThan:
      if (values.size() != 1)
        wrong_count("for 'Gt', 'Lt' operators, exactly one value is required");
      for (std::size_t i = 0; i < values.size(); ++i) {
        if (detail::parse_int(values[i])) continue;
        errors.push_back(
            validation::invalid(fmt::format("values[{}]", i), values[i],
                                "for 'Gt', 'Lt' operators, the value must be an integer"));
      }
      break;
  }
  for (std::size_t i = 0; i < values.size(); ++i) {
    const auto messages = validation::check_label_value(values[i]);
    if (messages.empty()) continue;
    errors.push_back(validation::invalid(fmt::format("values[{}][{}]", i, key), values[i],
                                         fmt::format("{}", fmt::join(messages, "; "))));
  }
  return errors;
}

// ---------------------------------------------------------------------------------------------
// Lexer and parser follow those of k8s.io/apimachinery/pkg/labels step by step, so that they accept
// the same selectors and report the same errors.

enum class Token {
  kEnd,
  kClose,
  kComma,
  kNot,
  kDoubleEquals,
  kEquals,
  kGreaterThan,
  kIdentifier,
  kIn,
  kLessThan,
  kNotEquals,
  kNotIn,
  kOpen,
};

/// The tokens between a key and its values.
constexpr std::array<std::pair<Token, Operator>, 7> kOperators = {{
    {Token::kIn, Operator::kIn},
    {Token::kNotIn, Operator::kNotIn},
    {Token::kEquals, Operator::kEquals},
    {Token::kDoubleEquals, Operator::kDoubleEquals},
    {Token::kNotEquals, Operator::kNotEquals},
    {Token::kGreaterThan, Operator::kGreaterThan},
    {Token::kLessThan, Operator::kLessThan},
}};

struct Item {
  Token token = Token::kEnd;
  std::string_view text;
  std::size_t at = 0;
};

constexpr bool is_space(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; }
constexpr bool is_special(char c) {
  return std::string_view("=!(),><").find(c) != std::string_view::npos;
}

class Lexer {
 public:
  explicit Lexer(std::string_view text) : text_(text) {}

  /// A NUL before a token ends the text; after a token, it ends the token and is skipped.
  Item next() {
    while (at_ < text_.size() && is_space(text_[at_])) ++at_;
    const std::size_t begin = at_;
    if (at_ == text_.size() || text_[at_] == '\0') return {Token::kEnd, {}, begin};
    if (is_special(text_[at_])) return special(begin);
    while (at_ < text_.size() && text_[at_] != '\0' && !is_space(text_[at_]) &&
           !is_special(text_[at_]))
      ++at_;
    const std::string_view word = text_.substr(begin, at_ - begin);
    skip_nul();
    const Token token = word == "in"      ? Token::kIn
                        : word == "notin" ? Token::kNotIn
                                          : Token::kIdentifier;
    return {token, word, begin};
  }

 private:
  Item special(std::size_t begin) {
    const auto one = [&](Token token, std::size_t size) {
      at_ += size;
      skip_nul();
      return Item{token, text_.substr(begin, size), begin};
    };
    const bool equals_follows = at_ + 1 < text_.size() && text_[at_ + 1] == '=';
    switch (text_[at_]) {
      case '(':
        return one(Token::kOpen, 1);
      case ')':
        return one(Token::kClose, 1);
      case ',':
        return one(Token::kComma, 1);
      case '>':
        return one(Token::kGreaterThan, 1);
      case '<':
        return one(Token::kLessThan, 1);
      case '!':
        return equals_follows ? one(Token::kNotEquals, 2) : one(Token::kNot, 1);
      default:
        return equals_follows ? one(Token::kDoubleEquals, 2) : one(Token::kEquals, 1);
    }
  }

  void skip_nul() {
    if (at_ < text_.size() && text_[at_] == '\0') ++at_;
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {
    Lexer lexer(text);
    do {
      items_.push_back(lexer.next());
    } while (items_.back().token != Token::kEnd);
  }

  std::vector<Requirement> parse() {
    std::vector<Requirement> requirements;
    for (;;) {
      const Item item = peek_value();
      if (item.token == Token::kEnd) return requirements;
      if (item.token != Token::kIdentifier && item.token != Token::kNot) {
        fail(item,
             fmt::format("found '{}', expected: !, identifier, or 'end of string'", item.text));
      }
      requirements.push_back(parse_requirement());
      const Item after = take_value();
      if (after.token == Token::kEnd) return requirements;
      if (after.token != Token::kComma) {
        fail(after, fmt::format("found '{}', expected: ',' or 'end of string'", after.text));
      }
      const Item next = peek_value();
      if (next.token != Token::kIdentifier && next.token != Token::kNot)
        fail(next, fmt::format("found '{}', expected: identifier after ','", next.text));
    }
  }

 private:
  [[noreturn]] void fail(const Item& at, std::string reason) const {
    throw SelectorError(std::move(reason), text_, at.at);
  }
  [[noreturn]] void fail_requirement(const Item& at, std::string_view why) const {
    fail(at, fmt::format("unable to parse requirement: {}", why));
  }

  /// "in" and "notin" are operators only where an operator is expected.
  static Item as_value(Item item) {
    if (item.token == Token::kIn || item.token == Token::kNotIn) item.token = Token::kIdentifier;
    return item;
  }
  Item peek_value() const { return as_value(items_[position_]); }
  Item take_value() { return as_value(items_[position_++]); }
  Item take_operator() { return items_[position_++]; }

  Requirement parse_requirement() {
    Item key = take_value();
    const bool negated = key.token == Token::kNot;
    if (negated) key = take_value();
    if (key.token != Token::kIdentifier)
      fail_requirement(key, fmt::format("found '{}', expected: identifier", key.text));
    if (const auto error = check_key("<nil>", key.text))
      fail_requirement(key, validation::to_string({&*error, 1}));
    if (negated) return make(key, Operator::kDoesNotExist, {});
    const Token next = peek_value().token;
    if (next == Token::kEnd || next == Token::kComma) return make(key, Operator::kExists, {});

    const Operator op = parse_operator();
    const bool set = op == Operator::kIn || op == Operator::kNotIn;
    return make(key, op, set ? parse_set() : std::vector<std::string>{parse_exact_value()});
  }

  Requirement make(const Item& key, Operator op, std::vector<std::string> values) const {
    std::sort(values.begin(), values.end());
    values.erase(std::unique(values.begin(), values.end()), values.end());
    try {
      return {std::string(key.text), op, std::move(values)};
    } catch (const SelectorError& e) {
      fail_requirement(key, e.reason());
    }
  }

  Operator parse_operator() {
    const Item item = take_operator();
    for (const auto& [token, op] : kOperators) {
      if (token == item.token) return op;
    }
    fail_requirement(item, fmt::format("found '{}', expected: {}", item.text, kBinaryOperators));
  }

  std::string parse_exact_value() {
    const Item next = peek_value();
    if (next.token == Token::kEnd || next.token == Token::kComma) return {};
    const Item item = take_value();
    if (item.token != Token::kIdentifier)
      fail_requirement(item, fmt::format("found '{}', expected: identifier", item.text));
    return std::string(item.text);
  }

  std::vector<std::string> parse_set() {
    const Item open = take_value();
    if (open.token != Token::kOpen)
      fail_requirement(open, fmt::format("found '{}' expected: '('", open.text));
    const Item first = peek_value();
    if (first.token == Token::kClose) {
      take_value();
      return {""};
    }
    if (first.token != Token::kIdentifier && first.token != Token::kComma) {
      fail_requirement(first,
                       fmt::format("found '{}', expected: ',', ')' or identifier", first.text));
    }
    std::vector<std::string> values;
    for (;;) {
      const Item item = take_value();
      if (item.token != Token::kIdentifier && item.token != Token::kComma)
        fail_requirement(item, fmt::format("found '{}', expected: ',', or identifier", item.text));
      const Item next = peek_value();
      if (item.token == Token::kIdentifier) {
        values.emplace_back(item.text);
        if (next.token != Token::kComma && next.token != Token::kClose)
          fail_requirement(next, fmt::format("found '{}', expected: ',' or ')'", next.text));
      } else if (values.empty() || next.token == Token::kComma || next.token == Token::kClose) {
        values.emplace_back();  // nothing before, between or after commas is the empty value
      }
      if (next.token == Token::kClose) {
        take_value();
        return values;
      }
    }
  }

  std::string_view text_;
  std::vector<Item> items_;
  std::size_t position_ = 0;
};

}  // namespace

// ---------------------------------------------------------------------------------------------

Requirement::Requirement(std::string key, Operator op, std::vector<std::string> values)
    : key_(std::move(key)), op_(op), values_(std::move(values)) {
  if (const auto errors = check_requirement(key_, op_, values_); !errors.empty())
    throw SelectorError(validation::to_string(errors), {}, 0);
  std::sort(values_.begin(), values_.end());
  values_.erase(std::unique(values_.begin(), values_.end()), values_.end());
  encoded_key_ = detail::encode_whole_key(key_);
  for (const auto& value : values_) encoded_values_.push_back(detail::encode_whole_string(value));
  if (op_ == Operator::kGreaterThan || op_ == Operator::kLessThan)
    number_ = detail::parse_int(values_.front()).value_or(0);
}

bool Requirement::matches(Value labels) const {
  const std::uint8_t* value = detail::find_member(labels.data(), encoded_key_);
  switch (op_) {
    case Operator::kEquals:
    case Operator::kDoubleEquals:
    case Operator::kIn:
      return value != nullptr && is_one_of(value, encoded_values_);
    case Operator::kNotEquals:
    case Operator::kNotIn:
      return value == nullptr || !is_one_of(value, encoded_values_);
    case Operator::kExists:
      return value != nullptr;
    case Operator::kDoesNotExist:
      return value == nullptr;
    case Operator::kGreaterThan:
    case Operator::kLessThan: {
      const auto number = detail::parse_int(Value(value).as_string());
      return number && (op_ == Operator::kGreaterThan ? *number > number_ : *number < number_);
    }
  }
  return false;
}

std::string Requirement::to_string() const {
  switch (op_) {
    case Operator::kExists:
      return key_;
    case Operator::kDoesNotExist:
      return "!" + key_;
    case Operator::kIn:
    case Operator::kNotIn:
      return fmt::format("{} {} ({})", key_, kOperatorTexts[static_cast<std::size_t>(op_)],
                         fmt::join(values_, ","));
    case Operator::kGreaterThan:
      return key_ + ">" + values_.front();
    case Operator::kLessThan:
      return key_ + "<" + values_.front();
    default:
      return fmt::format("{}{}{}", key_, kOperatorTexts[static_cast<std::size_t>(op_)],
                         values_.front());
  }
}

Selector::Selector(std::vector<Requirement> requirements) : requirements_(std::move(requirements)) {
  sort_by_key(requirements_);
}

bool Selector::matches(Value labels) const {
  return !nothing_ && std::all_of(requirements_.begin(), requirements_.end(),
                                  [&](const Requirement& one) { return one.matches(labels); });
}

std::string Selector::to_string() const {
  std::string out;
  for (const auto& requirement : requirements_) {
    if (!out.empty()) out += ',';
    out += requirement.to_string();
  }
  return out;
}

Selector parse(std::string_view text) { return Selector(Parser(text).parse()); }

Selector nothing() {
  Selector selector;
  selector.nothing_ = true;
  return selector;
}

Selector from_set(std::initializer_list<std::pair<std::string_view, std::string_view>> wanted) {
  return from_set<>(wanted);
}

Selector from(const k8s::meta::v1::LabelSelector& selector) {
  if (!selector) return nothing();
  std::vector<Requirement> requirements;
  for (const auto& [key, value] : selector.match_labels()) {
    requirements.emplace_back(std::string(key), Operator::kEquals, std::vector{std::string(value)});
  }
  for (const auto expression : selector.match_expressions()) {
    const std::string_view name = expression.operator_();
    const auto op = name == "In"             ? std::optional(Operator::kIn)
                    : name == "NotIn"        ? std::optional(Operator::kNotIn)
                    : name == "Exists"       ? std::optional(Operator::kExists)
                    : name == "DoesNotExist" ? std::optional(Operator::kDoesNotExist)
                                             : std::nullopt;
    if (!op) {
      throw SelectorError(
          fmt::format("{} is not a valid label selector operator", detail::quote(name)), {}, 0);
    }
    std::vector<std::string> values;
    for (const auto value : expression.values()) values.emplace_back(value);
    requirements.emplace_back(std::string(expression.key()), *op, std::move(values));
  }
  return Selector(std::move(requirements));
}

}  // namespace labels
}  // namespace lookout::api
