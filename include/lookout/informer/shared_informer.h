// SharedInformer: the typed interface of an informer.
#pragma once

#include <chrono>
#include <concepts>
#include <functional>
#include <memory>
#include <ranges>
#include <stop_token>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "lookout/api/typed_object.h"
#include "lookout/base/attributes.h"
#include "lookout/base/empty_function.h"
#include "lookout/informer/shared_index_informer.h"
#include "lookout/lister/lister.h"

namespace lookout::informer {

/// Makes an index function from a function on T that returns one index value (convertible to
/// std::string_view, or a whole number), a std::optional of one, or a range of several. Empty if
/// `function` is: a store refuses it.
template <class T, class F>
cache::IndexFunc index_func(F function) {
  if (base::is_empty_function(function)) return {};
  return [function = std::move(function)](const api::Object& object, cache::IndexValues& values) {
    auto&& result = function(T(object));
    if constexpr (std::convertible_to<decltype(result), std::string_view> ||
                  cache::IndexKey<std::remove_cvref_t<decltype(result)>>) {
      values.add(result);
    } else if constexpr (requires { result.has_value(); }) {
      if (result.has_value()) values.add(*result);
    } else {
      for (const auto& value : result) values.add(value);
    }
  };
}

namespace detail {
[[noreturn]] void throw_no_informer();
}  // namespace detail

/// A SharedIndexInformer for objects of type T. A small value: copies refer to the same informer.
/// It may outlive its factory; the informer is then shut down, and its store remains.
template <class T>
class SharedInformer {
 public:
  /// Empty, for later assignment. Calls throw InvalidArgument until then.
  SharedInformer() = default;
  SharedInformer(std::shared_ptr<SharedIndexInformer> informer, api::Resource resource)
      : informer_(std::move(informer)), resource_(std::move(resource)) {}

  /// See EventHandler; see SharedIndexInformer::add_handler.
  HandlerRegistration add_handler(EventHandler<T> handler, HandlerOptions options = {}) const {
    return untyped_informer().add_handler(untyped(std::move(handler)), options);
  }

  /// Adds an index by the values that `function` returns: see index_func(). May be called at any
  /// time. The returned handle reads the index, and so does by_index(name, value).
  template <class F>
  lister::Index<T> add_index(std::string name, F function) const {
    untyped_informer().add_indexers({{name, index_func<T>(std::move(function))}});
    return {informer_->shared_store(), std::move(name)};
  }

  /// Adds an index by one label, which speeds up listers: list(parse("app=web")). May be called at
  /// any time.
  lister::Index<T> add_label_index(std::string_view label) const {
    untyped_informer().add_indexers({cache::index_by_label(label)});
    return {informer_->shared_store(), cache::label_index_name(label)};
  }

  lister::Lister<T> lister() const { return {untyped_informer().shared_store(), resource_}; }
  lister::ListRange<T> by_index(std::string_view index, std::string_view value) const {
    return lister().by_index(index, value);
  }

  void start() const { untyped_informer().start(); }
  void stop() const { untyped_informer().stop(); }
  /// Stops and waits: see SharedIndexInformer::shutdown().
  void shutdown() const { untyped_informer().shutdown(); }
  bool has_synced() const { return untyped_informer().has_synced(); }
  bool wait_for_sync(std::stop_token stop = {}) const {
    return untyped_informer().wait_for_sync(std::move(stop));
  }

  bool live(Clock::Duration within = std::chrono::minutes(2)) const {
    return untyped_informer().live(within);
  }

  /// The untyped informer.
  SharedIndexInformer& untyped_informer() const {
    if (!informer_) detail::throw_no_informer();
    return *informer_;
  }
  /// The same with shared ownership; null for an empty value.
  const std::shared_ptr<SharedIndexInformer>& shared_informer() const LOOKOUT_LIFETIME_BOUND {
    return informer_;
  }
  explicit operator bool() const { return informer_ != nullptr; }

 private:
  std::shared_ptr<SharedIndexInformer> informer_;
  api::Resource resource_;
};

/// Waits until all arguments are synced: informers, and handlers (HandlerRegistration). Returns
/// false if a stop was requested first, or if one of them has ended.
template <class... Things>
bool wait_for_sync(const std::stop_token& stop, const Things&... things) {
  return (things.wait_for_sync(stop) && ...);
}

}  // namespace lookout::informer
