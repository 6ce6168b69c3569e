// Writing objects: drafts.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lookout/api/error.h"
#include "lookout/api/object.h"
#include "lookout/api/quantity.h"
#include "lookout/api/time.h"
#include "lookout/api/value.h"
#include "lookout/api/view.h"
#include "lookout/base/attributes.h"

namespace lookout::api {

namespace detail {
class DraftTree;
struct DraftNode;
}  // namespace detail

/// A part of a draft: a structure, list, map or scalar inside it. Generated parts such as
/// k8s::apps::v1::DeploymentSpecDraft derive from it and add typed accessors.
///
/// A part is a reference, as cheap to copy as a pointer, into the draft that it came from. The
/// draft must outlive it; a part that was removed from the draft stays safe to use and changes
/// nothing. `const` makes no difference: like std::span, a part does not own what it refers to.
///
/// Asking for a part that is not there changes nothing; writing into it makes it, and what contains
/// it. Reading sees what was written. Strings and values that were read are good until that part is
/// written again. One thread at a time may use a draft and its parts, reading included.
class DraftPart {
 public:
  explicit DraftPart(detail::DraftNode& node) : node_(&node) {}

  /// Whether the object has this part; a null counts as absent.
  explicit operator bool() const;

  /// A member of this structure or map, an element of this list. operator[] for the names of fields
  /// that no schema knows.
  DraftPart operator[](std::string_view name) const;
  DraftPart operator[](const char* name) const { return (*this)[std::string_view(name)]; }
  /// Throws InvalidArgument if the list is shorter.
  DraftPart operator[](std::size_t index) const;
  /// A new element at the end of this list.
  DraftPart append() const;
  /// Removes an element; nothing happens if there is none.
  void erase(std::size_t index) const;
  /// Number of members or elements.
  std::size_t size() const;
  /// The names of the members.
  std::vector<std::string> names() const;

  /// The current content. Free for scalars and unchanged parts; otherwise it encodes the part.
  /// Valid until the part is written again.
  Value value() const;
  template <class T>
  T as() const {
    return from_value<T>(value());
  }

  /// Replaces the part. Text must be UTF-8 and a double finite; else InvalidArgument.
  void set(std::string_view text) const;
  void set(const char* text) const { set(std::string_view(text)); }
  void set(const std::string& text) const { set(std::string_view(text)); }
  void set(std::same_as<bool> auto value) const { set_bool(value); }
  template <std::integral T>
    requires(!std::same_as<T, bool> && !std::same_as<T, char>)
  void set(T value) const {
    if constexpr (std::is_signed_v<T>) {
      set_int(value);
    } else {
      set_uint(value);
    }
  }
  void set(double value) const;
  void set(const Quantity& value) const { set(std::string_view(value.to_string())); }
  /// Copies the value, with everything in it. An absent value removes the part.
  void set(Value value) const;
  void set(const View& view) const { set(view.as_value()); }
  void set(const Object& object) const { set(object.body()); }
  /// The same for a field that the API server leaves out when it is zero, false or empty: such a
  /// value is no difference to a field that is not there.
  template <class T>
  void set_or_omit(T value) const {
    set(value);
    if (value == T{}) zero_is_absent();
  }
  /// Makes it an object without members.
  void set_empty_object() const;
  /// Makes it a list without elements.
  void set_empty_list() const;
  /// Removes the part from what contains it.
  void remove() const;

 protected:
  /// Reads a scalar member as a T.
  template <class T>
  T field_as(std::string_view member) const {
    return from_value<T>(read(member));
  }

 private:
  Value read(std::string_view member) const;
  void zero_is_absent() const;
  void set_bool(bool value) const;
  void set_int(std::int64_t value) const;
  void set_uint(std::uint64_t value) const;

