// RapidJSON in its own namespace: it is compiled with SSE2 here, and other parts of the program may
// compile the same templates without, which would violate the one-definition rule.
#define RAPIDJSON_NAMESPACE lookout_rapidjson
#define RAPIDJSON_NAMESPACE_BEGIN namespace lookout_rapidjson {
#define RAPIDJSON_NAMESPACE_END }
#if defined(__SSE2__)
#define RAPIDJSON_SSE2
#endif
#include "api/json_parser.h"

#include <fmt/format.h>
#include <rapidjson/error/en.h>
#include <rapidjson/reader.h>

#include <cstring>
#include <string_view>
#include <vector>

#include "api/field_set_parser.h"
#include "api/object_key.h"
#include "api/projection_node.h"
#include "api/repeated_values.h"
#include "lookout/api/detail/fast_json.h"
#include "lookout/api/detail/flat_writer.h"
#include "lookout/api/detail/limits.h"
#include "lookout/base/json_strings.h"
#include "lookout/base/structural_scanner.h"

namespace lookout_rapidjson {

/// Normally the parser uses a copy of the stream during calls of the handler; here the handler must
/// be able to advance the stream. (Side effect: a number's text is passed with a pointer to its end;
/// see Handler::RawNumber.)
template <>
struct StreamTraits<InsituStringStream> {
  enum { copyOptimization = 0 };
};

}  // namespace lookout_rapidjson

namespace lookout::api::detail {
namespace {

namespace json = lookout_rapidjson;

// (Iterative: deeply nested objects would overflow the stack.)
constexpr unsigned kParseFlags =
    json::kParseInsituFlag | json::kParseNumbersAsStringsFlag | json::kParseIterativeFlag;
// The parser reads whole vector registers, and expects a NUL after the text.
constexpr std::size_t kPadding = 32;

/// Writes the parser's events, without fields that the projection drops.
class Handler {
 public:
  Handler(FlatWriter& writer, const ProjectionNode* projection)
      : writer_(writer), projection_(projection), field_sets_(writer) {}

  /// Skipping advances `stream`; if it is null, the parser calls skipping().
  void start(json::InsituStringStream* stream, std::string_view text, bool event) {
    stream_ = stream;
    text_ = text;
    nodes_.clear();
    next_ = projection_;
    skip_next_ = false;
    in_fields_ = false;
    error_ = nullptr;
    envelope_ = event ? Envelope::kBefore : Envelope::kNone;
    event_type_.clear();
    has_object_ = false;
    depth_ = 0;
  }

  /// For a value below `depth` open containers, after start().
  void start_below(std::size_t depth, const ProjectionNode* projection) {
    depth_ = depth;
    next_ = projection;
  }

  void set_max_depth(std::size_t depth) { max_depth_ = depth; }

  /// The store of repeated values; may be null.
  void set_repeated(RepeatedValues* repeated) {
    repeated_ = repeated;
    field_sets_.set_repeated(repeated);
  }

  const char* error() const { return error_; }
  const std::string& event_type() const { return event_type_; }
  bool has_object() const { return has_object_; }

  /// For FastJson, which skips values itself.
  bool skipping() const { return skip_next_; }
  void skipped() { skip_next_ = false; }

  std::size_t recall(std::string_view rest, std::size_t& levels) {
    // (A projection may drop parts of a value.)
    if (nodes_.empty() || next_ != nullptr) return 0;
    if (repeated_ != nullptr) {
      const RepeatedValues::Found found = repeated_->find(rest);
      // (One more level is possible: `{}` is not counted.)
      if (found.text_size != 0 && fits(found.levels + 1)) {
        writer_.container(found.value);
        next_ = nodes_.back();
        levels = found.levels;
        return found.text_size;
      }
    }
    if (!in_fields_ || too_deep()) return 0;
    // (As above.)
    const FieldSetParser::Taken taken = field_sets_.parse(rest, deepest() - depth_ - 1);
    if (taken.text_size != 0) next_ = nodes_.back();
    levels = taken.levels;
    return taken.text_size;
  }
  void remember(std::string_view text, std::size_t levels) {
    if (repeated_ == nullptr || nodes_.empty() || !closed_whole_) return;
    repeated_->keep(text, writer_.closed_container(), levels);
  }

  bool Null() {
    return scalar([&] { writer_.null(); });
  }
  bool Bool(bool value) {
    return scalar([&] { writer_.boolean(value); });
  }
  bool RawNumber(const char* text, json::SizeType size, bool) {
    return scalar([&] { writer_.number({text - size, size}); });
  }
  bool String(const char* text, json::SizeType size, bool) {
    if (envelope_ == Envelope::kType) return take_type({text, size});
    return scalar([&] { writer_.string({text, size}); });
  }
  // The parser passes all numbers as text.
  bool Int(int) { return false; }
  bool Uint(unsigned) { return false; }
  bool Int64(std::int64_t) { return false; }
  bool Uint64(std::uint64_t) { return false; }
  bool Double(double) { return false; }

