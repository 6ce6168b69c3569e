#include "apiserver/endpoints/typed_decoding.h"

#include <fmt/format.h>
#include <rapidjson/reader.h>

#include <algorithm>
#include <charconv>
#include <set>
#include <utility>

#include "apiserver/endpoints/well_typed.h"
#include "apiserver/endpoints/yaml.h"
#include "apiserver/resources/object_meta.h"
#include "lookout/api/detail/fast_json.h"
#include "lookout/api/detail/go_text.h"
#include "lookout/api/detail/go_values.h"
#include "lookout/api/detail/type_table.h"
#include "lookout/api/detail/walk_json.h"
#include "lookout/api/quantity.h"
#include "lookout/api/status.h"
#include "lookout/api/time.h"

namespace lookout::apiserver::endpoints {
namespace {

using api::Value;
using api::detail::Scalar;
using api::detail::Shape;
using api::detail::Type;

/// The maximum number of reported problems.
constexpr std::size_t kMaxProblems = 100;

/// The type of a value: an API type, a part of a custom resource's schema, or unknown.
struct Place {
  std::optional<Type> type = {};
  Value schema = {};
  /// The schema has no properties: all fields are unknown.
  bool knows_nothing = false;
  /// The schema of the list that the value is in keeps unknown fields.
  bool in_keeping_list = false;
  /// The apiVersion or kind of an embedded resource.
  bool is_type_name = false;

  bool has_schema() const { return schema.exists() || knows_nothing; }
  bool keeps_unknown() const {
    return in_keeping_list || schema["x-kubernetes-preserve-unknown-fields"].as_bool();
  }
};

/// The place of values that a schema allows without a type.
Place place_without_fields() {
  Place place;
  place.knows_nothing = true;
  return place;
}

Place place_of(Value schema) {
  if (!schema.is_object()) return place_without_fields();
  Place place;
  place.schema = schema;
  return place;
}

/// The place of the elements of a list.
Place place_of_elements(const Place& list) {
  const Value items = list.schema["items"];
  if (!list.keeps_unknown()) return place_of(items);
  Place place;
  place.schema = items.is_object() ? items : Value();
  place.in_keeping_list = place.schema.exists();
  return place;
}

/// Where Go's base64 decoder fails, if it does.
std::optional<std::size_t> bad_base64(std::string_view text) {
  std::size_t quantum = 0;  // where the current group of four began
  std::size_t in_quantum = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '\n' || c == '\r') continue;
    if (in_quantum == 0) quantum = i;
    const bool letter = (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') ||
                        (c >= '0' && c <= '9') || c == '+' || c == '/';
    if (letter) {
      in_quantum = (in_quantum + 1) % 4;
      continue;
    }
    if (c != '=' || in_quantum < 2) return i;
    // Padding at the end.
    std::size_t next = text.find_first_not_of("\r\n", i + 1);
    if (in_quantum == 2) {
      if (next == std::string_view::npos) return text.size();
      if (text[next] != '=') return next;
      next = text.find_first_not_of("\r\n", next + 1);
    }
    if (next != std::string_view::npos) return next;
    return std::nullopt;
  }
  if (in_quantum != 0) return quantum;
  return std::nullopt;
}

constexpr const char* kNoQuantity =
    "quantities must match the regular expression "
    "'^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'";
bool is_quantity(Type type) { return type.name().ends_with(".resource.Quantity"); }

/// Follows a body from its beginning to its end.
class Follower : public rapidjson::BaseReaderHandler<rapidjson::UTF8<>, Follower> {
 public:
  explicit Follower(const ExpectedKind& expected) {
    const api::GroupVersionKind& type = expected.type;
    root_.type = Type::of_kind(type.group, type.version, type.kind);
    if (expected.custom) {
      root_.schema = expected.schema;
      metadata_ = resources::metadata_type();
    }
  }

  /// The problems that were found in this body.
  DecodingProblems take(std::string_view json) {
    if (problems_.error && !way_to_refused_.empty()) {
      // Kubernetes decodes the metadata of an embedded resource as a whole: the error shows all of it.
      const api::Object object = api::Object::parse(json);
      Value value = object.body();
      for (const Step& step : way_to_refused_)
        value = step.in_array ? value[step.index] : value[step.name];
      const std::string prefix =
          fmt::format("{}: Invalid value: {}: ", embedded_part_, value.to_json());
      problems_.error->insert(0, prefix);
      problems_.converter_error.insert(0, prefix);
    }
    return std::move(problems_);
  }

