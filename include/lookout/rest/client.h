// Talking to a Kubernetes API server.
#pragma once

#include <concepts>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lookout/api/json.h"
#include "lookout/api/object.h"
#include "lookout/api/projection.h"
#include "lookout/api/resource.h"
#include "lookout/api/status.h"
#include "lookout/api/typed_object.h"
#include "lookout/rest/config.h"
#include "lookout/rest/error.h"
#include "lookout/rest/event_loop.h"
#include "lookout/rest/options.h"
#include "lookout/rest/watch_stream.h"

namespace lookout::rest {

/// What a list says about itself.
struct ListMeta {
  std::string resource_version;
  /// Set if there are more pages: give it back in ListOptions.
  std::string continue_token;
  std::optional<std::int64_t> remaining_item_count;
  std::string api_version;
  std::string kind;
  /// How many items could not be decoded and were left out (each has been reported).
  std::size_t malformed_items = 0;
  /// How many fields have been lost because the schema does not know them: only with
  /// ContentType::kProtobuf.
  std::size_t unknown_fields = 0;
};

template <class T = api::Object>
struct List : ListMeta {
  std::vector<T> items;
};

/// How a stream of objects is taken in.
struct DecodeOptions {
  /// Whether to ask the server for metadata only: objects then are PartialObjectMetadata of
  /// meta.k8s.io/v1.
  bool metadata_only = false;
  /// Nothing: that of the Config.
  std::optional<ContentType> content_type = {};
  api::Projection projection = {};
  std::size_t max_object_bytes = api::kDefaultMaxObjectBytes;
  /// Told of every object that cannot be decoded and is left out; the default logs a warning.
  std::function<void(const api::MalformedObject&)> on_malformed = {};
};

class ResourceClient;
template <api::ResourceObject T>
class TypedClient;

/// A connection to one API server; client-go's rest.Interface, dynamic.Interface and clientset in
/// one. Cheap to copy: all copies share connections. Safe to use from any number of threads.
///
/// Every request exists as a blocking function and as a coroutine (async_*). Both throw
/// api::StatusError when the server answers with a failure, TransportError when no answer came, and
/// api::DecodeError when the answer makes no sense. An answer that asks to come back later (429 or
/// 5xx with Retry-After) is retried up to 10 times, as client-go does.
///
/// GCC 12 destroys options twice that are written in braces within a co_await expression. Give them
/// a name: `ListOptions page{.limit = 5}; co_await pods.async_list(page);`. (What is left out is
/// not affected.)
///
/// Blocking functions must not be called on a thread of the event loop (InvalidArgument). When the
/// last copy goes, what is under way is cancelled.
class Client {
 public:
  /// With an event loop of its own, or with one that is shared. Throws ConfigError if the
  /// configuration cannot work; connects when it is first used.
  explicit Client(Config config, std::shared_ptr<EventLoop> loop = nullptr);

  /// Objects of a built-in or hand-written type: client.resource<core::v1::Pod>("shop").list(). An
  /// empty namespace means all namespaces for lists and watches, and is right for cluster-scoped
  /// types.
  template <api::ResourceObject T>
  TypedClient<T> resource(std::string ns = {}) const;

  /// Objects of a type that is known at run time.
  ResourceClient resource(api::Resource resource, std::string ns = {}) const;

  /// GET of any path ("/version", "/readyz?verbose"); the body as text. Throws InvalidArgument if
  /// it does not begin with '/', or is not encoded as URLs are.
  std::string get_raw(std::string path, CallOptions call = {},
                      std::string accept = "application/json, */*") const;
  Awaitable<std::string> async_get_raw(std::string path, CallOptions call = CallOptions(),
                                       std::string accept = "application/json, */*") const;

  const Config& config() const;
  EventLoop& loop() const;
  const std::shared_ptr<EventLoop>& shared_loop() const;

  class Impl;
  /// For the library.
  const std::shared_ptr<Impl>& impl() const { return impl_; }

 private:
  std::shared_ptr<Impl> impl_;
};

/// The verbs for one resource in one namespace (or all). A small value; it shares the client's
/// connections.
///
/// Names and bodies are checked by the server, but what would be the path of something else is
/// refused here (InvalidArgument): names that are empty or contain '/' or '%', and objects of a
/// namespaced resource without a namespace. `subresource` is empty or such as "status".
class ResourceClient {
 public:
  using OnItem = std::function<void(api::Object)>;

  ResourceClient(std::shared_ptr<Client::Impl> client, api::Resource resource, std::string ns);

  const api::Resource& resource() const { return resource_; }
  const std::string& ns() const { return ns_; }

  api::Object get(std::string name, GetOptions options = {}, CallOptions call = {}) const;
  Awaitable<api::Object> async_get(std::string name, GetOptions options = GetOptions(),
                                   CallOptions call = CallOptions()) const;

