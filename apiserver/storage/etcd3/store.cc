#include "apiserver/storage/etcd3/store.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/asio/this_coro.hpp>
#include <mutex>
#include <utility>

#include "apiserver/storage/revision.h"
#include "apiserver/storage/vector_source.h"
#include "lookout/api/status.h"
#include "lookout/base/async_event.h"

namespace lookout::apiserver::storage::etcd3 {
namespace {

using Code = StorageError::Code;
using std::chrono::steady_clock;

// The maximum number of objects and the approximate bytes of a list page.
constexpr std::size_t kPage = 500;
constexpr std::size_t kPageBytes = 8u << 20;
constexpr std::size_t kMaxPage = 10000;
constexpr std::chrono::milliseconds kPoll{50};
// How often a list restarts if its revision is compacted.
constexpr int kListTries = 5;

/// Measures a request to etcd from its beginning to its end.
class Measured {
 public:
  Measured(const Context& context, const char* operation)
      : metrics_(context.metrics.get()), operation_(operation) {}
  ~Measured() {
    if (metrics_ != nullptr) metrics_->request(operation_, steady_clock::now() - begin_, failed_);
  }
  Measured(const Measured&) = delete;
  Measured& operator=(const Measured&) = delete;

  void succeeded() { failed_ = false; }

 private:
  ResourceMetrics* const metrics_;
  const char* const operation_;
  const steady_clock::time_point begin_ = steady_clock::now();
  bool failed_ = true;
};

/// Runs a call to etcd: counts it, and converts its errors. `whole` is the key in their messages.
template <class Response>
Awaitable<Response> measured(const Context& context, const char* operation,
                             Awaitable<Response> call, const std::string& whole, Revision asked) {
  Measured measurement(context, operation);
  std::exception_ptr failure;
  try {
    Response answer = co_await std::move(call);
    measurement.succeeded();
    co_return answer;
  } catch (...) {
    failure = std::current_exception();
  }
  rethrow_as_storage_error(failure, whole, asked);
}

/// nullopt if the server, such as kine, does not support the request.
Awaitable<std::optional<RangeResponse>> range_if_known(std::shared_ptr<Client> client,
                                                       RangeRequest request) {
  try {
    RangeResponse answer = co_await client->range(std::move(request));
    co_return answer;
  } catch (const EtcdError& e) {
    if (e.code() != EtcdError::kUnimplemented) throw;
  }
  co_return std::nullopt;
}

}  // namespace

/// A whole range as it is read, object by object.
class Store::ObjectPages {
 public:
  ObjectPages(Store& store, std::string start, std::string end, Revision revision)
      : context_(*store.context_),
        pages_(store.pages_of(std::move(start), std::move(end), revision, true)) {}

  Revision revision() const { return pages_.revision(); }
  std::size_t fetched() const { return fetched_; }

  /// The next object with its key. False at the end. Without `unreadable`, undecodable values are errors.
  Awaitable<bool> next_item(const TakeItem& take, const TakeUnreadable& unreadable = {}) {
    while (at_ == page_.size()) {
      if (!pages_.more()) co_return false;
      co_await read_page();
    }
    KeyValue& kv = page_[at_++];
    api::Object object;
    try {
      object = context_.decode(kv.key, std::move(kv.value), kv.mod_revision).object;
    } catch (const StorageError& e) {
      if (!unreadable || e.code() != Code::kCorruptObject) throw;
      unreadable(context_.relative(kv.key), e);
      co_return true;
    }
    take(context_.relative(kv.key), std::move(object), kv.mod_revision);
    co_return true;
  }

 private:
  Awaitable<void> read_page() {
    RangeResponse answer = co_await pages_.next(limit_);
    page_ = std::move(answer.kvs);
    at_ = 0;
    fetched_ += page_.size();
    std::size_t bytes = 1;
    for (const KeyValue& kv : page_) bytes += kv.key.size() + kv.value.size();
    if (!page_.empty())
      limit_ = std::clamp<std::size_t>(kPageBytes * page_.size() / bytes, 10, kPage * 4);
  }

