#include "lookout/base/yaml_tree.h"

#include <fmt/format.h>
#include <rapidjson/reader.h>
#include <rapidjson/stringbuffer.h>
#include <rapidjson/writer.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/mark.h>
#include <yaml-cpp/parser.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <sstream>

#include "lookout/base/ascii.h"
#include "lookout/base/base64.h"
#include "lookout/base/json_strings.h"
#include "lookout/base/structural_scanner.h"

namespace lookout {
namespace {

using JsonWriter = rapidjson::Writer<rapidjson::StringBuffer>;

int line_of(const YAML::Mark& mark) { return mark.line + 1; }

/// yaml-cpp decodes the escapes "\N" (U+0085) and "\_" (U+00A0) to one byte each, which is not UTF-8.
/// The document is UTF-8, so every invalid byte is one of them. Replaces these with valid UTF-8.
std::string with_whole_escapes(std::string_view text) {
  std::string out;
  for (;;) {
    const std::size_t where = find_invalid_utf8(text);
    if (where == std::string_view::npos) break;
    out.append(text.substr(0, where)).append(1, '\xC2').append(1, text[where]);
    text.remove_prefix(where + 1);
  }
  return out.append(text);
}

/// A comment appended to the text. yaml-cpp accepts unclosed quotes at the end of the text; the last
/// scalar then contains the comment. (Texts have no control characters; see check_characters().)
constexpr std::string_view kEndOfText = "#\x01\x01 end of text";

using base::is_digit;

/// "12", "-0x1F", "0400", "0b11": an integer that Go's reader accepts, in decimal digits.
std::optional<std::string> integer(std::string_view text) {
  const bool negative = text.starts_with('-');
  const bool sign = negative || text.starts_with('+');
  text.remove_prefix(sign ? 1 : 0);
  int base = 10;
  if (text.size() > 1 && text.front() == '0') {
    const char kind = static_cast<char>(text[1] | 0x20);
    base = kind == 'x' ? 16 : kind == 'b' ? 2 : 8;
    text.remove_prefix(kind == 'x' || kind == 'b' || kind == 'o' ? 2 : 1);
  }
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number, base);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  constexpr std::uint64_t kLargest = std::numeric_limits<std::int64_t>::max();
  if (sign && number > kLargest + (negative ? 1 : 0)) return std::nullopt;
  return fmt::format("{}{}", negative && number != 0 ? "-" : "", number);
}

/// Whether it is like "1.5", "1.", ".5" or "1e3", with or without a sign.
bool is_decimal(std::string_view text) {
  const auto digits = [&] {
    std::size_t n = 0;
    while (n < text.size() && is_digit(text[n])) ++n;
    text.remove_prefix(n);
    return n;
  };
  const auto take = [&](std::string_view any) {
    if (text.empty() || any.find(text.front()) == std::string_view::npos) return false;
    text.remove_prefix(1);
    return true;
  };
  take("+-");
  const std::size_t whole = digits();
  if (take(".") ? whole + digits() == 0 : whole == 0) return false;
  if (take("eE")) {
    take("+-");
    if (digits() == 0) return false;
  }
  return text.empty();
}

/// The number in Go's JSON form: whole numbers have no decimal point.
std::string json_of(double number) {
  constexpr double kSmallest = 1e-6;
  constexpr double kLargest = 1e21;
  const double size = std::abs(number);
  const bool fixed = number == 0 || (size >= kSmallest && size < kLargest);
  std::array<char, 64> text{};
  const auto [end, error] =
      std::to_chars(text.data(), text.data() + text.size(), number,
                    fixed ? std::chars_format::fixed : std::chars_format::scientific);
  return {text.data(), end};
}

/// The JSON of an unquoted scalar that is a number in YAML 1.1, as in Go's reader. Numbers too large
/// for a double are text.
std::optional<std::string> number_as_json(std::string_view text) {
  if (text.empty() || !(is_digit(text.front()) || text.find_first_of("+-.") == 0))
    return std::nullopt;
  std::string plain(text);
  if (text.front() != '.') std::erase(plain, '_');
  if (auto whole = integer(plain)) return whole;
  if (!is_decimal(plain)) return std::nullopt;
  const char* const begin = plain.data() + (plain.front() == '+' ? 1 : 0);
  double number = 0;
  if (std::from_chars(begin, plain.data() + plain.size(), number).ec != std::errc())
    return std::nullopt;
  return json_of(number);
}

/// Converts a scalar with a YAML 1.1 tag ("!!int") as Go's reader does. Scalars with other tags are
/// text.
void convert(YamlNode& node, std::string_view tag) {
  constexpr std::string_view kPrefix = "tag:yaml.org,2002:";
  if (!tag.starts_with(kPrefix)) return;
  tag.remove_prefix(kPrefix.size());
  const auto take_as = [&](bool fits) {
    if (!fits) throw YamlError(node.line, fmt::format("a value is no !!{}", tag));
    node.quoted = false;
  };
  if (tag == "bool") {
    take_as(is_yaml_true(node.text) || is_yaml_false(node.text));
  } else if (tag == "int") {
    std::string digits = node.text;
    std::erase(digits, '_');
    take_as(integer(digits).has_value());
  } else if (tag == "float") {
    take_as(number_as_json(node.text).has_value());
  } else if (tag == "null") {
    node.kind = YamlNode::Kind::kNull;
    node.text.clear();
  } else if (tag == "binary") {
    auto bytes = decode_base64(node.text);
    if (!bytes) throw YamlError(node.line, "a !!binary value is not base64");
    node.text = repair_utf8(*std::move(bytes));
  }
}

/// The name of a field. Keys that are not text become their JSON.
std::string name_of(const YamlNode& key) {
  if (key.kind != YamlNode::Kind::kScalar) throw YamlError(key.line, "a key is not text");
  if (key.quoted) return key.text;
  if (is_yaml_true(key.text)) return "true";
  if (is_yaml_false(key.text)) return "false";
  return number_as_json(key.text).value_or(key.text);
}

/// Builds the tree from yaml-cpp's events. yaml-cpp's own tree has no limits.
class Builder : public YAML::EventHandler {
 public:
  /// `text` is yaml-cpp's input; empty if the events come from elsewhere.
  Builder(std::deque<YamlNode>& nodes, const YamlLimits& limits, std::string_view text = {})
      : nodes_(nodes), limits_(limits), text_(text) {
    constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
    lines_.push_back(text.starts_with(kByteOrderMark) ? kByteOrderMark.size() : 0);
    for (std::size_t i = 0; i < text.size(); ++i) {
      if (text[i] == '\n') lines_.push_back(i + 1);
    }
    anchors_.resize(1);  // yaml-cpp counts anchors from 1
  }

