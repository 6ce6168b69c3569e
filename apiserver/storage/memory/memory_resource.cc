#include "apiserver/storage/memory/memory_resource.h"

#include <boost/asio/this_coro.hpp>
#include <utility>

#include "apiserver/storage/memory/memory_watch.h"
#include "apiserver/storage/memory/object_source.h"
#include "apiserver/storage/revision.h"
#include "lookout/api/status.h"
#include "lookout/base/async_event.h"

namespace lookout::apiserver::storage::memory {
namespace {

constexpr std::chrono::milliseconds kPoll{10};

}  // namespace

// Rarely waits, because clients get revisions from this server.
Awaitable<void> MemoryResource::wait_for(Revision revision) {
  if (revision <= table_->current_revision()) co_return;
  AsyncEvent bell(co_await boost::asio::this_coro::executor);
  const auto deadline = std::chrono::steady_clock::now() + options_.future_wait;
  while (revision > table_->current_revision()) {
    const auto now = std::chrono::steady_clock::now();
    if (now >= deadline) {
      throw too_large(revision, table_->current_revision());
    }
    co_await bell.wait(std::min(deadline, now + kPoll));
  }
}

Awaitable<api::Object> MemoryResource::create(std::string key, api::Object object) {
  auto stored = table_->commit(key, nullptr, object);
  if (!stored) throw StorageError(StorageError::Code::kKeyExists, table_->whole_key(key));
  co_return std::move(*stored);
}

Awaitable<api::Object> MemoryResource::get(std::string key, Revision not_older_than) {
  co_await wait_for(not_older_than);
  const ItemPtr item = table_->find(key);
  co_return item == nullptr ? api::Object() : item->object;
}

Awaitable<Moment> MemoryResource::moment_for(const ListOptions& options) {
  if (options.match != VersionMatch::kLatest) co_await wait_for(options.revision);
  if (options.match != VersionMatch::kExact) co_return table_->now();
  auto moment = table_->at(options.revision);
  if (!moment)
    throw api::StatusError::expired("The resourceVersion for the provided list is too old.");
  co_return std::move(*moment);
}

Awaitable<ListResult> MemoryResource::list(std::string key, bool recursive, ListOptions options) {
  Moment moment = co_await moment_for(options);
  co_return list_of(std::move(moment), key, recursive, std::move(options));
}

Awaitable<api::Object> MemoryResource::guaranteed_update(std::string key, bool create_if_absent,
                                                         Preconditions preconditions,
                                                         Update update) {
  for (;;) {
    const ItemPtr present = table_->find(key);
    if (present == nullptr && !create_if_absent)
      throw StorageError(StorageError::Code::kKeyNotFound, table_->whole_key(key));
    const api::Object before = present == nullptr ? api::Object() : present->object;
    if (present != nullptr) preconditions.check(table_->whole_key(key), before);
    const api::Object after = update(before);
    if (before == after) co_return before;
    auto stored = table_->commit(key, present, after);
    if (stored) co_return std::move(*stored);
  }
}

Awaitable<api::Object> MemoryResource::remove(std::string key, Preconditions preconditions,
                                              Validate validate) {
  for (;;) {
    const ItemPtr present = table_->find(key);
    if (present == nullptr)
      throw StorageError(StorageError::Code::kKeyNotFound, table_->whole_key(key));
    preconditions.check(table_->whole_key(key), present->object);
    if (validate) validate(present->object);
    auto last = table_->commit(key, present, {});
    if (last) co_return std::move(*last);
  }
}

Awaitable<std::unique_ptr<Watch>> MemoryResource::watch(std::string key, bool recursive,
                                                        WatchOptions options) {
  if (options.start == WatchOptions::Start::kState) co_await wait_for(options.revision);
  const auto executor = co_await boost::asio::this_coro::executor;
  Patience patience{options_.future_wait, {}};
  co_return std::make_unique<MemoryWatch>(table_, executor, std::move(key), recursive,
                                          std::move(options), table_->now(), std::move(patience));
}

Awaitable<Revision> MemoryResource::current_revision() { co_return table_->current_revision(); }
Awaitable<std::size_t> MemoryResource::count() { co_return table_->size(); }

}  // namespace lookout::apiserver::storage::memory
