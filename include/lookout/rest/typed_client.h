// TypedClient: the verbs for objects of a type known at compile time.
#pragma once

#include <optional>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "lookout/base/attributes.h"
#include "lookout/rest/client.h"

namespace lookout::rest {

template <class T>
struct TypedWatchEvent {
  api::EventType type = api::EventType::kError;
  /// Empty for kError; the Status is in `raw`.
  T object;
  api::Object raw;
};

/// A WatchStream for objects of one type.
template <class T>
class TypedWatchStream {
 public:
  explicit TypedWatchStream(WatchStream stream) : stream_(std::move(stream)) {}

  /// The next event; empty at the end of the watch.
  std::optional<TypedWatchEvent<T>> next(std::stop_token stop = {}) {
    auto event = stream_.next(std::move(stop));
    if (!event) return std::nullopt;
    return typed(std::move(*event));
  }
  Awaitable<bool> async_next(std::vector<TypedWatchEvent<T>>& events) {
    std::vector<api::WatchEvent> untyped;
    const bool more = co_await stream_.async_next(untyped);
    events.clear();
    for (auto& event : untyped) events.push_back(typed(std::move(event)));
    co_return more;
  }
  void cancel() { stream_.cancel(); }
  WatchStream& untyped() LOOKOUT_LIFETIME_BOUND { return stream_; }

 private:
  static TypedWatchEvent<T> typed(api::WatchEvent event) {
    T object = event.type == api::EventType::kError ? T() : T(event.object);
    return {event.type, std::move(object), std::move(event.object)};
  }

  WatchStream stream_;
};

/// ResourceClient for one type: the same verbs, typed. ResourceClient documents them.
template <api::ResourceObject T>
class TypedClient {
 public:
  explicit TypedClient(ResourceClient client) : client_(std::move(client)) {}

  /// The untyped client.
  const ResourceClient& dynamic() const& LOOKOUT_LIFETIME_BOUND { return client_; }
  ResourceClient dynamic() && { return std::move(client_); }
  /// For functions that take any resource, such as rest::evict() and pager::ListPager.
  operator ResourceClient() const { return client_; }  // NOLINT(google-explicit-constructor)
  /// Like Client::with() and Client::with_write_defaults().
  TypedClient with(const CallOptions& call) const { return TypedClient(client_.with(call)); }
  TypedClient with_write_defaults(const WriteDefaults& defaults) const {
    return TypedClient(client_.with_write_defaults(defaults));
  }

  T get(std::string_view name, GetOptions options = {}, CallOptions call = {}) const {
    return T(client_.get(name, std::move(options), std::move(call)));
  }
  Awaitable<T> async_get(std::string_view name, GetOptions options = GetOptions(),
                         CallOptions call = CallOptions()) const {
    return typed(client_.async_get(name, std::move(options), std::move(call)));
  }

  T find(std::string_view name, GetOptions options = {}, CallOptions call = {}) const {
    return T(client_.find(name, std::move(options), std::move(call)));
  }
  Awaitable<T> async_find(std::string_view name, GetOptions options = GetOptions(),
                          CallOptions call = CallOptions()) const {
    return typed(client_.async_find(name, std::move(options), std::move(call)));
  }

  List<T> list(ListOptions options = {}, CallOptions call = {}) const {
    return typed(client_.list(std::move(options), std::move(call)));
  }
  Awaitable<List<T>> async_list(ListOptions options = ListOptions(),
                                CallOptions call = CallOptions()) const {
    return typed(client_.async_list(std::move(options), std::move(call)));
  }

  TypedWatchStream<T> watch(ListOptions options = {}, DecodeOptions decode = {},
                            CallOptions call = {}) const {
    return TypedWatchStream<T>(
        client_.watch(std::move(options), std::move(decode), std::move(call)));
  }
  Awaitable<TypedWatchStream<T>> async_watch(ListOptions options = ListOptions(),
                                             DecodeOptions decode = DecodeOptions(),
                                             CallOptions call = CallOptions()) const {
    return typed(client_.async_watch(std::move(options), std::move(decode), std::move(call)));
  }

