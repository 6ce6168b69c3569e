// Context: the context of one reconcile.
#pragma once

#include <fmt/core.h>

#include <concepts>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "lookout/api/draft.h"
#include "lookout/api/error.h"
#include "lookout/api/labels.h"
#include "lookout/api/status.h"
#include "lookout/api/typed_object.h"
#include "lookout/controller/cache.h"
#include "lookout/controller/create_or_update.h"
#include "lookout/controller/event_sink.h"
#include "lookout/controller/logger.h"
#include "lookout/controller/owner_references.h"
#include "lookout/controller/request.h"
#include "lookout/rest/client.h"

namespace lookout::controller {

/// A write was not sent because this process is no longer the leader.
class LeadershipLostError : public Error {
 public:
  using Error::Error;
};

class Cluster;

namespace detail {
struct Environment;
struct Write;

template <class Draft>
using ObjectOf = std::remove_cvref_t<decltype(std::declval<const Draft&>().build())>;
}  // namespace detail

/// The argument of a reconciler for one call: reads from the caches, writes to the server, records
/// Events.
///
/// All reads of a call see one state of the caches, taken at the first read; it does not include
/// the call's own writes. Writes go to the server immediately. **Read your own writes**: the same
/// request does not run again before the caches have seen its writes; other requests continue. A
/// write that no cache can see (a kind that is not cached, an object outside the selection) delays
/// nothing, and ControllerOptions::write_timeout bounds the wait. Writes through uncached() and dry
/// runs are not tracked.
///
/// Every write first checks that this process is still the leader, and throws LeadershipLostError
/// if it is not: a process that was frozen writes nothing when it wakes up. All calls end with
/// stop().
///
/// A blocking reconciler uses the blocking functions, a coroutine the async_ ones (a blocking call
/// on the event loop throws InvalidArgument). The context is valid during the call only: do not
/// keep it. Only one thread at a time may use it.
class Context {
 public:
  /// For the library: keeps a reference to the request. `number` is that of the reconcile.
  Context(std::shared_ptr<const detail::Environment> environment, const Request& request,
          std::stop_token stop, std::uint64_t number = 0);
  ~Context();
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  const Request& request() const { return request_; }
  /// Requested when the manager stops, when leadership is lost, and after the reconcile timeout.
  const std::stop_token& stop() const { return stop_; }
  /// The name of the controller.
  const std::string& controller() const;
  /// The id of this call, a UUID: the library's log lines about the call contain it, too.
  /// controller-runtime's controller.ReconcileIDFromContext().
  std::string reconcile_id() const;
  /// Writes log lines with the controller, the request and the id; see Logger.
  const Logger& logger() const LOOKOUT_LIFETIME_BOUND;

  // ------------------------------------------------------------------------------- reading
  // All of these functions throw NotCachedError for kinds that are not cached.

  /// Empty if there is no such object.
  template <api::ResourceObject T>
  std::optional<T> find(const Request& request) {
    return view().find<T>(request);
  }
  template <api::ResourceObject T>
  std::optional<T> find(std::string_view ns, std::string_view name) {
    return view().find<T>(Request(ns, name));
  }
  /// Throws api::StatusError (api::is_not_found) if there is no such object.
  template <api::ResourceObject T>
  T get(const Request& request) {
    auto found = view().find<T>(request);
    if (!found) throw_not_found(api::Resource(T::kResource), request);
    return *std::move(found);
  }
  /// The objects of a namespace; if `ns` is empty, of all watched namespaces.
  template <api::ResourceObject T>
  std::vector<T> list(std::string_view ns = {}, const api::labels::Selector& selector = {}) {
    return view().list<T>(ns, selector);
  }
  template <api::ResourceObject T>
  std::vector<T> by_index(std::string_view index, std::string_view value,
                          std::string_view ns = {}) {
    return view().by_index<T>(index, value, ns);
  }
  /// The objects that have all of these index values: see CacheView::matching_fields().
  template <api::ResourceObject T>
  std::vector<T> matching_fields(const MatchingFields& fields, std::string_view ns = {},
                                 const api::labels::Selector& selector = {}) {
    return view().matching_fields<T>(fields, ns, selector);
  }
  /// The state of the caches that this call sees, for find_metadata() and similar functions.
  CacheView& view();
  /// The same of another cluster, which was added to the manager.
  CacheView& view(const Cluster& cluster);

  /// A client for all other requests; its calls end with stop().
  const rest::Client& uncached() const;
  /// A client of another cluster. Its calls end with stop(), and its writes are sent only while this
  /// process leads. The next run does not wait until the caches have seen them.
  const rest::Client& uncached(const Cluster& cluster) const;

