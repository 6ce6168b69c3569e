#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <utility>

#include "lookout/api/error.h"
#include "lookout/api/protobuf.h"
#include "lookout/rest/client.h"
#include "rest/client_impl.h"
#include "rest/watch_stream_impl.h"

namespace lookout::rest {
namespace {

using detail::CallControl;
using detail::describe;
using detail::Request;
using Impl = Client::Impl;

Request make_request(std::string method, std::string verb, const api::Resource& resource,
                     std::string_view ns, std::string name, std::string_view subresource = {}) {
  if (resource.namespaced && ns.empty() && (!name.empty() || method == "POST")) {
    throw InvalidArgument(fmt::format("{} {}{}{}: it lives in a namespace, and none is given", verb,
                                      resource.qualified_name(), name.empty() ? "" : " ", name));
  }
  Request request;
  request.method = std::move(method);
  request.path = detail::resource_path(resource, ns, name, subresource);
  request.verb = std::move(verb);
  request.resource = resource.qualified_name();
  request.name = std::move(name);
  return request;
}

/// The coroutines below run on a strand of their own, whatever the caller runs on: waking them from
/// other threads relies on it.
template <class T>
Awaitable<T> on_strand(const std::shared_ptr<Impl>& client, Awaitable<T> task) {
  return boost::asio::co_spawn(boost::asio::make_strand(client->loop().context()), std::move(task),
                               boost::asio::use_awaitable);
}

Awaitable<api::Object> fetch_object(std::shared_ptr<Impl> client, Request request,
                                    CallOptions call) {
  CallControl control(call, client->config().timeout, client->closing(),
                      co_await boost::asio::this_coro::executor, describe(request));
  co_return co_await client->fetch_object(request, control);
}

Awaitable<api::Object> get_object(std::shared_ptr<Impl> client, api::Resource resource,
                                  Request request, CallOptions call) {
  CallControl control(call, client->config().timeout, client->closing(),
                      co_await boost::asio::this_coro::executor, describe(request));
  co_return co_await client->get_object(std::move(request), resource, control);
}

Awaitable<std::string> fetch(std::shared_ptr<Impl> client, Request request, CallOptions call) {
  CallControl control(call, client->config().timeout, client->closing(),
                      co_await boost::asio::this_coro::executor, describe(request));
  co_return co_await client->fetch(request, control);
}

Awaitable<void> fetch_nothing(std::shared_ptr<Impl> client, Request request, CallOptions call) {
  co_await fetch(std::move(client), std::move(request), std::move(call));
}

/// The items that a list has handed out are to be forgotten: it has to be asked for again.
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
    spdlog::warn("{}: left out an object of {} bytes that cannot be decoded: {}; it begins {}",
                 what, malformed.bytes, malformed.reason,
                 detail::quoted_beginning(malformed.excerpt));
  };
}