  /// One page, or all if the options set no limit.
  List<> list(ListOptions options = {}, CallOptions call = {}) const;
  Awaitable<List<>> async_list(ListOptions options = ListOptions(),
                               CallOptions call = CallOptions()) const;
  /// The same, handing over each item as soon as it has come in: the memory of one item, however
  /// long the list. `on_item` runs on the event loop.
  Awaitable<ListMeta> async_list_each(OnItem on_item, ListOptions options = ListOptions(),
                                      DecodeOptions decode = DecodeOptions(),
                                      CallOptions call = CallOptions()) const;

  /// The changes since options.resource_version. Throws once the server refuses; later failures
  /// come out of the stream.
  WatchStream watch(ListOptions options = {}, DecodeOptions decode = {},
                    CallOptions call = {}) const;
  Awaitable<WatchStream> async_watch(ListOptions options = ListOptions(),
                                     DecodeOptions decode = DecodeOptions(),
                                     CallOptions call = CallOptions()) const;

  /// The object as the server stored it. A namespace in the object is used if the client has none.
  api::Object create(const api::Object& object, CreateOptions options = {},
                     CallOptions call = {}) const;
  Awaitable<api::Object> async_create(api::Object object, CreateOptions options = CreateOptions(),
                                      CallOptions call = CallOptions()) const;

  api::Object update(const api::Object& object, UpdateOptions options = {},
                     std::string subresource = {}, CallOptions call = {}) const;
  Awaitable<api::Object> async_update(api::Object object, UpdateOptions options = UpdateOptions(),
                                      std::string subresource = {},
                                      CallOptions call = CallOptions()) const;
  api::Object update_status(const api::Object& object, UpdateOptions options = {},
                            CallOptions call = {}) const {
    return update(object, std::move(options), "status", std::move(call));
  }

  api::Object patch(std::string name, PatchType type, std::string body, PatchOptions options = {},
                    std::string subresource = {}, CallOptions call = {}) const;
  Awaitable<api::Object> async_patch(std::string name, PatchType type, std::string body,
                                     PatchOptions options = PatchOptions(),
                                     std::string subresource = {},
                                     CallOptions call = CallOptions()) const;

  /// What the server answers: the object if it still exists (finalizers, grace period), else a
  /// Status.
  api::Object remove(std::string name, DeleteOptions options = {}, CallOptions call = {}) const;
  Awaitable<api::Object> async_remove(std::string name, DeleteOptions options = DeleteOptions(),
                                      CallOptions call = CallOptions()) const;

  /// Deletes everything that the list options select.
  void remove_collection(DeleteOptions options = {}, ListOptions list = {},
                         CallOptions call = {}) const;
  Awaitable<void> async_remove_collection(DeleteOptions options = DeleteOptions(),
                                          ListOptions list = ListOptions(),
                                          CallOptions call = CallOptions()) const;

 private:
  std::shared_ptr<Client::Impl> client_;
  api::Resource resource_;
  std::string ns_;
};

/// ResourceClient for a known type: the same verbs, typed.
template <api::ResourceObject T>
class TypedClient {
 public:
  explicit TypedClient(ResourceClient client) : client_(std::move(client)) {}

  /// The same without types.
  const ResourceClient& dynamic() const { return client_; }

  T get(std::string name, GetOptions options = {}, CallOptions call = {}) const {
    return T(client_.get(std::move(name), std::move(options), std::move(call)));
  }
  List<T> list(ListOptions options = {}, CallOptions call = {}) const {
    List<> untyped = client_.list(std::move(options), std::move(call));
    List<T> out{static_cast<ListMeta&&>(untyped), {}};
    out.items.reserve(untyped.items.size());
    for (auto& item : untyped.items) out.items.emplace_back(std::move(item));
    return out;
  }
  WatchStream watch(ListOptions options = {}, DecodeOptions decode = {},
                    CallOptions call = {}) const {
    return client_.watch(std::move(options), std::move(decode), std::move(call));
  }
  T create(const api::Object& object, CreateOptions options = {}, CallOptions call = {}) const {
    return T(client_.create(object, std::move(options), std::move(call)));
  }
  T update(const T& object, UpdateOptions options = {}, std::string subresource = {},
           CallOptions call = {}) const {
    return T(client_.update(object, std::move(options), std::move(subresource), std::move(call)));
  }
  T update_status(const T& object, UpdateOptions options = {}, CallOptions call = {}) const {
    return T(client_.update_status(object, std::move(options), std::move(call)));
  }
  T patch(std::string name, PatchType type, std::string body, PatchOptions options = {},
          std::string subresource = {}, CallOptions call = {}) const {
    return T(client_.patch(std::move(name), type, std::move(body), std::move(options),
                           std::move(subresource), std::move(call)));
  }
  api::Object remove(std::string name, DeleteOptions options = {}, CallOptions call = {}) const {
    return client_.remove(std::move(name), std::move(options), std::move(call));
  }
  void remove_collection(DeleteOptions options = {}, ListOptions list = {},
                         CallOptions call = {}) const {
    client_.remove_collection(std::move(options), std::move(list), std::move(call));
  }

 private:
  ResourceClient client_;
};

template <api::ResourceObject T>
TypedClient<T> Client::resource(std::string ns) const {
  return TypedClient<T>(resource(api::Resource(T::kResource), std::move(ns)));
}

}  // namespace lookout::rest
