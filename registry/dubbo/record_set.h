// RecordSet: all records and their holders.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "lookout/registry/dubbo/client.h"
#include "registry/dubbo/event_queue.h"
#include "registry/in_order.h"

namespace lookout::registry::dubbo::detail {

/// Keys with the pods that hold them. A key exists while it has a holder, and has the value of its
/// newest holder. This client's own writes override the watched state until the watch has reached
/// their resource version.
class RecordSet {
 public:
  /// `own_pod`: "namespace/name" of the client's pod.
  explicit RecordSet(std::string own_pod) : own_pod_(std::move(own_pod)) {}

  /// Sets the pod's records in this resource version.
  void apply(const std::string& pod, const std::vector<Record>& records, std::string_view version);
  /// The pod was deleted.
  void gone(const std::string& pod);
  /// This client has written to its own pod; `version` is the result. (If the watch is further
  /// already, it may know later writes of others.)
  void written(const Record& record, std::string_view version);
  void erased(const std::string& key, std::string_view version);
  /// The number of own writes that the watch has not confirmed yet.
  std::size_t unconfirmed() const;

  std::vector<Record> with_prefix(const std::string& prefix) const;
  std::optional<std::string> get(const std::string& key) const;

  void add(const std::shared_ptr<EventQueue>& queue, Begin begin);
  void remove(const std::shared_ptr<EventQueue>& queue);
  /// Ends all queues.
  void end(NextOutcome reason);
  std::size_t queues() const;

 private:
  struct Holder {
    std::string pod;
    std::string value;
  };
  /// This client's write of a key to its pod, until the watch confirms it.
  struct Own {
    Holder holder;
    bool present = true;  // false: removed
  };
  struct Key {
    std::vector<Holder> holders;  // in the order of arrival
    std::optional<Own> own;

    const Holder* current() const {
      if (own && own->present) return &own->holder;
      for (auto it = holders.rbegin(); it != holders.rend(); ++it) {
        if (!own || it->pod != own->holder.pod) return &*it;
      }
      return nullptr;
    }
  };
  using Keys = std::map<std::string, Key>;

  void write_locked(const std::string& key, Own own, std::string_view version);
  void forget_an_old_removal();
  void apply_locked(const std::string& pod, const std::vector<Record>& records);

  /// Changes a key, and notifies the watchers.
  template <class Change>
  void change(const std::string& key, const std::string& pod, Change change);

  const std::string own_pod_;

  mutable std::mutex mutex_;
  // All guarded by mutex_.
  Keys keys_;
  std::unordered_map<std::string, std::map<std::string, std::string>> pods_;
  std::map<std::string, std::uint64_t> own_;  // own writes, with their versions
  std::uint64_t watched_ = 0;                 // the last version of the own pod
  registry::detail::InOrder<std::shared_ptr<EventQueue>> queues_;
  std::optional<NextOutcome> end_;
};

}  // namespace lookout::registry::dubbo::detail
