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

/// Shows what is in another storage in one version: objects go in and come out in it, and
/// predicates are about it. They are kept in the storage version, but for those that were written
/// when another one was: everything that reads takes any version. A conversion that fails is thrown
/// as api::StatusError (500), and ends a watch with that Status. Safe to use from many threads.
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
