#include "lookout/api/detail/json_path.h"

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "lookout/api/detail/go_text.h"
#include "lookout/base/error.h"

namespace lookout::api::detail {

class JsonPath::Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  bool parse(std::vector<Step>& steps) { return parse_steps(steps) && at_ == text_.size(); }

 private:
  static constexpr std::string_view kEndOfName = ".[]()=!<> ";

  bool more() const { return at_ < text_.size(); }
  bool take(std::string_view word) {
    if (!text_.substr(at_).starts_with(word)) return false;
    at_ += word.size();
    return true;
  }

  bool parse_steps(std::vector<Step>& steps) {
    for (;;) {
      if (take("..")) {
        steps.push_back({Step::Kind::kDescend});
        if (!more() || (text_[at_] != '[' && !parse_name(steps))) return false;
      } else if (take(".")) {
        if (!more()) return true;  // ".": the whole
        if (text_[at_] == '[') continue;
        if (!parse_name(steps)) return false;
      } else if (take("[")) {
        if (!parse_brackets(steps)) return false;
      } else {
        return true;
      }
    }
  }

  bool parse_name(std::vector<Step>& steps) {
    if (take("*")) {
      steps.push_back({Step::Kind::kWildcard});
      return true;
    }
    std::string name;
    for (; more() && kEndOfName.find(text_[at_]) == std::string_view::npos; ++at_) {
      if (text_[at_] == '\\' && at_ + 1 < text_.size()) ++at_;
      name += text_[at_];
    }
    if (name.empty()) return false;
    steps.push_back({Step::Kind::kMember, std::move(name)});
    return true;
  }

  bool parse_brackets(std::vector<Step>& steps) {
    if (take("*]")) {
      steps.push_back({Step::Kind::kWildcard});
      return true;
    }
    if (take("?(")) return parse_filter(steps);
    std::vector<std::vector<Step>> choices;
    do {
      spaces();
      if (!parse_choice(choices.emplace_back())) return false;
      spaces();
    } while (take(","));
    if (!take("]")) return false;
    if (choices.size() == 1) {
      steps.push_back(std::move(choices.front().front()));
    } else {
      Step step;
      step.kind = Step::Kind::kUnion;
      step.choices = std::move(choices);
      steps.push_back(std::move(step));
    }
    return true;
  }

  /// A quoted name, or an index or a slice.
  bool parse_choice(std::vector<Step>& steps) {
    if (!more() || (text_[at_] != '\'' && text_[at_] != '"')) return parse_slice(steps);
    const std::size_t begin = at_ + 1;
    Step step;
    if (!parse_quoted(step.name)) return false;
    // As in kubectl, 'metadata.name' is a path. (If nothing is there, it is one name; kubectl then
    // finds nothing.)
    const std::string path = "." + std::string(text_.substr(begin, at_ - 1 - begin));
    std::vector<Step> inner;
    if (step.name.find('.') != std::string::npos && Parser(path).parse(inner))
      step.choices.push_back(std::move(inner));
    steps.push_back(std::move(step));
    return true;
  }

  bool parse_quoted(std::string& out) {
    const char quote = text_[at_++];
    for (; more() && text_[at_] != quote; ++at_) {
      if (text_[at_] == '\\' && at_ + 1 < text_.size()) ++at_;
      out += text_[at_];
    }
    if (!more()) return false;
    ++at_;
    return true;
  }

  bool parse_number(std::optional<std::int64_t>& out) {
    const std::size_t begin = at_;
    while (more() && (text_[at_] == '-' || (text_[at_] >= '0' && text_[at_] <= '9'))) ++at_;
    if (at_ == begin) return true;
    out = parse_int(text_.substr(begin, at_ - begin));
    return out.has_value();
  }

  bool parse_slice(std::vector<Step>& steps) {
    Step step;
    step.kind = Step::Kind::kSlice;
    if (!parse_number(step.begin)) return false;
    if (!more()) return false;
    if (text_[at_] != ':') {
      if (!step.begin) return false;
      step.single = true;
      steps.push_back(std::move(step));
      return true;
    }
    std::optional<std::int64_t> stride;
    if (!take(":") || !parse_number(step.end)) return false;
    if (take(":") && !parse_number(stride)) return false;
    step.stride = stride.value_or(1);
    if (step.stride <= 0) return false;
    steps.push_back(std::move(step));
    return true;
  }

  bool parse_filter(std::vector<Step>& steps) {
    Step step;
    step.kind = Step::Kind::kFilter;
    spaces();
    if (!take("@") || !parse_steps(step.left)) return false;
    spaces();
    for (const char* word : {"==", "!=", "<=", ">=", "<", ">"}) {
      if (!take(word)) continue;
      step.comparison = word;
      break;
    }
    if (!step.comparison.empty()) {
      spaces();
      step.right_is_text = more() && (text_[at_] == '\'' || text_[at_] == '"');
      if (step.right_is_text) {
        if (!parse_quoted(step.right)) return false;
      } else {
        while (more() && text_[at_] != ')' && text_[at_] != ' ') step.right += text_[at_++];
        if (step.right.empty()) return false;
      }
      spaces();
    }
    if (!take(")]")) return false;
    steps.push_back(std::move(step));
    return true;
  }