  bool StartObject() { return begin(true); }
  bool StartArray() { return begin(false); }

  bool Key(const char* text, json::SizeType size, bool) {
    const std::string_view name(text, size);
    if (envelope_ != Envelope::kNone && depth_ == 1) {
      if (name == "type") {
        envelope_ = Envelope::kType;
      } else if (name == "object") {
        envelope_ = Envelope::kObject;
        writer_.clear();
        has_object_ = true;
        // No projection for errors and bookmarks. (Servers always write the type first.)
        const bool change =
            event_type_ == "ADDED" || event_type_ == "MODIFIED" || event_type_ == "DELETED";
        next_ = change ? projection_ : nullptr;
        writer_.projected_by(next_);
      } else {
        envelope_ = Envelope::kOther;
        return skip();
      }
      return true;
    }
    const ProjectionNode* node = nodes_.back();
    if (node != nullptr && !node->keeps(name, next_)) return skip();
    writer_.key(name);
    in_fields_ = name == "fieldsV1";
    return true;
  }

  bool EndObject(json::SizeType) { return end(true); }
  bool empty_object() {
    if (nodes_.empty()) return StartObject() && EndObject(0);
    if (too_deep()) return fail("nested too deeply");
    writer_.empty_object();
    next_ = nodes_.back();
    return true;
  }
  bool EndArray(json::SizeType) { return end(false); }

 private:
  enum class Envelope { kNone, kBefore, kType, kObject, kOther };

  bool fail(const char* why) {
    error_ = why;
    return false;
  }

  /// Skips the value of an unwanted member. For a container, advances the parser's stream to its last
  /// two bytes, after overwriting them and the byte before (at least the colon) with `:""`. The event
  /// of this string, or of a scalar, is dropped.
  bool skip() {
    skip_next_ = true;
    if (stream_ == nullptr) return true;
    char* p = stream_->src_;
    const auto is_space = [](char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; };
    while (is_space(*p)) ++p;
    if (*p != ':') return true;
    ++p;
    while (is_space(*p)) ++p;
    if (*p != '{' && *p != '[') return true;
    StructuralScanner scanner;
    const std::size_t offset = static_cast<std::size_t>(p - text_.data());
    const std::size_t size = scanner.scan(text_.substr(offset));
    if (size == StructuralScanner::npos) return fail("an object or array is not closed");
    stream_->src_ = p + size - 3;
    std::memcpy(stream_->src_, ":\"\"", 3);
    return true;
  }

  template <class Write>
  bool scalar(Write write) {
    if (skip_next_) {
      skip_next_ = false;
      return true;
    }
    if (depth_ == 0) return fail("expected a JSON object");
    if (envelope_ != Envelope::kNone && depth_ == 1) {
      return fail(envelope_ == Envelope::kType ? "the type of the event is not a string"
                                               : "the object of the event is not an object");
    }
    write();
    if (!nodes_.empty()) next_ = nodes_.back();
    return true;
  }

  bool take_type(std::string_view text) {
    event_type_ = text.substr(0, 64);
    envelope_ = Envelope::kBefore;
    return true;
  }

  /// Whether this many more nested containers may be opened.
  bool fits(std::size_t levels) const { return depth_ + levels <= deepest(); }
  std::size_t deepest() const { return envelope_ == Envelope::kNone ? max_depth_ : max_depth_ + 1; }
  bool too_deep() const { return !fits(1); }

  bool begin(bool object) {
    if (depth_ == 0 && !object) return fail("expected a JSON object");
    if (too_deep()) return fail("nested too deeply");
    if (envelope_ != Envelope::kNone) {
      if (depth_ == 0) {
        ++depth_;
        return true;
      }
      if (depth_ == 1 && envelope_ == Envelope::kType)
        return fail("the type of the event is not a string");
      if (depth_ == 1 && !object) return fail("the object of the event is not an object");
    }
    ++depth_;
    nodes_.push_back(next_);
    // An array's elements are filtered like the array.
    object ? writer_.begin_object() : writer_.begin_array();
    return true;
  }

  bool end(bool object) {
    --depth_;
    if (envelope_ != Envelope::kNone && depth_ == 0) return true;
    closed_whole_ = nodes_.back() == nullptr;
    nodes_.pop_back();
    object ? writer_.end_object() : writer_.end_array();
    if (writer_.overworked()) return fail("too large for its nesting depth");
    next_ = nodes_.empty() ? projection_ : nodes_.back();
    return true;
  }