  const YamlNode* root() const { return root_; }

  /// Thrown at the start of a second document.
  struct Rest {
    YAML::Mark begin;
  };
  /// The text from a mark on. (yaml-cpp's positions do not count "\r" and the byte order mark.)
  std::string_view text_at(const YAML::Mark& mark) const {
    const auto line = static_cast<std::size_t>(mark.line);
    const std::size_t begin = line < lines_.size() ? lines_[line] : text_.size();
    return text_.substr(std::min(begin + static_cast<std::size_t>(mark.column), text_.size()));
  }

  /// The column of the first document, if it is a block.
  std::optional<int> block_column() const { return block_column_; }

  /// Throws Rest for the second document.
  void OnDocumentStart(const YAML::Mark& mark) override {
    if (root_ != nullptr) throw Rest{mark};
  }
  void OnDocumentEnd() override {}

  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    YamlNode& node = make(mark, YamlNode::Kind::kNull);
    check_colon(mark);
    check_element(mark);
    finish(node, anchor, Cost{.nodes = 1});
  }

  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    YamlNode& node = make(mark, YamlNode::Kind::kScalar);
    node.quoted = tag != "?";
    node.text = with_whole_escapes(value);
    if (node.text.find(kEndOfText) != std::string::npos)
      throw YamlError(node.line, "the closing quote of a text is missing");
    convert(node, tag);
    finish(node, anchor, Cost{.nodes = 1, .bytes = node.text.size()});
  }

  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    if (anchor >= anchors_.size() || anchors_[anchor].node == nullptr) {
      throw YamlError(line_of(mark), "an alias refers to a value that contains it");
    }
    at_ = mark.pos;
    const Anchor& target = anchors_[anchor];
    attach(*target.node, target.cost, line_of(mark));
  }

  void OnSequenceStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value style) override {
    note_block(mark, style);
    open(make(mark, YamlNode::Kind::kSequence), anchor, style);
  }
  void OnSequenceEnd() override { close(); }

  void OnMapStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value style) override {
    note_block(mark, style);
    open(make(mark, YamlNode::Kind::kMap), anchor, style);
  }
  void OnMapEnd() override { close(); }

 private:
  /// The size of a value, including everything below it.
  struct Cost {
    std::size_t nodes = 0;
    std::size_t bytes = 0;
    int height = 0;
  };
  struct Anchor {
    const YamlNode* node = nullptr;
    Cost cost;
  };
  struct Open {
    YamlNode* node;
    YAML::anchor_t anchor;
    YAML::EmitterStyle::value style;
    Cost cost;
    const YamlNode* key = nullptr;  // of a map: set until its value arrives
    int key_at = 0;
  };

  YamlNode& make(const YAML::Mark& mark, YamlNode::Kind kind) {
    if (nodes_.size() >= limits_.nodes) {
      throw YamlError(line_of(mark), fmt::format("more than {} values", limits_.nodes));
    }
    YamlNode& node = nodes_.emplace_back();
    node.kind = kind;
    node.line = line_of(mark);
    at_ = mark.pos;
    return node;
  }

  void note_block(const YAML::Mark& mark, YAML::EmitterStyle::value style) {
    if (open_.empty() && style == YAML::EmitterStyle::Block) block_column_ = mark.column;
  }

  /// yaml-cpp accepts a key without a colon in the last line of a map, with the value null. This
  /// null has the position of the key. (For "? key", the key is after the null.)
  void check_colon(const YAML::Mark& mark) const {
    if (open_.empty() || open_.back().style == YAML::EmitterStyle::Flow) return;
    if (open_.back().key != nullptr && open_.back().key_at == mark.pos)
      throw YamlError(line_of(mark), "could not find the ':' of a key");
  }

  /// yaml-cpp reads "[a,,b]" as a list with a null.
  void check_element(const YAML::Mark& mark) const {
    if (open_.empty() || open_.back().style != YAML::EmitterStyle::Flow) return;
    if (open_.back().node->kind == YamlNode::Kind::kSequence && text_at(mark).starts_with(','))
      throw YamlError(line_of(mark), "an element between two commas is missing");
  }

  void open(YamlNode& node, YAML::anchor_t anchor, YAML::EmitterStyle::value style) {
    open_.push_back({.node = &node,
                     .anchor = anchor,
                     .style = style,
                     .cost = {.nodes = 1, .bytes = 0, .height = 1}});
    check_depth(0, node.line);
  }

  void close() {
    const Open done = open_.back();
    open_.pop_back();
    finish(*done.node, done.anchor, done.cost);
  }

  void finish(YamlNode& node, YAML::anchor_t anchor, const Cost& cost) {
    if (anchor != 0) {
      if (anchors_.size() <= anchor) anchors_.resize(anchor + 1);
      anchors_[anchor] = {&node, cost};
    }
    attach(node, cost, node.line);
  }

  void attach(const YamlNode& node, const Cost& cost, int line) {
    check_depth(cost.height, line);
    if (open_.empty()) {
      root_ = &node;
      return;
    }
    Open& parent = open_.back();
    parent.cost.nodes += cost.nodes;
    parent.cost.bytes += cost.bytes;
    parent.cost.height = std::max(parent.cost.height, cost.height + 1);
    if (parent.cost.nodes > limits_.expanded_nodes || parent.cost.bytes > limits_.expanded_bytes) {
      throw YamlError(line, "the aliases expand to too many values");
    }
    if (parent.node->kind == YamlNode::Kind::kSequence) {
      parent.node->items.push_back(&node);
    } else if (parent.key == nullptr) {
      parent.key = &node;
      parent.key_at = at_;
    } else {
      const YamlNode* key = std::exchange(parent.key, nullptr);
      if (key->kind == YamlNode::Kind::kScalar && key->text == "<<" && !key->quoted) {
        merge_fields(*parent.node, node);
      } else {
        parent.node->fields.emplace_back(name_of(*key), &node);
      }
    }
  }

  /// As in Go's reader, merged fields replace those before them (find() starts at the end). If
  /// several maps are merged, the fields of the first one take precedence.
  static void merge_fields(YamlNode& map, const YamlNode& value) {
    std::vector<const YamlNode*> sources{&value};
    if (value.kind == YamlNode::Kind::kSequence)
      sources.assign(value.items.rbegin(), value.items.rend());
    for (const YamlNode* const source : sources) {
      if (source->kind != YamlNode::Kind::kMap)
        throw YamlError(map.line, "\"<<\" merges a value that is not a map");
      map.fields.insert(map.fields.end(), source->fields.begin(), source->fields.end());
    }
  }

  void check_depth(int height, int line) const {
    if (static_cast<int>(open_.size()) + height > limits_.depth) {
      throw YamlError(line, fmt::format("nested deeper than {} levels", limits_.depth));
    }
  }

  std::deque<YamlNode>& nodes_;
  const YamlLimits& limits_;
  const std::string_view text_;
  std::vector<std::size_t> lines_;  // offsets of the line starts
  std::optional<int> block_column_;
  const YamlNode* root_ = nullptr;
  std::vector<Open> open_;
  std::vector<Anchor> anchors_;
  int at_ = 0;  // the position of the last value
};

