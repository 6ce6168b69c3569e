// MultiKeyListDraft: lists whose elements have several key fields.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string_view>
#include <utility>

#include "lookout/api/draft.h"

namespace lookout::api {

/// A KeyedListDraft with several key fields (x-kubernetes-list-map-keys), such as the port and the
/// protocol of a listener. Each of Keys is std::string_view or a number.
///
/// Lookups compare the fields that the elements contain: a default that only the server sets is
/// absent until the object has been read back.
template <class T, class... Keys>
class MultiKeyListDraft : public ListDraft<T> {
 public:
  using KeyNames = std::array<std::string_view, sizeof...(Keys)>;

  MultiKeyListDraft(const DraftPart& part, const KeyNames& key_names)
      : ListDraft<T>(part), key_names_(key_names) {}

  using ListDraft<T>::append;
  using ListDraft<T>::operator[];

  /// Appends a new structure with this key and returns it.
  T append(Keys... keys) const {
    const DraftPart added = this->new_element();
    std::size_t i = 0;
    (added[key_names_[i++]].set(keys), ...);
    this->add_element(added);
    return T(added);
  }
  /// The first structure with this key, if there is one.
  std::optional<T> find(Keys... keys) const {
    const auto at = index_of(keys...);
    return at ? std::optional<T>((*this)[*at]) : std::nullopt;
  }
  bool contains(Keys... keys) const { return index_of(keys...).has_value(); }
  /// The first structure with this key; appends one if there is none.
  T get_or_append(Keys... keys) const {
    const auto at = index_of(keys...);
    return at ? (*this)[*at] : append(keys...);
  }
  /// Removes the first structure with this key; returns false if there is none.
  bool erase_key(Keys... keys) const {
    const auto at = index_of(keys...);
    if (at) this->erase(*at);
    return at.has_value();
  }

 private:
  std::optional<std::size_t> index_of(const Keys&... keys) const {
    const std::size_t count = this->size();
    for (std::size_t at = 0; at < count; ++at) {
      const T element = (*this)[at];
      const DraftPart& part = element;
      std::size_t i = 0;
      if (((part[key_names_[i++]].template as<Keys>() == keys) && ...)) return at;
    }
    return std::nullopt;
  }

  KeyNames key_names_;
};

}  // namespace lookout::api