  FlatWriter& writer_;
  const ProjectionNode* projection_;
  json::InsituStringStream* stream_ = nullptr;
  std::string_view text_;
  std::vector<const ProjectionNode*> nodes_;  // one per open container; null: keep everything below
  const ProjectionNode* next_ = nullptr;      // for the next container
  std::size_t depth_ = 0;
  std::size_t max_depth_ = kMaxDepth;
  bool skip_next_ = false;
  bool in_fields_ = false;  // after the key "fieldsV1"
  FieldSetParser field_sets_;
  bool closed_whole_ = false;  // nothing was dropped from the last closed container
  RepeatedValues* repeated_ = nullptr;
  const char* error_ = nullptr;
  Envelope envelope_ = Envelope::kNone;
  std::string event_type_;
  bool has_object_ = false;
};

}  // namespace

class JsonParser::Impl {
 public:
  Impl(FlatWriter& writer, const ProjectionNode* projection)
      : writer_(writer), projection_(projection), handler_(writer, projection) {}

  bool parse(std::string& text, bool event, std::size_t depth = 0,
             const ProjectionNode* projection = nullptr) {
    error_.clear();
    event_ = event;
    if (original_.capacity() > kKeptCapacity) std::string().swap(original_);
    original_.clear();
    if (const std::size_t bad = find_invalid_utf8(text); bad != std::string_view::npos) {
      error_ = fmt::format("invalid UTF-8 at byte {}", bad);
      original_ = text;
      return false;
    }
    const std::size_t size = text.size();
    text.resize(size + kPadding);  // zeroes
    const FlatWriter::Mark begin = writer_.mark();
    if (depth == 0) writer_.projected_by(projection_);
    RepeatedValues* const repeated = event ? &RepeatedValues::of_this_thread() : repeated_.get();
    handler_.set_repeated(repeated != nullptr && repeated->pays(size) ? repeated : nullptr);
    handler_.start(nullptr, {text.data(), size}, event);
    if (depth != 0) handler_.start_below(depth, projection);
    if (fast_.parse({text.data(), size})) return finish(event);
    if (const std::size_t bad = find_control_character({text.data(), size});
        bad != std::string_view::npos) {
      error_ = fmt::format("a control character in a string at byte {}", bad);
      return false;
    }
    std::string room;
    if (const std::string_view repaired = repair_surrogates({text.data(), size}, room);
        repaired.data() != text.data())
      text.replace(0, size, repaired);
    depth == 0 ? writer_.restart() : writer_.rewind(begin);
    // RapidJSON modifies the text, but the name is needed if parsing fails.
    original_.assign(text, 0, size);
    json::InsituStringStream stream(text.data());
    handler_.start(&stream, {text.data(), size}, event);
    if (depth != 0) handler_.start_below(depth, projection);
    const json::ParseResult result = reader_.Parse<kParseFlags>(stream, handler_);
    if (result.IsError() && handler_.error() == nullptr && result.Offset() >= size) {
      error_ = "unexpected end of JSON input";
    } else if (result.IsError()) {
      const char* why =
          handler_.error() != nullptr ? handler_.error() : json::GetParseError_En(result.Code());
      error_ = fmt::format("{} at byte {}", why, result.Offset());
    } else if (stream.Tell() != size) {
      // For the parser, the text ends at the first NUL.
      error_ = fmt::format("unexpected NUL at byte {}", stream.Tell());
    } else {
      return finish(event);
    }
    return false;
  }

  void remember_values() {
    if (repeated_ == nullptr) repeated_ = std::make_unique<RepeatedValues>();
  }

  const std::string& event_type() const { return handler_.event_type(); }
  const std::string& error() const { return error_; }
  void set_max_depth(std::size_t depth) { handler_.set_max_depth(depth); }
  std::string refused_key() const { return key_in_json(original_, event_); }

 private:
  // Larger buffers are freed after an object.
  static constexpr std::size_t kKeptCapacity = 1u << 20;

  /// Called after the whole text was parsed.
  bool finish(bool event) {
    if (event && (handler_.event_type().empty() || !handler_.has_object()))
      error_ = handler_.has_object() ? "the event has no type" : "the event has no object";
    return error_.empty();
  }

  FlatWriter& writer_;
  const ProjectionNode* projection_;
  std::unique_ptr<RepeatedValues> repeated_;
  Handler handler_;
  FastJson<Handler> fast_{handler_};
  json::Reader reader_;
  std::string error_;
  std::string original_;  // the last text, if FastJson has rejected it
  bool event_ = false;
};

JsonParser::JsonParser(FlatWriter& writer, const ProjectionNode* projection)
    : impl_(std::make_unique<Impl>(writer, projection)) {}
JsonParser::~JsonParser() = default;
bool JsonParser::parse_object(std::string& text) { return impl_->parse(text, false); }
bool JsonParser::parse_event(std::string& text) { return impl_->parse(text, true); }
bool JsonParser::parse_member(std::string& text, std::size_t depth,
                              const ProjectionNode* projection) {
  return impl_->parse(text, false, depth, projection);
}
const std::string& JsonParser::event_type() const { return impl_->event_type(); }
const std::string& JsonParser::error() const { return impl_->error(); }
void JsonParser::remember_values() { impl_->remember_values(); }
void JsonParser::set_max_depth(std::size_t depth) { impl_->set_max_depth(depth); }
std::string JsonParser::refused_key() const { return impl_->refused_key(); }

}  // namespace lookout::api::detail
