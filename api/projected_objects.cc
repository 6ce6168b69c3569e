#include "lookout/api/detail/projected_objects.h"

#include <fmt/format.h>

#include <atomic>
#include <cstdio>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>

#include "api/projection_node.h"
#include "lookout/api/detail/encoding.h"
#include "lookout/api/detail/object_header.h"
#include "lookout/api/value.h"

namespace lookout::api::detail {
namespace {

struct Entry {
  const ObjectHeader* object = nullptr;
  std::shared_ptr<const ProjectionNode> root;  // objects may outlive their Projection
};

/// Used instead of a mutex, which the simulator would schedule: a seed must give the same run in
/// builds without this code.
class Lock {
 public:
  void lock() {
    while (held_.test_and_set(std::memory_order_acquire)) std::this_thread::yield();
  }
  void unlock() { held_.clear(std::memory_order_release); }

 private:
  std::atomic_flag held_;
};

/// All projected objects, by the start of their bodies. A Value is a pointer without a reference to
/// its object; this finds the object. Used only without NDEBUG.
struct Register {
  std::atomic<std::size_t> size{0};
  Lock mutex;
  std::map<const std::uint8_t*, Entry> objects;  // guarded by mutex
  std::set<std::string> told;                    // guarded by mutex
};

/// Never destroyed: objects may be destroyed during static destruction.
Register& all() {
  static auto* const kRegister = new Register;
  return *kRegister;
}

/// The projection of an absent member, and the path to it.
struct Place {
  const ProjectionNode* node;
  const std::uint8_t* value;
  std::string path;
};

/// Descends one step from `place` towards `data`; false if everything below is kept.
bool descend(Place& place, const std::uint8_t* data) {
  const Range elements = array_contents(place.value);
  for (const std::uint8_t* p = elements.begin; p < elements.end;) {
    const std::uint8_t* const next = skip_value(p);
    if (data < next) {
      // A projection treats elements like their array.
      place.value = p;
      place.path += "[*]";
      return true;
    }
    p = next;
  }
  for (const auto& [name, value] : Value(place.value).members()) {
    if (data < value.data() || data >= skip_value(value.data())) continue;
    const ProjectionNode* below = nullptr;
    if (!place.node->keeps(name, below) || below == nullptr) return false;
    place = {below, value.data(), place.path + "." + std::string(name)};
    return true;
  }
  return false;
}

/// The path of the dropped member; empty if it was not dropped.
std::string left_out(const Entry& entry, const std::uint8_t* data, std::string_view name) {
  Place place{entry.root.get(), entry.object->body(), {}};
  while (place.value != data) {
    if (!descend(place, data)) return {};
  }
  const ProjectionNode* below = nullptr;
  return place.node->keeps(name, below) ? "" : place.path + "." + std::string(name);
}

}  // namespace

void note_projected(const ObjectHeader* object, const ProjectionNode* root) {
  auto shared = root->weak_from_this().lock();
  if (!shared) return;
  Register& objects = all();
  const std::lock_guard lock(objects.mutex);
  objects.objects.insert_or_assign(object->body(), Entry{object, std::move(shared)});
  objects.size = objects.objects.size();
}

void forget_projected(const ObjectHeader* object) {
  Register& objects = all();
  if (objects.size == 0) return;
  const std::lock_guard lock(objects.mutex);
  objects.objects.erase(object->body());
  objects.size = objects.objects.size();
}

void note_absent(const std::uint8_t* data, std::string_view name) {
  Register& objects = all();
  if (data == nullptr || objects.size == 0) return;
  const std::lock_guard lock(objects.mutex);
  auto found = objects.objects.upper_bound(data);
  if (found == objects.objects.begin()) return;
  --found;
  const ObjectHeader* const object = found->second.object;
  if (data >= object->body() + object->size) return;
  std::string path = left_out(found->second, data, name);
  if (path.empty() || !objects.told.insert(path).second) return;
  fmt::print(stderr,
             "lookout: {} was read, but the projection leaves it out: it reads as absent even if "
             "the server has it. (Reported once, and not in builds with NDEBUG.)\n",
             path);
}

}  // namespace lookout::api::detail
