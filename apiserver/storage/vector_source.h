// VectorSource: objects in memory as a source.
#pragma once

#include <utility>
#include <vector>

#include "lookout/apiserver/storage/interface.h"

namespace lookout::apiserver::storage {

/// Returns the objects of a vector.
class VectorSource final : public ObjectSource {
 public:
  explicit VectorSource(std::vector<api::Object> objects) : objects_(std::move(objects)) {}

  Awaitable<bool> next(std::vector<api::Object>& objects, std::size_t max) override {
    objects.clear();
    for (; given_ < objects_.size() && objects.size() < max; ++given_)
      objects.push_back(std::move(objects_[given_]));
    co_return !objects.empty();
  }

 private:
  std::vector<api::Object> objects_;
  std::size_t given_ = 0;
};

}  // namespace lookout::apiserver::storage
