// Drafts of lists that are sets.
#pragma once

#include "lookout/api/draft.h"

namespace lookout::api {

/// A list that holds no value twice (x-kubernetes-list-type: set), such as finalizers. The server
/// refuses one that does.
template <class T>
class SetDraft : public ListDraft<T> {
 public:
  using ListDraft<T>::ListDraft;

  /// Appends the value; false if the list has it already.
  bool insert(const T& value) const {
    if (this->contains(value)) return false;
    this->append(value);
    return true;
  }
};

}  // namespace lookout::api