  void spaces() {
    while (more() && text_[at_] == ' ') ++at_;
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

std::optional<JsonPath> JsonPath::parse(std::string_view text) {
  JsonPath path;
  // "$" and the dot of the first name are optional.
  if (text.starts_with('$') || text.starts_with('@')) text.remove_prefix(1);
  std::string copy(text);
  if (!copy.empty() && copy.front() != '.' && copy.front() != '[') copy.insert(0, ".");
  if (!Parser(copy).parse(path.steps_)) return std::nullopt;
  return path;
}

namespace {

void add_descendants(Value value, std::vector<Value>& out) {
  out.push_back(value);
  for (const auto& [name, member] : value.members()) add_descendants(member, out);
  for (const Value element : value.elements()) add_descendants(element, out);
}

/// A scalar as text, for the comparison in a filter.
std::string scalar_text(Value value) {
  return value.is_string() ? std::string(value.as_string()) : value.to_json();
}

}  // namespace

bool JsonPath::passes(const Step& step, Value value) {
  const std::vector<Value> found = walk(step.left, {value}, false);
  if (step.comparison.empty()) return !found.empty();
  if (found.size() != 1) return false;
  const Value left = found.front();
  const auto number = left.to_double();
  char* end = nullptr;
  const double right = std::strtod(step.right.c_str(), &end);
  int order = 0;
  if (!step.right_is_text && number && end == step.right.c_str() + step.right.size()) {
    order = *number < right ? -1 : *number > right ? 1 : 0;
  } else if (left.is_string() == step.right_is_text) {
    const int compared = scalar_text(left).compare(step.right);
    order = compared < 0 ? -1 : compared > 0 ? 1 : 0;
  } else {
    return step.comparison == "!=";
  }
  if (step.comparison == "==") return order == 0;
  if (step.comparison == "!=") return order != 0;
  if (step.comparison == "<") return order < 0;
  if (step.comparison == ">") return order > 0;
  return step.comparison == "<=" ? order <= 0 : order >= 0;
}

void JsonPath::apply(const Step& step, Value value, std::vector<Value>& out) {
  switch (step.kind) {
    case Step::Kind::kMember: {
      std::vector<Value> found;
      if (!step.choices.empty()) found = walk(step.choices.front(), {value}, false);
      if (!found.empty()) {
        out.insert(out.end(), found.begin(), found.end());
      } else if (const Value member = value[step.name]; member.exists()) {
        out.push_back(member);
      }
      return;
    }
    case Step::Kind::kUnion:
      // (See walk.)
      return;
    case Step::Kind::kWildcard:
      for (const auto& [name, member] : value.members()) out.push_back(member);
      for (const Value element : value.elements()) out.push_back(element);
      return;
    case Step::Kind::kDescend:
      add_descendants(value, out);
      return;
    case Step::Kind::kFilter:
      for (const Value element : value.elements()) {
        if (passes(step, element)) out.push_back(element);
      }
      return;
    case Step::Kind::kSlice: {
      if (!value.is_array()) return;
      const auto size = static_cast<std::int64_t>(value.size());
      const auto from_end = [&](std::int64_t at) { return at < 0 ? at + size : at; };
      std::int64_t begin = from_end(step.begin.value_or(0));
      if (step.single && (begin < 0 || begin >= size)) return;
      std::int64_t end = step.single ? begin + 1 : from_end(step.end.value_or(size));
      begin = std::clamp<std::int64_t>(begin, 0, size);
      end = std::clamp<std::int64_t>(end, begin, size);
      const std::int64_t stride = std::min(step.stride, size);
      for (std::int64_t at = begin; at < end; at += stride)
        out.push_back(value[static_cast<std::size_t>(at)]);
      return;
    }
  }
}

std::vector<Value> JsonPath::walk(const std::vector<Step>& steps, std::vector<Value> from,
                                  bool in_bounds) {
  for (const Step& step : steps) {
    std::vector<Value> further;
    if (step.kind == Step::Kind::kUnion) {
      // As in kubectl: the first choice of all values, then the second.
      for (const auto& choice : step.choices) {
        const std::vector<Value> found = walk(choice, from, in_bounds);
        further.insert(further.end(), found.begin(), found.end());
      }
    } else {
      for (const Value value : from) {
        if (in_bounds) check_bounds(step, value);
        apply(step, value, further);
      }
    }
    from = std::move(further);
  }
  return from;
}

void JsonPath::check_bounds(const Step& step, Value value) {
  if (step.kind != Step::Kind::kSlice || !value.is_array()) return;
  const auto size = static_cast<std::int64_t>(value.size());
  const auto from_end = [&](std::int64_t at) { return at < 0 ? at + size : at; };
  const auto fail = [&](std::int64_t at) {
    throw Error("array index out of bounds: index " + std::to_string(at) + ", length " +
                std::to_string(size));
  };
  const std::int64_t begin = from_end(step.begin.value_or(0));
  if (step.single) {
    if (begin < 0 || begin >= size) fail(begin);
    return;
  }
  const std::int64_t end = from_end(step.end.value_or(size));
  // As in kubectl, an empty slice may be anywhere.
  if (begin == end) return;
  if (begin < 0 || begin >= size) fail(begin);
  if (end < 0 || end > size) fail(end - 1);
  if (begin > end) {
    throw Error("starting index " + std::to_string(begin) + " is greater than ending index " +
                std::to_string(end));
  }
}

std::vector<Value> JsonPath::find(Value root) const { return walk(steps_, {root}, false); }

std::vector<Value> JsonPath::find_in_bounds(Value root) const { return walk(steps_, {root}, true); }

}  // namespace lookout::api::detail