  LogStream logs(std::string_view name, LogOptions options = {}, CallOptions call = {}) const {
    return client_.logs(name, std::move(options), std::move(call));
  }
  Awaitable<LogStream> async_logs(std::string_view name, LogOptions options = LogOptions(),
                                  CallOptions call = CallOptions()) const {
    return client_.async_logs(name, std::move(options), std::move(call));
  }

  T create(const api::Object& object, CreateOptions options = {}, CallOptions call = {}) const {
    return T(client_.create(object, std::move(options), std::move(call)));
  }
  Awaitable<T> async_create(const api::Object& object, CreateOptions options = CreateOptions(),
                            CallOptions call = CallOptions()) const {
    return typed(client_.async_create(object, std::move(options), std::move(call)));
  }

  T create(const api::ObjectDraft& draft, CreateOptions options = {}, CallOptions call = {}) const {
    return T(client_.create(draft, std::move(options), std::move(call)));
  }
  Awaitable<T> async_create(const api::ObjectDraft& draft, CreateOptions options = CreateOptions(),
                            CallOptions call = CallOptions()) const {
    return typed(client_.async_create(draft, std::move(options), std::move(call)));
  }

  T update(const T& object, UpdateOptions options = {}, std::string_view subresource = {},
           CallOptions call = {}) const {
    return T(client_.update(object, std::move(options), subresource, std::move(call)));
  }
  Awaitable<T> async_update(const T& object, UpdateOptions options = UpdateOptions(),
                            std::string_view subresource = {},
                            CallOptions call = CallOptions()) const {
    return typed(client_.async_update(object, std::move(options), subresource, std::move(call)));
  }

  T update(const api::ObjectDraft& draft, UpdateOptions options = {},
           std::string_view subresource = {}, CallOptions call = {}) const {
    return T(client_.update(draft, std::move(options), subresource, std::move(call)));
  }
  Awaitable<T> async_update(const api::ObjectDraft& draft, UpdateOptions options = UpdateOptions(),
                            std::string_view subresource = {},
                            CallOptions call = CallOptions()) const {
    return typed(client_.async_update(draft, std::move(options), subresource, std::move(call)));
  }

  T update_status(const T& object, UpdateOptions options = {}, CallOptions call = {}) const {
    return update(object, std::move(options), "status", std::move(call));
  }
  Awaitable<T> async_update_status(const T& object, UpdateOptions options = UpdateOptions(),
                                   CallOptions call = CallOptions()) const {
    return async_update(object, std::move(options), "status", std::move(call));
  }

  T update_status(const api::ObjectDraft& draft, UpdateOptions options = {},
                  CallOptions call = {}) const {
    return update(draft, std::move(options), "status", std::move(call));
  }
  Awaitable<T> async_update_status(const api::ObjectDraft& draft,
                                   UpdateOptions options = UpdateOptions(),
                                   CallOptions call = CallOptions()) const {
    return async_update(draft, std::move(options), "status", std::move(call));
  }

  T patch(const api::ObjectDraft& draft, PatchOptions options = {}, CallOptions call = {}) const {
    return T(client_.patch(draft, std::move(options), std::move(call)));
  }
  Awaitable<T> async_patch(const api::ObjectDraft& draft, PatchOptions options = PatchOptions(),
                           CallOptions call = CallOptions()) const {
    return typed(client_.async_patch(draft, std::move(options), std::move(call)));
  }

  T patch_status(const api::ObjectDraft& draft, PatchOptions options = {},
                 CallOptions call = {}) const {
    return T(client_.patch_status(draft, std::move(options), std::move(call)));
  }
  Awaitable<T> async_patch_status(const api::ObjectDraft& draft,
                                  PatchOptions options = PatchOptions(),
                                  CallOptions call = CallOptions()) const {
    return typed(client_.async_patch_status(draft, std::move(options), std::move(call)));
  }

  T patch(std::string_view name, PatchType type, std::string body, PatchOptions options = {},
          std::string_view subresource = {}, CallOptions call = {}) const {
    return T(client_.patch(name, type, std::move(body), std::move(options), subresource,
                           std::move(call)));
  }
  Awaitable<T> async_patch(std::string_view name, PatchType type, std::string body,
                           PatchOptions options = PatchOptions(), std::string_view subresource = {},
                           CallOptions call = CallOptions()) const {
    return typed(client_.async_patch(name, type, std::move(body), std::move(options), subresource,
                                     std::move(call)));
  }

