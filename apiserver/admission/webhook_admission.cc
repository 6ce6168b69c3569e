#include "apiserver/admission/webhook_admission.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/this_coro.hpp>
#include <exception>
#include <utility>

#include "apiserver/admission/warnings.h"
#include "apiserver/endpoints/scale.h"
#include "apiserver/endpoints/typed_decoding.h"
#include "apiserver/names.h"
#include "apiserver/resources/object_meta.h"
#include "apiserver/resources/webhook_converter.h"
#include "lookout/api/detail/go_text.h"
#include "lookout/api/detail/object_editor.h"
#include "lookout/base/async_event.h"
#include "lookout/base/detail/log.h"

namespace lookout::apiserver::admission {
namespace {

using api::detail::quote;
using resources::ServedResource;
using resources::Write;

/// kube-apiserver's --request-timeout: limits the retries of webhooks for busy objects.
constexpr std::chrono::seconds kRequestTimeout{60};

/// The limit of a response: a patch of an object, which has at most 3 MiB.
constexpr std::size_t kMaxAnswer = 8u << 20;

struct OperationNames {
  std::string_view operation;
  /// The kind of the request's options.
  std::string_view options;
};

OperationNames names_of(Write::Operation operation) {
  if (operation == Write::Operation::kCreate) return {"CREATE", "CreateOptions"};
  if (operation == Write::Operation::kUpdate) return {"UPDATE", "UpdateOptions"};
  return {"DELETE", "DeleteOptions"};
}

bool is_exempt(const api::Resource& type) {
  constexpr std::array<std::string_view, 6> kKinds = {
      "MutatingWebhookConfiguration", "ValidatingWebhookConfiguration",
      "MutatingAdmissionPolicy",      "MutatingAdmissionPolicyBinding",
      "ValidatingAdmissionPolicy",    "ValidatingAdmissionPolicyBinding"};
  return type.group == "admissionregistration.k8s.io" &&
         std::find(kKinds.begin(), kKinds.end(), type.kind) != kKinds.end();
}

bool is_namespaces(const api::Resource& type) {
  return type.group.empty() && type.plural == "namespaces";
}

StatusError out_of_time() {
  return StatusError::timeout("request did not complete within requested timeout", 0);
}

/// A webhook has rejected the request.
class Refusal : public StatusError {
 public:
  using StatusError::StatusError;
};

StatusError call_failed(const Hook& hook, std::string_view why) {
  return StatusError::internal_error(
      fmt::format("failed calling webhook {}: {}", quote(hook.name), why));
}

/// Converts an object to another version of its resource.
Awaitable<Object> convert(const ServedResource& from, const ServedResource& to, Object object,
                          std::stop_token gone) {
  if (to.converter != nullptr) {
    co_return co_await to.converter->convert(std::move(object), to.type.api_version(),
                                             std::move(gone));
  }
  if (to.custom) co_return api::with_type(object, to.type.api_version(), to.type.kind);
  co_return to.from_storage(from.to_storage(object));
}

Version version_of(const ServedResource& resource, const resources::Subresource* subresource) {
  return {resource.type.group, resource.type.version, resource.type.plural,
          subresource == nullptr ? resource.type.gvk() : subresource->kind};
}

}  // namespace

/// The object with the patches of the mutating hooks that have run.
struct WebhookAdmission::Round {
  Operation operation = Operation::kCreate;
  Object current;
  Object old;
  Normalize normalize;
  bool changed = false;
  /// Hooks to reinvoke if a later hook changes the object, and hooks that are due.
  std::set<std::string> invoked;
  std::set<std::string> due;
};

struct WebhookAdmission::Question {
  std::shared_ptr<const Hook> hook;
  bool mutating = false;
  Operation operation = Operation::kCreate;
  Version version;
  Object object;
  Object old;
};

/// All validating hooks of a request, which are called concurrently.
struct WebhookAdmission::Poll {
  explicit Poll(boost::asio::any_io_executor executor) : bell(std::move(executor)) {}

