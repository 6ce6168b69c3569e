// WebhookAdmission: calls the webhooks for a request.
#pragma once

#include <chrono>
#include <exception>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "apiserver/admission/hook_registry.h"
#include "apiserver/admission/review.h"
#include "apiserver/admission/webhook_metrics.h"
#include "apiserver/resources/admission.h"
#include "apiserver/resources/resource_registry.h"

namespace lookout::apiserver::admission {

/// Shared by all requests; must outlive them.
struct Webhooks {
  HookRegistry& registry;
  webhooks::WebhookClient& client;
  WebhookMetrics& metrics;
  resources::ServedResourcePtr namespaces;
};

/// The members of CreateOptions, UpdateOptions or DeleteOptions, without their type: `"dryRun":
/// ["All"],"fieldManager":"kubectl"`.
struct RequestOptions {
  bool dry_run = false;
  std::string members;
};

/// Calls the webhooks for a request (k8s.io/apiserver/pkg/admission/plugin/webhook): mutating ones
/// sequentially, then all validating ones concurrently. Lives as long as the request.
///
/// matchConditions are not evaluated: a hook with matchConditions is always called, so that no
/// request bypasses it.
class WebhookAdmission final : public resources::Admission {
 public:
  /// `target` is that of the request; `subresource` is null for the resource itself. Warnings are
  /// added to `warnings`, which must outlive this. Calls end when `gone` is stopped.
  WebhookAdmission(const Webhooks& webhooks, const resources::ResourceTable& table,
                   const resources::Target& target, const resources::Subresource* subresource,
                   const auth::User& user, RequestOptions options, std::stop_token gone,
                   std::vector<std::string>& warnings);

  bool concerns(resources::Write::Operation operation) const override;
  Awaitable<api::Object> mutate(resources::Write write, Normalize normalize) override;
  Awaitable<void> validate(resources::Write write) override;

  /// Mutates and validates an object that is not stored, such as a binding. Returns the mutated
  /// object.
  Awaitable<api::Object> admit(api::Object object);

 private:
  using Operation = resources::Write::Operation;
  struct Round;
  struct Question;
  struct Poll;

  Subject subject(Operation operation) const;
  RequestFacts facts(Operation operation, const api::Object& object) const;
  bool concerns(const HookList& hooks, Operation operation) const;
  Awaitable<void> mutate_in_round(Round& round, bool again);
  Awaitable<bool> matches_namespace(std::shared_ptr<const Hook> hook, Operation operation,
                                    api::Object object);
  Awaitable<std::optional<Version>> version_for(std::shared_ptr<const Hook> hook,
                                                Operation operation, api::Object object,
                                                api::Object old);
  Awaitable<Verdict> ask(Question question);
  Awaitable<void> ask_to_change(Round& round, Question question);
  /// Counts a call of a hook that began at `begin`; `error` is null if the request may continue.
  void count(const Question& question, std::chrono::steady_clock::time_point begin,
             const std::exception_ptr& error) const;
  Awaitable<void> ask_one(std::shared_ptr<Poll> poll, std::size_t which, Question question);
  Awaitable<api::Object> converted(api::Object object, Version version) const;
  Awaitable<api::Object> converted_back(api::Object object, Version version) const;
  const resources::ServedResource* other_version(const Version& version) const;
  void check_decodes(const api::Object& object, const Version& version) const;
  void add_warnings(const std::vector<std::string>& warnings);
  bool is_over() const;

  const Webhooks& webhooks_;
  const resources::Target target_;
  const resources::Subresource* const subresource_;
  const auth::User& user_;
  const RequestOptions options_;
  const std::stop_token gone_;
  std::vector<std::string>& warnings_;
  /// The hooks at the beginning of the request.
  const std::shared_ptr<const Hooks> hooks_;
  Version requested_;
  std::vector<Version> equivalents_;
  std::vector<resources::ServedResourcePtr> other_versions_;  // in the order of equivalents_
  /// True for webhook configurations, so that no webhook can prevent its own repair.
  bool exempt_ = false;
  const std::chrono::steady_clock::time_point deadline_;
};

}  // namespace lookout::apiserver::admission