/// Text in memory. Counts the lines that were read.
class LineStream {
 public:
  using Ch = char;

  explicit LineStream(std::string_view text) : text_(text) {}

  // NOLINTBEGIN(readability-identifier-naming): RapidJSON's names.
  char Peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  char Take() {
    const char c = Peek();
    if (at_ < text_.size()) ++at_;
    if (c == '\n') ++line_;
    return c;
  }
  std::size_t Tell() const { return at_; }
  // RapidJSON requires these of every stream, and calls them only for in-situ parsing.
  char* PutBegin() { return nullptr; }
  void Put(char) {}
  void Flush() {}
  std::size_t PutEnd(char*) { return 0; }
  // NOLINTEND(readability-identifier-naming)

  int line() const { return line_; }

 private:
  std::string_view text_;
  std::size_t at_ = 0;
  int line_ = 1;
};

/// Passes the events of JSON to a builder.
class JsonEvents {
 public:
  JsonEvents(Builder& builder, const LineStream& stream) : builder_(builder), stream_(stream) {}

  bool Null() { return builder_.OnNull(mark(), 0), true; }
  bool Bool(bool value) { return scalar("?", value ? "true" : "false"); }
  bool RawNumber(const char* text, rapidjson::SizeType size, bool) {
    return scalar("?", {text, size});
  }
  bool String(const char* text, rapidjson::SizeType size, bool) {
    return scalar("!", {text, size});
  }
  bool Key(const char* text, rapidjson::SizeType size, bool) { return scalar("!", {text, size}); }
  bool StartObject() { return builder_.OnMapStart(mark(), "?", 0, kStyle), true; }
  bool EndObject(rapidjson::SizeType) { return builder_.OnMapEnd(), true; }
  bool StartArray() { return builder_.OnSequenceStart(mark(), "?", 0, kStyle), true; }
  bool EndArray(rapidjson::SizeType) { return builder_.OnSequenceEnd(), true; }
  // The parser passes all numbers as text.
  bool Int(int) { return false; }
  bool Uint(unsigned) { return false; }
  bool Int64(std::int64_t) { return false; }
  bool Uint64(std::uint64_t) { return false; }
  bool Double(double) { return false; }

