// Drafts: changing objects.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
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
/// Accessing an absent part changes nothing; writing to it creates it and its parents. Reads see
/// earlier writes. A string or value that was read stays valid until its part is written again. A
/// draft and its parts may be used by one thread at a time, even for reading.
class DraftPart {
 public:
  explicit DraftPart(detail::DraftNode& node) : node_(&node) {}
  DraftPart(const DraftPart&) = default;
  /// For variables, which then refer to another part. A part is written with set(): what looks like a
  /// write, `draft["spec"] = other["spec"]`, does not compile.
  DraftPart& operator=(const DraftPart&) & = default;

  /// True if the object has this part; a null counts as absent.
  explicit operator bool() const;

  /// A member of this structure or map, or an element of this list. Use operator[] with names for
  /// fields that the schema does not know.
  DraftPart operator[](std::string_view name) const;
  DraftPart operator[](const char* name) const { return (*this)[std::string_view(name)]; }
  /// Throws InvalidArgument if the list is shorter, or the index negative.
  DraftPart operator[](std::size_t index) const;
  /// (Prevents the literal 0 from being a null pointer.)
  template <std::integral T>
  DraftPart operator[](T index) const {
    if constexpr (std::is_signed_v<T>) {
      if (index < 0) throw InvalidArgument("an element with a negative index");
    }
    return (*this)[static_cast<std::size_t>(index)];
  }
  /// Appends a new element to this list and returns it.
  DraftPart append() const;
  /// Removes an element; does nothing if the index is out of range.
  void erase(std::size_t index) const;
  /// Number of members or elements.
  std::size_t size() const;
  /// The names of the members.
  std::vector<std::string> names() const;

  /// The current content. Free for scalars and unchanged parts; other parts are encoded first.
  /// Valid until the part is written again.
  Value value() const;
  template <class T>
  T as() const {
    return from_value<T>(value());
  }

  /// Replaces the part. Throws InvalidArgument for text that is not UTF-8, also in the name of the
  /// part or of one that contains it, and for a double that is not finite.
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
  /// Copies the value with its contents. An absent value removes the part.
  void set(Value value) const;
  void set(const View& view) const { set(view.as_value()); }
  void set(const Object& object) const { set(object.body()); }
  /// Like set(), for a field that the API server omits when it is zero, false or empty: setting an
  /// absent field to such a value does not count as a change.
  template <class T>
  void set_or_omit(T value) const {
    set(value);
    if (value == T{}) zero_is_absent();
  }
  /// Replaces the part with an object without members.
  void set_empty_object() const;
  /// Replaces the part with a list without elements.
  void set_empty_list() const;
  /// Removes the part from its parent.
  void remove() const;

 protected:
  /// Reads a scalar member as a T.
  template <class T>
  T field_as(std::string_view member) const {
    return from_value<T>(read(member));
  }
  /// A new element for this list, which becomes its last one with add_element(). If writing the
  /// element throws, the list stays as it is.
  DraftPart new_element() const;
  void add_element(const DraftPart& element) const;

 private:
  Value read(std::string_view member) const;
  void zero_is_absent() const;
  void set_bool(bool value) const;
  void set_int(std::int64_t value) const;
  void set_uint(std::uint64_t value) const;

  detail::DraftNode* node_;
};

