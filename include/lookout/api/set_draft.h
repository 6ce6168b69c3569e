// SetDraft: lists that are sets.
#pragma once

#include "lookout/api/draft.h"

namespace lookout::api {

/// A list without duplicates (x-kubernetes-list-type: set), such as finalizers. The server refuses
/// duplicates.
template <class T>
class SetDraft : public ListDraft<T> {
 public:
  using ListDraft<T>::ListDraft;

  /// Appends the value; returns false if the list contains it already.
  bool insert(const T& value) const {
    if (this->contains(value)) return false;
    this->append(value);
    return true;
  }
};

}  // namespace lookout::api