  /// After a key: whether the value is ignored.
  bool skips_next() const {
    const Frame& frame = frames_.back();
    return skipped_ > 0 || frame.unknown || is_opaque(frame.place);
  }

  bool Null() {
    next();
    return after();
  }
  bool Bool(bool) {
    const Place place = next();
    expect(place, "bool", [](Type type) { return type.scalar() == Scalar::kBoolean; });
    return after();
  }
  bool RawNumber(const char* text, rapidjson::SizeType size, bool) {
    const Place place = next();
    if (place.type) check_number(*place.type, {text, size});
    return after();
  }
  bool String(const char* text, rapidjson::SizeType size, bool) {
    const Place place = next(true);
    if (place.type) check_string(*place.type, {text, size});
    return after();
  }
  bool StartObject() {
    const Place place = next();
    expect(place, "object",
           [](Type type) { return type.shape() == Shape::kStruct || type.shape() == Shape::kMap; });
    Frame frame;
    frame.place = place;
    frame.path_size = path_.size();
    frame.fields_size = fields_.size();
    frame.symbols = symbols_.size();
    frames_.push_back(std::move(frame));
    return true;
  }
  bool Key(const char* text, rapidjson::SizeType size, bool) {
    const std::string_view name(text, size);
    Frame& frame = frames_.back();
    if (metadata_) enter_member(frame, name);
    path_.resize(frame.path_size);
    fields_.resize(frame.fields_size);
    if (skipped_ > 0 || is_opaque(frame.place)) return true;
    if (!path_.empty()) path_ += '.';
    path_ += name;
    frame.next = {};
    frame.unknown = false;
    const std::optional<Type>& type = frame.place.type;
    const bool in_structure = type && type->shape() == Shape::kStruct;
    const auto field = in_structure ? type->field(name) : std::nullopt;
    const bool is_new = field ? is_new_in(frame, field->symbol()) : frame.is_new(name);
    if (!is_new) problem("duplicate field");
    if (field) {
      frame.next.type = field->type();
      if (!fields_.empty()) fields_ += '.';
      fields_ += name;
    } else if (in_structure) {
      frame.unknown = true;
    } else if (type) {
      if (type->shape() == Shape::kMap) frame.next.type = type->element();
    } else if (frame.place.has_schema() || (metadata_ && frames_.size() == 1)) {
      enter_schema(frame, name);
    }
    if (frame.unknown) problem("unknown field");
    return true;
  }
  bool EndObject(rapidjson::SizeType) {
    leave();
    return after();
  }
  bool StartArray() {
    const Place place = next();
    expect(place, "array", [](Type type) { return type.shape() == Shape::kList; });
    Frame frame;
    frame.place = place;
    frame.array = true;
    frame.path_size = path_.size();
    frame.fields_size = fields_.size();
    if (place.type && place.type->shape() == Shape::kList) frame.next.type = place.type->element();
    if (place.has_schema()) frame.next = place_of_elements(place);
    frames_.push_back(std::move(frame));
    return true;
  }
  bool EndArray(rapidjson::SizeType) {
    leave();
    return after();
  }

 private:
  struct Frame {
    Place place;
    bool array = false;
    std::size_t index = 0;
    std::size_t path_size = 0;
    std::size_t fields_size = 0;
    std::size_t symbols = 0;  // where its entries in symbols_ begin
    Place next;
    bool unknown = false;
    std::string member;  // its name, in custom resources

    /// Whether an unknown member occurs for the first time.
    bool is_new(std::string_view name) { return names_.emplace(name).second; }

   private:
    std::set<std::string, std::less<>> names_;
  };

  /// A step on the path from the root to a value.
  struct Step {
    bool in_array = false;
    std::size_t index = 0;
    std::string name;
  };

  /// Whether a field of the innermost frame's type occurs for the first time.
  bool is_new_in(const Frame& innermost, std::uint16_t symbol) {
    const auto begin = symbols_.begin() + static_cast<std::ptrdiff_t>(innermost.symbols);
    if (std::find(begin, symbols_.end(), symbol) != symbols_.end()) return false;
    symbols_.push_back(symbol);
    return true;
  }