 private:
  static constexpr auto kStyle = YAML::EmitterStyle::Flow;

  YAML::Mark mark() const {
    YAML::Mark out;
    out.line = stream_.line() - 1;
    return out;
  }
  bool scalar(const char* tag, const std::string& text) {
    builder_.OnScalar(mark(), tag, 0, text);
    return true;
  }

  Builder& builder_;
  const LineStream& stream_;
};

/// Accepts any JSON, if its text is UTF-8.
struct JsonCheck : rapidjson::BaseReaderHandler<rapidjson::UTF8<>, JsonCheck> {
  // RapidJSON decodes "\udc00", a lone surrogate, to invalid UTF-8.
  bool String(const char* text, rapidjson::SizeType size, bool) {
    return find_invalid_utf8({text, size}) == std::string_view::npos;
  }
};

std::size_t skip_spaces(std::string_view text) {
  return std::min(text.find_first_not_of(" \t\r\n"), text.size());
}

/// The size of the JSON object at the start of a text, or 0.
std::size_t json_object_size(std::string_view text) {
  if (!text.starts_with('{')) return 0;
  LineStream stream(text);
  JsonCheck check;
  rapidjson::Reader reader;
  constexpr unsigned kFlags = rapidjson::kParseIterativeFlag | rapidjson::kParseStopWhenDoneFlag |
                              rapidjson::kParseNumbersAsStringsFlag;
  return reader.Parse<kFlags>(stream, check).IsError() ? 0 : stream.Tell();
}