  const Context& context_;
  RangePages pages_;
  std::size_t limit_ = kPage;
  std::vector<KeyValue> page_;
  std::size_t at_ = 0;
  std::size_t fetched_ = 0;
};

/// The watches that are open, so that they can be ended.
class Store::OpenWatches {
 public:
  void add(Watch* watch) {
    const std::lock_guard lock(mutex_);
    watches_.push_back(watch);
    if (closed_) watch->cancel();
  }
  void remove(Watch* watch) {
    const std::lock_guard lock(mutex_);
    std::erase(watches_, watch);
  }
  void close() {
    const std::lock_guard lock(mutex_);
    closed_ = true;
    for (Watch* watch : watches_) watch->cancel();
  }

 private:
  std::mutex mutex_;
  bool closed_ = false;
  std::vector<Watch*> watches_;  // oldest first: they are ended in this order
};

class Store::CountedWatch final : public FeedingWatch {
 public:
  CountedWatch(std::shared_ptr<OpenWatches> all, std::shared_ptr<const Context> context,
               WatchSpec spec, boost::asio::any_io_executor reader)
      : all_(std::move(all)), watch_(std::move(context), std::move(spec), std::move(reader)) {
    all_->add(this);
  }
  ~CountedWatch() override { all_->remove(this); }

  Awaitable<bool> next(std::vector<Event>& events, TimePoint until) override {
    if (on_stuck && !watch_.on_stuck) watch_.on_stuck = on_stuck;
    return watch_.next(events, until);
  }
  void request_bookmark() override { watch_.request_bookmark(); }
  void cancel() override { watch_.cancel(); }
  Awaitable<bool> is_served() override { return watch_.is_served(); }
  bool request_progress() override { return watch_.request_progress(); }

 private:
  const std::shared_ptr<OpenWatches> all_;
  EtcdWatch watch_;
};

/// The state that a write is based on: the current one, or a cached one, which may be outdated.
class Store::Basis {
 public:
  Basis(Store& store, std::string whole, api::Object cached)
      : store_(store), whole_(std::move(whole)) {
    if (cached) state_ = {cached, revision_of(cached), false};
  }

  const State& state() const { return state_; }

  /// Fetches the state if no cache had it.
  Awaitable<void> begin() {
    if (!state_.object) co_await look();
  }

  /// Fetches the current state, and returns true if it differs from the previous one.
  Awaitable<bool> has_changed() {
    if (is_current_) co_return false;
    const Revision looked_at = state_.revision;
    co_await look();
    co_return state_.revision != looked_at;
  }

  /// Rethrows a rejection, unless the state has changed: then it may not apply anymore.
  Awaitable<void> rethrow_unless_changed(std::exception_ptr refusal) {
    const bool changed = co_await has_changed();
    if (!changed) std::rethrow_exception(refusal);
  }

  /// Replaces the expected state by etcd's value.
  void replace(std::vector<KeyValue> kvs) {
    state_ = store_.state_of(whole_, std::move(kvs));
    is_current_ = true;
  }

 private:
  Awaitable<void> look() {
    state_ = co_await store_.fetch(whole_);
    is_current_ = true;
  }

