// Incremental decoders of list and watch bodies.
#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "lookout/api/detail/limits.h"
#include "lookout/api/json.h"
#include "lookout/api/symbols.h"
#include "lookout/base/structural_scanner.h"

namespace lookout::api {
namespace {

bool is_space(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

/// Collects an object or array from pieces. Longer ones than the limit are skipped.
class ValueCollector {
 public:
  explicit ValueCollector(std::size_t limit) : limit_(limit) {}

  void start() {
    scanner_.start();
    bytes_ = 0;
    // Do not keep the buffer of a huge object.
    if (text_.capacity() > kKeptCapacity) std::string().swap(text_);
    text_.clear();
  }

  /// Consumes the value's part of `input`; true if the value is complete.
  bool take(std::string_view& input) {
    const std::size_t end = scanner_.scan(input);
    const std::size_t size = std::min(end, input.size());
    bytes_ += size;
    if (bytes_ <= limit_) {
      text_.append(input.substr(0, size));
    } else {
      text_.clear();
      if (text_.capacity() > kKeptCapacity) text_.shrink_to_fit();
    }
    input.remove_prefix(size);
    return end != StructuralScanner::npos;
  }

  bool too_large() const { return bytes_ > limit_; }
  std::size_t bytes() const { return bytes_; }
  std::string& text() { return text_; }

  /// The object that `decoder` has rejected.
  MalformedObject malformed(const JsonDecoder& decoder) const {
    return {decoder.error(), decoder.refused_key(), bytes_};
  }
  MalformedObject oversize() const {
    return {fmt::format("larger than the limit of {} bytes", limit_), {}, bytes_};
  }

 private:
  static constexpr std::size_t kKeptCapacity = 1u << 20;

  std::size_t limit_;
  StructuralScanner scanner_;
  std::string text_;
  std::size_t bytes_ = 0;
};

// ---------------------------------------------------------------------------------------------------------------------------

class JsonListWork final : public ListDecoder {
 public:
  JsonListWork(StreamOptions options, OnItem on_item, OnMalformed on_malformed)
      : decoder_(options.projection),
        value_(options.max_object_bytes),
        item_api_version_(std::move(options.api_version)),
        item_kind_(std::move(options.kind)),
        on_item_(std::move(on_item)),
        on_malformed_(std::move(on_malformed)) {
    decoder_.set_max_depth(kMaxServedDepth);
  }

  bool feed(std::string_view input) override {
    while (!input.empty() && error_.empty()) {
      if (state_ == State::kItem || state_ == State::kContainer) {
        if (!value_.take(input)) break;
        if (state_ == State::kItem) {
          finish_item();
          state_ = State::kAfterItem;
        } else {
          finish_member();
          state_ = State::kAfterMember;
        }
        continue;
      }
      if (state_ == State::kKey || state_ == State::kString) {
        take_string(input);
        continue;
      }
      const char c = input.front();
      if (state_ == State::kLiteral && !is_space(c) && c != ',' && c != '}') {
        input.remove_prefix(1);
        continue;
      }
      if (state_ == State::kLiteral) state_ = State::kAfterMember;
      if (!is_space(c) && !step(c)) break;
      // An item or container starts with its bracket, which the collector needs.
      if (state_ != State::kItem && state_ != State::kContainer) input.remove_prefix(1);
    }
    return error_.empty();
  }

  bool finish() override {
    if (!error_.empty()) return false;
    if (state_ != State::kEnd) {
      error_ =
          state_ == State::kStart ? "the body is empty" : "the body ends in the middle of the list";
      return false;
    }
    if (!saw_items_) {
      error_ = fmt::format("the body is not a list: kind \"{}\" without items", kind_);
      return false;
    }
    return true;
  }

  const std::string& error() const override { return error_; }
  std::string_view api_version() const override { return api_version_; }
  std::string_view kind() const override { return kind_; }
  std::string_view resource_version() const override {
    return metadata(sym::kResourceVersion).as_string();
  }
  std::string_view continue_token() const override { return metadata(sym::kContinue).as_string(); }
  std::optional<std::int64_t> remaining_item_count() const override {
    return metadata(sym::kRemainingItemCount).to_int();
  }

 private:
  Value metadata(Symbol field) const { return metadata_[sym::kMetadata][field]; }
  enum class State {
    kStart,      // before the '{' of the list
    kBeforeKey,  // after '{' or ','
    kKey,        // inside a member's name
    kBeforeColon,
    kBeforeValue,
    kString,     // inside a member's string value
    kLiteral,    // inside a number, true, false or null
    kContainer,  // inside a member's object or array value
    kAfterMember,
    kBeforeItem,  // after '[' or ',' of the items
    kItem,
    kAfterItem,
    kEnd,
  };

  bool fail(std::string_view expected, char got) {
    error_ = fmt::format("malformed list: expected {}, got {:?}", expected, got);
    return false;
  }

  /// One character outside strings and containers.
  bool step(char c) {
    switch (state_) {
      case State::kStart:
        if (c != '{') return fail("'{'", c);
        state_ = State::kBeforeKey;
        return true;
      case State::kBeforeKey:
        if (c == '}' && !saw_member_) {
          state_ = State::kEnd;
          return true;
        }
        if (c != '"') return fail("a member's name", c);
        saw_member_ = true;
        state_ = State::kKey;
        string_.clear();
        return true;
      case State::kBeforeColon:
        if (c != ':') return fail("':'", c);
        state_ = State::kBeforeValue;
        return true;
      case State::kBeforeValue:
        return start_value(c);
      case State::kAfterMember:
        if (c != ',' && c != '}') return fail("',' or '}'", c);
        state_ = c == ',' ? State::kBeforeKey : State::kEnd;
        return true;
      case State::kBeforeItem:
        if (c == ']' && first_item_) {
          state_ = State::kAfterMember;
          return true;
        }
        if (c != '{') return fail("an item", c);
        first_item_ = false;
        value_.start();
        state_ = State::kItem;
        return true;
      case State::kAfterItem:
        if (c != ',' && c != ']') return fail("',' or ']' after an item", c);
        state_ = c == ',' ? State::kBeforeItem : State::kAfterMember;
        return true;
      case State::kEnd:
        return fail("the end of the body", c);
      default:
        return true;
    }
  }

  bool start_value(char c) {
    if (c == '"') {
      string_.clear();
      state_ = State::kString;
    } else if (c == '[' && key_ == "items") {
      saw_items_ = true;
      first_item_ = true;
      state_ = State::kBeforeItem;
      set_item_type();
    } else if (c == '{' || c == '[') {
      value_.start();
      state_ = State::kContainer;
    } else if (c == '-' || (c >= '0' && c <= '9') || c == 't' || c == 'f' || c == 'n') {
      // Go encodes the items of an empty list as null.
      if (key_ == "items" && c == 'n') saw_items_ = true;
      state_ = State::kLiteral;
    } else {
      return fail("a value", c);
    }
    return true;
  }

  /// Consumes a string up to its closing quote. Keeps only names and short strings.
  void take_string(std::string_view& input) {
    constexpr std::size_t kKept = 1024;
    std::size_t i = 0;
    for (; i < input.size(); ++i) {
      const char c = input[i];
      if (escaped_) {
        escaped_ = false;
      } else if (c == '\\') {
        escaped_ = true;
      } else if (c == '"') {
        break;
      }
      if (string_.size() < kKept) string_ += c;
    }
    const bool complete = i < input.size();
    input.remove_prefix(complete ? i + 1 : i);
    if (!complete) return;
    if (state_ == State::kKey) {
      key_ = string_;
      state_ = State::kBeforeColon;
      return;
    }
    state_ = State::kAfterMember;
    if (key_ != "kind" && key_ != "apiVersion") return;
    // The items may receive these.
    if (find_invalid_utf8(string_) != std::string_view::npos) {
      error_ = fmt::format("malformed list: its {} is not UTF-8", key_);
    }
    (key_ == "kind" ? kind_ : api_version_) = string_;
  }

  /// The items of a typed list have no apiVersion and kind: they get the list's version, and its kind
  /// without "List".
  void set_item_type() {
    constexpr std::string_view kSuffix = "List";
    if (kind_.size() > kSuffix.size() && kind_.ends_with(kSuffix) && !api_version_.empty() &&
        kind_ != "PartialObjectMetadataList") {
      decoder_.set_default_type(api_version_, kind_.substr(0, kind_.size() - kSuffix.size()));
    } else {
      decoder_.set_default_type(item_api_version_, item_kind_);
    }
  }

  void finish_item() {
    if (value_.too_large()) {
      on_malformed_(value_.oversize());
      return;
    }
    Object object = decoder_.decode(value_.text());
    if (object) {
      on_item_(std::move(object));
    } else {
      on_malformed_(value_.malformed(decoder_));
    }
  }

  void finish_member() {
    if (key_ != "metadata") return;
    if (value_.too_large()) {
      error_ = "the metadata of the list is too large";
      return;
    }
    std::string wrapped = fmt::format("{{\"metadata\":{}}}", value_.text());
    JsonDecoder decoder;
    metadata_ = decoder.decode(wrapped);
    if (!metadata_) error_ = fmt::format("the metadata of the list: {}", decoder.error());
  }

  JsonDecoder decoder_;
  ValueCollector value_;
  std::string item_api_version_;
  std::string item_kind_;
  OnItem on_item_;
  OnMalformed on_malformed_;

  State state_ = State::kStart;
  bool saw_member_ = false;
  bool saw_items_ = false;
  bool first_item_ = true;
  bool escaped_ = false;
  std::string string_;
  std::string key_;
  std::string api_version_;
  std::string kind_;
  Object metadata_;
  std::string error_;
};

}  // namespace

JsonListDecoder::JsonListDecoder(StreamOptions options, OnItem on_item, OnMalformed on_malformed)
    : ListDecoderOfEncoding(std::make_unique<JsonListWork>(std::move(options), std::move(on_item),
                                                           std::move(on_malformed))) {}

// ---------------------------------------------------------------------------------------------------------------------------

namespace {

class JsonWatchWork final : public WatchDecoder {
 public:
  JsonWatchWork(StreamOptions options, OnEvent on_event, OnMalformed on_malformed)
      : decoder_(options.projection),
        value_(options.max_object_bytes),
        on_event_(std::move(on_event)),
        on_malformed_(std::move(on_malformed)) {
    decoder_.set_max_depth(kMaxServedDepth);
  }