  // ------------------------------------------------------------------------------- writing
  // The verbs of rest::TypedClient, for drafts. They throw what the client throws. New objects of
  // kinds that the builder owns() get a controller reference to the object of the request, unless
  // they have a controller already. With match_any_owner, they get none: call
  // set_owner_reference(). Throws InvalidArgument if the object of the request cannot own them,
  // because it is in another namespace.

  template <std::derived_from<api::ObjectDraft> Draft>
  detail::ObjectOf<Draft> create(const Draft& draft, rest::CreateOptions options = {}) {
    return typed<Draft>(run(async_create_object(resource_of(draft), draft, std::move(options))));
  }
  template <std::derived_from<api::ObjectDraft> Draft>
  Awaitable<detail::ObjectOf<Draft>> async_create(
      const Draft& draft, rest::CreateOptions options = rest::CreateOptions()) {
    return typed<Draft>(async_create_object(resource_of(draft), draft, std::move(options)));
  }

  /// Replaces the whole object, with the resourceVersion of the draft's original.
  template <std::derived_from<api::ObjectDraft> Draft>
  detail::ObjectOf<Draft> update(const Draft& draft, rest::UpdateOptions options = {}) {
    return typed<Draft>(
        run(async_update_object(resource_of(draft), draft, false, std::move(options))));
  }
  template <std::derived_from<api::ObjectDraft> Draft>
  Awaitable<detail::ObjectOf<Draft>> async_update(
      const Draft& draft, rest::UpdateOptions options = rest::UpdateOptions()) {
    return typed<Draft>(async_update_object(resource_of(draft), draft, false, std::move(options)));
  }
  /// Like update(), for the status subresource.
  template <std::derived_from<api::ObjectDraft> Draft>
  detail::ObjectOf<Draft> update_status(const Draft& draft, rest::UpdateOptions options = {}) {
    return typed<Draft>(
        run(async_update_object(resource_of(draft), draft, true, std::move(options))));
  }
  template <std::derived_from<api::ObjectDraft> Draft>
  Awaitable<detail::ObjectOf<Draft>> async_update_status(
      const Draft& draft, rest::UpdateOptions options = rest::UpdateOptions()) {
    return typed<Draft>(async_update_object(resource_of(draft), draft, true, std::move(options)));
  }

  /// Sends the draft's changes as a merge patch; sends nothing if there are none.
  template <std::derived_from<api::ObjectDraft> Draft>
  detail::ObjectOf<Draft> patch(const Draft& draft, rest::PatchOptions options = {}) {
    return typed<Draft>(
        run(async_patch_object(resource_of(draft), draft, false, std::move(options))));
  }
  template <std::derived_from<api::ObjectDraft> Draft>
  Awaitable<detail::ObjectOf<Draft>> async_patch(
      const Draft& draft, rest::PatchOptions options = rest::PatchOptions()) {
    return typed<Draft>(async_patch_object(resource_of(draft), draft, false, std::move(options)));
  }
  /// Like patch(), for the status subresource.
  template <std::derived_from<api::ObjectDraft> Draft>
  detail::ObjectOf<Draft> patch_status(const Draft& draft, rest::PatchOptions options = {}) {
    return typed<Draft>(
        run(async_patch_object(resource_of(draft), draft, true, std::move(options))));
  }
  template <std::derived_from<api::ObjectDraft> Draft>
  Awaitable<detail::ObjectOf<Draft>> async_patch_status(
      const Draft& draft, rest::PatchOptions options = rest::PatchOptions()) {
    return typed<Draft>(async_patch_object(resource_of(draft), draft, true, std::move(options)));
  }

  /// Server-side apply with the controller's name as the field manager. Takes fields over from
  /// other managers. For owned kinds, the server refuses (422) an object that another object
  /// controls, because it would have two controllers.
  template <std::derived_from<api::ObjectDraft> Draft>
  detail::ObjectOf<Draft> apply(const Draft& draft) {
    return typed<Draft>(run(async_apply_object(resource_of(draft), draft)));
  }
  template <std::derived_from<api::ObjectDraft> Draft>
  Awaitable<detail::ObjectOf<Draft>> async_apply(const Draft& draft) {
    return typed<Draft>(async_apply_object(resource_of(draft), draft));
  }

  /// Deletes this object (its uid is a precondition); returns false if it was gone already.
  template <api::ResourceObject T>
  bool remove(const T& object, rest::DeleteOptions options = {}) {
    return run(async_remove_object(api::Resource(T::kResource), object, std::move(options)));
  }
  template <api::ResourceObject T>
  Awaitable<bool> async_remove(const T& object,
                               rest::DeleteOptions options = rest::DeleteOptions()) {
    return async_remove_object(api::Resource(T::kResource), object, std::move(options));
  }

