#include "lookout/rest/credentials.h"

#include <fmt/format.h>

#include <algorithm>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string_view>
#include <utility>

#include "lookout/api/time.h"
#include "lookout/base/base64.h"
#include "lookout/base/clock.h"
#include "lookout/base/detail/log.h"
#include "lookout/base/watched_file.h"
#include "rest/exec_plugin.h"
#include "rest/key_pair.h"

namespace lookout::rest {
namespace {

using Time = std::chrono::system_clock::time_point;
using CredentialPtr = std::shared_ptr<const Credential>;

constexpr std::chrono::seconds kFailureHold{1};

std::string bearer(const std::string& token) { return token.empty() ? "" : "Bearer " + token; }

/// The Authorization header: fixed, or a token from a file.
class AuthorizationSource {
 public:
  explicit AuthorizationSource(const Config& config) : fixed_(bearer(config.bearer_token)) {
    if (!config.username.empty()) {
      fixed_ = "Basic " + encode_base64(config.username + ":" + config.password);
    }
    if (!config.token_file.empty()) file_.emplace(config.token_file);
  }

  bool fixed() const { return !file_; }
  void expire() {
    if (file_) file_->expire();
  }

  void refresh(Time now) {
    if (!file_ || (!file_->poll(now) && value_)) return;
    if (!file_->error().empty()) {
      error_ = fmt::format("cannot read the token in {}: {}", file_->path(), file_->error());
    } else if (file_->text()) {
      take(*file_->text());
    }
  }

  /// The last valid value. Throws if there never was one.
  std::string value() const {
    if (value_) return *value_;
    if (fixed() || !fixed_.empty()) return fixed_;
    throw ConfigError(error_);
  }

 private:
  void take(std::string_view text) {
    constexpr std::string_view kSpace = " \t\r\n\v\f";
    const std::size_t begin = std::min(text.find_first_not_of(kSpace), text.size());
    text = text.substr(begin, text.find_last_not_of(kSpace) + 1 - begin);
    const bool printable = std::none_of(text.begin(), text.end(), [](char c) {
      return static_cast<unsigned char>(c) < 0x20 || c == 0x7f;
    });
    if (text.empty()) {
      error_ = fmt::format("the token file {} is empty", file_->path());
    } else if (!printable) {
      error_ = fmt::format("{} does not contain a token: it has several lines", file_->path());
    } else {
      value_ = bearer(std::string(text));
    }
  }

  std::string fixed_;
  std::optional<WatchedFile> file_;
  std::optional<std::string> value_;  // from the file
  std::string error_;
};

/// The client certificate and its key: each fixed, or from a file.
class CertificateSource {
 public:
  struct Pair {
    std::string certificate;
    std::string key;
  };

  explicit CertificateSource(const Config& config) {
    if (!config.client_cert_data.empty()) {
      certificate_ = config.client_cert_data;
    } else if (!config.client_cert_file.empty()) {
      certificate_file_.emplace(config.client_cert_file);
    }
    if (!config.client_key_data.empty()) {
      key_ = config.client_key_data;
    } else if (!config.client_key_file.empty()) {
      key_file_.emplace(config.client_key_file);
    }
    wanted_ = !certificate_.empty() || certificate_file_;
  }

  bool fixed() const { return !certificate_file_ && !key_file_; }
  void expire() {
    if (certificate_file_) certificate_file_->expire();
    if (key_file_) key_file_->expire();
  }

  void refresh(Time now) {
    if (!wanted_) return;
    const bool new_certificate = poll(certificate_file_, certificate_, now);
    const bool new_key = poll(key_file_, key_, now);
    if (pair_ && !new_certificate && !new_key) return;
    error_.clear();
    for (const auto* file : {&certificate_file_, &key_file_}) {
      if (*file && !(*file)->text()) {
        error_ = fmt::format("cannot read {}: {}", (*file)->path(), (*file)->error());
        return;
      }
    }
    // The two files do not change atomically: in between, they do not match.
    if (const std::string why = detail::key_pair_error(certificate_, key_); !why.empty()) {
      error_ = fmt::format("{} cannot be used: {}", describe(), why);
      return;
    }
    pair_ = Pair{certificate_, key_};
  }

  /// The last valid pair; empty if none is configured. Throws if there never was one.
  Pair value() const {
    if (!wanted_) return {};
    if (!pair_) throw ConfigError(error_);
    return *pair_;
  }

 private:
  static bool poll(std::optional<WatchedFile>& file, std::string& text, Time now) {
    if (!file || !file->poll(now)) return false;
    text = *file->text();
    return true;
  }

  std::string describe() const {
    return certificate_file_ ? "the client certificate in " + certificate_file_->path()
                             : "the client certificate";
  }

  bool wanted_ = false;
  std::string certificate_;
  std::string key_;
  std::optional<WatchedFile> certificate_file_;
  std::optional<WatchedFile> key_file_;
  std::optional<Pair> pair_;
  std::string error_;
};

bool needs_plugin(const Config& config) {
  return config.exec && config.bearer_token.empty() && config.token_file.empty() &&
         config.username.empty() && config.client_cert_data.empty() &&
         config.client_cert_file.empty();
}

}  // namespace

class Credentials::Impl {
 public:
  Impl(Config config, CredentialsOptions options)
      : config_(std::move(config)),
        options_(std::move(options)),
        plugin_(needs_plugin(config_)),
        authorization_(config_),
        certificate_(config_) {}

