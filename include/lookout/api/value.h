// Value: reading the content of an object.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>

#include "lookout/api/detail/encoding.h"
#include "lookout/api/symbol.h"

namespace lookout::api {

class FieldPath;
class Members;
class Elements;
class Value;

namespace detail {
/// The result of a lookup of an absent member.
Value absent_member(const std::uint8_t* object, Symbol name);
}  // namespace detail

/// A view of one value inside an Object: null, boolean, number, string, object or array, or
/// *absent*.
///
/// A Value is one pointer; it owns nothing and stays valid as long as its Object (any handle to
/// it). Reading never throws and never allocates: a lookup in an absent value, or in a value of
/// another kind, returns an absent value, so paths can be chained:
///
///     std::string_view image = object["spec"]["containers"][0]["image"].as_string();
///
/// The members of an object have one fixed order (schema fields in the order of the API's types,
/// then all other names bytewise), so equal content means equal bytes, regardless of the order of
/// arrival. Finding a member or an element is a linear walk that skips nested content in O(1).
class Value {
 public:
  enum class Kind : std::uint8_t { kAbsent, kNull, kBool, kNumber, kString, kObject, kArray };

  constexpr Value() = default;
  /// For the library: `data` points to an encoded value.
  constexpr explicit Value(const std::uint8_t* data) : data_(data) {}

  Kind kind() const;
  /// False for an absent value; a null in the JSON exists.
  constexpr bool exists() const { return data_ != nullptr; }
  bool is_null() const { return kind() == Kind::kNull; }
  bool is_bool() const { return kind() == Kind::kBool; }
  bool is_number() const { return kind() == Kind::kNumber; }
  bool is_string() const { return kind() == Kind::kString; }
  bool is_object() const { return kind() == Kind::kObject; }
  bool is_array() const { return kind() == Kind::kArray; }

  /// The value if it is of this kind (and, for numbers, fits), else empty.
  std::optional<std::string_view> to_string_view() const;
  std::optional<bool> to_bool() const;
  std::optional<std::int64_t> to_int() const;
  std::optional<std::uint64_t> to_uint() const;
  /// Any number, rounded to the nearest double.
  std::optional<double> to_double() const;

  /// Like the functions above, with a fallback.
  std::string_view as_string(std::string_view fallback = {}) const;
  bool as_bool(bool fallback = false) const { return to_bool().value_or(fallback); }
  std::int64_t as_int(std::int64_t fallback = 0) const { return to_int().value_or(fallback); }
  double as_double(double fallback = 0) const { return to_double().value_or(fallback); }

  /// The member of an object; absent if there is none.
  Value operator[](std::string_view key) const;
  Value operator[](const char* key) const { return (*this)[std::string_view(key)]; }
  Value operator[](Symbol key) const;
  Value operator[](FieldSymbol key) const;
  /// The element of an array, counted from 0; absent if there is none.
  Value operator[](std::size_t index) const;
  template <std::integral T>
  Value operator[](T index) const {
    if constexpr (std::is_signed_v<T>) {
      if (index < 0) return {};
    }
    return (*this)[static_cast<std::size_t>(index)];
  }
  /// Follows a path such as ".spec.containers[0].image" (FieldPath describes the syntax). The
  /// overload for text parses it on every call and throws InvalidArgument for an invalid path.
  Value at(const FieldPath& path) const;
  Value at(std::string_view path) const;

  bool contains(std::string_view key) const { return (*this)[key].exists(); }

  /// Number of members or elements, counted in O(n); 0 for other kinds.
  std::size_t size() const;
  bool empty() const;

  /// For `for (auto [name, value] : v.members())` and `for (Value v : array.elements())`; empty
  /// ranges for other kinds.
  Members members() const;
  Elements elements() const;

  /// Compact JSON. An absent value gives "null".
  std::string to_json() const;

