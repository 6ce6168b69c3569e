#include "lookout/tools/pager.h"

#include <fmt/format.h>

#include <condition_variable>
#include <deque>
#include <exception>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include "lookout/api/error.h"
#include "lookout/api/status.h"

namespace lookout::pager {
namespace {

void throw_if_stopped(const std::stop_token& stop) {
  if (stop.stop_requested())
    throw rest::TransportError(rest::TransportError::Kind::kCancelled, "the list was stopped");
}

/// Changes the options for one page into those for the next.
void go_on(rest::ListOptions& options, const std::string& continue_token) {
  options.continue_token = continue_token;
  options.resource_version.clear();
  options.resource_version_match.clear();
}

/// Adds the losses of a page to those of the whole list.
void add_losses(rest::ListMeta& all, rest::ListMeta& page) {
  all.malformed_items += page.malformed_items;
  all.unknown_fields += page.unknown_fields;
  for (auto& key : page.malformed_keys) all.malformed_keys.push_back(std::move(key));
}

/// A queue of pages between two threads.
class Buffer {
 public:
  explicit Buffer(std::size_t size) : size_(size) {}

  /// Waits for room; returns false if the consumer has ended.
  bool put(rest::List<> page) {
    std::unique_lock lock(mutex_);
    pages_.push_back(std::move(page));
    changed_.notify_all();
    changed_.wait(lock, [&] { return pages_.size() <= size_ || closed_; });
    return !closed_;
  }
  void end(std::exception_ptr error) {
    const std::lock_guard lock(mutex_);
    ended_ = true;
    error_ = std::move(error);
    changed_.notify_all();
  }

  /// Waits for a page; empty at the end. Throws the error that ended the list.
  std::optional<rest::List<>> take(const std::stop_token& stop) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, stop, [&] { return !pages_.empty() || ended_; });
    throw_if_stopped(stop);
    if (pages_.empty()) {
      if (error_) std::rethrow_exception(error_);
      return std::nullopt;
    }
    rest::List<> page = std::move(pages_.front());
    pages_.pop_front();
    changed_.notify_all();
    return page;
  }
  void close() {
    const std::lock_guard lock(mutex_);
    closed_ = true;
    changed_.notify_all();
  }

 private:
  const std::size_t size_;
  std::mutex mutex_;
  std::condition_variable_any changed_;
  // Guarded by mutex_.
  std::deque<rest::List<>> pages_;
  std::exception_ptr error_;
  bool ended_ = false;
  bool closed_ = false;
};

}  // namespace

ListPager::ListPager(PageFunc page, PagerOptions options)
    : page_(std::move(page)), options_(options) {}

ListPager::ListPager(rest::ResourceClient client, PagerOptions options)
    : ListPager(
          [client = std::move(client)](const rest::ListOptions& page, std::stop_token stop) {
            rest::CallOptions call;
            call.stop = std::move(stop);
            return client.list(page, std::move(call));
          },
          options) {}

ListPager::Result ListPager::list(rest::ListOptions options, std::stop_token stop) const {
  if (options.limit == 0) options.limit = options_.page_size;
  const std::string version = options.resource_version;
  const std::string match = options.resource_version_match;
  Result result;
  bool begun = false;
  for (;;) {
    throw_if_stopped(stop);
    rest::List<> page;
    try {
      page = page_(options, stop);
    } catch (const std::exception& e) {
      if (!api::is_resource_expired(e) || !options_.full_list_if_expired ||
          options.continue_token.empty())
        throw;
      options.limit = 0;
      options.continue_token.clear();
      options.resource_version = version;
      options.resource_version_match = match;
      result.list = page_(options, stop);
      return result;
    }
    if (!std::exchange(begun, true)) {
      result.list = std::move(page);
    } else {
      auto& items = result.list.items;
      for (auto& item : page.items) items.push_back(std::move(item));
      add_losses(result.list, page);
      result.list.continue_token = page.continue_token;
    }
    if (result.list.continue_token.empty()) {
      if (result.paginated) result.list.remaining_item_count.reset();
      return result;
    }
    go_on(options, result.list.continue_token);
    result.paginated = true;
  }
}

void ListPager::each_list_item(rest::ListOptions options,
                               const std::function<void(const api::Object&)>& each,
                               std::stop_token stop) const {
  if (options.limit == 0) options.limit = options_.page_size;
  Buffer buffer(options_.page_buffer_size);
  const std::jthread reader([&](const std::stop_token& over) {
    try {
      for (;;) {
        if (over.stop_requested()) break;
        rest::List<> page = page_(options, over);
        const std::string next = page.continue_token;
        if (!buffer.put(std::move(page)) || next.empty()) break;
        go_on(options, next);
      }
      buffer.end(nullptr);
    } catch (...) {
      buffer.end(std::current_exception());
    }
  });
  struct Close {
    ~Close() { buffer.close(); }
    Buffer& buffer;
  } const close{buffer};
  std::size_t undecodable = 0;
  while (const auto page = buffer.take(stop)) {
    for (const auto& item : page->items) {
      throw_if_stopped(stop);
      each(item);
    }
    undecodable += page->malformed_items;
  }
  if (undecodable == 0) return;
  throw api::DecodeError(
      fmt::format("items of the list that cannot be decoded and were left out: {}", undecodable));
}

}  // namespace lookout::pager