  Store& store_;
  const std::string whole_;
  State state_;
  bool is_current_ = false;
};

Store::Store(std::shared_ptr<const Context> context, std::shared_ptr<LeaseManager> leases,
             std::chrono::seconds ttl)
    : context_(std::move(context)),
      leases_(std::move(leases)),
      ttl_(ttl),
      watches_(std::make_shared<OpenWatches>()) {}

void Store::close() { watches_->close(); }

/// A key outside the resource would be a bug of the server (store.go: prepareKey).
std::string Store::checked_key(const std::string& key) const {
  bool good = !key.empty() && !key.ends_with('/');
  for (std::size_t at = 0; good && at <= key.size();) {
    const std::size_t end = std::min(key.find('/', at), key.size());
    const std::string_view part = std::string_view(key).substr(at, end - at);
    good = !part.empty() && part != "." && part != "..";
    at = end + 1;
  }
  if (!good) throw InvalidArgument(fmt::format("\"{}\" is not the key of an object", key));
  return context_->whole_key(key);
}

Awaitable<RangeResponse> Store::range(const char* operation, RangeRequest request,
                                      const std::string& whole) {
  const Revision asked = request.revision;
  return measured(*context_, operation, context_->client->range(std::move(request)), whole, asked);
}

RangePages Store::pages_of(std::string start, std::string end, Revision revision, bool stream) {
  const auto ask = [this](RangeRequest request) {
    return range("list", std::move(request), context_->prefix);
  };
  RangePages::Open open;
  if (stream) {
    open = [this](RangeRequest request, boost::asio::any_io_executor reader) {
      return RangeStream::open(context_->client, std::move(request), std::move(reader),
                               context_->metrics);
    };
  }
  return {ask, std::move(open), std::move(start), std::move(end), revision};
}

Awaitable<TxnResponse> Store::txn(const char* operation, std::string request,
                                  const std::string& whole) {
  return measured(*context_, operation, context_->client->txn(std::move(request)), whole, 0);
}

Store::State Store::state_of(const std::string& whole, std::vector<KeyValue> kvs) const {
  if (kvs.empty()) return {};
  KeyValue& kv = kvs.front();
  auto decoded = context_->decode(whole, std::move(kv.value), kv.mod_revision);
  return {std::move(decoded.object), kv.mod_revision, decoded.stale};
}

Awaitable<Store::State> Store::fetch(const std::string& whole) {
  RangeRequest request;
  request.key = whole;
  RangeResponse answer = co_await range("get", std::move(request), whole);
  co_return state_of(whole, std::move(answer.kvs));
}

Awaitable<std::int64_t> Store::lease() {
  if (ttl_.count() == 0) co_return 0;
  std::exception_ptr failure;
  try {
    co_return co_await leases_->lease_for(ttl_);
  } catch (...) {
    failure = std::current_exception();
  }
  rethrow_as_storage_error(failure, context_->prefix);
}

Awaitable<Revision> Store::current_revision() {
  RangeRequest request;
  request.key = context_->prefix;
  const RangeResponse answer = co_await range("get", std::move(request), context_->prefix);
  co_return answer.revision;
}

Awaitable<std::size_t> Store::count() {
  RangeRequest request;
  request.key = context_->prefix + "/";
  request.range_end = prefix_end(request.key);
  request.count_only = true;
  const RangeResponse answer =
      co_await range("listWithCount", std::move(request), context_->prefix);
  co_return answer.count;
}

/// Waits for a revision that another server may have returned to the client.
Awaitable<Revision> Store::wait_for(Revision revision) {
  const auto deadline = steady_clock::now() + context_->client->options().future_wait;
  AsyncEvent bell(co_await boost::asio::this_coro::executor);
  for (;;) {
    const Revision current = co_await current_revision();
    if (current >= revision) co_return current;
    const auto now = steady_clock::now();
    if (now >= deadline) {
      throw too_large(revision, current);
    }
    co_await bell.wait(std::min(deadline, now + kPoll));
  }
}

Awaitable<api::Object> Store::create(std::string key, api::Object object) {
  const std::string whole = checked_key(key);
  const std::int64_t id = co_await lease();
  const Codec::Encoded encoded = context_->codec->encode_for(object);
  const std::string value = context_->value_of(whole, encoded);
  const std::uint64_t write = context_->recent->begin(value, object);
  const TxnResponse answer = co_await txn("create", optimistic_put(whole, value, 0, id), whole);
  if (!answer.succeeded) throw StorageError(Code::kKeyExists, whole);
  co_return context_->written(write, answer.revision, object, encoded);
}

Awaitable<api::Object> Store::get(std::string key, Revision not_older_than) {
  const std::string whole = checked_key(key);
  if (not_older_than > kAnyRevision) co_await wait_for(not_older_than);
  const State state = co_await fetch(whole);
  co_return state.object;
}

Awaitable<ListResult> Store::list(std::string key, bool recursive, ListOptions options) {
  if (options.match == VersionMatch::kNotOlderThan && options.revision != 0)
    co_await wait_for(options.revision);
  if (options.match == VersionMatch::kExact && options.revision != 0)
    co_await wait_for(options.revision);
  const Revision at = options.match == VersionMatch::kExact ? options.revision : 0;
  if (!recursive) co_return co_await list_one(std::move(key), at, std::move(options.predicate));
  const std::string prefix = context_->prefix + "/" + key;
  std::string start = std::max(prefix, context_->prefix + "/" + options.start_key);
  const std::string end = prefix_end(prefix);
  if (options.limit == 0)
    co_return co_await list_all(std::move(start), end, at, std::move(options.predicate));
  std::size_t fetched = 0;
  std::size_t evaluated = 0;
  std::vector<api::Object> page;
  std::size_t chunk = options.limit;
  ListResult result;
  RangePages ranges = pages_of(std::move(start), end, at, false);
  while (ranges.more() && page.size() < options.limit) {
    RangeResponse answer = co_await ranges.next(chunk);
    fetched += answer.kvs.size();
    std::size_t looked_at = 0;
    for (KeyValue& kv : answer.kvs) {
      if (page.size() == options.limit) break;
      ++looked_at;
      api::Object object = context_->decode(kv.key, std::move(kv.value), kv.mod_revision).object;
      if (options.predicate.matches(object)) page.push_back(std::move(object));
    }
    evaluated += looked_at;
    const bool more = answer.more || looked_at < answer.kvs.size();
    if (more && page.size() == options.limit) {
      result.continue_key = context_->relative(answer.kvs[looked_at - 1].key + '\0');
      if (options.predicate.accepts_everything())
        result.remaining = static_cast<std::int64_t>(answer.count - looked_at);
    }
    // A selective predicate should not cause one request per object.
    chunk = std::min(chunk * 2, kMaxPage);
  }
  result.revision = ranges.revision();
  if (context_->metrics != nullptr) context_->metrics->list(fetched, evaluated, page.size());
  result.objects = std::make_unique<VectorSource>(std::move(page));
  co_return result;
}

Awaitable<ListResult> Store::list_one(std::string key, Revision at, Predicate predicate) {
  const std::string whole = checked_key(key);
  RangeRequest request;
  request.key = whole;
  request.revision = at;
  RangeResponse answer = co_await range("get", std::move(request), whole);
  ListResult result;
  result.revision = at != 0 ? at : answer.revision;
  std::vector<api::Object> found;
  const std::size_t fetched = answer.kvs.size();
  State state = state_of(whole, std::move(answer.kvs));
  if (state.object && predicate.matches(state.object)) found.push_back(std::move(state.object));
  if (context_->metrics != nullptr) context_->metrics->list(fetched, fetched, found.size());
  result.objects = std::make_unique<VectorSource>(std::move(found));
  co_return result;
}

/// Reads everything before the response starts, so that an error does not truncate the response. If etcd
/// compacts the revision in the meantime, uses a newer one, unless the revision was requested.
Awaitable<ListResult> Store::list_all(std::string start, std::string end, Revision at,
                                      Predicate predicate) {
  for (int tries = 1;; ++tries) {
    ObjectPages pages(*this, start, end, at);
    std::vector<api::Object> found;
    const TakeItem take = [&](const std::string& /*key*/, api::Object object, Revision) {
      if (predicate.matches(object)) found.push_back(std::move(object));
    };
    std::exception_ptr forgotten;
    try {
      for (bool more = true; more;) more = co_await pages.next_item(take);
    } catch (const api::StatusError& e) {
      if (at != 0 || tries == kListTries || !api::is_resource_expired(e)) throw;
      forgotten = std::current_exception();
    }
    if (forgotten) continue;
    if (context_->metrics != nullptr)
      context_->metrics->list(pages.fetched(), pages.fetched(), found.size());
    ListResult result;
    result.revision = pages.revision();
    result.objects = std::make_unique<VectorSource>(std::move(found));
    co_return result;
  }
}

Awaitable<api::Object> Store::guaranteed_update(std::string key, bool create_if_absent,
                                                Preconditions preconditions, Update update) {
  api::Object unknown;
  return update_from(std::move(unknown), std::move(key), create_if_absent, std::move(preconditions),
                     std::move(update));
}

Awaitable<api::Object> Store::update_from(api::Object cached, std::string key,
                                          bool create_if_absent, Preconditions preconditions,
                                          Update update) {
  const std::string whole = checked_key(key);
  Basis basis(*this, whole, std::move(cached));
  co_await basis.begin();
  for (;;) {
    const State& state = basis.state();
    if (!state.object && !create_if_absent) throw StorageError(Code::kKeyNotFound, whole);
    api::Object after;
    std::exception_ptr refusal;
    try {
      if (state.object) preconditions.check(whole, state.object);
      after = update(state.object);
    } catch (...) {
      refusal = std::current_exception();
    }
    if (refusal) {
      co_await basis.rethrow_unless_changed(refusal);
      continue;
    }
    if (state.object && at_revision(after, state.revision) == state.object) {
      const bool changed = co_await basis.has_changed();
      if (changed) continue;
      // A value that the transformer would now write differently is rewritten, even if unchanged.
      if (!state.stale) co_return state.object;
    }
    const std::int64_t id = co_await lease();
    const Codec::Encoded encoded = context_->codec->encode_for(after);
    const std::string value = context_->value_of(whole, encoded);
    const std::uint64_t write = context_->recent->begin(value, after);
    TxnResponse answer =
        co_await txn("update", optimistic_put(whole, value, state.revision, id), whole);
    if (answer.succeeded) co_return context_->written(write, answer.revision, after, encoded);
    basis.replace(std::move(answer.kvs));
  }
}

Awaitable<api::Object> Store::remove(std::string key, Preconditions preconditions,
                                     Validate validate) {
  api::Object unknown;
  return remove_from(std::move(unknown), std::move(key), std::move(preconditions),
                     std::move(validate));
}

Awaitable<api::Object> Store::remove_from(api::Object cached, std::string key,
                                          Preconditions preconditions, Validate validate) {
  const std::string whole = checked_key(key);
  Basis basis(*this, whole, std::move(cached));
  co_await basis.begin();
  for (;;) {
    const State& state = basis.state();
    if (!state.object) throw StorageError(Code::kKeyNotFound, whole);
    std::exception_ptr refusal;
    try {
      preconditions.check(whole, state.object);
      if (validate) validate(state.object);
    } catch (...) {
      refusal = std::current_exception();
    }
    if (refusal) {
      co_await basis.rethrow_unless_changed(refusal);
      continue;
    }
    TxnResponse answer = co_await txn("delete", optimistic_delete(whole, state.revision), whole);
    if (answer.succeeded) co_return at_revision(state.object, answer.revision);
    basis.replace(std::move(answer.kvs));
  }
}

Awaitable<std::unique_ptr<Watch>> Store::watch(std::string key, bool recursive,
                                               WatchOptions options) {
  WatchSpec spec;
  spec.key = recursive ? context_->prefix + "/" + key : checked_key(key);
  spec.recursive = recursive;
  spec.predicate = std::move(options.predicate);
  spec.with_previous = options.with_previous;
  switch (options.start) {
    case WatchOptions::Start::kState:
      // The current state, because the caller's next write may be based on it.
      spec.revision = co_await wait_for(options.revision);
      spec.initial_events = true;
      spec.initial_events_end = options.initial_events_end;
      break;
    case WatchOptions::Start::kRevision:
      spec.revision = options.revision;
      break;
    case WatchOptions::Start::kNow:
      spec.revision = co_await current_revision();
      break;
  }
  const auto reader = co_await boost::asio::this_coro::executor;
  co_return std::make_unique<CountedWatch>(watches_, context_, std::move(spec), reader);
}

Awaitable<Revision> Store::read_all(TakeItem take, TakeUnreadable unreadable) {
  const std::string prefix = context_->prefix + "/";
  ObjectPages pages(*this, prefix, prefix_end(prefix), 0);
  for (bool more = true; more;) more = co_await pages.next_item(take, unreadable);
  co_return pages.revision();
}

std::unique_ptr<FeedingWatch> Store::watch_all(Revision revision, Lineage lineage,
                                               boost::asio::any_io_executor reader) {
  WatchSpec spec;
  spec.key = context_->prefix + "/";
  spec.revision = revision;
  spec.lineage = std::move(lineage);
  spec.progress_notify = true;
  spec.tell_unreadable = true;
  return std::make_unique<CountedWatch>(watches_, context_, std::move(spec), std::move(reader));
}

// Objects that were added or changed since have a later revision; objects that were deleted since
// change the count, because new ones would have a later revision.
Awaitable<std::optional<Revision>> Store::unchanged_since(Revision revision, std::size_t count) {
  RangeRequest request;
  request.key = context_->prefix + "/";
  request.range_end = prefix_end(request.key);
  request.min_mod_revision = revision + 1;
  request.keys_only = true;
  request.limit = 1;
  auto call = range_if_known(context_->client, std::move(request));
  const auto answer = co_await measured(*context_, "list", std::move(call), context_->prefix, 0);
  if (!answer || !answer->kvs.empty() || answer->count != count) co_return std::nullopt;
  co_return answer->revision;
}

}  // namespace lookout::apiserver::storage::etcd3