  /// True if kind and content are equal. Integers differ from floating-point numbers (5 is not
  /// 5.0). O(size).
  friend bool operator==(Value a, Value b) { return equal(a, b); }

  /// For the library: the encoded bytes.
  constexpr const std::uint8_t* data() const { return data_; }

 private:
  static bool equal(Value a, Value b);
  std::string_view as_other_string() const;
  const std::uint8_t* data_ = nullptr;
};

// Reading a field is inline: a call would cost as much as the rest.

// (Aligned: calls were up to a fifth slower where it began 16 bytes into a cache line.)
[[gnu::aligned(32)]] inline Value Value::operator[](FieldSymbol key) const {
  if (key.code == detail::kNoShortCode) return (*this)[static_cast<Symbol>(key)];
  const detail::Range range = detail::object_contents(data_);
  const std::uint8_t* const found = detail::find_common(range.begin, range.end, key.code);
  return found != nullptr ? Value(found) : detail::absent_member(data_, key);
}

inline std::string_view Value::as_string(std::string_view fallback) const {
  if (data_ == nullptr) return fallback;
  const std::uint8_t tag = *data_;
  const char* const text = reinterpret_cast<const char*>(data_ + 1);
  if (tag >= detail::kTagShortString && tag < detail::kTagSymbol)
    return {text, tag & detail::kMaxShortString};
  if (detail::is_symbol_string(tag)) return detail::symbol_string_text(data_);
  return tag == detail::kTagString || tag == detail::kTagAgain ? as_other_string() : fallback;
}

namespace detail {

/// The encoded items of an object or array, in stored order. At is a position among them.
template <class At>
class ItemRange {
 public:
  class iterator {
   public:
    using value_type = typename At::Item;
    using difference_type = std::ptrdiff_t;
    using iterator_concept = std::forward_iterator_tag;

    iterator() = default;
    explicit iterator(At at) : at_(at) {}
    value_type operator*() const { return at_.item(); }
    iterator& operator++() {
      at_.next();
      return *this;
    }
    iterator operator++(int) {
      auto copy = *this;
      ++*this;
      return copy;
    }
    friend bool operator==(iterator, iterator) = default;

   private:
    At at_;
  };

  ItemRange() = default;
  ItemRange(At begin, At end) : begin_(begin), end_(end) {}
  iterator begin() const { return iterator(begin_); }
  iterator end() const { return iterator(end_); }
  bool empty() const { return begin_ == end_; }

 private:
  At begin_;
  At end_;
};

struct NamedValue {
  std::string_view name;
  Value value;
};

struct MemberAt {
  using Item = NamedValue;

  const std::uint8_t* at = nullptr;
  bool in_field_set = false;

  NamedValue item() const;
  void next() { at = in_field_set ? read_field_set_entry(at).end : skip_value(skip_key(at)); }
  friend bool operator==(const MemberAt&, const MemberAt&) = default;
};

struct ElementAt {
  using Item = Value;

  const std::uint8_t* at = nullptr;

  Value item() const { return Value(at); }
  void next() { at = skip_value(at); }
  friend bool operator==(const ElementAt&, const ElementAt&) = default;
};

}  // namespace detail

/// The members of an object value, in stored order. Valid as long as the object.
class Members : public detail::ItemRange<detail::MemberAt> {
 public:
  using Member = detail::NamedValue;
  using ItemRange::ItemRange;
};

/// The elements of an array value, in order. Valid as long as the object.
class Elements : public detail::ItemRange<detail::ElementAt> {
 public:
  using ItemRange::ItemRange;
};

inline Members Value::members() const {
  const bool set = data_ != nullptr && detail::is_field_set(data_);
  const detail::Range range =
      set ? detail::field_set_contents(data_) : detail::object_contents(data_);
  return {{range.begin, set}, {range.end, set}};
}

inline Elements Value::elements() const {
  const detail::Range range = detail::array_contents(data_);
  return {{range.begin}, {range.end}};
}

}  // namespace lookout::api
