// FreeWith: owners for resources of C libraries.
#pragma once

namespace lookout::detail {

/// A deleter that calls a C function: std::unique_ptr<BIO, FreeWith<BIO_free>>.
template <auto free>
struct FreeWith {
  template <class T>
  void operator()(T* object) const {
    free(object);
  }
};

}  // namespace lookout::detail