  /// Whether a type decodes the value itself, so that its content is unknown. (A custom resource is
  /// decoded without types.)
  bool is_opaque(const Place& place) const {
    return !metadata_ && place.type && place.type->shape() == Shape::kScalar;
  }

  /// The place of the next value.
  Place next(bool is_text = false) {
    if (frames_.empty()) return root_;
    if (skips_next()) {
      ++skipped_;
      return {};
    }
    Frame& frame = frames_.back();
    if (frame.array) {
      path_.resize(frame.path_size);
      path_ += '[';
      path_ += std::to_string(frame.index++);
      path_ += ']';
    }
    if (frame.next.is_type_name && !is_text) fail("must be a string");
    return frame.next;
  }
  /// A value has ended.
  bool after() {
    if (skipped_ > 0) --skipped_;
    return true;
  }
  void leave() {
    if (!frames_.back().array) symbols_.resize(frames_.back().symbols);
    path_.resize(frames_.back().path_size);
    fields_.resize(frames_.back().fields_size);
    frames_.pop_back();
  }

  void enter_schema(Frame& frame, std::string_view name) {
    const bool at_root = frames_.size() == 1;
    if (at_root && (name == "apiVersion" || name == "kind")) {
      frame.next.type = metadata_->field("name")->type();  // text
      return;
    }
    if (at_root && name == "metadata") {
      frame.next.type = metadata_;
      return;
    }
    if (!frame.place.has_schema()) return;
    const Value schema = frame.place.schema;
    if (schema["x-kubernetes-embedded-resource"].as_bool() &&
        (name == "apiVersion" || name == "kind" || name == "metadata"))
      return enter_embedded(frame, name);
    const Value others = schema["additionalProperties"];
    if (const Value property = schema["properties"][name]; property.exists()) {
      frame.next = place_of(property);
    } else if (others.is_object() || others.is_bool()) {
      frame.next = place_of(others);
    } else {
      frame.unknown = !frame.place.keeps_unknown();
    }
  }

  void enter_member(Frame& frame, std::string_view name) {
    frame.member = name;
    if (frames_.size() <= embedded_depth_) embedded_depth_ = 0;
  }

  void enter_embedded(Frame& frame, std::string_view name) {
    embedded_depth_ = frames_.size();
    embedded_size_ = path_.size();
    if (name == "metadata") {
      frame.next.type = metadata_;
    } else {
      frame.next.is_type_name = true;
    }
  }

  void problem(std::string_view what) {
    if (skipped_ == 0 && problems_.strict.size() < kMaxProblems)
      problems_.strict.push_back(fmt::format("{} {}", what, api::detail::quote(path_)));
  }

  void fail(const std::string& error, const std::string& converter_error) {
    if (problems_.error) return;
    for (std::size_t i = 0; i < embedded_depth_; ++i) {
      const Frame& frame = frames_[i];
      way_to_refused_.push_back({frame.array, frame.array ? frame.index - 1 : 0, frame.member});
    }
    if (embedded_depth_ > 0) embedded_part_ = path_.substr(0, embedded_size_);
    problems_.error = error;
    problems_.converter_error = converter_error;
  }
  void fail(const std::string& error) { fail(error, error); }

