// Client: a connection to a Kubernetes API server.
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

#include "lookout/api/declared.h"
#include "lookout/api/json.h"
#include "lookout/api/object.h"
#include "lookout/api/projection.h"
#include "lookout/api/resource.h"
#include "lookout/api/status.h"
#include "lookout/api/typed_object.h"
#include "lookout/base/attributes.h"
#include "lookout/base/event_loop.h"
#include "lookout/base/metrics.h"
#include "lookout/rest/config.h"
#include "lookout/rest/error.h"
#include "lookout/rest/log_stream.h"
#include "lookout/rest/options.h"
#include "lookout/rest/watch_stream.h"

namespace lookout::rest {

/// The metadata of a list.
struct ListMeta {
  std::string resource_version;
  /// Set if there are more pages: pass it to ListOptions for the next one.
  std::string continue_token;
  std::optional<std::int64_t> remaining_item_count;
  std::string api_version;
  std::string kind;
  /// The number of items that could not be decoded and were skipped (each has been reported).
  std::size_t malformed_items = 0;
  /// The keys of the skipped items, "namespace/name" or "name", if readable.
  std::vector<std::string> malformed_keys;
  /// The number of fields that were lost because the schema does not know them: only with
  /// ContentType::kProtobuf.
  std::size_t unknown_fields = 0;
};

template <class T = api::Object>
struct List : ListMeta {
  std::vector<T> items;
};

/// How the client decodes a stream of objects.
struct DecodeOptions {
  /// Requests metadata only: the objects are PartialObjectMetadata of meta.k8s.io/v1.
  bool metadata_only = false;
  /// Empty: the content type of the Config.
  std::optional<ContentType> content_type = {};
  LOOKOUT_OPTION api::Projection projection = {};
  std::size_t max_object_bytes = api::kDefaultMaxObjectBytes;
  /// Called for every object that cannot be decoded: an item that is skipped, or the event that
  /// ends a watch. The default logs a warning.
  LOOKOUT_OPTION std::function<void(const api::MalformedObject&)> on_malformed = {};
};

}  // namespace lookout::rest

namespace lookout::api {
class ObjectDraft;
}

namespace lookout::rest {

namespace detail {
struct Binding;
}

class ResourceClient;
template <api::ResourceObject T>
class TypedClient;

/// A connection to one API server: client-go's rest.Interface, dynamic.Interface and clientset in
/// one. Cheap to copy: all copies share connections. Safe to use from any number of threads.
///
/// Every request exists as a blocking function and as a coroutine (async_*). Both throw
/// api::StatusError if the server answers with a failure, TransportError if there is no answer, and
/// api::DecodeError if the answer is malformed. If an answer asks to retry later (429 or 5xx with
/// Retry-After), the client retries up to 10 times, as client-go does. It does not retry watches,
/// which have no deadline; their callers wait, as informers (cache::Reflector) and
/// watch::RetryWatcher do for up to two minutes at a time. Unlike client-go, the client follows no
/// redirect: it throws an api::StatusError that names the address.
///
/// When Asio cancels a coroutine that awaits a call (`call || timer`), the call ends like a stopped
/// one: it throws a TransportError of kind kCancelled. A cancelled wait for events loses no events.
///
/// Blocking functions must not be called on a thread of the event loop; they throw InvalidArgument
/// there. Destroying the last copy cancels pending requests.
class Client {
 public:
  /// Uses the given event loop, or one of its own. Throws ConfigError if the configuration is
  /// invalid. Connects on first use.
  explicit Client(Config config, std::shared_ptr<EventLoop> loop = nullptr);

  /// Objects of a built-in or hand-written type:
  /// client.resource<k8s::core::v1::Pod>("shop").list(). An empty namespace means all namespaces
  /// for lists and watches, and is right for cluster-scoped types.
  template <api::ResourceObject T>
  TypedClient<T> resource(std::string_view ns = {}) const;
  /// For other types: a readable compile error.
  template <class T>
    requires(!api::ResourceObject<T>)
  void resource(std::string_view = {}) const {
    static_assert(api::explain_resource_object<T>());
  }

