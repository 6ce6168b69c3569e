#include <fmt/format.h>

#include <boost/asio/strand.hpp>
#include <boost/asio/this_coro.hpp>
#include <utility>

#include "lookout/api/error.h"
#include "lookout/api/json.h"
#include "lookout/api/protobuf.h"
#include "lookout/base/ascii.h"
#include "lookout/base/clock.h"
#include "lookout/base/detail/log.h"
#include "lookout/base/detail/run_on.h"
#include "lookout/base/enum_names.h"
#include "lookout/rest/client.h"
#include "rest/client_impl.h"
#include "rest/log_stream_impl.h"
#include "rest/shielded.h"
#include "rest/watch_stream_impl.h"

namespace lookout::rest {
namespace {

using detail::BoundCall;
using detail::CallControl;
using detail::describe;
using detail::Request;
using Impl = Client::Impl;

Request make_request(std::string method, std::string verb, const api::Resource& resource,
                     std::string_view ns, std::string_view name,
                     std::string_view subresource = {}) {
  if (resource.namespaced && ns.empty() && (!name.empty() || method == "POST")) {
    throw InvalidArgument(
        fmt::format("{} {}{}{}: the resource is namespaced, and no namespace is given: name one in "
                    "Client::resource() or in the object",
                    verb, resource.qualified_name(), name.empty() ? "" : " ", name));
  }
  Request request;
  request.method = std::move(method);
  request.path = detail::resource_path(resource, ns, name, subresource);
  request.verb = std::move(verb);
  request.resource = resource.qualified_name();
  request.name = name;
  request.subresource = subresource;
  return request;
}

/// The coroutines below run on their own strand, whatever the caller's executor: waking them from
/// other threads relies on this.
template <class T>
Awaitable<T> on_strand(const std::shared_ptr<Impl>& client, Awaitable<T> task) {
  return lookout::detail::run_on(
      boost::asio::any_io_executor(boost::asio::make_strand(client->loop().context())),
      detail::shielded(std::move(task)));
}

Awaitable<api::Object> fetch_object(std::shared_ptr<Impl> client, Request request, BoundCall call) {
  CallControl control(call, call.timeout_or(client->config().timeout), client->closing(),
                      co_await boost::asio::this_coro::executor, describe(request));
  co_return co_await client->fetch_object(request, control);
}

Awaitable<api::Object> send(const std::shared_ptr<Impl>& client, Request request, BoundCall call) {
  return on_strand(client,
                   fetch_object(client->shared_from_this(), std::move(request), std::move(call)));
}

/// Turns the request into a write with `body`.
template <class Options>
void carry(Request& request, Options options, const detail::BindingPtr& binding,
           std::string_view content_type, std::string body) {
  detail::add_defaults(options, binding);
  detail::add_write_options(request, options.dry_run, options.field_manager,
                            options.field_validation);
  request.content_type = content_type;
  request.body = std::move(body);
}

Awaitable<api::Object> get_object(std::shared_ptr<Impl> client, api::Resource resource,
                                  Request request, bool metadata_only, BoundCall call) {
  CallControl control(call, call.timeout_or(client->config().timeout), client->closing(),
                      co_await boost::asio::this_coro::executor, describe(request));
  co_return co_await client->get_object(std::move(request), resource, control, metadata_only);
}

Awaitable<std::string> fetch(std::shared_ptr<Impl> client, Request request, BoundCall call) {
  CallControl control(call, call.timeout_or(client->config().timeout), client->closing(),
                      co_await boost::asio::this_coro::executor, describe(request));
  co_return co_await client->fetch(request, control);
}

/// Throws api::StatusError if the body is a failure Status. (A long body or one that is not an object
/// is none.)
void expect_success(std::string body) {
  constexpr std::size_t kLongestStatus = 1u << 20;
  if (body.size() > kLongestStatus) return;
  detail::throw_if_failure(api::JsonDecoder().decode(body));
}

Awaitable<void> fetch_nothing(std::shared_ptr<Impl> client, Request request, BoundCall call) {
  std::string body = co_await fetch(std::move(client), std::move(request), std::move(call));
  expect_success(std::move(body));
}

/// Whether the header accepts only JSON, in which truncation is detected.
bool accepts_only_json(std::string_view accept) {
  constexpr std::string_view kJson = "application/json";
  for (;;) {
    const std::size_t comma = accept.find(',');
    const std::string_view one = base::trim(accept.substr(0, comma));
    if (base::trim(one.substr(0, one.find(';'))) != kJson) return false;
    if (comma == std::string_view::npos) return true;
    accept.remove_prefix(comma + 1);
  }
}

/// The items delivered so far must be discarded, as the list is requested again.
class ListStoppedByLoss : public api::DecodeError {
 public:
  using DecodeError::DecodeError;
};

api::StreamOptions stream_options(const api::Resource& resource, const DecodeOptions& decode) {
  return {decode.projection, decode.max_object_bytes, resource.api_version(), resource.kind};
}

ContentType content_type(const Impl& client, const DecodeOptions& decode) {
  return decode.content_type.value_or(client.config().content_type);
}

std::function<void(const api::MalformedObject&)> reporter(DecodeOptions& decode,
                                                          const Request& request) {
  if (decode.on_malformed) return std::move(decode.on_malformed);
  return [what = describe(request)](const api::MalformedObject& malformed) {
    // Log nothing of its content: it may be a Secret.
    log::warn("{}: {}, an object of {} bytes, cannot be decoded: {}", what,
              malformed.key.empty() ? "(no name could be read)" : malformed.key, malformed.bytes,
              malformed.reason);
  };
}

/// Passes the pieces of a body to a decoder until it rejects one. Throws api::DecodeError if the body
/// is not a list.
Awaitable<void> decode_list(const Request& request, detail::HttpExchange& exchange,
                            api::ListDecoder& decoder) {
  std::string beginning;
  std::size_t size = 0;
  std::string piece;
  for (;;) {
    piece = co_await exchange.read(std::move(piece));
    if (size == 0) beginning = piece.substr(0, 201);
    size += piece.size();
    if (piece.empty() || !decoder.feed(piece)) break;
  }
  if (!decoder.finish() && !decoder.would_lose()) {
    throw api::DecodeError(fmt::format("{}: {}, within the first {} bytes; {}", describe(request),
                                       decoder.error(), size,
                                       detail::beginning_of_answer(beginning)));
  }
}

Awaitable<ListMeta> list_each(std::shared_ptr<Impl> client, api::Resource resource, Request request,
                              ResourceClient::OnItem on_item, DecodeOptions decode,
                              BoundCall call) {
  CallControl control(call, call.timeout_or(client->config().timeout), client->closing(),
                      co_await boost::asio::this_coro::executor, describe(request));
  const auto report = reporter(decode, request);
  bool handed_out = false;
  const char* const as = decode.metadata_only ? "PartialObjectMetadataList" : "";
  for (;;) {
    const auto [answer, encoding] = co_await client->open_objects(
        request, resource, content_type(*client, decode), as, control);
    ListMeta meta;
    const auto take = [&](api::Object item) {
      handed_out = true;
      on_item(std::move(item));
    };
    const auto leave_out = [&](const api::MalformedObject& malformed) {
      ++meta.malformed_items;
      if (!malformed.key.empty()) meta.malformed_keys.push_back(malformed.key);
      report(malformed);
    };
    api::StreamOptions options = stream_options(resource, decode);
    options.lossless = encoding.lossless;
    std::unique_ptr<api::ListDecoder> decoder;
    if (encoding.protobuf) {
      decoder = std::make_unique<api::ProtobufListDecoder>(std::move(options), take, leave_out);
    } else {
      decoder = std::make_unique<api::JsonListDecoder>(std::move(options), take, leave_out);
    }
    co_await decode_list(request, *answer.exchange, *decoder);
    if (decoder->would_lose()) {
      if (decoder->unknown_fields().count > 0) {
        client->encodings().give_up_protobuf(resource, decoder->error());
      } else {
        client->encodings().avoid_protobuf(resource, decoder->error());
      }
      if (!handed_out) continue;
      throw ListStoppedByLoss(fmt::format("{}: {}; to be asked for again, in JSON",
                                          describe(request), decoder->error()));
    }
    meta.resource_version = decoder->resource_version();
    meta.continue_token = decoder->continue_token();
    meta.remaining_item_count = decoder->remaining_item_count();
    meta.api_version = decoder->api_version();
    meta.kind = decoder->kind();
    const api::UnknownFields unknown = decoder->unknown_fields();
    meta.unknown_fields = unknown.count;
    client->encodings().note_loss(resource, unknown);
    co_return meta;
  }
}

Awaitable<List<>> list_all(std::shared_ptr<Impl> client, api::Resource resource, Request request,
                           BoundCall call) {
  for (;;) {
    List<> out;
    auto on_item = [&out](api::Object item) { out.items.push_back(std::move(item)); };
    try {
      static_cast<ListMeta&>(out) =
          co_await list_each(client, resource, request, on_item, DecodeOptions{}, call);
      co_return out;
    } catch (const ListStoppedByLoss&) {
      // Request it again in JSON, which loses nothing.
    }
  }
}

Awaitable<WatchStream> watch(std::shared_ptr<Impl> client, api::Resource resource, Request request,
                             DecodeOptions decode, BoundCall call) {
  const auto executor = co_await boost::asio::this_coro::executor;
  auto report = reporter(decode, request);
  const ContentType type = content_type(*client, decode);
  auto stream = std::make_shared<WatchStream::Impl>(client, resource, std::move(report), call,
                                                    executor, request);
  co_await stream->open(std::move(request), stream_options(resource, decode), type,
                        decode.metadata_only);
  co_return WatchStream(std::move(stream));
}

Awaitable<LogStream> logs(std::shared_ptr<Impl> client, Request request, std::size_t max_line_bytes,
                          BoundCall call) {
  const auto executor = co_await boost::asio::this_coro::executor;
  auto stream = std::make_shared<LogStream::Impl>(client, call, executor, request, max_line_bytes);
  co_await stream->open(std::move(request));
  co_return LogStream(std::move(stream));
}

std::string_view content_type_of(PatchType type) {
  static constexpr auto kNames = base::enum_names<PatchType>(
      {{PatchType::kJson, "application/json-patch+json"},
       {PatchType::kMerge, "application/merge-patch+json"},
       {PatchType::kStrategicMerge, "application/strategic-merge-patch+json"},
       {PatchType::kApply, "application/apply-patch+yaml"}});
  return kNames.name_of(type);
}

void require_name(std::string_view name) {
  if (name.empty()) throw InvalidArgument("the name of the resource may not be empty");
}

}  // namespace

ResourceClient::ResourceClient(std::shared_ptr<Client::Impl> client, api::Resource resource,
                               std::string ns, std::shared_ptr<const detail::Binding> binding)
    : client_(std::move(client)),
      resource_(std::move(resource)),
      ns_(std::move(ns)),
      binding_(std::move(binding)) {}

ResourceClient ResourceClient::with(const CallOptions& call) const {
  ResourceClient out(*this);
  out.binding_ = detail::bind(binding_, call);
  return out;
}

ResourceClient ResourceClient::with_write_defaults(const WriteDefaults& defaults) const {
  ResourceClient out(*this);
  out.binding_ = detail::bind(binding_, defaults);
  return out;
}

EventLoop& ResourceClient::loop() const { return client_->loop(); }

Awaitable<api::Object> ResourceClient::async_get(std::string_view name, GetOptions options,
                                                 CallOptions call) const {
  require_name(name);
  Request request = make_request("GET", "get", resource_, ns_, name);
  request.add_query("resourceVersion", options.resource_version);
  return on_strand(client_,
                   rest::get_object(client_->shared_from_this(), resource_, std::move(request),
                                    options.metadata_only, BoundCall{std::move(call), binding_}));
}

api::Object ResourceClient::get(std::string_view name, GetOptions options, CallOptions call) const {
  return client_->loop().run(async_get(name, std::move(options), std::move(call)));
}

Awaitable<List<>> ResourceClient::async_list(ListOptions options, CallOptions call) const {
  Request request = make_request("GET", "list", resource_, ns_, "");
  request.list = true;
  detail::add_list_options(request, options);
  return on_strand(client_, list_all(client_->shared_from_this(), resource_, std::move(request),
                                     BoundCall{std::move(call), binding_}));
}

List<> ResourceClient::list(ListOptions options, CallOptions call) const {
  return client_->loop().run(async_list(std::move(options), std::move(call)));
}

Awaitable<ListMeta> ResourceClient::async_list_each(OnItem on_item, ListOptions options,
                                                    DecodeOptions decode, CallOptions call) const {
  Request request = make_request("GET", "list", resource_, ns_, "");
  request.list = true;
  detail::add_list_options(request, options);
  return on_strand(client_, list_each(client_->shared_from_this(), resource_, std::move(request),
                                      std::move(on_item), std::move(decode),
                                      BoundCall{std::move(call), binding_}));
}

Awaitable<WatchStream> ResourceClient::async_watch(ListOptions options, DecodeOptions decode,
                                                   CallOptions call) const {
  Request request = make_request("GET", "watch", resource_, ns_, "");
  request.add_query("watch", "true");
  detail::add_list_options(request, options);
  request.streaming = true;
  request.watch = true;
  request.lasts = Clock::limited(options.timeout);
  return on_strand(client_, rest::watch(client_->shared_from_this(), resource_, std::move(request),
                                        std::move(decode), BoundCall{std::move(call), binding_}));
}

WatchStream ResourceClient::watch(ListOptions options, DecodeOptions decode,
                                  CallOptions call) const {
  return client_->loop().run(async_watch(std::move(options), std::move(decode), std::move(call)));
}

Awaitable<LogStream> ResourceClient::async_logs(std::string_view name, LogOptions options,
                                                CallOptions call) const {
  require_name(name);
  if (options.max_line_bytes == 0) throw InvalidArgument("a line of a log has at least one byte");
  Request request = make_request("GET", "get logs of", resource_, ns_, name, "log");
  request.accept = "text/plain, application/json, */*";
  request.streaming = true;
  request.add_query("container", std::move(options.container));
  if (options.follow) request.add_query("follow", "true");
  if (options.previous) request.add_query("previous", "true");
  if (options.timestamps) request.add_query("timestamps", "true");
  if (options.since.count() > 0)
    request.add_query("sinceSeconds", std::to_string(options.since.count()));
  if (options.tail_lines) request.add_query("tailLines", std::to_string(*options.tail_lines));
  if (options.limit_bytes) request.add_query("limitBytes", std::to_string(*options.limit_bytes));
  return on_strand(
      client_, rest::logs(client_->shared_from_this(), std::move(request), options.max_line_bytes,
                          BoundCall{std::move(call), binding_}));
}

LogStream ResourceClient::logs(std::string_view name, LogOptions options, CallOptions call) const {
  return client_->loop().run(async_logs(name, std::move(options), std::move(call)));
}

Awaitable<api::Object> ResourceClient::async_create(api::Object object, CreateOptions options,
                                                    CallOptions call) const {
  const std::string ns = detail::namespace_for(resource_, ns_, object);
  Request request = make_request("POST", "create", resource_, ns, "");
  carry(request, std::move(options), binding_, "application/json", object.to_json());
  return send(client_, std::move(request), BoundCall{std::move(call), binding_});
}

api::Object ResourceClient::create(const api::Object& object, CreateOptions options,
                                   CallOptions call) const {
  return client_->loop().run(async_create(object, std::move(options), std::move(call)));
}

Awaitable<api::Object> ResourceClient::async_update(api::Object object, UpdateOptions options,
                                                    std::string_view subresource,
                                                    CallOptions call) const {
  require_name(object.name());
  const std::string ns = detail::namespace_for(resource_, ns_, object);
  Request request = make_request("PUT", "update", resource_, ns, object.name(), subresource);
  carry(request, std::move(options), binding_, "application/json", object.to_json());
  return send(client_, std::move(request), BoundCall{std::move(call), binding_});
}

api::Object ResourceClient::update(const api::Object& object, UpdateOptions options,
                                   std::string_view subresource, CallOptions call) const {
  return client_->loop().run(
      async_update(object, std::move(options), subresource, std::move(call)));
}

Awaitable<api::Object> ResourceClient::async_patch(std::string_view name, PatchType type,
                                                   std::string body, PatchOptions options,
                                                   std::string_view subresource,
                                                   CallOptions call) const {
  require_name(name);
  Request request = make_request("PATCH", "patch", resource_, ns_, name, subresource);
  const bool force = options.force;
  carry(request, std::move(options), binding_, content_type_of(type), std::move(body));
  if (force) request.add_query("force", "true");
  return send(client_, std::move(request), BoundCall{std::move(call), binding_});
}

api::Object ResourceClient::patch(std::string_view name, PatchType type, std::string body,
                                  PatchOptions options, std::string_view subresource,
                                  CallOptions call) const {
  return client_->loop().run(
      async_patch(name, type, std::move(body), std::move(options), subresource, std::move(call)));
}

Awaitable<api::Object> ResourceClient::async_get_subresource(std::string_view name,
                                                             std::string_view subresource,
                                                             CallOptions call) const {
  require_name(name);
  Request request = make_request("GET", "get", resource_, ns_, name, subresource);
  return send(client_, std::move(request), BoundCall{std::move(call), binding_});
}

api::Object ResourceClient::get_subresource(std::string_view name, std::string_view subresource,
                                            CallOptions call) const {
  return client_->loop().run(async_get_subresource(name, subresource, std::move(call)));
}

Awaitable<api::Object> ResourceClient::async_create_subresource(std::string_view name,
                                                                std::string_view subresource,
                                                                api::Object body,
                                                                CreateOptions options,
                                                                CallOptions call) const {
  require_name(name);
  Request request = make_request("POST", "create", resource_, ns_, name, subresource);
  carry(request, std::move(options), binding_, "application/json", body.to_json());
  return send(client_, std::move(request), BoundCall{std::move(call), binding_});
}

api::Object ResourceClient::create_subresource(std::string_view name, std::string_view subresource,
                                               const api::Object& body, CreateOptions options,
                                               CallOptions call) const {
  return client_->loop().run(
      async_create_subresource(name, subresource, body, std::move(options), std::move(call)));
}

Awaitable<api::Object> ResourceClient::async_remove(std::string_view name, DeleteOptions options,
                                                    CallOptions call) const {
  require_name(name);
  Request request = make_request("DELETE", "delete", resource_, ns_, name);
  detail::add_defaults(options, binding_);
  request.content_type = "application/json";
  request.body = detail::delete_options_body(options);
  return send(client_, std::move(request), BoundCall{std::move(call), binding_});
}

api::Object ResourceClient::remove(std::string_view name, DeleteOptions options,
                                   CallOptions call) const {
  return client_->loop().run(async_remove(name, std::move(options), std::move(call)));
}

Awaitable<void> ResourceClient::async_remove_collection(DeleteOptions options, ListOptions list,
                                                        CallOptions call) const {
  Request request = make_request("DELETE", "delete", resource_, ns_, "");
  detail::add_list_options(request, list);
  detail::add_defaults(options, binding_);
  request.content_type = "application/json";
  request.body = detail::delete_options_body(options);
  return on_strand(client_, fetch_nothing(client_->shared_from_this(), std::move(request),
                                          BoundCall{std::move(call), binding_}));
}

void ResourceClient::remove_collection(DeleteOptions options, ListOptions list,
                                       CallOptions call) const {
  client_->loop().run(
      async_remove_collection(std::move(options), std::move(list), std::move(call)));
}

Awaitable<std::string> Client::async_get_raw(std::string path, CallOptions call,
                                             std::string accept) const {
  detail::check_raw_path(path);
  detail::check_header_value(accept);
  // Watches and other streams have only the call's own time limit.
  if (call.timeout.count() == 0 && detail::is_long_running(path)) call.timeout = kNoTimeout;
  Request request;
  request.verb = "get";
  request.resource = path;
  request.path = std::move(path);
  request.may_be_compressed = accepts_only_json(accept);
  request.accept = std::move(accept);
  return on_strand(impl_, fetch(impl_->shared_from_this(), std::move(request),
                                BoundCall{std::move(call), binding_}));
}

std::string Client::get_raw(std::string path, CallOptions call, std::string accept) const {
  return loop().run(async_get_raw(std::move(path), std::move(call), std::move(accept)));
}

}  // namespace lookout::rest
