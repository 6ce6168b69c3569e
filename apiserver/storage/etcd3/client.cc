#include "apiserver/storage/etcd3/client.h"

#include <fmt/format.h>
#include <rapidjson/stringbuffer.h>
#include <rapidjson/writer.h>

#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/this_coro.hpp>
#include <exception>
#include <optional>
#include <utility>

#include "lookout/base/async_event.h"
#include "lookout/base/detail/log.h"
#include "lookout/base/file_reader.h"

namespace lookout::apiserver::storage::etcd3 {
namespace {

using rest::TransportError;
using rest::detail::HttpHead;
using rest::detail::HttpRequest;
using rest::detail::HttpServer;
using rest::detail::HttpTransport;
using std::chrono::steady_clock;

constexpr std::chrono::milliseconds kPause{100};
constexpr std::chrono::seconds kLogInterval{5};
constexpr std::size_t kQuoted = 200;

std::string read_pem(const std::string& path) {
  if (path.empty()) return {};
  auto file = read_small_file(path, FileKind::kOrPipe);
  if (!file) throw Error(fmt::format("cannot read {}: {}", path, file.error));
  return std::move(file.text);
}

std::string without_slash(std::string url) {
  while (url.ends_with('/')) url.pop_back();
  if (url.find("://") == std::string::npos) url.insert(0, "http://");
  if (url == "http://" || (!url.starts_with("http://") && !url.starts_with("https://")))
    throw Error(fmt::format("\"{}\" is not an etcd endpoint such as http://127.0.0.1:2379", url));
  return url;
}

/// Nothing was sent: it cannot have happened.
bool was_not_sent(const std::exception& e) {
  const auto* error = dynamic_cast<const TransportError*>(&e);
  return error != nullptr && (error->kind() == TransportError::Kind::kRefused ||
                              error->kind() == TransportError::Kind::kUnreachable);
}

std::string json_of(std::initializer_list<std::pair<const char*, std::string>> members) {
  rapidjson::StringBuffer buffer;
  rapidjson::Writer<rapidjson::StringBuffer> writer(buffer);
  writer.StartObject();
  for (const auto& [name, value] : members) {
    writer.Key(name);
    writer.String(value.data(), static_cast<rapidjson::SizeType>(value.size()));
  }
  writer.EndObject();
  return {buffer.GetString(), buffer.GetSize()};
}

api::DecodeError no_answer(const std::string& endpoint, const char* path, const std::string& why,
                           const std::string& beginning) {
  // A body that looks like etcd's answer may hold secrets.
  const bool is_json = beginning.starts_with('{');
  return api::DecodeError(fmt::format("{}{} did not answer as an etcd does: {}{}", endpoint, path,
                                      why, is_json ? "" : "; it began with \"" + beginning + "\""));
}

/// The reason of a failed answer.
EtcdError error_of(const HttpHead& head, const Message& message) {
  if (message.failed) return message.failure();
  const int code = head.status >= 500   ? EtcdError::kUnavailable
                   : head.status == 401 ? EtcdError::kUnauthenticated
                   : head.status == 403 ? EtcdError::kPermissionDenied
                                        : EtcdError::kUnknown;
  return {code, fmt::format("etcd answered with HTTP status {}", head.status)};
}

}  // namespace

bool is_unavailable(const std::exception& e) {
  const auto* error = dynamic_cast<const EtcdError*>(&e);
  if (error != nullptr) return error->is_transient();
  return rest::is_transient(e);
}

Client::Client(const EtcdOptions& options, EventLoop& loop)
    : options_(options), context_(loop.context()) {
  if (options_.endpoints.empty()) throw Error("no endpoint of an etcd was given");
  if (options_.cert_file.empty() != options_.key_file.empty())
    throw Error("a client certificate for etcd needs both, the certificate and its key");
  if (!options_.cert_file.empty()) {
    // It keeps up with the files. What cannot be used is told now.
    rest::Config files;
    files.server = "https://etcd";
    files.client_cert_file = options_.cert_file;
    files.client_key_file = options_.key_file;
    certificate_ = std::make_unique<rest::Credentials>(files);
    certificate_->current();
  }
  for (const std::string& endpoint : options_.endpoints) {
    HttpServer server;
    server.url = without_slash(endpoint);
    server.ca = read_pem(options_.ca_file);
    server.compression = false;
    server.user_agent = "lookout";
    server.connect_timeout = std::chrono::duration_cast<std::chrono::seconds>(
        std::max<std::chrono::milliseconds>(options_.dial_timeout, std::chrono::seconds(1)));
    transports_.push_back(HttpTransport::create(context_, std::move(server)));
  }
}

Client::~Client() = default;

void Client::shutdown() {
  for (const auto& transport : transports_) transport->shutdown();
}

void Client::spawn(boost::asio::any_io_executor executor, Awaitable<void> task) {
  {
    const std::lock_guard lock(mutex_);
    ++tasks_;
  }
  // The caller waits for the tasks and keeps the client alive until then.
  boost::asio::co_spawn(executor, std::move(task), [this](const std::exception_ptr& failure) {
    try {
      if (failure) std::rethrow_exception(failure);
    } catch (const std::exception& e) {
      log::error("etcd: a task failed: {}", e.what());
    }
    const std::lock_guard lock(mutex_);
    if (--tasks_ == 0) no_tasks_.notify_all();
  });
}

void Client::wait_for_tasks() {
  std::unique_lock lock(mutex_);
  no_tasks_.wait(lock, [this] { return tasks_ == 0; });
}

void Client::leave(std::size_t endpoint, const std::string& why) {
  const std::size_t next = (endpoint + 1) % transports_.size();
  const std::string& left = transports_[endpoint]->server().url;
  if (!current_.compare_exchange_strong(endpoint, next)) return;
  // With one endpoint every request gets here that fails: a line now and then will do.
  const std::lock_guard lock(mutex_);
  const auto now = steady_clock::now();
  if (next == endpoint && now < next_log_) return;
  next_log_ = now + kLogInterval;
  log::info("etcd: {} is unavailable, switching to {}: {}", left, transports_[next]->server().url,
            why);
}

Lineage Client::lineage() const {
  const std::lock_guard lock(mutex_);
  return {lineage_.load(std::memory_order_relaxed), lineage_ends_.get_token()};
}

Seen Client::seen() const {
  const std::lock_guard lock(mutex_);
  return {lineage_.load(std::memory_order_relaxed), newest_};
}

void Client::observe(std::uint64_t cluster_id, Revision revision, const Seen& before) {
  std::stop_source ended(std::nostopstate);
  std::string why;
  {
    const std::lock_guard lock(mutex_);
    // An answer to a request from before the change says nothing about the new history.
    if (before.lineage != lineage_.load(std::memory_order_relaxed)) return;
    if (cluster_id != 0 && cluster_id_ != 0 && cluster_id != cluster_id_) {
      why = fmt::format("it is the cluster {:x} and was {:x}", cluster_id, cluster_id_);
    } else if (revision != 0 && revision < before.revision) {
      why = fmt::format("it is at revision {} and was at {}", revision, before.revision);
    }
    if (cluster_id != 0) cluster_id_ = cluster_id;
    if (why.empty()) {
      newest_ = std::max(newest_, revision);
      return;
    }
    newest_ = revision;
    lineage_.fetch_add(1, std::memory_order_release);
    ended = std::exchange(lineage_ends_, std::stop_source());
  }
  log::warn("etcd has another history, reading everything again: {}", why);
  ended.request_stop();
}

HttpRequest Client::prepare(const char* path, std::string body, const std::string& token) {
  HttpRequest request;
  request.method = "POST";
  request.target = path;
  request.headers = {"Content-Type: application/json"};
  if (!token.empty()) request.headers.push_back("Authorization: " + token);
  request.body = std::move(body);
  if (certificate_ != nullptr) {
    const auto now = certificate_->current();
    request.certificate = {now->client_certificate, now->client_key};
  }
  return request;
}

Awaitable<std::string> Client::token(std::size_t endpoint, std::string refused) {
  if (options_.username.empty()) co_return std::string();
  {
    const std::lock_guard lock(mutex_);
    if (!token_.empty() && token_ != refused) co_return token_;
  }
  Call call;
  call.path = "/v3/auth/authenticate";
  call.body = json_of({{"name", options_.username}, {"password", options_.password}});
  std::string none;
  const Answer answer = co_await attempt(endpoint, call, std::move(none), options_.request_timeout);
  const std::lock_guard lock(mutex_);
  token_ = answer.message.token;
  co_return token_;
}

void Client::forget_token(const std::string& token) {
  const std::lock_guard lock(mutex_);
  if (token_ == token) token_.clear();
}

Awaitable<Client::Answer> Client::attempt(std::size_t endpoint, const Call& call, std::string token,
                                          std::chrono::milliseconds timeout) {
  const auto& transport = transports_[endpoint];
  HttpRequest request = prepare(call.path, call.body, token);
  request.timeout = timeout;
  const auto executor = co_await boost::asio::this_coro::executor;
  const auto exchange = transport->start(std::move(request), executor);
  const HttpHead head = co_await exchange->head();
  std::optional<Message> message;
  MessageReader::Callbacks callbacks;
  const bool good = head.status == 200;
  std::vector<KeyValue> kvs;
  callbacks.key_value = [&](KeyValue kv) { kvs.push_back(std::move(kv)); };
  callbacks.message = [&](Message m) {
    // Streams of one answer (a lease kept alive) wrap it; the first is the one.
    if (!message) message = std::move(m);
  };
  MessageReader reader(std::move(callbacks));
  std::string beginning;
  std::string piece;
  for (;;) {
    piece = co_await exchange->read(std::move(piece));
    if (piece.empty()) break;
    if (beginning.size() < kQuoted) beginning.append(piece, 0, kQuoted - beginning.size());
    if (!reader.feed(piece)) {
      if (!good) break;
      throw no_answer(transport->server().url, call.path, reader.error(), beginning);
    }
  }
  if (!good || (message && message->failed)) throw error_of(head, message.value_or(Message{}));
  if (!message || !reader.complete())
    throw no_answer(transport->server().url, call.path, "the answer is not whole", beginning);
  co_return Answer{std::move(*message), std::move(kvs)};
}

/// Between a request on the loop and who waits for it on another executor.
struct Client::Slot {
  explicit Slot(boost::asio::any_io_executor executor) : bell(std::move(executor)) {}

