// NotedStorage: a storage in memory that reports writes.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string_view>

#include "lookout/apiserver/storage/memory.h"

namespace lookout::sim {

/// Calls a function after each write of clients and of the server's own controllers.
class NotedStorage : public apiserver::storage::Backend {
 public:
  NotedStorage(apiserver::storage::Revision first_revision, std::function<void()> on_write);
  ~NotedStorage() override;

  apiserver::storage::Interface& resource(std::string_view place, std::chrono::seconds ttl,
                                          std::string_view group_resource) override;
  Awaitable<apiserver::storage::Revision> current_revision() override;
  void close() override { memory_.close(); }
  void maintain() override { memory_.maintain(); }

 private:
  class Resource;

  apiserver::storage::MemoryBackend memory_;
  const std::function<void()> on_write_;
  std::mutex mutex_;
  std::map<apiserver::storage::Interface*, std::unique_ptr<Resource>> resources_;  // by mutex_
};

}  // namespace lookout::sim