int count_lines(std::string_view text) {
  return static_cast<int>(std::count(text.begin(), text.end(), '\n'));
}

/// Adds the documents of a text without separators. `line` is its first line.
void add_documents(std::string_view text, int line, std::vector<YamlDocument>& out) {
  std::string room;
  std::string_view json = text;
  if (text.substr(skip_spaces(text)).starts_with('{')) json = repair_surrogates(text, room);
  std::size_t objects = 0;
  for (;; ++objects) {
    const std::size_t start = skip_spaces(text);
    const std::size_t size = json_object_size(json.substr(start));
    if (size == 0) break;
    line += count_lines(text.substr(0, start));
    const std::string_view object = json.substr(start, size);
    out.push_back({.text = std::string(object), .first_line = line, .is_json = true});
    line += count_lines(object);
    text.remove_prefix(start + size);
    json.remove_prefix(start + size);
  }
  const std::string_view rest = text.substr(skip_spaces(text));
  if (objects > 0 && rest.empty()) return;
  // yaml-cpp accepts a comma at the start of YAML.
  const bool is_json = objects > 1 || (objects == 1 && rest.find_first_of(",]}") == 0);
  out.push_back({.text = std::string(text), .first_line = line, .is_json = is_json});
}

/// yaml-cpp accepts any bytes, and replaces invalid ones by other characters.
void check_encoding(std::string_view text) {
  const std::size_t where = find_invalid_utf8(text);
  if (where >= text.size()) return;
  const auto before = text.substr(0, where);
  throw YamlError(count_lines(before) + 1, "the text is not UTF-8");
}

/// Whether YAML forbids the first character of a UTF-8 text.
bool is_forbidden(std::string_view text) {
  const auto lead = static_cast<unsigned char>(text.front());
  if (lead < 0x20) return text.find_first_of("\t\n\r") != 0;
  if (lead == 0x7F) return true;
  constexpr char kNextLine = '\x85';
  if (lead == 0xC2) return static_cast<unsigned char>(text[1]) < 0xA0 && text[1] != kNextLine;
  return text.starts_with("\xEF\xBF\xBE") || text.starts_with("\xEF\xBF\xBF");
}

/// yaml-cpp accepts forbidden characters, too.
void check_characters(std::string_view text) {
  int line = 1;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\n') ++line;
    if (is_forbidden(text.substr(i))) throw YamlError(line, "control characters are not allowed");
  }
}

/// Go's reader refuses other versions. (In YAML 1.2, "yes" is text.)
void check_version(std::string_view text) {
  int line = 1;
  for (;; ++line) {
    const std::string_view first = text.substr(0, text.find('\n'));
    if (first.starts_with("%YAML")) {
      const std::string_view version = base::trim(first.substr(5, first.find('#') - 5));
      if (version != "1.1") throw YamlError(line, "the document is not YAML 1.1");
    }
    const std::string_view content = base::trim(first);
    const bool before_document =
        content.empty() || content.starts_with('#') || first.starts_with('%');
    if (!before_document || first.size() == text.size()) return;
    text.remove_prefix(first.size() + 1);
  }
}