  T apply(const api::Object& object, ApplyOptions options, CallOptions call = {}) const {
    return T(client_.apply(object, std::move(options), std::move(call)));
  }
  Awaitable<T> async_apply(const api::Object& object, ApplyOptions options,
                           CallOptions call = CallOptions()) const {
    return typed(client_.async_apply(object, std::move(options), std::move(call)));
  }

  T apply(const api::ObjectDraft& draft, ApplyOptions options, CallOptions call = {}) const {
    return T(client_.apply(draft, std::move(options), std::move(call)));
  }
  Awaitable<T> async_apply(const api::ObjectDraft& draft, ApplyOptions options,
                           CallOptions call = CallOptions()) const {
    return typed(client_.async_apply(draft, std::move(options), std::move(call)));
  }

  api::Object remove(std::string_view name, DeleteOptions options = {},
                     CallOptions call = {}) const {
    return client_.remove(name, std::move(options), std::move(call));
  }
  Awaitable<api::Object> async_remove(std::string_view name,
                                      DeleteOptions options = DeleteOptions(),
                                      CallOptions call = CallOptions()) const {
    return client_.async_remove(name, std::move(options), std::move(call));
  }

  /// Subresources are objects of other types; lookout/rest/subresources.h has typed functions.
  api::Object get_subresource(std::string_view name, std::string_view subresource,
                              CallOptions call = {}) const {
    return client_.get_subresource(name, subresource, std::move(call));
  }
  Awaitable<api::Object> async_get_subresource(std::string_view name, std::string_view subresource,
                                               CallOptions call = CallOptions()) const {
    return client_.async_get_subresource(name, subresource, std::move(call));
  }
  api::Object find_subresource(std::string_view name, std::string_view subresource,
                               CallOptions call = {}) const {
    return client_.find_subresource(name, subresource, std::move(call));
  }
  Awaitable<api::Object> async_find_subresource(std::string_view name, std::string_view subresource,
                                                CallOptions call = CallOptions()) const {
    return client_.async_find_subresource(name, subresource, std::move(call));
  }
  api::Object create_subresource(std::string_view name, std::string_view subresource,
                                 const api::Object& body, CreateOptions options = {},
                                 CallOptions call = {}) const {
    return client_.create_subresource(name, subresource, body, std::move(options), std::move(call));
  }
  Awaitable<api::Object> async_create_subresource(std::string_view name,
                                                  std::string_view subresource, api::Object body,
                                                  CreateOptions options = CreateOptions(),
                                                  CallOptions call = CallOptions()) const {
    return client_.async_create_subresource(name, subresource, std::move(body), std::move(options),
                                            std::move(call));
  }

  void remove_collection(DeleteOptions options = {}, ListOptions list = {},
                         CallOptions call = {}) const {
    client_.remove_collection(std::move(options), std::move(list), std::move(call));
  }
  Awaitable<void> async_remove_collection(DeleteOptions options = DeleteOptions(),
                                          ListOptions list = ListOptions(),
                                          CallOptions call = CallOptions()) const {
    return client_.async_remove_collection(std::move(options), std::move(list), std::move(call));
  }

 private:
  static Awaitable<T> typed(Awaitable<api::Object> task) { co_return T(co_await std::move(task)); }
  static Awaitable<List<T>> typed(Awaitable<List<>> task) {
    co_return typed(co_await std::move(task));
  }
  static Awaitable<TypedWatchStream<T>> typed(Awaitable<WatchStream> task) {
    co_return TypedWatchStream<T>(co_await std::move(task));
  }
  static List<T> typed(List<> untyped) {
    List<T> out{static_cast<ListMeta&&>(untyped), {}};
    out.items.reserve(untyped.items.size());
    for (auto& item : untyped.items) out.items.emplace_back(std::move(item));
    return out;
  }

  ResourceClient client_;
};

template <api::ResourceObject T>
TypedClient<T> Client::resource(std::string_view ns) const {
  return TypedClient<T>(resource(api::Resource(T::kResource), ns));
}

}  // namespace lookout::rest
