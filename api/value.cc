#include "lookout/api/value.h"

#include <algorithm>
#include <array>
#include <boost/container/small_vector.hpp>
#include <charconv>
#include <cstddef>
#include <cstring>
#include <limits>

#include "lookout/api/detail/encoding.h"
#include "lookout/api/detail/json_writer.h"
#include "lookout/api/detail/projected_objects.h"
#include "lookout/api/field_path.h"

namespace lookout::api {

using namespace detail;

namespace {

/// The result for an absent member; `name` may be expensive to compute.
template <class Name>
Value absent([[maybe_unused]] const std::uint8_t* object, [[maybe_unused]] Name name) {
  if constexpr (kProjectionsAreChecked) note_absent(object, name());
  return {};
}

bool equal_bytes(const std::uint8_t* a, const std::uint8_t* b) {
  const auto size = skip_value(a) - a;
  return size == skip_value(b) - b && std::memcmp(a, b, static_cast<std::size_t>(size)) == 0;
}

/// Compares values that may contain references to earlier strings.
bool equal_contents(Value a, Value b) {
  struct Open {
    Range a;
    Range b;
    bool object;
  };
  boost::container::small_vector<Open, 32> open;  // (Not recursive: values may be nested deeply.)
  for (;;) {
    if (a.kind() != b.kind()) return false;
    const bool set = is_field_set(a.data());
    if (a.is_string()) {
      if (a.as_string() != b.as_string()) return false;
    } else if (set || is_field_set(b.data()) || (!a.is_object() && !a.is_array())) {
      if (!equal_bytes(a.data(), b.data())) return false;
    } else if (a.is_object()) {
      open.push_back({object_contents(a.data()), object_contents(b.data()), true});
    } else {
      open.push_back({array_contents(a.data()), array_contents(b.data()), false});
    }
    while (!open.empty() && open.back().a.begin == open.back().a.end) {
      if (open.back().b.begin != open.back().b.end) return false;
      open.pop_back();
    }
    if (open.empty()) return true;
    Open& last = open.back();
    if (last.b.begin == last.b.end) return false;
    if (last.object) {
      const std::uint8_t* const value_a = skip_key(last.a.begin);
      const std::uint8_t* const value_b = skip_key(last.b.begin);
      if (!std::equal(last.a.begin, value_a, last.b.begin, value_b)) return false;
      last.a.begin = value_a;
      last.b.begin = value_b;
    }
    a = Value(last.a.begin);
    b = Value(last.b.begin);
    last.a.begin = skip_value(last.a.begin);
    last.b.begin = skip_value(last.b.begin);
  }
}

/// The kind of a value, by its tag.
constexpr std::array<Value::Kind, 256> kKindOfTag = [] {
  using Kind = Value::Kind;
  std::array<Kind, 256> kinds{};
  const auto from = [&](std::size_t first, Kind kind) {
    std::fill(kinds.begin() + static_cast<std::ptrdiff_t>(first), kinds.end(), kind);
  };
  from(0, Kind::kNumber);
  from(kTagShortFieldSet, Kind::kObject);
  from(kTagShortString, Kind::kString);
  from(kTagShortObject, Kind::kObject);
  from(kTagShortArray, Kind::kArray);
  kinds[kTagNull] = Kind::kNull;
  for (const Tag tag : {kTagFalse, kTagTrue}) kinds[tag] = Kind::kBool;
  for (const Tag tag : {kTagEmptyObject, kTagObject, kTagFieldSet}) kinds[tag] = Kind::kObject;
  for (const Tag tag : {kTagEmptyArray, kTagArray}) kinds[tag] = Kind::kArray;
  for (const Tag tag : {kTagString, kTagAgain}) kinds[tag] = Kind::kString;
  return kinds;
}();

/// The next member. (Nearly all keys have one byte, so the CPU can predict the value's position.)
inline const std::uint8_t* next_member(const std::uint8_t* p) {
  return skip_value(*p < kKeySymbol ? p + 1 : skip_key(p));
}

}  // namespace

Value::Kind Value::kind() const { return data_ == nullptr ? Kind::kAbsent : kKindOfTag[*data_]; }

std::optional<std::string_view> Value::to_string_view() const {
  if (kind() != Kind::kString) return std::nullopt;
  return as_string();
}

std::string_view Value::as_other_string() const {
  const std::uint8_t* p = *data_ == kTagAgain ? first_string(data_) : data_;
  if (*p != kTagString) return Value(p).as_string();
  ++p;
  const std::uint64_t length = read_varint(p);
  return {reinterpret_cast<const char*>(p), length};
}

std::optional<bool> Value::to_bool() const {
  if (data_ == nullptr || (*data_ != kTagTrue && *data_ != kTagFalse)) return std::nullopt;
  return *data_ == kTagTrue;
}

std::optional<std::int64_t> Value::to_int() const {
  if (data_ == nullptr) return std::nullopt;
  const std::uint8_t* p = data_ + 1;
  if (*data_ >= kTagSmallInt && *data_ < kTagShortFieldSet) return *data_ - kTagSmallInt;
  if (*data_ == kTagInt) return unzigzag(read_varint(p));
  if (*data_ == kTagDouble) {
    const auto real = read_fixed<double>(p);
    if (real >= -0x1p63 && real < 0x1p63) {
      const auto whole = static_cast<std::int64_t>(real);
      if (static_cast<double>(whole) == real) return whole;
    }
  }
  return std::nullopt;
}

std::optional<std::uint64_t> Value::to_uint() const {
  if (data_ != nullptr && *data_ == kTagBigUint) return read_fixed<std::uint64_t>(data_ + 1);
  const auto value = to_int();
  if (!value || *value < 0) return std::nullopt;
  return static_cast<std::uint64_t>(*value);
}

std::optional<double> Value::to_double() const {
  if (data_ == nullptr) return std::nullopt;
  const std::uint8_t* p = data_ + 1;
  switch (*data_) {
    case kTagDouble:
      return read_fixed<double>(p);
    case kTagBigUint:
      return static_cast<double>(read_fixed<std::uint64_t>(p));
    case kTagRawNumber: {
      const std::uint64_t length = read_varint(p);
      const char* text = reinterpret_cast<const char*>(p);
      double value = 0;
      const auto [end, error] = std::from_chars(text, text + length, value);
      if (error == std::errc{}) return value;
      // from_chars does not set out-of-range values: distinguish very large from very small ones by
      // the exponent's sign.
      const std::string_view view(text, length);
      const bool tiny = view.find("e-") != view.npos || view.find("E-") != view.npos;
      const double magnitude = tiny ? 0.0 : std::numeric_limits<double>::infinity();
      return view.front() == '-' ? -magnitude : magnitude;
    }
    default:
      break;
  }
  const auto whole = to_int();
  if (!whole) return std::nullopt;
  return static_cast<double>(*whole);
}

Value detail::absent_member(const std::uint8_t* object, Symbol name) {
  return absent(object, [&] { return name.text(); });
}

Value Value::operator[](Symbol key) const {
  if (const std::uint8_t code = symbol_short_code(key.id); code != kNoShortCode)
    return (*this)[FieldSymbol{key, code}];
  if (data_ != nullptr && is_field_set(data_)) return (*this)[key.text()];
  const Range range = object_contents(data_);
  const EncodedKey encoded = encode_symbol_key(key.id);
  for (const std::uint8_t* p = range.begin; p < range.end; p = next_member(p)) {
    if (p[0] == encoded.bytes[0] && p[1] == encoded.bytes[1]) return Value(p + 2);
  }
  return absent_member(data_, key);
}

Value Value::operator[](std::string_view name) const {
  if (data_ != nullptr && is_field_set(data_)) {
    const std::uint8_t* const found = find_in_field_set(data_, name);
    return found != nullptr ? Value(found) : absent(data_, [&] { return name; });
  }
  const Range range = object_contents(data_);
  if (range.begin == range.end) return absent(data_, [&] { return name; });
  if (const std::uint16_t symbol = find_symbol(name); symbol != kNoSymbol)
    return (*this)[Symbol{symbol}];
  for (const std::uint8_t* p = range.begin; p < range.end; p = next_member(p)) {
    if (*p < kKeyInline) continue;
    if (const Key key = read_key(p); key.inline_name == name) return Value(key.end);
  }
  return absent(data_, [&] { return name; });
}

Value Value::operator[](std::size_t index) const {
  const Range range = array_contents(data_);
  for (const std::uint8_t* p = range.begin; p < range.end; p = skip_value(p)) {
    if (index-- == 0) return Value(p);
  }
  return {};
}

Value Value::at(const FieldPath& path) const {
  Value value = *this;
  for (const auto& step : path.steps()) {
    if (const auto* name = std::get_if<std::string>(&step)) {
      value = value[std::string_view(*name)];
    } else if (const auto* index = std::get_if<std::size_t>(&step)) {
      value = value[*index];
    } else {
      return {};
    }
  }
  return value;
}

Value Value::at(std::string_view path) const { return at(FieldPath(path)); }

std::size_t Value::size() const {
  std::size_t n = 0;
  for ([[maybe_unused]] const auto& member : members()) ++n;
  for ([[maybe_unused]] const Value element : elements()) ++n;
  return n;
}

bool Value::empty() const { return members().empty() && elements().empty(); }

std::string Value::to_json() const {
  std::string out;
  write_json(*this, out);
  return out;
}

bool Value::equal(Value a, Value b) {
  if (a.data_ == b.data_) return true;
  if (a.data_ == nullptr || b.data_ == nullptr) return false;
  if (!may_repeat(a.data_) && !may_repeat(b.data_)) return equal_bytes(a.data_, b.data_);
  return equal_contents(a, b);
}

namespace detail {

NamedValue MemberAt::item() const {
  if (in_field_set) {
    const FieldSetEntry entry = read_field_set_entry(at);
    return {entry.name, Value(entry.value)};
  }
  const Key key = read_key(at);
  return {key.text(), Value(key.end)};
}

const std::uint8_t* find_in_field_set(const std::uint8_t* set, std::string_view name) {
  const Range range = field_set_contents(set);
  for (const std::uint8_t* p = range.begin; p < range.end;) {
    const FieldSetEntry entry = read_field_set_entry(p);
    if (entry.name == name) return entry.value;
    p = entry.end;
  }
  return nullptr;
}

}  // namespace detail

}  // namespace lookout::api