/// Replaces each "\r" that no "\n" follows, which yaml-cpp does not take for a line break.
std::string with_line_feeds(std::string_view text) {
  std::string out(text);
  for (std::size_t i = out.find('\r'); i != std::string::npos; i = out.find('\r', i + 1)) {
    if (i + 1 == out.size() || out[i + 1] != '\n') out[i] = '\n';
  }
  return out;
}

void check_indicators(std::string_view text, std::size_t most) {
  int line = 1;
  std::size_t count = 0;
  for (const char c : text) {
    if (c == '\n') ++line;
    if (std::string_view("[]{},:?\"'").find(c) == std::string_view::npos) continue;
    if (++count > most) throw YamlError(line, "too many brackets, commas, quotes and colons");
  }
}

/// yaml-cpp ends a document where it cannot continue: in "- a\nb: c", the map would be lost. As in
/// Go's reader, text after a block is ignored only if it begins to the left of the block.
void check_rest(YAML::Parser& parser, Builder& builder, std::string_view text) {
  if (!parser || !builder.block_column()) return;
  try {
    parser.HandleNextDocument(builder);
  } catch (const Builder::Rest& rest) {
    const std::string_view behind = builder.text_at(rest.begin);
    const std::string_view before = text.substr(0, text.size() - behind.size());
    const bool is_document = behind.empty() || behind.starts_with("---");
    const bool is_behind_end = before.find("\n...") != std::string_view::npos;
    if (is_document || is_behind_end || rest.begin.column < *builder.block_column()) return;
    throw YamlError(line_of(rest.begin), "this does not belong to the document before it");
  }
  throw YamlError(builder.root()->line, "there is a '%' directive after the document");
}

void write_string(JsonWriter& out, std::string_view text) {
  out.String(text.data(), static_cast<rapidjson::SizeType>(text.size()));
}

/// A YAML 1.1 number that JSON does not have.
bool is_infinity_or_nan(std::string_view text) {
  static constexpr std::array<std::string_view, 12> kWords = {".inf",  ".Inf",  ".INF",  "+.inf",
                                                              "+.Inf", "+.INF", "-.inf", "-.Inf",
                                                              "-.INF", ".nan",  ".NaN",  ".NAN"};
  return std::find(kWords.begin(), kWords.end(), text) != kWords.end();
}

void write_json(JsonWriter& out, const YamlNode& node) {
  switch (node.kind) {
    case YamlNode::Kind::kNull:
      out.Null();
      return;
    case YamlNode::Kind::kScalar:
      if (!node.quoted && (is_yaml_true(node.text) || is_yaml_false(node.text))) {
        out.Bool(is_yaml_true(node.text));
      } else if (const auto number = node.quoted ? std::nullopt : number_as_json(node.text)) {
        out.RawValue(number->data(), number->size(), rapidjson::kNumberType);
      } else if (!node.quoted && is_infinity_or_nan(node.text)) {
        throw YamlError(node.line, "JSON has no infinity and no NaN");
      } else {
        write_string(out, node.text);
      }
      return;
    case YamlNode::Kind::kSequence:
      out.StartArray();
      for (const YamlNode* item : node.items) write_json(out, *item);
      out.EndArray();
      return;
    case YamlNode::Kind::kMap: {
      std::map<std::string_view, const YamlNode*> fields;
      for (const auto& [key, value] : node.fields) fields[key] = value;
      out.StartObject();
      for (const auto& [key, value] : fields) {
        out.Key(key.data(), static_cast<rapidjson::SizeType>(key.size()));
        write_json(out, *value);
      }
      out.EndObject();
      return;
    }
  }
}

bool is_separator(std::string_view line) {
  return line.starts_with("---") && (line.size() == 3 || line[3] == ' ' || line[3] == '\t' ||
                                     line[3] == '\r' || line[3] == '\n');
}

}  // namespace

