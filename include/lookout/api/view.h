// The base of generated views.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "lookout/api/detail/object_header.h"
#include "lookout/api/quantity.h"
#include "lookout/api/symbol.h"
#include "lookout/api/time.h"
#include "lookout/api/value.h"

namespace lookout::api {

/// A boolean that may be absent. Unlike std::optional<bool> it cannot be tested by accident: `if
/// (spec.host_network())` does not compile; write `.value_or(false)` or compare.
class OptionalBool {
 public:
  constexpr OptionalBool() = default;
  constexpr explicit OptionalBool(std::optional<bool> value) : value_(value) {}
  constexpr bool has_value() const { return value_.has_value(); }
  constexpr bool value_or(bool fallback) const { return value_.value_or(fallback); }
  friend constexpr bool operator==(OptionalBool, OptionalBool) = default;
  friend constexpr bool operator==(OptionalBool a, bool b) { return a.value_ == b; }

 private:
  std::optional<bool> value_;
};

/// Binary data, which JSON carries as base64.
class Bytes {
 public:
  Bytes() = default;
  explicit Bytes(Value value) : text_(value.as_string()) {}
  std::string_view base64() const { return text_; }
  bool empty() const { return text_.empty(); }
  /// The bytes; empty if the text is not base64.
  std::optional<std::string> decode() const;

 private:
  std::string_view text_;
};

/// intstr.IntOrString: a number, or a string such as "25%" or "http".
class IntOrString {
 public:
  IntOrString() = default;
  explicit IntOrString(Value value) : value_(value) {}
  explicit operator bool() const { return value_.exists() && !value_.is_null(); }
  bool is_int() const { return value_.is_number(); }
  bool is_string() const { return value_.is_string(); }
  /// The number, or the number in the string; 0 if there is none. A number that does not fit
  /// becomes the nearest one that does.
  std::int32_t int_value() const;
  /// The string; empty if it is a number.
  std::string_view string_value() const { return value_.as_string(); }
  std::string to_string() const;
  /// The number, or that percentage of `total`: client-go's GetScaledValueFromIntOrPercent. Empty
  /// for any other string.
  std::optional<std::int32_t> scaled(std::int32_t total, bool round_up) const;

 private:
  Value value_;
};

/// The base of generated views: one pointer into an object. A view of an absent part is empty, and
/// so are the results of its accessors.
class View {
 public:
  constexpr View() = default;
  constexpr explicit View(Value value) : value_(value) {}

  /// True if the object has this part; a null counts as absent, as in Kubernetes.
  explicit operator bool() const { return value_.exists() && !value_.is_null(); }
  /// The part as a dynamic value, for fields that the schema does not know.
  constexpr Value as_value() const { return value_; }

 protected:
  template <class T>
  T field_as(Symbol name) const;
  template <class T>
  T field_as(FieldSymbol name) const;

 private:
  Value value_;
};

/// The base of generated views of metadata, spec and status. A view that comes from its object also
/// refers to the object's header: a lookup starts at the nearest preceding field whose offset is in
/// the header. The same class over any other value, such as the spec of a pod template, has no header.
class PartView : public View {
 public:
  using View::View;
  constexpr PartView() = default;
  /// For the library: `value` is the part that the offsets of `header` belong to.
  constexpr PartView(Value value, const detail::ObjectHeader* header)
      : View(value), header_(header) {}

 protected:
  using View::field_as;
  /// `nearest` is the offset of this field or of a preceding one.
  template <class T>
  T field_as(FieldSymbol name, std::uint16_t detail::ObjectHeader::*nearest) const;

 private:
  Value member(FieldSymbol name, std::uint16_t detail::ObjectHeader::*nearest) const {
    if (header_ == nullptr || name.code == detail::kNoShortCode) return as_value()[name];
    const std::uint16_t offset = header_->*nearest;
    if (offset == 0 || offset == detail::ObjectHeader::kFar) return as_value()[name];
    const std::uint8_t* const member = header_->body() + offset - 1;
    if (*member == name.code) return Value(member + 1);
    const detail::Range all = detail::object_contents(as_value().data());
    const std::uint8_t* const found = detail::find_common(member, all.end, name.code);
    return found != nullptr ? Value(found) : detail::absent_member(as_value().data(), name);
  }