namespace detail {

/// Writes raw bytes as base64.
void write_bytes(const DraftPart& part, std::string_view bytes);

/// Writes a scalar whose accessor returns a T.
template <class T, class Given>
void write_scalar(const DraftPart& part, const Given& given) {
  if constexpr (std::same_as<T, Quantity> && std::convertible_to<Given, std::string_view>) {
    const auto quantity = Quantity::parse(given);
    if (!quantity) throw InvalidArgument("the text is not a quantity");
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

/// A list. T is a generated part for lists of structures; for other lists it is the type that a
/// view's accessor returns for an element, such as std::string_view or std::int32_t.
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

  /// Throws InvalidArgument if the list is shorter. (The result is const so that an assignment to it
  /// does not compile: use set(index, value).)
  const T operator[](std::size_t index) const {  // NOLINT(readability-const-return-type)
    const DraftPart part = DraftPart::operator[](index);
    if constexpr (kOfParts) {
      return T(part);
    } else {
      return part.as<T>();
    }
  }

  /// Appends a new, empty structure and returns it.
  T append() const
    requires kOfParts
  {
    return T(DraftPart::append());
  }

  template <class Given>
    requires(!kOfParts)
  void append(const Given& value) const {
    const DraftPart added = new_element();
    detail::write_scalar<T>(added, value);
    add_element(added);
  }
  template <class Given>
    requires(!kOfParts)
  void set(std::size_t index, const Given& value) const {
    detail::write_scalar<T>(DraftPart::operator[](index), value);
  }
  /// Replaces the whole list. If it throws, the list stays as it is.
  template <class Range>
    requires(!kOfParts)
  void assign(const Range& values) const {
    const ListDraft whole(new_element());
    whole.set_empty_list();
    for (const auto& value : values) whole.append(value);
    DraftPart::set(whole.value());
  }
  bool contains(const T& value) const
    requires(!kOfParts)
  {
    for (const T& each : *this) {
      if (each == value) return true;
    }
    return false;
  }
  /// Removes every element that equals `value` and returns their number.
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

/// A list of structures with one field as the key (patchMergeKey in the API's types), such as the
/// containers of a pod with their name. Key is std::string_view or a number.
template <class T, class Key>
class KeyedListDraft : public ListDraft<T> {
 public:
  KeyedListDraft(const DraftPart& part, std::string_view key_name)
      : ListDraft<T>(part), key_name_(key_name) {}

  using ListDraft<T>::append;
  using ListDraft<T>::erase;
  using ListDraft<T>::operator[];

  /// Appends a new structure with this key and returns it.
  T append(Key key) const {
    const DraftPart added = this->new_element();
    added[key_name_].set(key);
    this->add_element(added);
    return T(added);
  }
  /// The first structure with this key, if there is one.
  std::optional<T> find(Key key) const {
    const auto at = index_of(key);
    return at ? std::optional<T>((*this)[*at]) : std::nullopt;
  }
  bool contains(Key key) const { return index_of(key).has_value(); }
  /// The first structure with this key; appends one if there is none.
  T get_or_append(Key key) const {
    const auto at = index_of(key);
    return at ? (*this)[*at] : append(key);
  }
  /// Removes the first structure with this key; returns false if there is none.
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

/// A map from strings to T, such as labels. ListDraft describes T.
template <class T>
class MapDraft : public DraftPart {
 public:
  static constexpr bool kOfParts = std::derived_from<T, DraftPart>;

  explicit MapDraft(const DraftPart& part) : DraftPart(part) {}

  bool empty() const { return size() == 0; }
  bool contains(std::string_view key) const {
    return static_cast<bool>(DraftPart::operator[](key));
  }
  /// For structures: the part, which writes create. For other types: the value, or an empty one if
  /// the key is absent. (Const, as in ListDraft: use set(key, value).)
  const T operator[](std::string_view key) const {  // NOLINT(readability-const-return-type)
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
  /// Removes a key; returns false if it is absent.
  bool erase(std::string_view key) const {
    const DraftPart part = DraftPart::operator[](key);
    if (!part) return false;
    part.remove();
    return true;
  }
  void clear() const { set_empty_object(); }
};

/// A draft: an object under construction, based on an existing object or on none.
///
///     api::ObjectDraft change(object);                    // or object.edit() with a typed object
///     change["spec"]["replicas"].set(5);
///     client.patch(change.diff());                        // {"spec":{"replicas":5}}
///     Object whole = std::move(change).build();           // everything else byte for byte
///
/// A draft keeps its original alive, copies nothing before build(), and preserves fields that the
/// schema does not know. A draft can be moved, and its parts stay valid; it cannot be copied.
/// original(), changed(), build(), diff() and the identity of a draft that was moved throw
/// InvalidArgument.
/// Generated drafts such as k8s::apps::v1::DeploymentDraft derive from it.
class ObjectDraft : public DraftPart {
 public:
  /// A draft of a new object: it has no original, so every field counts as changed.
  ObjectDraft() : ObjectDraft(Object()) {}
  explicit ObjectDraft(Object original);
  ObjectDraft(ObjectDraft&&) noexcept;
  ObjectDraft& operator=(ObjectDraft&&) noexcept;
  ~ObjectDraft();

  /// Like DraftPart's operators. Parts refer to the draft, so a temporary draft has none.
  DraftPart operator[](std::string_view name) const& LOOKOUT_LIFETIME_BOUND {
    return DraftPart::operator[](name);
  }
  DraftPart operator[](const char* name) const& LOOKOUT_LIFETIME_BOUND {
    return DraftPart::operator[](name);
  }
  DraftPart operator[](std::string_view name) const&& = delete;  // name the draft first
  DraftPart operator[](const char* name) const&& = delete;       // name the draft first
  Value value() const& LOOKOUT_LIFETIME_BOUND { return DraftPart::value(); }
  Value value() const&& = delete;  // name the draft first

  /// The identity in the draft's present state, like that of an Object; empty if there is none. The
  /// text is valid until the field is written again.
  std::string_view ns() const& LOOKOUT_LIFETIME_BOUND { return identity("namespace"); }
  std::string ns() const&& { return std::string(identity("namespace")); }
  std::string_view name() const& LOOKOUT_LIFETIME_BOUND { return identity("name"); }
  std::string name() const&& { return std::string(identity("name")); }
  std::string_view uid() const& LOOKOUT_LIFETIME_BOUND { return identity("uid"); }
  std::string uid() const&& { return std::string(identity("uid")); }
  std::string_view resource_version() const& LOOKOUT_LIFETIME_BOUND {
    return identity("resourceVersion");
  }
  std::string resource_version() const&& { return std::string(identity("resourceVersion")); }
  /// "namespace/name", or "name" without a namespace.
  std::string key() const;

  /// The object that this draft is based on; empty for a new object.
  const Object& original() const& LOOKOUT_LIFETIME_BOUND;
  Object original() const&& { return original(); }
  bool changed() const;

  /// The object with the changes. If nothing changed, it is the original itself, not a copy. The
  /// cost is about two copies of the object's bytes.
  Object build() const;

  /// A JSON merge patch (RFC 7396) that contains exactly the changes: "{}" if nothing changed,
  /// everything for a new object. A changed list appears in full, because merge patches replace
  /// lists.
  std::string diff() const;
  /// The changes within one member of the object, such as "status".
  std::string diff(std::string_view member) const;
  /// The changes in all members except this one.
  std::string diff_except(std::string_view member) const;

 protected:
  /// Sets the type and the name of a new object; omits an empty name or namespace.
  void identify(std::string_view api_version, std::string_view kind, std::string_view name,
                std::string_view ns) const;

 private:
  explicit ObjectDraft(std::unique_ptr<detail::DraftTree> tree);
  /// A text in the metadata.
  std::string_view identity(std::string_view field) const;

  std::unique_ptr<detail::DraftTree> tree_;
};

}  // namespace lookout::api
