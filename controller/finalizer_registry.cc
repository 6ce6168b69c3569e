#include "lookout/controller/finalizer_registry.h"

#include <fmt/format.h>

#include <algorithm>

#include "lookout/api/validation.h"
#include "lookout/controller/finalizers.h"
#include "lookout/k8s/meta/v1_draft.h"

namespace lookout::controller {

void FinalizeResult::throw_if_failed() const {
  if (failures.empty()) return;
  std::string message;
  for (const Failure& failure : failures) {
    std::string why = "unknown error";
    try {
      std::rethrow_exception(failure.error);
    } catch (const std::exception& e) {
      why = e.what();
    } catch (...) {  // NOLINT(bugprone-empty-catch): the reason stays unknown
    }
    if (!message.empty()) message += "; ";
    message += fmt::format("finalizer \"{}\" failed: {}", failure.finalizer, why);
  }
  throw FinalizerError(message);
}

void FinalizerRegistry::add(std::string name, Finalizer finalizer) {
  if (!finalizer) throw InvalidArgument(fmt::format("finalizer \"{}\" has no function", name));
  if (!api::validation::check_qualified_name(name).empty())
    throw InvalidArgument(fmt::format("\"{}\" is not a valid name for a finalizer", name));
  const bool known = std::any_of(finalizers_.begin(), finalizers_.end(),
                                 [&](const auto& each) { return each.first == name; });
  if (known) throw InvalidArgument(fmt::format("finalizer \"{}\" is already registered", name));
  finalizers_.emplace_back(std::move(name), std::move(finalizer));
}

FinalizeResult FinalizerRegistry::finalize(const api::ObjectDraft& object) const {
  FinalizeResult result;
  const k8s::meta::v1::ObjectMetaDraft metadata(object["metadata"]);
  const bool deleted = metadata.deletion_timestamp().has_value();
  for (const auto& [name, finalizer] : finalizers_) {
    if (!deleted) {
      add_finalizer(object, name);
      continue;
    }
    if (!metadata.finalizers().contains(name)) continue;
    try {
      finalizer(object);
    } catch (...) {
      result.failures.push_back({name, std::current_exception()});
      continue;
    }
    remove_finalizer(object, name);
  }
  const auto differs = [](const std::string& patch) { return patch != "{}"; };
  result.updated = differs(object.diff_except("status"));
  result.status_updated = differs(object.diff("status"));
  return result;
}

}  // namespace lookout::controller