/// Hands the pieces of a body to a decoder, up to what it does not take. Throws api::DecodeError if
/// they are no list.
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
                              CallOptions call) {
  CallControl control(call, client->config().timeout, client->closing(),
                      co_await boost::asio::this_coro::executor, describe(request));
  const auto report = reporter(decode, request);
  bool handed_out = false;
  for (;;) {
    const auto [answer, encoding] = co_await client->open_objects(
        request, resource, content_type(*client, decode),
        decode.metadata_only ? "PartialObjectMetadataList" : "", control);
    ListMeta meta;
    const auto take = [&](api::Object item) {
      handed_out = true;
      on_item(std::move(item));
    };
    const auto leave_out = [&](const api::MalformedObject& malformed) {
      ++meta.malformed_items;
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
      client->encodings().give_up_protobuf(resource, decoder->error());
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
                           CallOptions call) {
  for (;;) {
    List<> out;
    auto on_item = [&out](api::Object item) { out.items.push_back(std::move(item)); };
    try {
      static_cast<ListMeta&>(out) =
          co_await list_each(client, resource, request, on_item, DecodeOptions{}, call);
      co_return out;
    } catch (const ListStoppedByLoss&) {
      // Once more: in JSON nothing can be lost.
    }
  }
}

Awaitable<WatchStream> watch(std::shared_ptr<Impl> client, api::Resource resource, Request request,
                             DecodeOptions decode, CallOptions call) {
  const auto executor = co_await boost::asio::this_coro::executor;
  auto report = reporter(decode, request);
  const ContentType type = content_type(*client, decode);
  auto stream = std::make_shared<WatchStream::Impl>(client, resource, std::move(report), call,
                                                    executor, request);
  co_await stream->open(std::move(request), stream_options(resource, decode), type,
                        decode.metadata_only);
  co_return WatchStream(std::move(stream));
}

std::string_view content_type_of(PatchType type) {
  switch (type) {
    case PatchType::kJson:
      return "application/json-patch+json";
    case PatchType::kMerge:
      return "application/merge-patch+json";
    case PatchType::kStrategicMerge:
      return "application/strategic-merge-patch+json";
    case PatchType::kApply:
      return "application/apply-patch+yaml";
  }
  return "";
}

void require_name(const std::string& name) {
  if (name.empty()) throw InvalidArgument("the name of the resource may not be empty");
}

}  // namespace

ResourceClient::ResourceClient(std::shared_ptr<Client::Impl> client, api::Resource resource,
                               std::string ns)
    : client_(std::move(client)), resource_(std::move(resource)), ns_(std::move(ns)) {}

Awaitable<api::Object> ResourceClient::async_get(std::string name, GetOptions options,
                                                 CallOptions call) const {
  require_name(name);
  Request request = make_request("GET", "get", resource_, ns_, std::move(name));
  request.add_query("resourceVersion", options.resource_version);
  return on_strand(client_, rest::get_object(client_->shared_from_this(), resource_,
                                             std::move(request), std::move(call)));
}

api::Object ResourceClient::get(std::string name, GetOptions options, CallOptions call) const {
  return client_->loop().run(async_get(std::move(name), std::move(options), std::move(call)));
}

Awaitable<List<>> ResourceClient::async_list(ListOptions options, CallOptions call) const {
  Request request = make_request("GET", "list", resource_, ns_, "");
  detail::add_list_options(request, options);
  return on_strand(client_, list_all(client_->shared_from_this(), resource_, std::move(request),
                                     std::move(call)));
}

List<> ResourceClient::list(ListOptions options, CallOptions call) const {
  return client_->loop().run(async_list(std::move(options), std::move(call)));
}

Awaitable<ListMeta> ResourceClient::async_list_each(OnItem on_item, ListOptions options,
                                                    DecodeOptions decode, CallOptions call) const {
  Request request = make_request("GET", "list", resource_, ns_, "");
  detail::add_list_options(request, options);
  return on_strand(client_, list_each(client_->shared_from_this(), resource_, std::move(request),
                                      std::move(on_item), std::move(decode), std::move(call)));
}

Awaitable<WatchStream> ResourceClient::async_watch(ListOptions options, DecodeOptions decode,
                                                   CallOptions call) const {
  Request request = make_request("GET", "watch", resource_, ns_, "");
  request.add_query("watch", "true");
  detail::add_list_options(request, options);
  request.streaming = true;
  return on_strand(client_, rest::watch(client_->shared_from_this(), resource_, std::move(request),
                                        std::move(decode), std::move(call)));
}

WatchStream ResourceClient::watch(ListOptions options, DecodeOptions decode,
                                  CallOptions call) const {
  return client_->loop().run(async_watch(std::move(options), std::move(decode), std::move(call)));
}

Awaitable<api::Object> ResourceClient::async_create(api::Object object, CreateOptions options,
                                                    CallOptions call) const {
  const std::string ns = ns_.empty() ? std::string(object.ns()) : ns_;
  Request request = make_request("POST", "create", resource_, ns, "");
  detail::add_write_options(request, options.dry_run, options.field_manager,
                            options.field_validation);
  request.content_type = "application/json";
  request.body = object.to_json();
  return on_strand(client_,
                   fetch_object(client_->shared_from_this(), std::move(request), std::move(call)));
}

api::Object ResourceClient::create(const api::Object& object, CreateOptions options,
                                   CallOptions call) const {
  return client_->loop().run(async_create(object, std::move(options), std::move(call)));
}

Awaitable<api::Object> ResourceClient::async_update(api::Object object, UpdateOptions options,
                                                    std::string subresource,
                                                    CallOptions call) const {
  std::string name(object.name());
  require_name(name);
  const std::string ns = ns_.empty() ? std::string(object.ns()) : ns_;
  Request request = make_request("PUT", "update", resource_, ns, std::move(name), subresource);
  detail::add_write_options(request, options.dry_run, options.field_manager,
                            options.field_validation);
  request.content_type = "application/json";
  request.body = object.to_json();
  return on_strand(client_,
                   fetch_object(client_->shared_from_this(), std::move(request), std::move(call)));
}

api::Object ResourceClient::update(const api::Object& object, UpdateOptions options,
                                   std::string subresource, CallOptions call) const {
  return client_->loop().run(
      async_update(object, std::move(options), std::move(subresource), std::move(call)));
}

Awaitable<api::Object> ResourceClient::async_patch(std::string name, PatchType type,
                                                   std::string body, PatchOptions options,
                                                   std::string subresource,
                                                   CallOptions call) const {
  require_name(name);
  Request request = make_request("PATCH", "patch", resource_, ns_, std::move(name), subresource);
  detail::add_write_options(request, options.dry_run, options.field_manager,
                            options.field_validation);
  if (options.force) request.add_query("force", "true");
  request.content_type = content_type_of(type);
  request.body = std::move(body);
  return on_strand(client_,
                   fetch_object(client_->shared_from_this(), std::move(request), std::move(call)));
}

api::Object ResourceClient::patch(std::string name, PatchType type, std::string body,
                                  PatchOptions options, std::string subresource,
                                  CallOptions call) const {
  return client_->loop().run(async_patch(std::move(name), type, std::move(body), std::move(options),
                                         std::move(subresource), std::move(call)));
}

Awaitable<api::Object> ResourceClient::async_remove(std::string name, DeleteOptions options,
                                                    CallOptions call) const {
  require_name(name);
  Request request = make_request("DELETE", "delete", resource_, ns_, std::move(name));
  request.content_type = "application/json";
  request.body = detail::delete_options_body(options);
  return on_strand(client_,
                   fetch_object(client_->shared_from_this(), std::move(request), std::move(call)));
}

api::Object ResourceClient::remove(std::string name, DeleteOptions options,
                                   CallOptions call) const {
  return client_->loop().run(async_remove(std::move(name), std::move(options), std::move(call)));
}

Awaitable<void> ResourceClient::async_remove_collection(DeleteOptions options, ListOptions list,
                                                        CallOptions call) const {
  Request request = make_request("DELETE", "delete", resource_, ns_, "");
  detail::add_list_options(request, list);
  request.content_type = "application/json";
  request.body = detail::delete_options_body(options);
  return on_strand(client_,
                   fetch_nothing(client_->shared_from_this(), std::move(request), std::move(call)));
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
  Request request;
  request.verb = "get";
  request.resource = path;
  request.path = std::move(path);
  request.accept = std::move(accept);
  return on_strand(impl_, fetch(impl_->shared_from_this(), std::move(request), std::move(call)));
}

std::string Client::get_raw(std::string path, CallOptions call, std::string accept) const {
  return loop().run(async_get_raw(std::move(path), std::move(call), std::move(accept)));
}

}  // namespace lookout::rest