  /// `value` is "array", "number", or "number 1.5" for one that does not fit.
  void mismatch(Type type, std::string_view value) {
    const std::string name = api::detail::go_type_name(type);
    fail(decoder_error(value, named_type(name)), conversion_error(value, name));
  }
  /// The decoder adds the field's name, but types that decode their values themselves do not have
  /// it.
  std::string decoder_error(std::string_view value, std::string_view type) const {
    const Type* owner = nullptr;
    for (auto frame = frames_.rbegin(); frame != frames_.rend() && owner == nullptr; ++frame) {
      if (frame->place.type && frame->place.type->shape() == Shape::kStruct)
        owner = &*frame->place.type;
    }
    if (owner == nullptr || fields_.empty())
      return fmt::format("json: cannot unmarshal {} into Go value of type {}", value, type);
    return fmt::format("json: cannot unmarshal {} into Go struct field {}.{} of type {}", value,
                       owner->short_name(), fields_, type);
  }
  static std::string conversion_error(std::string_view value, const std::string& type) {
    const std::string_view given = value == "array"               ? "slice"
                                   : value == "object"            ? "map"
                                   : value == "number"            ? "int64"
                                   : value.starts_with("number ") ? "float64"
                                                                  : value;
    if (type.starts_with("map[")) return fmt::format("cannot restore map from {}", given);
    if (type.starts_with("[]")) return fmt::format("cannot restore slice from {}", given);
    if (type.find('.') != std::string::npos)
      return fmt::format("cannot restore struct from: {}", given);
    // In Go, numbers can be converted to each other, and to text.
    if (value.starts_with("number") && type != "bool")
      return fmt::format("cannot convert {} to {}", given, type);
    return "unrecognized type: " + type;
  }
  /// Go's names of string types that every object may have, which are not in the schema.
  std::string named_type(const std::string& type) const {
    const std::string_view fields = fields_;
    const std::string_view field = fields.substr(fields.rfind('.') + 1);
    if (field == "uid") return "types.UID";
    if (field == "propagationPolicy") return "v1.DeletionPropagation";
    return type;
  }
  /// Reports the error of a type that decodes its values itself. False for other types.
  bool reads_itself(Type type, std::string_view value) {
    if (type.shape() != Shape::kScalar) return false;
    if (is_quantity(type)) {
      fail(kNoQuantity);
      return true;
    }
    const auto refuse = [&](std::string_view inner) {
      fail(decoder_error(value, inner),
           fmt::format("json: cannot unmarshal {} into Go value of type {}", value, inner));
      return true;
    };
    switch (type.scalar()) {
      case Scalar::kAny:
      case Scalar::kObject:
        return true;
      case Scalar::kIntOrString:
        return refuse("int32");
      case Scalar::kDateTime:
        return refuse("string");
      default:
        return false;
    }
  }

  template <class Fits>
  void expect(const Place& place, std::string_view value, Fits fits) {
    if (!place.type || fits(*place.type)) return;
    if (!reads_itself(*place.type, value)) mismatch(*place.type, value);
  }

  void check_number(Type type, std::string_view text) {
    if (type.shape() == Shape::kScalar) {
      const Scalar scalar = type.scalar();
      if (scalar == Scalar::kDouble || is_quantity(type)) return;
      const bool small = scalar == Scalar::kInt32 || scalar == Scalar::kIntOrString;
      if (small || scalar == Scalar::kInt64) {
        std::int64_t number = 0;
        const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), number);
        const bool fits = failure == std::errc() && end == text.data() + text.size() &&
                          (!small || std::in_range<std::int32_t>(number));
        const std::string value = fmt::format("number {}", text);
        if (!fits && !reads_itself(type, value)) mismatch(type, value);
        return;
      }
    }
    if (!reads_itself(type, "number")) mismatch(type, "number");
  }

  /// Six digits, neither fewer nor more.
  void check_fraction(std::string_view time) {
    constexpr std::size_t kDate = std::string_view("2006-01-02T15:04:05").size();
    constexpr std::size_t kDigits = 6;
    constexpr std::string_view kNumerals = "0123456789";
    const std::string_view fraction = time.substr(kDate);
    const bool point = fraction.starts_with('.');
    const std::size_t digits = point ? fraction.find_first_not_of(kNumerals, 1) - 1 : 0;
    if (digits == kDigits) return;
    const bool more = digits > kDigits;
    fail(fmt::format(
        "parsing time {} as \"2006-01-02T15:04:05.000000Z07:00\": cannot parse {} as \"{}\"",
        api::detail::quote(time),
        api::detail::quote(more ? fraction.substr(kDigits + 1) : fraction),
        more ? "Z07:00" : ".000000"));
  }

  void check_string(Type type, std::string_view text) {
    if (type.shape() != Shape::kScalar) {
      mismatch(type, "string");
      return;
    }
    switch (type.scalar()) {
      case Scalar::kString:
        if (is_quantity(type) && !api::Quantity::parse(text)) fail(kNoQuantity);
        return;
      case Scalar::kBytes:
        if (const auto at = bad_base64(text))
          fail(fmt::format("illegal base64 data at input byte {}", *at));
        return;
      case Scalar::kIntOrString:
      case Scalar::kObject:
      case Scalar::kAny:
        return;
      case Scalar::kDateTime:
        if (!text.empty() && !api::parse_time(text)) {
          const std::string_view layout = type.name().ends_with("MicroTime")
                                              ? "2006-01-02T15:04:05.000000Z07:00"
                                              : "2006-01-02T15:04:05Z07:00";
          fail(fmt::format("parsing time {0} as \"{1}\": cannot parse {0} as \"2006\"",
                           api::detail::quote(text), layout));
        } else if (!text.empty() && type.name().ends_with("MicroTime")) {
          check_fraction(text);
        }
        return;
      default:
        mismatch(type, "string");
    }
  }

  Place root_;
  std::optional<Type> metadata_;
  std::vector<Frame> frames_;
  /// The symbols of the fields in the open objects so far.
  std::vector<std::uint16_t> symbols_;
  /// The current path with indexes, and the field names without.
  std::string path_;
  std::string fields_;
  /// The depth inside an ignored value.
  std::size_t skipped_ = 0;
  /// In the apiVersion, kind or metadata of an embedded resource: the number of frames around it (0
  /// elsewhere), and the size of its path.
  std::size_t embedded_depth_ = 0;
  std::size_t embedded_size_ = 0;
  /// The path of the embedded resource's part that has the error.
  std::string embedded_part_;
  std::vector<Step> way_to_refused_;
  DecodingProblems problems_;
};

