// Changes of pods as texts, like those that the tests of this folder expect.
#pragma once

#include <cstddef>
#include <initializer_list>
#include <string>
#include <string_view>

#include "lookout/api/object.h"
#include "tests/support/objects.h"

namespace lookout::cache {

/// Calls add(), update() and remove() of a queue for changes like "+a/x@1", "~a/x@2" and "-a/x@3".
template <class Queue>
void apply_changes(Queue& queue, std::initializer_list<std::string_view> changes) {
  for (const std::string_view change : changes) {
    const std::size_t at = change.find('@');
    const api::Object object =
        test::pod(change.substr(1, at - 1), std::string(change.substr(at + 1)));
    if (change.starts_with('+')) queue.add(object);
    if (change.starts_with('~')) queue.update(object);
    if (change.starts_with('-')) queue.remove(object);
  }
}

}  // namespace lookout::cache
