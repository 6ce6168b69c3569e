// Informers with types.
#pragma once

#include <chrono>
#include <concepts>
#include <functional>
#include <memory>
#include <ranges>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>

#include "lookout/api/typed_object.h"
#include "lookout/informer/shared_index_informer.h"
#include "lookout/lister/lister.h"

namespace lookout::informer {

/// A function that files an object of type T under one value (anything that reads as text) or under
/// several (a range of such).
template <class T, class F>
cache::IndexFunc index_func(F function) {
  return [function = std::move(function)](const api::Object& object, cache::IndexValues& values) {
    auto&& result = function(T(object));
    if constexpr (std::convertible_to<decltype(result), std::string_view>) {
      values.add(result);
    } else {
      for (const auto& value : result) values.add(value);
    }
  };
}

/// A SharedIndexInformer for objects of type T. A small value: copies are the same informer.
template <class T>
class SharedInformer {
 public:
  SharedInformer(std::shared_ptr<SharedIndexInformer> informer, api::Resource resource)
      : informer_(std::move(informer)), resource_(std::move(resource)) {}

  /// See EventHandler; see SharedIndexInformer::add_handler.
  HandlerRegistration add_handler(EventHandler<T> handler, HandlerOptions options = {}) const {
    return informer_->add_handler(untyped(std::move(handler)), options);
  }

  /// Finds objects by what `function` says of them: by_index(name, value). May be added at any
  /// time.
  template <class F>
  void add_index(std::string name, F function) const {
    informer_->add_indexers({{std::move(name), index_func<T>(std::move(function))}});
  }

  /// Listers find by this label at once: list(parse("app=web")). May be added at any time.
  void add_label_index(std::string_view label) const {
    informer_->add_indexers({cache::index_by_label(label)});
  }

  lister::Lister<T> lister() const { return {informer_->shared_store(), resource_}; }
  lister::ListRange<T> by_index(std::string_view index, std::string_view value) const {
    return lister().by_index(index, value);
  }

  void start() const { informer_->start(); }
  void stop() const { informer_->stop(); }
  bool has_synced() const { return informer_->has_synced(); }
  bool wait_for_sync(std::stop_token stop = {}) const {
    return informer_->wait_for_sync(std::move(stop));
  }

  bool live(Clock::Duration within = std::chrono::minutes(2)) const {
    return informer_->live(within);
  }

  /// The same without types.
  SharedIndexInformer& untyped_informer() const { return *informer_; }

 private:
  std::shared_ptr<SharedIndexInformer> informer_;
  api::Resource resource_;
};

/// Waits until all of these are in sync: informers, and handlers (HandlerRegistration). False if a
/// stop was requested before, or if one of them has ended.
template <class... Things>
bool wait_for_sync(const std::stop_token& stop, const Things&... things) {
  return (things.wait_for_sync(stop) && ...);
}

}  // namespace lookout::informer