const YamlNode* YamlNode::find(std::string_view key) const {
  const auto field =
      std::find_if(fields.rbegin(), fields.rend(), [&](const auto& f) { return f.first == key; });
  return field == fields.rend() ? nullptr : field->second;
}

YamlTree::YamlTree(std::string_view text, const YamlLimits& limits) { read_yaml(text, limits); }

YamlTree::YamlTree(const YamlDocument& document, const YamlLimits& limits) {
  if (document.is_json) {
    read_json(document.text, limits);
  } else {
    read_yaml(document.text, limits);
  }
}

void YamlTree::read_yaml(std::string_view text, const YamlLimits& limits) {
  std::string whole = with_line_feeds(text);
  text = std::string_view(whole);
  check_encoding(text);
  check_characters(text);
  check_version(text);
  check_indicators(text, limits.indicators);
  // At the end of a text without a line break and without blanks, yaml-cpp does detect unclosed quotes.
  // A line break may change the last value, so this tree is not used.
  if (text.ends_with(' ') || text.ends_with('\t'))
    static_cast<void>(YamlTree(fmt::format("{}\n", text), limits));
  const std::size_t size = text.size();
  if (text.ends_with('\n')) whole += kEndOfText;
  text = std::string_view(whole).substr(0, size);
  std::istringstream in(whole);
  Builder builder(nodes_, limits, text);
  try {
    YAML::Parser parser(in);
    parser.HandleNextDocument(builder);
    check_rest(parser, builder, text);
  } catch (const YAML::Exception& e) {
    // Drop the text after the colon, a quote of the input.
    throw YamlError(line_of(e.mark), e.msg.substr(0, e.msg.find(": ")));
  }
  root_ = builder.root();
  if (root_ == nullptr) root_ = &nodes_.emplace_back();
}

void YamlTree::read_json(std::string_view text, const YamlLimits& limits) {
  check_encoding(text);
  LineStream stream(text);
  Builder builder(nodes_, limits);
  JsonEvents events(builder, stream);
  rapidjson::Reader reader;
  constexpr unsigned kFlags =
      rapidjson::kParseIterativeFlag | rapidjson::kParseNumbersAsStringsFlag;
  if (reader.Parse<kFlags>(stream, events).IsError() || stream.Tell() != text.size())
    throw YamlError(stream.line(), "this is not JSON");
  root_ = builder.root();
}

YamlLimits manifest_limits() {
  YamlLimits out;
  out.depth = 200;
  out.nodes = 2'000'000;
  out.indicators = 10'000'000;
  out.expanded_nodes = 2'000'000;
  out.expanded_bytes = 64u << 20;
  return out;
}

std::vector<YamlDocument> split_yaml_documents(std::string_view text) {
  std::vector<YamlDocument> out;
  std::string document;
  int first_line = 1;
  int line_number = 0;
  for (std::size_t start = 0; start < text.size();) {
    const std::size_t end = std::min(text.find('\n', start), text.size() - 1) + 1;
    const std::string_view line = text.substr(start, end - start);
    ++line_number;
    if (is_separator(line)) {
      add_documents(document, first_line, out);
      first_line = line_number;
      // The rest of the line may have content.
      document = std::string(3, ' ');
      document += line.substr(3);
    } else {
      document += line;
    }
    start = end;
  }
  add_documents(document, first_line, out);
  return out;
}

bool is_yaml_true(std::string_view word) {
  static constexpr std::array<std::string_view, 11> kWords = {
      "true", "True", "TRUE", "yes", "Yes", "YES", "on", "On", "ON", "y", "Y"};
  return std::find(kWords.begin(), kWords.end(), word) != kWords.end();
}

bool is_yaml_false(std::string_view word) {
  static constexpr std::array<std::string_view, 11> kWords = {
      "false", "False", "FALSE", "no", "No", "NO", "off", "Off", "OFF", "n", "N"};
  return std::find(kWords.begin(), kWords.end(), word) != kWords.end();
}

std::string to_json(const YamlNode& node) {
  rapidjson::StringBuffer buffer;
  JsonWriter writer(buffer);
  write_json(writer, node);
  return {buffer.GetString(), buffer.GetSize()};
}

}  // namespace lookout
