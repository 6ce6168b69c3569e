#include "rest/ca_source.h"

#include <fmt/format.h>
#include <openssl/err.h>
#include <openssl/pem.h>

#include <limits>

#include "lookout/base/detail/log.h"
#include "lookout/rest/detail/ca_file.h"
#include "rest/openssl_handles.h"

namespace lookout::rest::detail {

std::string ca_error(const std::string& pem) {
  if (pem.find_first_not_of(" \t\r\n") == std::string::npos) return "it is empty";
  if (pem.size() > static_cast<std::size_t>(std::numeric_limits<int>::max())) return "too long";
  const Bio text(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())));
  const Certificate first(PEM_read_bio_X509(text.get(), nullptr, no_passphrase, nullptr));
  ERR_clear_error();
  return first ? "" : "there is no certificate in it";
}

CaSource::CaSource(const Config& config) {
  if (config.insecure) return;
  if (!config.ca_data.empty()) {
    if (const std::string why = ca_error(config.ca_data); !why.empty())
      throw ConfigError("ca_data: " + why);
    pem_ = std::make_shared<const std::string>(config.ca_data);
  } else if (!config.ca_file.empty()) {
    file_.emplace(config.ca_file);
    file_->poll(std::chrono::system_clock::now());
    const std::string why = file_->text() ? ca_error(*file_->text()) : file_->error();
    if (!why.empty())
      throw ConfigError(fmt::format("ca_file: cannot use {}: {}", config.ca_file, why));
    pem_ = std::make_shared<const std::string>(*file_->text());
  }
}

std::shared_ptr<const std::string> CaSource::current() {
  const std::lock_guard lock(mutex_);
  if (!file_ || !file_->poll(std::chrono::system_clock::now())) return pem_;
  if (const std::string why = ca_error(*file_->text()); !why.empty()) {
    log::warn("cannot use the certificate authorities in {}: {}; keeping the previous ones",
              file_->path(), why);
  } else if (*file_->text() != *pem_) {
    log::info("new certificate authorities in {}", file_->path());
    pem_ = std::make_shared<const std::string>(*file_->text());
  }
  return pem_;
}

std::function<std::shared_ptr<const std::string>()> follow_ca_file(const std::string& path) {
  Config config;
  config.ca_file = path;
  return [source = std::make_shared<CaSource>(config)] { return source->current(); };
}

}  // namespace lookout::rest::detail