  /// Lets `mutate` write the wanted state into a draft of the object, and creates or updates the
  /// object if that changes anything. Reads the object from the cache, so that a call without
  /// changes costs no request; if the cache does not have the kind or has only parts of the object,
  /// it reads from the server. A conflict throws: the request is retried when the cache is newer.
  /// Throws InvalidArgument if `mutate` changes the name or the namespace.
  /// See controller::create_or_update(), which reads from the server.
  ///
  /// An object of a kind that the builder owns() gets the request's object as its controller.
  /// Throws AlreadyOwnedError, and writes nothing, if another object controls it; with
  /// owned_by(*site, Orphans::kRefuse), throws NotOwnedError for an object without a controller.
  /// With owned_by_anyone(), writes the object regardless of its owners; so does a call without
  /// `ownership` for kinds that the builder does not own, or owns with match_any_owner.
  template <api::ResourceObject T, class Mutate>
  WriteResult<T> create_or_update(const Request& request, const Mutate& mutate) {
    return create_or_update<T>(request, ownership_of(api::Resource(T::kResource)), mutate);
  }
  template <api::ResourceObject T, class Mutate>
  WriteResult<T> create_or_update(const Request& request, const Ownership& ownership,
                                  const Mutate& mutate) {
    const T existing(run(async_current(api::Resource(T::kResource), request)));
    require_ownership(existing, ownership);
    auto draft = draft_of(existing, request);
    mutate(draft);
    require_same_key(existing, request, draft);
    if (ownership.owner) set_controller_reference(ownership.owner, draft);
    return {T(run(async_write_draft(api::Resource(T::kResource), existing, draft))),
            written(existing, draft)};
  }
  template <api::ResourceObject T, class Mutate>
  Awaitable<WriteResult<T>> async_create_or_update(Request request, Mutate mutate) {
    return async_create_or_update<T>(std::move(request), ownership_of(api::Resource(T::kResource)),
                                     std::move(mutate));
  }
  template <api::ResourceObject T, class Mutate>
  Awaitable<WriteResult<T>> async_create_or_update(Request request, Ownership ownership,
                                                   Mutate mutate) {
    const T existing(co_await async_current(api::Resource(T::kResource), request));
    require_ownership(existing, ownership);
    auto draft = draft_of(existing, request);
    mutate(draft);
    require_same_key(existing, request, draft);
    if (ownership.owner) set_controller_reference(ownership.owner, draft);
    T now(co_await async_write_draft(api::Resource(T::kResource), existing, draft));
    co_return WriteResult<T>{std::move(now), written(existing, draft)};
  }

  // ------------------------------------------------------------------------------- other

  /// Runs `clean_up` before the object is deleted. Returns true if the object is being deleted, so
  /// that there is nothing else to do:
  ///
  ///     if (context.finalize(*site, "example.com/website", [&] { remove_dns(*site); })) return {};
  ///
  /// While the object exists, adds the finalizer if it is missing. Once the object is being
  /// deleted, runs `clean_up` and then removes the finalizer, even if the object has changed in the
  /// meantime. If `clean_up` throws, the finalizer stays and the request is retried, so `clean_up`
  /// must be repeatable. It should read the remaining state from the server (uncached()): a cache may
  /// be stale, and after the finalizer is removed, clean_up does not run again.
  template <api::ResourceObject T>
  bool finalize(const T& object, std::string_view finalizer,
                const std::function<void()>& clean_up) {
    return finalize_object(api::Resource(T::kResource), object, finalizer, clean_up);
  }
  template <api::ResourceObject T>
  Awaitable<bool> async_finalize(const T& object, std::string_view finalizer,
                                 std::function<Awaitable<void>()> clean_up) {
    return async_finalize_object(api::Resource(T::kResource), object, std::string(finalizer),
                                 std::move(clean_up));
  }

  /// Reports a Kubernetes Event about the object, if the manager has an EventSink. The format
  /// string is fmt's.
  /// For a text that is not a literal: `event(site, "Failed", "{}", text)`.
  template <class... Arguments>
  void event(const api::Object& regarding, std::string_view reason,
             fmt::format_string<Arguments...> format, Arguments&&... arguments) const {
    report(regarding, EventType::kNormal, reason,
           fmt::format(format, std::forward<Arguments>(arguments)...));
  }
  /// Like event(), with the type Warning.
  template <class... Arguments>
  void warning(const api::Object& regarding, std::string_view reason,
               fmt::format_string<Arguments...> format, Arguments&&... arguments) const {
    report(regarding, EventType::kWarning, reason,
           fmt::format(format, std::forward<Arguments>(arguments)...));
  }

