#include <fmt/format.h>

#include <boost/asio/strand.hpp>
#include <map>
#include <mutex>
#include <optional>
#include <stop_token>
#include <utility>
#include <vector>

#include "apiserver/storage/cacher/cacher.h"
#include "apiserver/storage/etcd3/client.h"
#include "apiserver/storage/etcd3/codec.h"
#include "apiserver/storage/etcd3/compactor.h"
#include "apiserver/storage/etcd3/context.h"
#include "apiserver/storage/etcd3/periodic.h"
#include "apiserver/storage/etcd3/store.h"
#include "lookout/apiserver/storage/etcd3.h"

namespace lookout::apiserver::storage {
namespace {

// As in kube-apiserver (--etcd-healthcheck-timeout).
constexpr std::chrono::milliseconds kCheckTimeout{2000};

/// Converts "registry/" to "/registry", like store.go.
std::string clean_prefix(std::string prefix) {
  while (prefix.ends_with('/')) prefix.pop_back();
  if (!prefix.starts_with('/')) prefix.insert(0, "/");
  return prefix == "/" ? std::string() : prefix;
}

}  // namespace

class EtcdBackend::Impl {
 public:
  explicit Impl(EtcdOptions options)
      : prefix_(clean_prefix(options.prefix)),
        loop_(options.threads),
        client_(std::make_shared<etcd3::Client>(options, loop_)),
        leases_(std::make_shared<etcd3::LeaseManager>(client_)) {
    if (options.compaction_interval.count() > 0) {
      const auto strand = boost::asio::make_strand(client_->context());
      client_->spawn(strand,
                     etcd3::run_compactor(client_, options.compaction_interval, stop_.get_token()));
    }
    if (options.sync_interval.count() > 0) {
      const etcd3::Periodic sync{options.sync_interval, true, "reading the list of members"};
      client_->spawn(
          boost::asio::make_strand(client_->context()),
          etcd3::run_periodically(
              sync, [client = client_] { return client->sync_members(); }, stop_.get_token()));
    }
  }

  ~Impl() {
    close();
    client_->shutdown();
    // The tasks refer to the client, which uses the loop.
    client_->wait_for_tasks();
  }

  Interface& resource(std::string_view place, std::chrono::seconds ttl,
                      std::string_view group_resource) {
    const std::lock_guard lock(mutex_);
    const auto known = resources_.find(place);
    if (known != resources_.end()) return known->second.interface();
    auto context = std::make_shared<etcd3::Context>();
    context->client = client_;
    context->codec = etcd3::json_codec();
    const EtcdOptions& options = client_->options();
    if (options.transformer) context->transformer = options.transformer(place);
    if (context->transformer == nullptr) context->transformer = identity_transformer();
    context->prefix = fmt::format("{}/{}", prefix_, place);
    context->metrics = std::make_shared<etcd3::ResourceMetrics>(
        client_->metrics(), group_resource.empty() ? place : group_resource);
    Resource resource;
    resource.store = std::make_shared<etcd3::Store>(std::move(context), leases_, ttl);
    if (options.watch_cache) {
      cacher::Options cache;
      cache.history = {options.history, options.history_bytes, options.history_age};
      cache.future_wait = options.future_wait;
      resource.cache = std::make_unique<cacher::Cacher>(client_, resource.store, cache);
    }
    if (closed_) resource.close();
    return resources_.emplace(place, std::move(resource)).first->second.interface();
  }

  Awaitable<Revision> current_revision(std::optional<std::chrono::milliseconds> timeout = {}) {
    etcd3::RangeRequest request;
    request.key = prefix_ + "/";
    std::exception_ptr failure;
    try {
      const etcd3::RangeResponse answer = co_await client_->range(std::move(request), timeout);
      co_return answer.revision;
    } catch (...) {
      failure = std::current_exception();
    }
    etcd3::rethrow_as_storage_error(failure, prefix_);
  }

  std::string metrics() const { return client_->metrics().text(); }
  Awaitable<void> compact(Revision revision) { return client_->compact(revision); }

  void release(std::string_view place) {
    const std::lock_guard lock(mutex_);
    const auto at = resources_.find(place);
    if (at == resources_.end()) return;
    at->second.close();
    if (at->second.cache != nullptr) at->second.cache->clear();
    // The interface may still be in use, so keep what is left of the resource.
    released_.push_back(std::move(at->second));
    resources_.erase(at);
  }

  void maintain() {
    const std::lock_guard lock(mutex_);
    for (auto& [place, resource] : resources_) {
      if (resource.cache != nullptr) resource.cache->trim();
    }
  }

  void close() {
    stop_.request_stop();
    const std::lock_guard lock(mutex_);
    closed_ = true;
    for (auto& [place, resource] : resources_) resource.close();
  }

 private:
  struct Resource {
    std::shared_ptr<etcd3::Store> store;
    std::unique_ptr<cacher::Cacher> cache;

    Interface& interface() const {
      return cache != nullptr ? static_cast<Interface&>(*cache) : *store;
    }
    void close() const {
      if (cache != nullptr) cache->close();
      store->close();
    }
  };

  const std::string prefix_;
  EventLoop loop_;
  const std::shared_ptr<etcd3::Client> client_;
  const std::shared_ptr<etcd3::LeaseManager> leases_;
  std::stop_source stop_;
  std::mutex mutex_;
  bool closed_ = false;
  std::map<std::string, Resource, std::less<>> resources_;
  std::vector<Resource> released_;
};

EtcdBackend::EtcdBackend(EtcdOptions options) : impl_(std::make_unique<Impl>(std::move(options))) {}
EtcdBackend::~EtcdBackend() = default;

Interface& EtcdBackend::resource(std::string_view place, std::chrono::seconds ttl,
                                 std::string_view group_resource) {
  return impl_->resource(place, ttl, group_resource);
}

void EtcdBackend::release(std::string_view place) { impl_->release(place); }
Awaitable<Revision> EtcdBackend::current_revision() { return impl_->current_revision(); }
Awaitable<void> EtcdBackend::check() { co_await impl_->current_revision(kCheckTimeout); }
std::string EtcdBackend::metrics() const { return impl_->metrics(); }
Awaitable<void> EtcdBackend::compact(Revision revision) { return impl_->compact(revision); }
void EtcdBackend::close() { impl_->close(); }
void EtcdBackend::maintain() { impl_->maintain(); }

}  // namespace lookout::apiserver::storage
