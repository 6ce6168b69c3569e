// The storage interface over a table.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "apiserver/storage/memory/table.h"
#include "lookout/apiserver/storage/interface.h"
#include "lookout/apiserver/storage/memory.h"

namespace lookout::apiserver::storage::memory {

class MemoryResource final : public Interface {
 public:
  MemoryResource(std::shared_ptr<Table> table, const MemoryOptions& options)
      : table_(std::move(table)), options_(options) {}

  const std::string& prefix() const override { return table_->prefix(); }
  Awaitable<api::Object> create(std::string key, api::Object object) override;
  Awaitable<api::Object> get(std::string key, Revision not_older_than) override;
  Awaitable<ListResult> list(std::string key, bool recursive, ListOptions options) override;
  Awaitable<api::Object> guaranteed_update(std::string key, bool create_if_absent,
                                           Preconditions preconditions, Update update) override;
  Awaitable<api::Object> remove(std::string key, Preconditions preconditions,
                                Validate validate) override;
  Awaitable<std::unique_ptr<Watch>> watch(std::string key, bool recursive,
                                          WatchOptions options) override;
  Awaitable<Revision> current_revision() override;
  Awaitable<std::size_t> count() override;
  std::optional<std::size_t> known_count() const override { return table_->size(); }

  Table& table() { return *table_; }

 private:
  /// Throws StatusError (504) if the revision is not reached in time.
  Awaitable<void> wait_for(Revision revision);
  Awaitable<Moment> moment_for(const ListOptions& options);

  const std::shared_ptr<Table> table_;
  const MemoryOptions options_;
};

}  // namespace lookout::apiserver::storage::memory