  /// Objects of a type known only at run time.
  ResourceClient resource(api::Resource resource, std::string_view ns = {}) const;

  /// Returns a client whose calls end when `call.stop` is requested and have `call.timeout` as
  /// their default deadline (watches have none). Cheap: it shares all connections. ResourceClients
  /// and informers made from it are bound, too. Stop tokens are combined: a call ends when any of
  /// them, including its own, is stopped.
  ///
  ///   const auto bound = client.with({.stop = stop, .timeout = 10s});
  Client with(const CallOptions& call) const;

  /// Returns a client whose writes have these options unless they set their own: controller-runtime's
  /// WithFieldOwner, WithFieldValidation and NewDryRunClient. Fields that are not set keep the
  /// defaults of this client.
  ///
  ///   const auto website = client.with_write_defaults({.field_manager = "website"});
  Client with_write_defaults(const WriteDefaults& defaults) const;

  /// Sends a GET to any path ("/version", "/readyz?verbose") and returns the body as text. Throws
  /// InvalidArgument if the path does not begin with '/' or is not URL-encoded.
  std::string get_raw(std::string path, CallOptions call = {},
                      std::string accept = "application/json, */*") const;
  Awaitable<std::string> async_get_raw(std::string path, CallOptions call = CallOptions(),
                                       std::string accept = "application/json, */*") const;

  /// The metrics of this client's requests: rest_client_requests_total and
  /// rest_client_request_duration_seconds. A manager serves those of its client.
  std::shared_ptr<const metrics::Source> metrics() const;

  const Config& config() const LOOKOUT_LIFETIME_BOUND;
  EventLoop& loop() const;
  const std::shared_ptr<EventLoop>& shared_loop() const LOOKOUT_LIFETIME_BOUND;

  class Impl;
  /// For the library.
  const std::shared_ptr<Impl>& impl() const LOOKOUT_LIFETIME_BOUND { return impl_; }

 private:
  std::shared_ptr<Impl> impl_;
  std::shared_ptr<const detail::Binding> binding_;
};

/// The verbs for one resource in one namespace (or all). A small value that shares the client's
/// connections.
///
/// The server validates names and bodies. The client refuses only what would change the path of the
/// request (InvalidArgument): names that are empty or contain '/' or '%', objects of a namespaced
/// resource without a namespace, and objects of another namespace than the client's. `subresource`
/// is empty or a name such as "status".
class ResourceClient {
 public:
  using OnItem = std::function<void(api::Object)>;

  ResourceClient(std::shared_ptr<Client::Impl> client, api::Resource resource, std::string ns,
                 std::shared_ptr<const detail::Binding> binding = nullptr);

  /// Like Client::with() and Client::with_write_defaults().
  ResourceClient with(const CallOptions& call) const;
  ResourceClient with_write_defaults(const WriteDefaults& defaults) const;

  const api::Resource& resource() const LOOKOUT_LIFETIME_BOUND { return resource_; }
  const std::string& ns() const LOOKOUT_LIFETIME_BOUND { return ns_; }
  EventLoop& loop() const;

  api::Object get(std::string_view name, GetOptions options = {}, CallOptions call = {}) const;
  Awaitable<api::Object> async_get(std::string_view name, GetOptions options = GetOptions(),
                                   CallOptions call = CallOptions()) const;
  /// Like get(), but returns an empty object if there is none with this name
  /// (is_object_missing()).
  api::Object find(std::string_view name, GetOptions options = {}, CallOptions call = {}) const;
  Awaitable<api::Object> async_find(std::string_view name, GetOptions options = GetOptions(),
                                    CallOptions call = CallOptions()) const;