  AsyncEvent bell;
  std::size_t left = 0;
  std::vector<std::exception_ptr> errors;
};

WebhookAdmission::WebhookAdmission(const Webhooks& webhooks, const resources::ResourceTable& table,
                                   const resources::Target& target,
                                   const resources::Subresource* subresource,
                                   const auth::User& user, RequestOptions options,
                                   std::stop_token gone, std::vector<std::string>& warnings)
    : webhooks_(webhooks),
      target_(target),
      subresource_(subresource),
      user_(user),
      options_(std::move(options)),
      gone_(std::move(gone)),
      warnings_(warnings),
      hooks_(webhooks.registry.hooks()),
      requested_(version_of(*target.resource, subresource)),
      exempt_(is_exempt(target.resource->type)),
      deadline_(std::chrono::steady_clock::now() + kRequestTimeout) {
  const bool idle = hooks_->mutating.empty() && hooks_->validating.empty();
  if (idle || exempt_ || target.resource->storage == nullptr) return;
  // The versions of a resource share their storage.
  for (const auto& other : table.resources()) {
    if (other->storage != target.resource->storage || other == target.resource) continue;
    const resources::Subresource* same =
        subresource == nullptr ? nullptr : other->find_subresource(subresource->name);
    if (subresource != nullptr && same == nullptr) continue;
    equivalents_.push_back(version_of(*other, same));
    other_versions_.push_back(other);
  }
}

Subject WebhookAdmission::subject(Operation operation) const {
  const api::Resource& type = target_.resource->type;
  return {type.group,
          type.version,
          type.plural,
          subresource_ == nullptr ? std::string() : subresource_->name,
          is_namespaces(type) ? target_.name : target_.ns,
          std::string(names_of(operation).operation)};
}

bool WebhookAdmission::concerns(const HookList& hooks, Operation operation) const {
  if (hooks.empty() || exempt_) return false;
  const Subject about = subject(operation);
  return std::any_of(hooks.begin(), hooks.end(), [&](const auto& hook) {
    return wanted_version(*hook, about, requested_, equivalents_).has_value();
  });
}

bool WebhookAdmission::concerns(Operation operation) const {
  return concerns(hooks_->mutating, operation) || concerns(hooks_->validating, operation);
}

RequestFacts WebhookAdmission::facts(Operation operation, const Object& object) const {
  RequestFacts out;
  out.requested = requested_;
  if (subresource_ != nullptr) out.subresource = subresource_->name;
  out.name = target_.name;
  if (operation == Operation::kCreate && out.name.empty()) out.name = object.name();
  out.ns = is_namespaces(target_.resource->type) ? out.name : target_.ns;
  out.operation = names_of(operation).operation;
  out.user = user_;
  out.dry_run = options_.dry_run;
  out.options = fmt::format(R"({{"kind":"{}","apiVersion":"meta.k8s.io/v1"{}{}}})",
                            names_of(operation).options, options_.members.empty() ? "" : ",",
                            options_.members);
  return out;
}

const ServedResource* WebhookAdmission::other_version(const Version& version) const {
  for (std::size_t i = 0; i < equivalents_.size(); ++i) {
    const Version& other = equivalents_[i];
    if (other.group == version.group && other.version == version.version &&
        other.resource == version.resource)
      return other_versions_[i].get();
  }
  return nullptr;
}

Awaitable<Object> WebhookAdmission::converted(Object object, Version version) const {
  const ServedResource* other = other_version(version);
  // A Scale is the same in all versions of its resource.
  if (!object || other == nullptr || version.kind == requested_.kind) co_return object;
  co_return co_await convert(*target_.resource, *other, std::move(object), gone_);
}

Awaitable<Object> WebhookAdmission::converted_back(Object object, Version version) const {
  const ServedResource* other = other_version(version);
  if (!object || other == nullptr || version.kind == requested_.kind) co_return object;
  co_return co_await convert(*other, *target_.resource, std::move(object), gone_);
}

void WebhookAdmission::check_decodes(const Object& object, const Version& version) const {
  const ServedResource* other = other_version(version);
  const ServedResource& resource = other == nullptr ? *target_.resource : *other;
  if (object.kind() != version.kind.kind || object.api_version() != version.kind.api_version()) {
    throw StatusError::internal_error(fmt::format("expected {}, Kind={}, got {}, Kind={}",
                                                  version.kind.api_version(), version.kind.kind,
                                                  object.api_version(), object.kind()));
  }
  if (resource.type.gvk() != version.kind) return;
  if (const auto problems = endpoints::find_decoding_problems(object, resource); problems.error)
    throw StatusError::internal_error(*problems.error);
}

bool WebhookAdmission::is_over() const {
  return gone_.stop_requested() || std::chrono::steady_clock::now() >= deadline_;
}

void WebhookAdmission::add_warnings(const std::vector<std::string>& warnings) {
  for (const std::string& warning : warnings) add_warning(warning, warnings_);
}

Awaitable<bool> WebhookAdmission::matches_namespace(std::shared_ptr<const Hook> hook,
                                                    Operation operation, Object object) {
  const api::Resource& type = target_.resource->type;
  const bool about_namespace = is_namespaces(type);
  if (!about_namespace && target_.ns.empty()) co_return true;
  if (!hook->namespaces.error.empty()) throw StatusError::internal_error(hook->namespaces.error);
  const api::labels::Selector& selector = hook->namespaces.selector;
  if (selector.empty()) co_return true;
  if (about_namespace && subresource_ == nullptr && operation != Operation::kDelete)
    co_return selector.matches(object.labels());
  const std::string name = about_namespace ? target_.name : target_.ns;
  // The object may come from a cache.
  Object ns = co_await webhooks_.namespaces->storage->get(name, 1);
  if (!ns) ns = co_await webhooks_.namespaces->storage->get(name);
  if (!ns) throw StatusError::not_found("", "namespaces", name);
  co_return selector.matches(ns.labels());
}

/// The version in which to call a hook; nullopt if it is not called.
Awaitable<std::optional<Version>> WebhookAdmission::version_for(std::shared_ptr<const Hook> hook,
                                                                Operation operation, Object object,
                                                                Object old) {
  auto version = wanted_version(*hook, subject(operation), requested_, equivalents_);
  if (!version) co_return version;
  const bool here = co_await matches_namespace(hook, operation, object);
  if (!here || !selects_objects(*hook, object, old)) version.reset();
  co_return version;
}

Awaitable<Verdict> WebhookAdmission::ask(Question question) {
  const Hook& hook = *question.hook;
  if (options_.dry_run) {
    if (hook.side_effects.empty()) throw CallError("Webhook SideEffects is nil", kBadRequest);
    if (hook.side_effects != "None" && hook.side_effects != "NoneOnDryRun") {
      throw StatusError::bad_request(
          fmt::format("admission webhook {} does not support dry run", quote(hook.name)));
    }
  }
  const auto left =
      std::chrono::ceil<std::chrono::milliseconds>(deadline_ - std::chrono::steady_clock::now());
  if (is_over()) throw out_of_time();
  const std::string uid = resources::new_uid();
  const Object object = co_await converted(question.object, question.version);
  const Object old = co_await converted(question.old, question.version);
  std::string body = make_review(hook, uid, facts(question.operation, question.object),
                                 question.version, object, old);
  Address address = hook.address;
  const auto timeout = std::min<std::chrono::milliseconds>(hook.timeout, left);
  std::string answer;
  try {
    answer = co_await webhooks_.client.post(std::move(address), std::move(body), timeout, gone_,
                                            kMaxAnswer);
  } catch (const CallError& e) {
    throw CallError(fmt::format("failed to call webhook: {}", e.what()), e.code());
  }
  Verdict verdict = read_verdict(hook, question.mutating, uid, answer);
  add_warnings(verdict.warnings);
  if (!verdict.allowed) throw Refusal(verdict.refusal);
  co_return verdict;
}

void WebhookAdmission::count(const Question& question, std::chrono::steady_clock::time_point begin,
                             const std::exception_ptr& error) const {
  WebhookCall call;
  call.name = question.hook->name;
  call.mutating = question.mutating;
  call.operation = names_of(question.operation).operation;
  call.taken = std::chrono::steady_clock::now() - begin;
  if (!error) return webhooks_.metrics.allowed(call);
  try {
    std::rethrow_exception(error);
  } catch (const CallError& e) {
    // kube-apiserver returns different errors for the two types of webhooks that do not respond.
    const int no_answer = question.mutating ? kServiceUnavailable : kBadRequest;
    webhooks_.metrics.failed(call, e.code() == 0 ? no_answer : e.code(),
                             question.hook->ignores_failures, gone_.stop_requested());
  } catch (const Refusal& e) {
    webhooks_.metrics.refused(call, e.code());
  } catch (const std::exception&) {
    webhooks_.metrics.broken(call);
  }
}

/// Calls the hook, and applies its patch to the round's object.
Awaitable<void> WebhookAdmission::ask_to_change(Round& round, Question question) {
  const auto hook = question.hook;
  const Version version = question.version;
  const Verdict verdict = co_await ask(std::move(question));
  if (verdict.patch.empty()) co_return;
  const json::Document patch = parse_patch(verdict.patch);
  if (!patch.Empty() && !round.current) {
    throw StatusError::internal_error(
        fmt::format("admission webhook {} attempted to modify the object, which is not "
                    "supported for this operation",
                    quote(hook->name)));
  }
  const Object before = co_await converted(round.current, version);
  const Object after = patch.Empty() ? before : apply_patch(before, patch);
  if (before == after) co_return;
  check_decodes(after, version);
  Object back = co_await converted_back(after, version);
  round.current = round.normalize(back);
  round.changed = true;
  round.due.merge(round.invoked);
  round.invoked.clear();
}

Awaitable<void> WebhookAdmission::mutate_in_round(Round& round, bool again) {
  for (const auto& hook : hooks_->mutating) {
    const auto version = co_await version_for(hook, round.operation, round.current, round.old);
    if (!version) continue;
    // A reinvocation calls only hooks that were called before.
    if (again && !round.due.contains(hook->uid)) continue;
    const Question question{hook, true, round.operation, *version, round.current, round.old};
    Question asked = question;
    const auto begin = std::chrono::steady_clock::now();
    std::exception_ptr error;
    try {
      co_await ask_to_change(round, std::move(asked));
    } catch (...) {
      error = std::current_exception();
    }
    count(question, begin, error);
    if (error) {
      try {
        std::rethrow_exception(error);
      } catch (const CallError& e) {
        if (is_over()) throw out_of_time();
        if (!hook->ignores_failures) throw call_failed(*hook, e.what());
        log::warn("failed calling webhook {}, failing open: {}", hook->name, e.what());
      }
    }
    if (hook->reinvoked) round.invoked.insert(hook->uid);
  }
}

Awaitable<Object> WebhookAdmission::mutate(Write write, Normalize normalize) {
  if (!concerns(hooks_->mutating, write.operation)) co_return write.object;
  // Hooks receive a subresource with its own kind.
  const bool scaling = subresource_ != nullptr && subresource_->name == "scale";
  const ServedResource& resource = *target_.resource;
  const auto shown = [&](const Object& object) {
    return scaling && object ? endpoints::scale_of(resource, object) : object;
  };
  Round round;
  round.operation = write.operation;
  round.current = shown(write.object);
  round.old = shown(write.old);
  round.normalize = std::move(normalize);
  if (scaling) round.normalize = [](const Object& scale) { return scale; };
  co_await mutate_in_round(round, false);
  if (!round.changed) co_return write.object;
  // All plugins run again, and then the hooks that are due.
  if (write.again) {
    Object changed = round.current;
    round.current = co_await write.again(std::move(changed));
  }
  if (!round.due.empty()) co_await mutate_in_round(round, true);
  if (!scaling) co_return round.current;
  co_return endpoints::scaled(resource, write.object, round.current);
}

Awaitable<void> WebhookAdmission::ask_one(std::shared_ptr<Poll> poll, std::size_t which,
                                          Question question) {
  Question asked = question;
  const auto begin = std::chrono::steady_clock::now();
  std::exception_ptr error;
  try {
    co_await ask(std::move(asked));
  } catch (...) {
    error = std::current_exception();
  }
  count(question, begin, error);
  try {
    if (error) std::rethrow_exception(error);
  } catch (const CallError& e) {
    const Hook& hook = *question.hook;
    if (is_over()) {
      poll->errors[which] = std::make_exception_ptr(out_of_time());
    } else if (!hook.ignores_failures) {
      poll->errors[which] = std::make_exception_ptr(call_failed(hook, e.what()));
    } else {
      log::warn("failed calling webhook {}, failing open: {}", hook.name, e.what());
    }
  } catch (...) {
    poll->errors[which] = error;
  }
  --poll->left;
  poll->bell.ring_here();
}

Awaitable<void> WebhookAdmission::validate(Write write) {
  if (!concerns(hooks_->validating, write.operation)) co_return;
  if (subresource_ != nullptr && subresource_->name == "scale") {
    if (write.object) write.object = endpoints::scale_of(*target_.resource, write.object);
    if (write.old) write.old = endpoints::scale_of(*target_.resource, write.old);
  }
  std::vector<Question> questions;
  questions.reserve(hooks_->validating.size());
  for (const auto& hook : hooks_->validating) {
    auto version = co_await version_for(hook, write.operation, write.object, write.old);
    if (!version) continue;
    questions.push_back(
        {hook, false, write.operation, *std::move(version), write.object, write.old});
  }
  const auto executor = co_await boost::asio::this_coro::executor;
  const auto poll = std::make_shared<Poll>(executor);
  poll->left = questions.size();
  poll->errors.resize(questions.size());
  for (std::size_t i = 0; i < questions.size(); ++i) {
    boost::asio::co_spawn(executor, ask_one(poll, i, std::move(questions[i])),
                          boost::asio::detached);
  }
  while (poll->left > 0) co_await poll->bell.wait();
  // If several hooks reject the request, the client gets the first rejection.
  for (const std::exception_ptr& error : poll->errors) {
    if (error) std::rethrow_exception(error);
  }
}

Awaitable<Object> WebhookAdmission::admit(Object object) {
  if (!concerns(Operation::kCreate)) co_return object;
  Write write{Operation::kCreate, object, Object()};
  Normalize nothing = [](const Object& same) { return same; };
  Object admitted = co_await mutate(std::move(write), std::move(nothing));
  Write second{Operation::kCreate, admitted, Object()};
  co_await validate(std::move(second));
  co_return admitted;
}

}  // namespace lookout::apiserver::admission