  CredentialPtr current(const std::stop_token& stop) {
    std::unique_lock lock(mutex_);
    return plugin_ ? from_plugin(lock, stop) : from_files();
  }

  CredentialPtr try_current() {
    const std::lock_guard lock(mutex_);
    if (!plugin_) return from_files();
    throw_recent_failure();
    return usable() ? current_ : nullptr;
  }

  bool would_block() const {
    const std::lock_guard lock(mutex_);
    return plugin_ && !usable() && !failed_recently();
  }

  void invalidate(const CredentialPtr& used) {
    const std::lock_guard lock(mutex_);
    if (!current_ || used != current_) return;
    // (A plugin that has just failed is not run again at once.)
    if (plugin_ && !failed_recently()) invalid_ = true;
    authorization_.expire();
    certificate_.expire();
  }

 private:
  CredentialPtr from_files() {
    if (current_ && authorization_.fixed() && certificate_.fixed()) return current_;
    const Time now = options_.now();
    authorization_.refresh(now);
    certificate_.refresh(now);
    auto [certificate, key] = certificate_.value();
    Credential credential{authorization_.value(), std::move(certificate), std::move(key)};
    if (!current_ || *current_ != credential) {
      current_ = std::make_shared<const Credential>(std::move(credential));
    }
    return current_;
  }

  CredentialPtr from_plugin(std::unique_lock<std::mutex>& lock, const std::stop_token& stop) {
    while (!usable()) {
      if (stop.stop_requested()) return nullptr;
      throw_recent_failure();
      if (!running_) {
        if (!run(lock, stop)) return nullptr;
        // Use it even if it has already expired.
        return current_;
      }
      const std::uint64_t run = runs_;
      if (!changed_.wait(lock, stop, [&] { return runs_ != run; })) return nullptr;
      if (succeeded_) return current_;
    }
    return current_;
  }

  /// Returns false if it was stopped. Throws the plugin's failure.
  bool run(std::unique_lock<std::mutex>& lock, const std::stop_token& stop) {
    running_ = true;
    lock.unlock();
    std::optional<detail::ExecCredential> credential;
    std::string failure;
    try {
      credential = detail::run_exec_plugin(
          config_, {Clock::limited(options_.exec_timeout), options_.exec_max_output}, stop);
    } catch (const std::exception& e) {
      failure = e.what();
    }
    lock.lock();
    running_ = false;
    succeeded_ = credential.has_value();
    ++runs_;
    changed_.notify_all();
    if (credential) {
      take(std::move(*credential));
    } else if (!failure.empty()) {
      failure_ = std::move(failure);
      failed_at_ = options_.now();
      if (!current_ || expired()) throw ConfigError(failure_);
      // The server may accept the rejected credential again (it was overloaded, its clock was wrong):
      // keep it until it expires, as client-go does.
      log::warn("{}; keeping the previous credential", failure_);
      invalid_ = false;
      return true;
    }
    return succeeded_;
  }

  void take(detail::ExecCredential credential) {
    invalid_ = false;
    failed_at_.reset();
    expires_ = credential.expires;
    current_ = std::make_shared<const Credential>(Credential{
        bearer(credential.token), std::move(credential.certificate), std::move(credential.key)});
  }

  bool usable() const { return current_ && !invalid_ && !expired(); }

  bool expired() const {
    return expires_ &&
           std::chrono::time_point_cast<std::chrono::microseconds>(options_.now()) > *expires_;
  }

  bool failed_recently() const {
    if (!failed_at_) return false;
    const Time now = options_.now();
    return now >= *failed_at_ && now - *failed_at_ < kFailureHold;
  }

  void throw_recent_failure() const {
    if (!usable() && failed_recently()) throw ConfigError(failure_);
  }

  const Config config_;
  const CredentialsOptions options_;
  const bool plugin_;

  mutable std::mutex mutex_;
  AuthorizationSource authorization_;
  CertificateSource certificate_;
  CredentialPtr current_;

  // The state of the plugin.
  std::condition_variable_any changed_;
  bool running_ = false;
  std::uint64_t runs_ = 0;
  bool succeeded_ = false;  // the last run
  bool invalid_ = false;
  std::optional<api::Time> expires_;
  std::string failure_;
  std::optional<Time> failed_at_;
};

Credentials::Credentials(const Config& config, CredentialsOptions options)
    : impl_(std::make_unique<Impl>(config.normalized(), std::move(options))) {}

Credentials::~Credentials() = default;

CredentialPtr Credentials::current(std::stop_token stop) { return impl_->current(stop); }

CredentialPtr Credentials::try_current() { return impl_->try_current(); }

bool Credentials::would_block() const { return impl_->would_block(); }

void Credentials::invalidate(const CredentialPtr& used) { impl_->invalidate(used); }

}  // namespace lookout::rest
