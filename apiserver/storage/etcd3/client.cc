#include "apiserver/storage/etcd3/client.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/this_coro.hpp>
#include <charconv>
#include <exception>
#include <optional>
#include <utility>

#include "lookout/base/async_event.h"
#include "lookout/base/detail/log.h"
#include "lookout/rest/detail/ca_file.h"

namespace lookout::apiserver::storage::etcd3 {
namespace {

using rest::TransportError;
using std::chrono::steady_clock;

constexpr std::chrono::milliseconds kPause{100};
// How often a request looks for the token that another one has requested.
constexpr std::chrono::milliseconds kTokenPoll{5};
// How long a member without RangeStream is not tried again; it may have been upgraded by then.
constexpr std::chrono::minutes kStreamsAgain{10};

/// The client certificate, which follows its files when they change; null if there is none. Throws if
/// the files cannot be used.
std::unique_ptr<rest::Credentials> certificate_of(const EtcdOptions& options) {
  if (options.cert_file.empty() != options.key_file.empty())
    throw Error("a client certificate for etcd needs both the certificate and its key");
  if (options.cert_file.empty()) return nullptr;
  rest::Config files;
  files.server = "https://etcd";
  files.client_cert_file = options.cert_file;
  files.client_key_file = options.key_file;
  auto out = std::make_unique<rest::Credentials>(files);
  out->current();
  return out;
}

/// The member has not started the request, so it was not executed.
bool was_not_begun(const TransportError& e) {
  return e.kind() == TransportError::Kind::kRefused ||
         e.kind() == TransportError::Kind::kUnreachable || e.kind() == TransportError::Kind::kTls;
}

/// The member is permanently unusable: a certificate is rejected, or the protocols differ.
bool is_unusable(const std::exception& e) {
  const auto* error = dynamic_cast<const TransportError*>(&e);
  return error != nullptr && (error->kind() == TransportError::Kind::kTls ||
                              error->kind() == TransportError::Kind::kProtocol);
}

std::string path_of(const char* method) { return fmt::format("/etcdserverpb.{}", method); }

std::string reason_of(const grpc::Status& status) {
  return status.message.empty() ? "etcd gives no reason" : status.message;
}

api::DecodeError no_answer(const std::string& endpoint, const char* method,
                           const std::string& why) {
  return api::DecodeError(
      fmt::format("{}{} did not answer as an etcd does: {}", endpoint, path_of(method), why));
}

/// Throws the reader's error.
[[noreturn]] void throw_unreadable(const MessageReader& reader, const std::string& endpoint,
                                   const char* method) {
  if (reader.is_too_large()) {
    throw EtcdError(
        EtcdError::kResourceExhausted,
        fmt::format("{}{}: {} (max_receive_bytes)", endpoint, path_of(method), reader.error()));
  }
  throw no_answer(endpoint, method, reader.error());
}

constexpr const char* kWatch = "Watch/Watch";

}  // namespace

bool is_unavailable(const std::exception& e) {
  const auto* error = dynamic_cast<const EtcdError*>(&e);
  if (error != nullptr) return error->is_transient();
  return rest::is_transient(e) || is_unusable(e);
}

bool has_sound_progress(std::string_view version) {
  std::array<unsigned, 3> parts{};
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const auto read = std::from_chars(version.data(), version.data() + version.size(), parts[i]);
    if (read.ec != std::errc()) return false;
    version.remove_prefix(static_cast<std::size_t>(read.ptr - version.data()));
    if (i + 1 < parts.size() && !version.starts_with('.')) return false;
    if (i + 1 < parts.size()) version.remove_prefix(1);
  }
  constexpr std::array<unsigned, 3> kIn34 = {3, 4, 31};
  constexpr std::array<unsigned, 3> kIn35 = {3, 5, 13};
  constexpr std::array<unsigned, 3> k35 = {3, 5, 0};
  return parts >= kIn35 || (parts >= kIn34 && parts < k35);
}

Client::Client(const EtcdOptions& options, EventLoop& loop)
    : options_(options),
      context_(loop.context()),
      certificate_(certificate_of(options_)),
      ca_(rest::detail::follow_ca_file(options_.ca_file)),
      members_([this](std::string url) { return connect(std::move(url)); }, options_.endpoints) {}

Client::~Client() = default;

