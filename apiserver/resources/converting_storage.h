// A storage whose objects a webhook converts.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "apiserver/resources/webhook_converter.h"
#include "lookout/apiserver/storage/interface.h"

namespace lookout::apiserver::resources {

/// A view of another storage in one version, which all passed and returned objects and predicates
/// have. Objects are stored in the storage version. Older objects may have another version, so reads
/// accept any version. A failed conversion throws api::StatusError (500), and ends a watch with that
/// Status. Thread-safe.
class ConvertingStorage final : public storage::Interface {
 public:
  /// `stored` must outlive it.
  ConvertingStorage(storage::Interface& stored, std::shared_ptr<const WebhookConverter> converter,
                    std::string api_version, std::string storage_version)
      : stored_(stored),
        converter_(std::move(converter)),
        api_version_(std::move(api_version)),
        storage_version_(std::move(storage_version)) {}

  const std::string& prefix() const override { return stored_.prefix(); }
  Awaitable<api::Object> create(std::string key, api::Object object) override;
  Awaitable<api::Object> get(std::string key, storage::Revision not_older_than) override;
  Awaitable<storage::ListResult> list(std::string key, bool recursive,
                                      storage::ListOptions options) override;
  Awaitable<api::Object> guaranteed_update(std::string key, bool create_if_absent,
                                           storage::Preconditions preconditions,
                                           Update update) override;
  Awaitable<api::Object> remove(std::string key, storage::Preconditions preconditions,
                                Validate validate) override;
  Awaitable<std::unique_ptr<storage::Watch>> watch(std::string key, bool recursive,
                                                   storage::WatchOptions options) override;
  Awaitable<storage::Revision> current_revision() override { return stored_.current_revision(); }
  Awaitable<std::size_t> count() override { return stored_.count(); }
  std::optional<std::size_t> known_count() const override { return stored_.known_count(); }

 private:
  Awaitable<api::Object> shown(api::Object stored) const {
    return converter_->show(std::move(stored), api_version_);
  }
  Awaitable<api::Object> kept(api::Object shown) const {
    return converter_->convert(std::move(shown), storage_version_);
  }

  Awaitable<storage::ListResult> list_selected(std::string key, bool recursive,
                                               storage::ListOptions options);

  storage::Interface& stored_;
  const std::shared_ptr<const WebhookConverter> converter_;
  const std::string api_version_;
  const std::string storage_version_;
};

}  // namespace lookout::apiserver::resources