/// A Follower for FastJson. If FastJson rejects unusual JSON, a new Follower must start again.
class FastFollower : public Follower {
 public:
  using Follower::Follower;

  bool follow(std::string_view json) {
    constexpr std::size_t kReadBehind = 16;
    std::string text;
    text.reserve(json.size() + kReadBehind);
    text.append(json).append(kReadBehind, '\0');
    return api::detail::FastJson<FastFollower>(*this).parse({text.data(), json.size()});
  }

  bool RawNumber(const char* end, unsigned size, bool copy) {
    return Follower::RawNumber(end - size, size, copy);
  }
  bool empty_object() { return StartObject() && EndObject(0); }
  bool skipping() const { return skips_next(); }
  static void skipped() {}
  // No state from before.
  static std::size_t recall(std::string_view, std::size_t&) { return 0; }
  static void remember(std::string_view, std::size_t) {}
};

/// The type of a built-in kind.
std::optional<Type> builtin_type(const ExpectedKind& expected) {
  if (expected.custom) return std::nullopt;
  return Type::of_kind(expected.type.group, expected.type.version, expected.type.kind);
}

}  // namespace

ExpectedKind::ExpectedKind(const resources::ServedResource& resource)
    : type(resource.type.gvk()), custom(resource.custom), schema(resource.schema.body()) {}

ExpectedKind::ExpectedKind(api::GroupVersionKind kind) : type(std::move(kind)) {}

DecodingProblems find_decoding_problems(std::string_view json, const ExpectedKind& expected) {
  FastFollower fast(expected);
  if (fast.follow(json)) return fast.take(json);
  Follower follower(expected);
  api::detail::walk_json(json, follower);
  return follower.take(json);
}

DecodingProblems find_decoding_problems(const api::Object& object, const ExpectedKind& expected) {
  const auto type = builtin_type(expected);
  if (type && is_well_typed(object, *type)) return {};
  return find_decoding_problems(object.to_json(), expected);
}

std::vector<std::string> check_fields(const JsonBody& body, const ExpectedKind& expected,
                                      FieldValidation validation) {
  const auto type = builtin_type(expected);
  DecodingProblems problems;
  if (!type || !is_well_typed(body.object, body.json, *type))
    problems = find_decoding_problems(body.json, expected);
  const auto refuse = [&](const std::string& why) {
    return api::StatusError::bad_request(
        fmt::format("{0} in version {1} cannot be handled as a {0}: {2}", expected.type.kind,
                    api::detail::quote(expected.type.version), why));
  };
  if (problems.error) throw refuse(*problems.error);
  if (validation == FieldValidation::kIgnore) return {};
  std::vector<std::string>& strict = problems.strict;
  if (validation == FieldValidation::kStrict) {
    if (!body.repeated.empty()) strict.insert(strict.begin(), unmarshal_errors(body.repeated));
    if (!strict.empty()) throw refuse(strict_decoding_error(strict));
  }
  strict.insert(strict.begin(), body.repeated.begin(), body.repeated.end());
  return std::move(strict);
}

std::string strict_decoding_error(const std::vector<std::string>& problems) {
  return fmt::format("strict decoding error: {}", fmt::join(problems, ", "));
}

}  // namespace lookout::apiserver::endpoints