  void put(std::optional<Answer> got, std::exception_ptr why) {
    const std::lock_guard lock(mutex);
    answer = std::move(got);
    failure = std::move(why);
    done = true;
    if (bell) bell->ring();
  }
  bool is_done() {
    const std::lock_guard lock(mutex);
    return done;
  }
  void leave() {
    const std::lock_guard lock(mutex);
    bell.reset();
  }

  std::mutex mutex;
  std::optional<AsyncEvent> bell;  // guarded by mutex, as are those below
  std::optional<Answer> answer;
  std::exception_ptr failure;
  bool done = false;
};

Awaitable<Client::Answer> Client::call(Call call) {
  const auto executor = co_await boost::asio::this_coro::executor;
  AsyncEvent bell(executor);
  const auto slot = std::make_shared<Slot>(executor);
  slot->bell = bell;
  // Whatever becomes of this coroutine, nobody rings it any more when it has gone.
  struct Leave {
    Slot& slot;
    ~Leave() { slot.leave(); }
  };
  const Leave leave{*slot};
  spawn(boost::asio::make_strand(context_), run(std::move(call), slot));
  while (!slot->is_done()) co_await bell.wait();
  if (slot->failure) std::rethrow_exception(slot->failure);
  co_return std::move(*slot->answer);
}

Awaitable<void> Client::run(Call call, std::shared_ptr<Slot> slot) {
  std::optional<Answer> answer;
  std::exception_ptr failure;
  try {
    answer = co_await carry_out(call);
  } catch (...) {
    failure = std::current_exception();
  }
  slot->put(std::move(answer), std::move(failure));
}

Awaitable<Client::Answer> Client::carry_out(const Call& call) {
  const auto deadline =
      steady_clock::now() + (call.timeout.count() != 0 ? call.timeout : options_.request_timeout);
  const bool reads = call.kind == Kind::kRead;
  std::string refused;
  bool renewed = false;
  for (std::size_t tries = 1;; ++tries) {
    const std::size_t at = call.only.value_or(endpoint());
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(deadline - steady_clock::now());
    std::string shown;
    std::exception_ptr failure;
    bool again = false;
    try {
      std::string no_longer = refused;
      shown = co_await token(at, std::move(no_longer));
      std::string copy = shown;
      const Seen before = seen();
      Answer answer =
          co_await attempt(at, call, std::move(copy), std::max(left, std::chrono::milliseconds(1)));
      observe(answer.message.cluster_id, call.linearizable ? answer.message.revision : 0, before);
      co_return answer;
    } catch (const EtcdError& e) {
      failure = std::current_exception();
      if (e.is_bad_token() && !options_.username.empty() && !renewed) {
        forget_token(shown);
        refused = shown;
        renewed = true;
        again = true;
      } else if (e.is_transient()) {
        leave(at, e.what());
        again = reads && !call.only;
      }
    } catch (const TransportError& e) {
      failure = std::current_exception();
      if (rest::is_transient(e)) {
        leave(at, e.what());
        again = (reads || was_not_sent(e)) && !call.only;
      }
    }
    // With every member tried, there is no hurry.
    const bool pause = tries % transports_.size() == 0 && !(renewed && tries == 1);
    const auto now = steady_clock::now();
    if (!again || now + (pause ? kPause : kPause * 0) >= deadline) std::rethrow_exception(failure);
    if (pause) {
      AsyncEvent bell(co_await boost::asio::this_coro::executor);
      co_await bell.wait(now + kPause);
    }
  }
}

Awaitable<RangeResponse> Client::range(RangeRequest request,
                                       std::optional<std::chrono::milliseconds> timeout) {
  RangeResponse out;
  Call range;
  range.linearizable = true;
  range.timeout = timeout.value_or(std::chrono::milliseconds(0));
  range.path = "/v3/kv/range";
  range.body = to_json(request);
  Answer answer = co_await call(std::move(range));
  if (answer.message.revision == 0) throw api::DecodeError("etcd: a range without a revision");
  out.kvs = std::move(answer.kvs);
  out.revision = answer.message.revision;
  out.count = static_cast<std::size_t>(std::max<std::int64_t>(answer.message.count, 0));
  out.more = answer.message.more;
  co_return out;
}

Awaitable<bool> Client::answers(std::size_t endpoint_index) {
  RangeRequest request;
  request.key = "/";
  request.count_only = true;
  Call range;
  range.linearizable = true;
  range.only = endpoint_index;
  range.path = "/v3/kv/range";
  range.body = to_json(request);
  try {
    co_await call(std::move(range));
  } catch (const rest::TransportError&) {
    co_return false;
  } catch (const EtcdError& e) {
    // A member that refuses is alive.
    co_return !e.is_transient();
  } catch (const api::DecodeError&) {
    co_return false;
  }
  co_return true;
}

Awaitable<TxnResponse> Client::txn(std::string request) {
  TxnResponse out;
  Call txn;
  txn.linearizable = true;
  txn.kind = Kind::kWrite;
  txn.path = "/v3/kv/txn";
  txn.body = std::move(request);
  Answer answer = co_await call(std::move(txn));
  if (answer.message.revision == 0)
    throw api::DecodeError("etcd: a transaction without a revision");
  out.kvs = std::move(answer.kvs);
  out.succeeded = answer.message.succeeded;
  out.revision = answer.message.revision;
  co_return out;
}

Awaitable<Revision> Client::put(std::string key, std::string value, std::int64_t lease) {
  Call put;
  put.linearizable = true;
  put.kind = Kind::kWrite;
  put.path = "/v3/kv/put";
  put.body = put_request(key, value, lease);
  const Answer answer = co_await call(std::move(put));
  co_return answer.message.revision;
}

Awaitable<Revision> Client::remove(std::string key, std::string range_end) {
  Call remove;
  remove.linearizable = true;
  remove.kind = Kind::kWrite;
  remove.path = "/v3/kv/deleterange";
  remove.body = delete_request(key, range_end);
  const Answer answer = co_await call(std::move(remove));
  co_return answer.message.revision;
}

Awaitable<void> Client::compact(Revision revision) {
  Call compact;
  compact.kind = Kind::kWrite;
  compact.path = "/v3/kv/compaction";
  compact.body = json_of({{"revision", std::to_string(revision)}});
  co_await call(std::move(compact));
}

Awaitable<Lease> Client::grant_lease(std::chrono::seconds ttl) {
  Call grant;
  grant.kind = Kind::kWrite;
  grant.path = "/v3/lease/grant";
  grant.body = json_of({{"TTL", std::to_string(ttl.count())}});
  const Answer answer = co_await call(std::move(grant));
  if (answer.message.id == 0) throw api::DecodeError("etcd: a lease without an ID");
  co_return Lease{answer.message.id, std::chrono::seconds(answer.message.ttl)};
}

Awaitable<std::chrono::seconds> Client::keep_alive(std::int64_t lease) {
  Call renew;
  renew.path = "/v3/lease/keepalive";
  renew.body = json_of({{"ID", std::to_string(lease)}});
  const Answer answer = co_await call(std::move(renew));
  co_return std::chrono::seconds(answer.message.ttl);
}

Awaitable<void> Client::revoke_lease(std::int64_t lease) {
  Call revoke;
  revoke.kind = Kind::kWrite;
  revoke.path = "/v3/lease/revoke";
  revoke.body = json_of({{"ID", std::to_string(lease)}});
  co_await call(std::move(revoke));
}

Awaitable<Message> Client::status() {
  Call status;
  status.path = "/v3/maintenance/status";
  status.body = "{}";
  Answer answer = co_await call(std::move(status));
  co_return std::move(answer.message);
}

Awaitable<std::vector<std::string>> Client::member_urls() {
  Call list;
  list.path = "/v3/cluster/member/list";
  list.body = "{}";
  Answer answer = co_await call(std::move(list));
  co_return std::move(answer.message.client_urls);
}

// --- watches

WatchConnection::WatchConnection(std::shared_ptr<Client> client, std::size_t endpoint_index)
    : client_(std::move(client)),
      endpoint_index_(endpoint_index),
      endpoint_(client_->transports_[endpoint_index]->server().url),
      reader_({.key_value = {},
               .event = [this](KeyEvent event) { piece_.emplace_back(std::move(event)); },
               .message = [this](Message m) { piece_.emplace_back(std::move(m)); }}),
      seen_(client_->seen()) {}

Awaitable<std::unique_ptr<WatchConnection>> WatchConnection::open(std::shared_ptr<Client> client,
                                                                  WatchRequest request,
                                                                  std::stop_token stop) {
  const std::size_t at = client->endpoint();
  std::unique_ptr<WatchConnection> out(new WatchConnection(client, at));
  std::string refused;
  for (bool renewed = false;; renewed = true) {
    std::string no_longer = refused;
    std::string shown;
    try {
      shown = co_await client->token(at, std::move(no_longer));
      out->token_ = shown;
      HttpRequest http = client->prepare("/v3/watch", to_json(request), shown);
      // A member that has lost its leader ends the watch (clientv3.WithRequireLeader).
      http.headers.push_back("Grpc-Metadata-hasleader: true");
      http.streaming = true;
      const auto executor = co_await boost::asio::this_coro::executor;
      out->exchange_ = client->transports_[at]->start(std::move(http), executor);
      out->cancel_ = std::make_unique<std::stop_callback<std::function<void()>>>(
          stop, [exchange = out->exchange_] { exchange->cancel(); });
      const HttpHead head = co_await out->exchange_->head();
      if (head.status == 200) co_return out;
      std::string text;
      for (;;) {
        std::string piece = co_await out->exchange_->read();
        if (piece.empty() || !out->reader_.feed(piece)) break;
      }
      Message answer;
      if (!out->piece_.empty()) answer = std::get<Message>(out->piece_.back());
      throw error_of(head, answer);
    } catch (const EtcdError& e) {
      if (is_unavailable(e)) client->leave(at, e.what());
      if (!e.is_bad_token() || renewed || client->options_.username.empty()) throw;
      client->forget_token(shown);
      refused = shown;
      out.reset(new WatchConnection(client, at));
    } catch (const TransportError& e) {
      if (rest::is_transient(e)) client->leave(at, e.what());
      throw;
    }
  }
}

bool WatchConnection::renew_token(const EtcdError& refusal) {
  if (token_.empty()) return false;
  // Up to 3.4.21 and 3.5.7 etcd says of a bad token, too, that something is not permitted.
  if (!refusal.is_bad_token() && !refusal.is_permission_denied()) return false;
  client_->forget_token(token_);
  return true;
}

Awaitable<bool> WatchConnection::read(Piece& piece) {
  piece.clear();
  if (!reader_.error().empty())
    throw no_answer(endpoint_, "/v3/watch", reader_.error(), buffer_.substr(0, kQuoted));
  try {
    buffer_ = co_await exchange_->read(std::move(buffer_));
  } catch (const TransportError& e) {
    if (rest::is_transient(e)) client_->leave(endpoint_index_, e.what());
    throw;
  }
  if (buffer_.empty()) {
    client_->leave(endpoint_index_, "the watch ended");
    co_return false;
  }
  // Items before an invalid one are valid; the error is reported on the next call.
  reader_.feed(buffer_);
  for (const auto& item : piece_) {
    // How far it has come is that member's own matter.
    const auto* message = std::get_if<Message>(&item);
    if (message != nullptr && message->created) client_->observe(message->cluster_id, 0, seen_);
  }
  std::swap(piece, piece_);
  co_return true;
}

}  // namespace lookout::apiserver::storage::etcd3