  /// For the library: the writes that the caches have not seen yet.
  std::vector<detail::Write> take_writes();

 private:
  template <class T>
  T run(Awaitable<T> task) const {
    return loop().run(std::move(task));
  }
  template <class Draft>
  static detail::ObjectOf<Draft> typed(api::Object object) {
    return detail::ObjectOf<Draft>(std::move(object));
  }
  template <class Draft>
  static Awaitable<detail::ObjectOf<Draft>> typed(Awaitable<api::Object> task) {
    co_return detail::ObjectOf<Draft>(co_await std::move(task));
  }
  template <class Draft>
  api::Resource resource_of(const Draft& draft) const {
    if constexpr (requires { detail::ObjectOf<Draft>::kResource; }) {
      return api::Resource(detail::ObjectOf<Draft>::kResource);
    } else {
      return resource_by_kind(draft);
    }
  }
  template <class T>
  static auto draft_of(const T& existing, const Request& request) {
    if (existing) return existing.edit();
    if constexpr (T::kResource.namespaced) {
      return T::draft(request.name, request.ns);
    } else {
      return T::draft(request.name);
    }
  }
  static Written written(const api::Object& existing, const api::ObjectDraft& draft) {
    if (!existing) return Written::kCreated;
    return draft.changed() ? Written::kUpdated : Written::kUnchanged;
  }

  /// The view and the client of another cluster.
  struct Elsewhere;
  Elsewhere& elsewhere(const Cluster& cluster) const;
  rest::Client bound(const rest::Client& client) const;
  EventLoop& loop() const;
  rest::ResourceClient client_for(const api::Resource& resource, std::string_view ns) const;
  api::Resource resource_by_kind(const api::ObjectDraft& draft) const;
  /// Throws InvalidArgument if the draft of this object, or of a new one, has another name or
  /// namespace.
  static void require_same_key(const api::Object& existing, const Request& request,
                               const api::ObjectDraft& draft);
  [[noreturn]] static void throw_not_found(const api::Resource& resource, const Request& request);
  void report(const api::Object& regarding, EventType type, std::string_view reason,
              const std::string& message) const;
  /// The ownership for create_or_update() of objects of this kind.
  Ownership ownership_of(const api::Resource& resource);
  /// The object of the request, or its metadata if only that is cached.
  api::Object requested_object();
  /// Sets the controller reference if the builder owns() the kind.
  void own(const api::Resource& resource, const api::ObjectDraft& draft);
  void note(const api::Resource& resource, const api::Object& written);
  void note_removed(const api::Resource& resource, const Request& key, std::string_view uid);

  Awaitable<api::Object> tracked(api::Resource resource, Awaitable<api::Object> call, bool dry_run);
  Awaitable<api::Object> async_create_object(api::Resource resource, const api::ObjectDraft& draft,
                                             rest::CreateOptions options);
  Awaitable<api::Object> async_update_object(api::Resource resource, const api::ObjectDraft& draft,
                                             bool status, rest::UpdateOptions options);
  Awaitable<api::Object> async_patch_object(api::Resource resource, const api::ObjectDraft& draft,
                                            bool status, rest::PatchOptions options);
  Awaitable<api::Object> async_apply_object(api::Resource resource, const api::ObjectDraft& draft);
  Awaitable<bool> async_remove_object(api::Resource resource, api::Object object,
                                      rest::DeleteOptions options);
  Awaitable<api::Object> async_current(api::Resource resource, Request request);
  Awaitable<api::Object> async_write_draft(api::Resource resource, api::Object existing,
                                           const api::ObjectDraft& draft);
  bool finalize_object(const api::Resource& resource, const api::Object& object,
                       std::string_view finalizer, const std::function<void()>& clean_up);
  Awaitable<bool> async_finalize_object(api::Resource resource, api::Object object,
                                        std::string finalizer,
                                        std::function<Awaitable<void>()> clean_up);
  Awaitable<void> async_add_finalizer(api::Resource resource, api::Object object,
                                      std::string finalizer);
  Awaitable<void> async_remove_finalizer(api::Resource resource, api::Object object,
                                         std::string finalizer);

  const std::shared_ptr<const detail::Environment> environment_;
  const Request& request_;
  const std::stop_token stop_;
  std::unique_ptr<CacheView> view_;
  mutable std::unique_ptr<rest::Client> client_;  // bound to stop_
  std::vector<detail::Write> writes_;
  const std::uint64_t number_;
  mutable std::unique_ptr<const Logger> logger_;
  mutable std::vector<std::unique_ptr<Elsewhere>> elsewhere_;
};

}  // namespace lookout::controller