  /// Returns one page, or all pages if the options set no limit.
  List<> list(ListOptions options = {}, CallOptions call = {}) const;
  Awaitable<List<>> async_list(ListOptions options = ListOptions(),
                               CallOptions call = CallOptions()) const;
  /// Like list(), but delivers each item as it arrives: memory use is one item, for any length.
  /// `on_item` runs on the event loop.
  Awaitable<ListMeta> async_list_each(OnItem on_item, ListOptions options = ListOptions(),
                                      DecodeOptions decode = DecodeOptions(),
                                      CallOptions call = CallOptions()) const;

  /// Streams the changes since options.resource_version. Throws if the server refuses the watch,
  /// even if it asks to retry later (api::suggests_client_delay()). The stream reports later
  /// failures.
  WatchStream watch(ListOptions options = {}, DecodeOptions decode = {},
                    CallOptions call = {}) const;
  Awaitable<WatchStream> async_watch(ListOptions options = ListOptions(),
                                     DecodeOptions decode = DecodeOptions(),
                                     CallOptions call = CallOptions()) const;

  /// The log of a container of a pod; see LogStream. Throws api::StatusError if there is no log to
  /// read (400 for a container that has not started). For resources with a "log" subresource.
  LogStream logs(std::string_view name, LogOptions options = {}, CallOptions call = {}) const;
  Awaitable<LogStream> async_logs(std::string_view name, LogOptions options = LogOptions(),
                                  CallOptions call = CallOptions()) const;

  /// Returns the object as stored by the server. If the client has no namespace, uses the object's.
  api::Object create(const api::Object& object, CreateOptions options = {},
                     CallOptions call = {}) const;
  Awaitable<api::Object> async_create(api::Object object, CreateOptions options = CreateOptions(),
                                      CallOptions call = CallOptions()) const;

  api::Object create(const api::ObjectDraft& draft, CreateOptions options = {},
                     CallOptions call = {}) const;
  Awaitable<api::Object> async_create(const api::ObjectDraft& draft,
                                      CreateOptions options = CreateOptions(),
                                      CallOptions call = CallOptions()) const;

  /// Replaces the whole object. Fails with a conflict if the object has changed since it was read
  /// (metadata.resourceVersion).
  api::Object update(const api::Object& object, UpdateOptions options = {},
                     std::string_view subresource = {}, CallOptions call = {}) const;
  Awaitable<api::Object> async_update(api::Object object, UpdateOptions options = UpdateOptions(),
                                      std::string_view subresource = {},
                                      CallOptions call = CallOptions()) const;
  api::Object update_status(const api::Object& object, UpdateOptions options = {},
                            CallOptions call = {}) const {
    return update(object, std::move(options), "status", std::move(call));
  }
  Awaitable<api::Object> async_update_status(api::Object object,
                                             UpdateOptions options = UpdateOptions(),
                                             CallOptions call = CallOptions()) const {
    return async_update(std::move(object), std::move(options), "status", std::move(call));
  }

  api::Object update(const api::ObjectDraft& draft, UpdateOptions options = {},
                     std::string_view subresource = {}, CallOptions call = {}) const;
  Awaitable<api::Object> async_update(const api::ObjectDraft& draft,
                                      UpdateOptions options = UpdateOptions(),
                                      std::string_view subresource = {},
                                      CallOptions call = CallOptions()) const;
  api::Object update_status(const api::ObjectDraft& draft, UpdateOptions options = {},
                            CallOptions call = {}) const {
    return update(draft, std::move(options), "status", std::move(call));
  }
  Awaitable<api::Object> async_update_status(const api::ObjectDraft& draft,
                                             UpdateOptions options = UpdateOptions(),
                                             CallOptions call = CallOptions()) const {
    return async_update(draft, std::move(options), "status", std::move(call));
  }

