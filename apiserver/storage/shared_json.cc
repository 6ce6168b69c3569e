#include "apiserver/storage/shared_json.h"

#include <array>
#include <cstddef>
#include <mutex>
#include <utility>

namespace lookout::apiserver::storage {
namespace {

class LastObjects {
 public:
  std::shared_ptr<const std::string> find(const api::Object& object) const {
    const std::lock_guard lock(mutex_);
    for (const Encoded& one : last_) {
      if (one.object.same(object)) return one.json;
    }
    return nullptr;
  }
  void keep(const api::Object& object, std::shared_ptr<const std::string> json) {
    if (json->size() > kLongestShared) return;
    // The replaced entry is destroyed after the lock is released.
    Encoded one{object, std::move(json)};
    const std::lock_guard lock(mutex_);
    std::swap(last_[next_++ % last_.size()], one);
  }

 private:
  struct Encoded {
    api::Object object;
    std::shared_ptr<const std::string> json;
  };

  mutable std::mutex mutex_;
  std::array<Encoded, 32> last_;
  std::size_t next_ = 0;
};

LastObjects& last_objects() {
  static LastObjects last;
  return last;
}

}  // namespace

std::shared_ptr<const std::string> shared_json(const api::Object& object) {
  if (auto json = last_objects().find(object)) return json;
  auto json = std::make_shared<const std::string>(object.to_json());
  last_objects().keep(object, json);
  return json;
}

void share_json(const api::Object& object, std::string json) {
  last_objects().keep(object, std::make_shared<const std::string>(std::move(json)));
}

}  // namespace lookout::apiserver::storage