  detail::DraftNode* node_;
};

namespace detail {

/// Raw bytes, written as base64.
void write_bytes(const DraftPart& part, std::string_view bytes);

/// How a scalar is written whose accessor gives a T.
template <class T, class Given>
void write_scalar(const DraftPart& part, const Given& given) {
  if constexpr (std::same_as<T, Quantity> && std::convertible_to<Given, std::string_view>) {
    const auto quantity = Quantity::parse(given);
    if (!quantity) throw InvalidArgument("a text that is no quantity");
    part.set(std::string_view(given));
  } else if constexpr (std::same_as<T, Bytes> && std::convertible_to<Given, std::string_view>) {
    write_bytes(part, given);
  } else if constexpr (std::same_as<Given, Time>) {
    part.set(std::string_view(format_time(given)));
  } else {
    part.set(given);
  }
}

}  // namespace detail

/// A list. T is a generated part for a list of structures, else what a view's accessor gives for an
/// element: std::string_view, std::int32_t ...
template <class T>
class ListDraft : public DraftPart {
 public:
  static constexpr bool kOfParts = std::derived_from<T, DraftPart>;

  class iterator {
   public:
    using value_type = T;
    using difference_type = std::ptrdiff_t;
    using iterator_concept = std::input_iterator_tag;

    iterator(const ListDraft& list, std::size_t at) : list_(&list), at_(at) {}
    T operator*() const { return (*list_)[at_]; }
    iterator& operator++() {
      ++at_;
      return *this;
    }
    void operator++(int) { ++at_; }
    friend bool operator==(const iterator& a, const iterator& b) { return a.at_ == b.at_; }

   private:
    const ListDraft* list_;
    std::size_t at_;
  };

  explicit ListDraft(const DraftPart& part) : DraftPart(part) {}

  bool empty() const { return size() == 0; }
  iterator begin() const& LOOKOUT_LIFETIME_BOUND { return iterator(*this, 0); }
  iterator end() const& LOOKOUT_LIFETIME_BOUND { return iterator(*this, size()); }

  /// Throws InvalidArgument if the list is shorter.
  T operator[](std::size_t index) const {
    const DraftPart part = DraftPart::operator[](index);
    if constexpr (kOfParts) {
      return T(part);
    } else {
      return part.as<T>();
    }
  }

  /// A new, empty structure at the end.
  T append() const
    requires kOfParts
  {
    return T(DraftPart::append());
  }

  template <class Given>
    requires(!kOfParts)
  void append(const Given& value) const {
    detail::write_scalar<T>(DraftPart::append(), value);
  }
  template <class Given>
    requires(!kOfParts)
  void set(std::size_t index, const Given& value) const {
    detail::write_scalar<T>(DraftPart::operator[](index), value);
  }
  /// Replaces the whole list.
  template <class Range>
    requires(!kOfParts)
  void assign(const Range& values) const {
    set_empty_list();
    for (const auto& value : values) append(value);
  }
  bool contains(const T& value) const
    requires(!kOfParts)
  {
    for (const T& each : *this) {
      if (each == value) return true;
    }
    return false;
  }
  /// Removes every element that equals `value`; the number of those.
  std::size_t erase_value(const T& value) const
    requires(!kOfParts)
  {
    std::size_t erased = 0;
    for (std::size_t i = size(); i-- > 0;) {
      if ((*this)[i] != value) continue;
      erase(i);
      ++erased;
    }
    return erased;
  }

  void clear() const { set_empty_list(); }
};

/// A list of structures of which one field is the key (patchMergeKey in the API's types), such as
/// the containers of a pod by name. Key is std::string_view or a number.
template <class T, class Key>
class KeyedListDraft : public ListDraft<T> {
 public:
  KeyedListDraft(const DraftPart& part, std::string_view key_name)
      : ListDraft<T>(part), key_name_(key_name) {}

  using ListDraft<T>::append;
  using ListDraft<T>::erase;
  using ListDraft<T>::operator[];

  /// A new structure at the end, with its key set.
  T append(Key key) const {
    const T added = ListDraft<T>::append();
    const DraftPart& part = added;
    part[key_name_].set(key);
    return added;
  }
  /// The first structure with that key, if there is one.
  std::optional<T> find(Key key) const {
    const auto at = index_of(key);
    return at ? std::optional<T>((*this)[*at]) : std::nullopt;
  }
  bool contains(Key key) const { return index_of(key).has_value(); }
  /// The first structure with that key; one is appended if there is none.
  T get_or_append(Key key) const {
    const auto at = index_of(key);
    return at ? (*this)[*at] : append(key);
  }
  /// Removes the first structure with that key; false if there is none.
  bool erase_key(Key key) const {
    const auto at = index_of(key);
    if (at) this->erase(*at);
    return at.has_value();
  }