  const detail::ObjectHeader* header_ = nullptr;
};

/// Reads a value as the type of an accessor. Do not specialize it; give a class a constructor from
/// Value instead.
template <class T>
T from_value(Value value) {
  if constexpr (std::same_as<T, std::string_view>) {
    return value.as_string();
  } else if constexpr (std::same_as<T, bool>) {
    return value.as_bool();
  } else if constexpr (std::same_as<T, OptionalBool>) {
    return OptionalBool(value.to_bool());
  } else if constexpr (std::same_as<T, double>) {
    return value.as_double();
  } else if constexpr (std::same_as<T, std::optional<double>>) {
    return value.to_double();
  } else if constexpr (std::integral<T>) {
    const std::int64_t number = value.as_int();
    return std::in_range<T>(number) ? static_cast<T>(number) : T{};
  } else if constexpr (std::same_as<T, std::optional<std::int32_t>>) {
    // A number that does not fit reads as absent.
    const auto number = value.to_int();
    return number && std::in_range<std::int32_t>(*number)
               ? std::optional(static_cast<std::int32_t>(*number))
               : std::nullopt;
  } else if constexpr (std::same_as<T, std::optional<std::int64_t>>) {
    return value.to_int();
  } else if constexpr (std::same_as<T, std::optional<Time>>) {
    return parse_time(value.as_string());
  } else if constexpr (std::same_as<T, std::optional<Quantity>>) {
    // Kubernetes accepts plain numbers as quantities, too.
    return value.is_number() ? Quantity::parse(value.to_json())
                             : Quantity::parse(value.as_string());
  } else if constexpr (std::same_as<T, Quantity>) {
    return from_value<std::optional<Quantity>>(value).value_or(Quantity{});
  } else {
    return T(value);
  }
}

template <class T>
T View::field_as(Symbol name) const {
  return from_value<T>(value_[name]);
}

template <class T>
T View::field_as(FieldSymbol name) const {
  return from_value<T>(value_[name]);
}

template <class T>
T PartView::field_as(FieldSymbol name, std::uint16_t detail::ObjectHeader::*nearest) const {
  return from_value<T>(member(name, nearest));
}

namespace detail {

/// An iterator over the results of applying Read() to the items of another iterator.
template <class Base, class T, class Read>
class ReadingIterator {
 public:
  using value_type = T;
  using difference_type = std::ptrdiff_t;
  using iterator_concept = std::forward_iterator_tag;

  ReadingIterator() = default;
  explicit ReadingIterator(Base at) : at_(at) {}
  T operator*() const { return Read()(*at_); }
  ReadingIterator& operator++() {
    ++at_;
    return *this;
  }
  ReadingIterator operator++(int) { return ReadingIterator(at_++); }
  friend bool operator==(ReadingIterator, ReadingIterator) = default;

 private:
  Base at_;
};

template <class T>
struct ReadElement {
  T operator()(Value value) const { return from_value<T>(value); }
};
template <class Entry>
struct ReadMember {
  Entry operator()(const Members::Member& member) const {
    return {member.name, from_value<decltype(Entry::value)>(member.value)};
  }
};

}  // namespace detail

/// An array as a range of T. Indexing is O(n).
template <class T>
class ListView {
 public:
  using iterator = detail::ReadingIterator<Elements::iterator, T, detail::ReadElement<T>>;

  ListView() = default;
  explicit ListView(Value value) : value_(value) {}
  iterator begin() const { return iterator(value_.elements().begin()); }
  iterator end() const { return iterator(value_.elements().end()); }
  bool empty() const { return value_.elements().empty(); }
  std::size_t size() const { return value_.size(); }
  /// The element; an empty one if the index is out of range. (Const, as in MapView.)
  const T operator[](std::size_t index) const {  // NOLINT(readability-const-return-type)
    return from_value<T>(value_[index]);
  }
  Value as_value() const { return value_; }

 private:
  Value value_;
};

/// A map from strings to T, such as labels.
template <class T>
class MapView {
 public:
  struct Entry {
    std::string_view key;
    T value;
  };

  using iterator = detail::ReadingIterator<Members::iterator, Entry, detail::ReadMember<Entry>>;

  MapView() = default;
  explicit MapView(Value value) : value_(value) {}
  iterator begin() const { return iterator(value_.members().begin()); }
  iterator end() const { return iterator(value_.members().end()); }
  bool empty() const { return value_.members().empty(); }
  std::size_t size() const { return value_.size(); }
  bool contains(std::string_view key) const { return value_.contains(key); }
  /// The value of a key; an empty one if it is absent. (Const so that an assignment to it does not
  /// compile: objects are changed through drafts.)
  const T operator[](std::string_view key) const {  // NOLINT(readability-const-return-type)
    return from_value<T>(value_[key]);
  }
  std::optional<T> find(std::string_view key) const {
    const Value found = value_[key];
    return found.exists() ? std::optional<T>(from_value<T>(found)) : std::nullopt;
  }
  Value as_value() const { return value_; }

 private:
  Value value_;
};

}  // namespace lookout::api
