// PassingInterface: forwards all calls to another Interface.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "lookout/apiserver/storage/interface.h"

namespace lookout::apiserver::storage {

/// A base class for decorators of a storage. `inner` must outlive it.
class PassingInterface : public Interface {
 public:
  explicit PassingInterface(Interface& inner) : inner_(inner) {}

  const std::string& prefix() const override { return inner_.prefix(); }
  Awaitable<api::Object> create(std::string key, api::Object object) override {
    return inner_.create(std::move(key), std::move(object));
  }
  Awaitable<api::Object> get(std::string key, Revision revision) override {
    return inner_.get(std::move(key), revision);
  }
  Awaitable<ListResult> list(std::string key, bool recursive, ListOptions options) override {
    return inner_.list(std::move(key), recursive, std::move(options));
  }
  Awaitable<api::Object> guaranteed_update(std::string key, bool create_if_absent,
                                           Preconditions preconditions, Update update) override {
    return inner_.guaranteed_update(std::move(key), create_if_absent, std::move(preconditions),
                                    std::move(update));
  }
  Awaitable<api::Object> remove(std::string key, Preconditions preconditions,
                                Validate validate) override {
    return inner_.remove(std::move(key), std::move(preconditions), std::move(validate));
  }
  Awaitable<std::unique_ptr<Watch>> watch(std::string key, bool recursive,
                                          WatchOptions options) override {
    return inner_.watch(std::move(key), recursive, std::move(options));
  }
  Awaitable<Revision> current_revision() override { return inner_.current_revision(); }
  Awaitable<std::size_t> count() override { return inner_.count(); }
  std::optional<std::size_t> known_count() const override { return inner_.known_count(); }

 private:
  Interface& inner_;
};

}  // namespace lookout::apiserver::storage