  bool feed(std::string_view input) override {
    while (!input.empty() && error_.empty()) {
      if (!inside_) {
        const char c = input.front();
        if (is_space(c)) {
          input.remove_prefix(1);
          continue;
        }
        if (c != '{') {
          error_ = fmt::format("malformed watch stream: expected an event, got {:?}", c);
          break;
        }
        value_.start();
        inside_ = true;
      }
      if (!value_.take(input)) break;
      inside_ = false;
      finish_event();
    }
    return error_.empty();
  }

  bool finish() override {
    if (error_.empty() && inside_)
      error_ = fmt::format("the stream ended {} bytes into an event", value_.bytes());
    return error_.empty();
  }

  const std::string& error() const override { return error_; }

 private:
  void finish_event() {
    if (value_.too_large()) {
      on_malformed_(value_.oversize());
      return;
    }
    if (auto event = decoder_.decode_event(value_.text())) {
      on_event_(std::move(*event));
    } else {
      on_malformed_(value_.malformed(decoder_));
    }
  }

  JsonDecoder decoder_;
  ValueCollector value_;
  OnEvent on_event_;
  OnMalformed on_malformed_;
  bool inside_ = false;
  std::string error_;
};

}  // namespace

JsonWatchDecoder::JsonWatchDecoder(StreamOptions options, OnEvent on_event,
                                   OnMalformed on_malformed)
    : DecoderOfEncoding(std::make_unique<JsonWatchWork>(std::move(options), std::move(on_event),
                                                        std::move(on_malformed))) {}

}  // namespace lookout::api