  /// Sends only the changes in the draft, as a merge patch. A draft without changes sends no
  /// request and returns its original.
  api::Object patch(const api::ObjectDraft& draft, PatchOptions options = {},
                    CallOptions call = {}) const;
  Awaitable<api::Object> async_patch(const api::ObjectDraft& draft,
                                     PatchOptions options = PatchOptions(),
                                     CallOptions call = CallOptions()) const;
  /// Like patch(), for the changes in the status, sent to the status subresource.
  api::Object patch_status(const api::ObjectDraft& draft, PatchOptions options = {},
                           CallOptions call = {}) const;
  Awaitable<api::Object> async_patch_status(const api::ObjectDraft& draft,
                                            PatchOptions options = PatchOptions(),
                                            CallOptions call = CallOptions()) const;

  /// Server-side apply: sets the given fields and makes `options.field_manager` their owner. Fields
  /// that this manager applied before and does not apply now are removed. Pass only the fields that
  /// the manager owns, not an object that was read: throws InvalidArgument for an object with
  /// managedFields, and without a field manager.
  api::Object apply(const api::Object& object, ApplyOptions options, CallOptions call = {}) const;
  Awaitable<api::Object> async_apply(api::Object object, ApplyOptions options,
                                     CallOptions call = CallOptions()) const;
  api::Object apply(const api::ObjectDraft& draft, ApplyOptions options,
                    CallOptions call = {}) const;
  Awaitable<api::Object> async_apply(const api::ObjectDraft& draft, ApplyOptions options,
                                     CallOptions call = CallOptions()) const;

  /// Subresources whose body is not the object itself: "scale", "token", "eviction" ...
  /// (lookout/rest/subresources.h has the common ones).
  api::Object get_subresource(std::string_view name, std::string_view subresource,
                              CallOptions call = {}) const;
  Awaitable<api::Object> async_get_subresource(std::string_view name, std::string_view subresource,
                                               CallOptions call = CallOptions()) const;
  /// Like get_subresource(), but returns an empty object if there is none.
  api::Object find_subresource(std::string_view name, std::string_view subresource,
                               CallOptions call = {}) const;
  Awaitable<api::Object> async_find_subresource(std::string_view name, std::string_view subresource,
                                                CallOptions call = CallOptions()) const;
  api::Object create_subresource(std::string_view name, std::string_view subresource,
                                 const api::Object& body, CreateOptions options = {},
                                 CallOptions call = {}) const;
  Awaitable<api::Object> async_create_subresource(std::string_view name,
                                                  std::string_view subresource, api::Object body,
                                                  CreateOptions options = CreateOptions(),
                                                  CallOptions call = CallOptions()) const;

  api::Object patch(std::string_view name, PatchType type, std::string body,
                    PatchOptions options = {}, std::string_view subresource = {},
                    CallOptions call = {}) const;
  Awaitable<api::Object> async_patch(std::string_view name, PatchType type, std::string body,
                                     PatchOptions options = PatchOptions(),
                                     std::string_view subresource = {},
                                     CallOptions call = CallOptions()) const;

  /// Returns the server's answer: the object if it still exists (finalizers, grace period),
  /// otherwise a Status.
  api::Object remove(std::string_view name, DeleteOptions options = {},
                     CallOptions call = {}) const;
  Awaitable<api::Object> async_remove(std::string_view name,
                                      DeleteOptions options = DeleteOptions(),
                                      CallOptions call = CallOptions()) const;

  /// Deletes everything that matches the list options.
  void remove_collection(DeleteOptions options = {}, ListOptions list = {},
                         CallOptions call = {}) const;
  Awaitable<void> async_remove_collection(DeleteOptions options = DeleteOptions(),
                                          ListOptions list = ListOptions(),
                                          CallOptions call = CallOptions()) const;

 private:
  Awaitable<api::Object> patch_of(const api::ObjectDraft& draft, std::string patch,
                                  PatchOptions options, std::string_view subresource,
                                  CallOptions call) const;

  std::shared_ptr<Client::Impl> client_;
  api::Resource resource_;
  std::string ns_;
  std::shared_ptr<const detail::Binding> binding_;
};

}  // namespace lookout::rest

#include "lookout/rest/typed_client.h"  // IWYU pragma: export