Member Client::connect(std::string url) {
  grpc::Server server;
  server.url = std::move(url);
  server.ca = ca_;
  server.connect_timeout = options_.dial_timeout;
  if (options_.network != nullptr) {
    auto carrier = options_.network->create(context_, server);
    return std::make_shared<grpc::Channel>(std::move(carrier), std::move(server));
  }
  return std::make_shared<grpc::Channel>(context_, std::move(server));
}

void Client::shutdown() {
  closing_.request_stop();
  members_.shutdown();
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

Lineage Client::lineage() const {
  const std::lock_guard lock(mutex_);
  return {lineage_.load(std::memory_order_relaxed), lineage_ends_.get_token()};
}

bool Client::may_stream(const Member& member) const {
  const std::lock_guard lock(mutex_);
  const auto found = no_streams_.find(member->url());
  return found == no_streams_.end() || steady_clock::now() >= found->second;
}

void Client::remember_no_streams(const Member& member) {
  const std::lock_guard lock(mutex_);
  no_streams_[member->url()] = steady_clock::now() + kStreamsAgain;
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
    // A response to a request from before the change does not belong to the new history.
    if (before.lineage != lineage_.load(std::memory_order_relaxed)) return;
    if (cluster_id != 0 && cluster_id_ != 0 && cluster_id != cluster_id_) {
      why = fmt::format("cluster ID {:x}, previously {:x}", cluster_id, cluster_id_);
    } else if (cluster_id != 0 && revision != 0 && revision < before.revision) {
      // kine has no cluster ID, and its responses may be older than previous ones.
      why = fmt::format("revision {}, previously {}", revision, before.revision);
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
  log::warn("etcd has a different history, relisting: {}", why);
  ended.request_stop();
}

grpc::CallRequest Client::prepare(const char* method, std::string message,
                                  const std::string& token) {
  if (message.size() > options_.max_send_bytes) {
    throw EtcdError(EtcdError::kResourceExhausted,
                    fmt::format("the request is too large: {} bytes, and at most {} are sent to "
                                "etcd (max_send_bytes)",
                                message.size(), options_.max_send_bytes));
  }
  grpc::CallRequest out;
  out.path = path_of(method);
  out.message = std::move(message);
  if (!token.empty()) out.metadata.emplace_back("token", token);
  if (certificate_ != nullptr) out.certificate = certificate_->current();
  return out;
}

// Like clientv3, does not authenticate without a password.
bool Client::has_user() const { return !options_.username.empty() && !options_.password.empty(); }

Awaitable<std::string> Client::token(Member member, std::optional<std::string> refused,
                                     steady_clock::time_point deadline) {
  if (!has_user()) co_return std::string();
  AsyncEvent bell(co_await boost::asio::this_coro::executor);
  std::shared_ptr<Authentication> shared;
  for (;;) {
    {
      const std::lock_guard lock(mutex_);
      if (token_ && token_ != refused) co_return *token_;
      if (shared != nullptr && shared->failure) std::rethrow_exception(shared->failure);
      if (shared == nullptr || shared->ended) {
        const auto [running, is_first] = authentications_.try_emplace(member->url());
        if (is_first) running->second = std::make_shared<Authentication>();
        shared = running->second;
        if (is_first) break;
      }
    }
    const auto now = steady_clock::now();
    if (now >= deadline)
      throw TransportError(TransportError::Kind::kTimeout, member->url() + ": no token in time");
    co_await bell.wait(std::min(deadline, now + kTokenPoll));
  }
  std::string fresh = co_await authenticate(std::move(member), std::move(shared), deadline);
  co_return fresh;
}

Awaitable<std::string> Client::authenticate(Member member, std::shared_ptr<Authentication> shared,
                                            steady_clock::time_point deadline) {
  // Also if the caller is destroyed: then a waiting one takes over.
  struct End {
    ~End() {
      const std::lock_guard lock(client.mutex_);
      shared.ended = true;
      const auto at = client.authentications_.find(url);
      if (at != client.authentications_.end() && at->second.get() == &shared)
        client.authentications_.erase(at);
    }
    Client& client;
    Authentication& shared;
    const std::string url;
  };
  const End end{*this, *shared, member->url()};
  Request request;
  request.method = "Auth/Authenticate";
  request.answer = AnswerKind::kAuthenticate;
  request.message = authenticate_request(options_.username, options_.password);
  std::string none;
  std::string fresh;
  std::exception_ptr failure;
  try {
    const Answer answer = co_await attempt(std::move(member), request, std::move(none), deadline);
    fresh = answer.message.token;
  } catch (const EtcdError& e) {
    // Requests need no token until one is rejected.
    if (!e.is_auth_not_enabled()) failure = std::current_exception();
  } catch (...) {
    failure = std::current_exception();
  }
  const std::lock_guard lock(mutex_);
  shared->failure = failure;
  if (failure) std::rethrow_exception(failure);
  token_ = fresh;
  co_return fresh;
}

/// With another token or, for a user with a certificate, with the new users and roles.
bool Client::is_settled_by_a_retry(const EtcdError& e) const {
  return e.is_old_auth_revision() || (e.is_bad_token() && has_user());
}

void Client::forget_token(const std::string& token) {
  const std::lock_guard lock(mutex_);
  if (token_ == token) token_.reset();
}

Awaitable<Client::Answer> Client::attempt(Member member, const Request& request, std::string token,
                                          steady_clock::time_point deadline) {
  grpc::CallRequest asked = prepare(request.method, request.message, token);
  asked.deadline = deadline;
  const auto executor = co_await boost::asio::this_coro::executor;
  const auto call = member->start(std::move(asked), executor);
  std::optional<Message> message;
  MessageReader::Callbacks callbacks;
  std::vector<KeyValue> kvs;
  callbacks.key_value = [&](KeyValue kv) { kvs.push_back(std::move(kv)); };
  std::size_t messages = 0;
  callbacks.message = [&](Message m) {
    if (messages++ == 0) message = std::move(m);
  };
  MessageReader reader(request.answer, std::move(callbacks), MessageReader::kMaxValueBytes,
                       options_.max_receive_bytes);
  std::string piece;
  for (;;) {
    piece = co_await call->read(std::move(piece));
    if (piece.empty()) break;
    if (!reader.feed(piece)) throw_unreadable(reader, member->url(), request.method);
  }
  const grpc::Status status = call->status();
  if (status.code != 0) throw EtcdError(status.code, reason_of(status));
  if (messages != 1 || !reader.complete())
    throw no_answer(member->url(), request.method, "the response is not a single complete message");
  co_return Answer{std::move(*message), std::move(kvs)};
}

Awaitable<Client::Answer> Client::call(Request request) {
  const auto timeout = request.timeout.count() != 0 ? request.timeout : options_.request_timeout;
  const auto deadline = steady_clock::now() + timeout;
  const bool repeatable = request.kind == Kind::kRepeatable;
  std::optional<std::string> refused;
  int rejections = 0;        // of tokens, and because users or roles have changed
  std::string earlier;       // the error of the previous attempt
  std::size_t unusable = 0;  // the number of consecutive unusable members
  for (std::size_t tries = 1;; ++tries) {
    const Member member = request.only != nullptr ? request.only : members_.current();
    std::string shown;
    std::exception_ptr failure;
    std::string why;
    bool sent = false;
    bool again = false;
    try {
      std::optional<std::string> no_longer = refused;
      shown = co_await token(member, std::move(no_longer), deadline);
      sent = true;
      std::string copy = shown;
      const Seen before = seen();
      Answer answer = co_await attempt(member, request, std::move(copy), deadline);
      observe(answer.message.cluster_id, request.linearizable ? answer.message.revision : 0,
              before);
      co_return answer;
    } catch (const EtcdError& e) {
      failure = std::current_exception();
      why = e.what();
      unusable = e.is_learner() ? unusable + 1 : 0;
      if (is_settled_by_a_retry(e) && rejections < kTokenTries) {
        forget_token(shown);
        refused = shown;
        ++rejections;
        again = true;
      } else if (e.is_transient()) {
        members_.leave(member, e.what());
        again = (repeatable || !sent || e.is_learner()) && request.only == nullptr &&
                unusable < members_.count();
      }
    } catch (const TransportError& e) {
      failure = std::current_exception();
      why = e.what();
      // The timeout may end any attempt. Report the error of the previous one.
      if (!earlier.empty() && steady_clock::now() >= deadline)
        failure = std::make_exception_ptr(
            TransportError(e.kind(), why + "; previous attempt: " + earlier));
      unusable = is_unusable(e) ? unusable + 1 : 0;
      if (is_unavailable(e)) {
        members_.leave(member, e.what());
        // If no member is usable, a retry does not help.
        again = (repeatable || !sent || was_not_begun(e)) && request.only == nullptr &&
                unusable < members_.count();
      }
    }
    // After trying every member, wait.
    const bool pause = tries % members_.count() == 0 && !(rejections == 1 && tries == 1);
    const auto now = steady_clock::now();
    if (!again || now + (pause ? kPause : kPause * 0) >= deadline) std::rethrow_exception(failure);
    earlier = std::move(why);
    if (pause) {
      AsyncEvent bell(co_await boost::asio::this_coro::executor);
      co_await bell.wait(now + kPause);
    }
  }
}

Awaitable<RangeResponse> Client::range(RangeRequest request,
                                       std::optional<std::chrono::milliseconds> timeout) {
  RangeResponse out;
  Request range;
  range.method = "KV/Range";
  range.message = encode(request);
  range.linearizable = true;
  range.timeout = timeout.value_or(std::chrono::milliseconds(0));
  Answer answer = co_await call(std::move(range));
  if (answer.message.revision == 0) throw api::DecodeError("etcd: a range without a revision");
  out.kvs = std::move(answer.kvs);
  out.revision = answer.message.revision;
  out.count = static_cast<std::size_t>(std::max<std::int64_t>(answer.message.count, 0));
  out.more = answer.message.more;
  co_return out;
}

Awaitable<bool> Client::answers(Member member) {
  RangeRequest request;
  request.key = "/";
  request.count_only = true;
  Request range;
  range.method = "KV/Range";
  range.message = encode(request);
  range.linearizable = true;
  range.only = std::move(member);
  try {
    co_await call(std::move(range));
  } catch (const rest::TransportError&) {
    co_return false;
  } catch (const EtcdError& e) {
    // A member that rejects a request is alive.
    co_return !e.is_transient();
  } catch (const api::DecodeError&) {
    co_return false;
  }
  co_return true;
}

Client::Request Client::write(const char* method, AnswerKind answer, std::string message) {
  Request out;
  out.kind = Kind::kWrite;
  out.method = method;
  out.answer = answer;
  out.message = std::move(message);
  // Responses to writes have etcd's current revision.
  out.linearizable = answer != AnswerKind::kCompact && answer != AnswerKind::kLease;
  return out;
}

Awaitable<TxnResponse> Client::txn(std::string request) {
  TxnResponse out;
  Request txn = write("KV/Txn", AnswerKind::kTxn, std::move(request));
  Answer answer = co_await call(std::move(txn));
  if (answer.message.revision == 0)
    throw api::DecodeError("etcd: a transaction without a revision");
  out.kvs = std::move(answer.kvs);
  out.succeeded = answer.message.succeeded;
  out.revision = answer.message.revision;
  co_return out;
}

Awaitable<Revision> Client::put(std::string key, std::string value, std::int64_t lease) {
  Request put = write("KV/Put", AnswerKind::kPut, put_request(key, value, lease));
  const Answer answer = co_await call(std::move(put));
  co_return answer.message.revision;
}

Awaitable<Revision> Client::remove(std::string key, std::string range_end) {
  Request remove = write("KV/DeleteRange", AnswerKind::kDelete, delete_request(key, range_end));
  const Answer answer = co_await call(std::move(remove));
  co_return answer.message.revision;
}

Awaitable<void> Client::compact(Revision revision) {
  Request compact = write("KV/Compact", AnswerKind::kCompact, compaction_request(revision));
  co_await call(std::move(compact));
}

Awaitable<Lease> Client::grant_lease(std::chrono::seconds ttl) {
  Request grant = write("Lease/LeaseGrant", AnswerKind::kLease, grant_request(ttl.count()));
  // As in clientv3, it is retried: a lease without keys ends by itself.
  grant.kind = Kind::kRepeatable;
  const Answer answer = co_await call(std::move(grant));
  if (answer.message.id == 0) throw api::DecodeError("etcd: a lease without an ID");
  co_return Lease{answer.message.id, std::chrono::seconds(answer.message.ttl)};
}

Awaitable<std::chrono::seconds> Client::keep_alive(std::int64_t lease) {
  Request renew;
  renew.method = "Lease/LeaseKeepAlive";
  renew.answer = AnswerKind::kLease;
  renew.message = lease_request(lease);
  const Answer answer = co_await call(std::move(renew));
  co_return std::chrono::seconds(answer.message.ttl);
}

Awaitable<void> Client::revoke_lease(std::int64_t lease) {
  Request revoke = write("Lease/LeaseRevoke", AnswerKind::kLease, lease_request(lease));
  co_await call(std::move(revoke));
}

Awaitable<Message> Client::status() {
  Request status;
  status.method = "Maintenance/Status";
  status.answer = AnswerKind::kStatus;
  Answer answer = co_await call(std::move(status));
  co_return std::move(answer.message);
}

Awaitable<bool> Client::tells_progress(Member member) {
  Request status;
  status.method = "Maintenance/Status";
  status.answer = AnswerKind::kStatus;
  status.only = member;
  try {
    const Answer answer = co_await call(std::move(status));
    co_return has_sound_progress(answer.message.version);
  } catch (const Error& e) {
    if (is_unavailable(e)) throw;
    log::debug("etcd: {} does not report its version: {}", member->url(), e.what());
  }
  co_return false;
}

Awaitable<std::vector<std::string>> Client::member_urls() {
  Request list;
  list.method = "Cluster/MemberList";
  list.answer = AnswerKind::kMembers;
  list.message = member_list_request();
  Answer answer = co_await call(std::move(list));
  co_return std::move(answer.message.client_urls);
}

Awaitable<void> Client::sync_members() {
  const std::vector<std::string> urls = co_await member_urls();
  members_.replace(urls);
}

// --- watches

WatchConnection::WatchConnection(std::shared_ptr<Client> client, Member member)
    : client_(std::move(client)),
      member_(std::move(member)),
      reader_(AnswerKind::kWatch,
              {.key_value = {},
               .event = [this](KeyEvent event) { piece_.emplace_back(std::move(event)); },
               .message = [this](Message m) { piece_.emplace_back(std::move(m)); }},
              MessageReader::kMaxValueBytes, client_->options().max_receive_bytes),
      seen_(client_->seen()) {}

Awaitable<std::unique_ptr<WatchConnection>> WatchConnection::open(std::shared_ptr<Client> client,
                                                                  WatchRequest request,
                                                                  std::stop_token stop) {
  const Member member = client->members_.current();
  std::unique_ptr<WatchConnection> out(new WatchConnection(client, member));
  std::optional<std::string> none;
  const auto deadline = steady_clock::now() + client->options().request_timeout;
  try {
    out->token_ = co_await client->token(member, std::move(none), deadline);
  } catch (const std::exception& e) {
    if (etcd3::is_unavailable(e)) client->members_.leave(member, e.what());
    throw;
  }
  grpc::CallRequest watch = client->prepare(kWatch, encode(request), out->token_);
  // A member that has lost its leader ends the watch (clientv3.WithRequireLeader).
  watch.metadata.emplace_back("hasleader", "true");
  watch.streaming = true;
  const auto executor = co_await boost::asio::this_coro::executor;
  out->call_ = member->start(std::move(watch), executor);
  out->cancel_ = std::make_unique<std::stop_callback<std::function<void()>>>(
      stop, [call = out->call_] { call->cancel(); });
  co_return out;
}

std::function<void()> WatchConnection::progress_asker() const {
  return [call = call_] { call->send(progress_request()); };
}

bool WatchConnection::renew_token(const EtcdError& refusal) {
  if (!client_->has_user()) return refusal.is_old_auth_revision();
  // Up to 3.4.21 and 3.5.7, etcd reports invalid tokens as "permission denied", too.
  if (!refusal.is_bad_token() && !refusal.is_permission_denied()) return false;
  client_->forget_token(token_);
  return true;
}

Awaitable<bool> WatchConnection::read(Piece& piece) {
  piece.clear();
  if (!reader_.error().empty()) throw_unreadable(reader_, member_->url(), kWatch);
  if (ended_) co_return false;
  try {
    buffer_ = co_await call_->read(std::move(buffer_));
  } catch (const TransportError& e) {
    if (is_unavailable(e)) client_->members_.leave(member_, e.what());
    throw;
  }
  if (buffer_.empty()) {
    end(piece);
    co_return !piece.empty();
  }
  // Items before an invalid one are valid; the error is reported on the next call.
  reader_.feed(buffer_);
  for (const auto& item : piece_) {
    // The revision is only that of the member, so it is not recorded.
    const auto* message = std::get_if<Message>(&item);
    if (message != nullptr && message->created) client_->observe(message->cluster_id, 0, seen_);
  }
  std::swap(piece, piece_);
  co_return true;
}

void WatchConnection::end(Piece& piece) {
  ended_ = true;
  const grpc::Status status = call_->status();
  Message last;
  last.failed = status.code != 0;
  last.code = status.code;
  last.error = reason_of(status);
  if (!last.failed || last.failure().is_transient())
    client_->members_.leave(member_, last.failed ? last.error : "the watch ended");
  if (last.failed) piece.emplace_back(std::move(last));
}

}  // namespace lookout::apiserver::storage::etcd3