 private:
  std::optional<std::size_t> index_of(Key key) const {
    const std::size_t count = this->size();
    for (std::size_t i = 0; i < count; ++i) {
      const T element = (*this)[i];
      const DraftPart& part = element;
      if (part[key_name_].template as<Key>() == key) return i;
    }
    return std::nullopt;
  }

  std::string_view key_name_;
};

/// A map from strings to T, such as labels. T as for ListDraft.
template <class T>
class MapDraft : public DraftPart {
 public:
  static constexpr bool kOfParts = std::derived_from<T, DraftPart>;

  explicit MapDraft(const DraftPart& part) : DraftPart(part) {}

  bool empty() const { return size() == 0; }
  bool contains(std::string_view key) const {
    return static_cast<bool>(DraftPart::operator[](key));
  }
  /// For structures the part, which writing makes; else the value, an empty one if there is none.
  T operator[](std::string_view key) const {
    const DraftPart part = DraftPart::operator[](key);
    if constexpr (kOfParts) {
      return T(part);
    } else {
      return part.as<T>();
    }
  }
  template <class Given>
    requires(!kOfParts)
  void set(std::string_view key, const Given& value) const {
    detail::write_scalar<T>(DraftPart::operator[](key), value);
  }
  /// False if there is no such key.
  bool erase(std::string_view key) const {
    const DraftPart part = DraftPart::operator[](key);
    if (!part) return false;
    part.remove();
    return true;
  }
  void clear() const { set_empty_object(); }
};

/// A draft: an object that is being written, over one that there is already or over nothing.
///
///     api::ObjectDraft change(object);                    // or object.edit() with a typed object
///     change["spec"]["replicas"].set(5);
///     client.patch(change.diff());                        // {"spec":{"replicas":5}}
///     Object whole = std::move(change).build();           // everything else byte for byte
///
/// It keeps the object alive, copies nothing of it until build(), and keeps what no schema knows.
/// It can be moved, and its parts go on referring to it; it cannot be copied. Generated drafts such
/// as k8s::apps::v1::DeploymentDraft derive from it.
class ObjectDraft : public DraftPart {
 public:
  /// A draft of a new object: without an original, everything in it counts as changed.
  ObjectDraft() : ObjectDraft(Object()) {}
  explicit ObjectDraft(Object original);
  ObjectDraft(ObjectDraft&&) noexcept;
  ObjectDraft& operator=(ObjectDraft&&) noexcept;
  ~ObjectDraft();

  /// As DraftPart's. Parts refer to the draft, so there are none of a temporary one.
  DraftPart operator[](std::string_view name) const& LOOKOUT_LIFETIME_BOUND {
    return DraftPart::operator[](name);
  }
  DraftPart operator[](const char* name) const& LOOKOUT_LIFETIME_BOUND {
    return DraftPart::operator[](name);
  }
  DraftPart operator[](std::string_view name) const&& = delete;
  DraftPart operator[](const char* name) const&& = delete;
  Value value() const& LOOKOUT_LIFETIME_BOUND { return DraftPart::value(); }
  Value value() const&& = delete;

  /// The object that the draft was made from; empty for a new object.
  const Object& original() const& LOOKOUT_LIFETIME_BOUND;
  Object original() const&& { return original(); }
  bool changed() const;

  /// The object with the changes. It is the original itself, not a copy, if nothing differs. Costs
  /// about two copies of its bytes.
  Object build() const;

  /// A JSON merge patch (RFC 7386) with the differences to the original and nothing else: "{}" if
  /// there are none, everything for a new object. A list that differs is in it whole, as merge
  /// patches have it.
  std::string diff() const;
  /// The differences of one member of the object, such as "status".
  std::string diff(std::string_view member) const;
  /// Those of all others.
  std::string diff_except(std::string_view member) const;

 protected:
  /// Sets the type and the name of a new object; an empty name or namespace is left out.
  void identify(std::string_view api_version, std::string_view kind, std::string_view name,
                std::string_view ns) const;

 private:
  explicit ObjectDraft(std::unique_ptr<detail::DraftTree> tree);

  std::unique_ptr<detail::DraftTree> tree_;
};

}  // namespace lookout::api
