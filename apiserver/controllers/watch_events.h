// Errors of the watches that controllers follow.
#pragma once

#include "lookout/api/status.h"
#include "lookout/apiserver/storage/event.h"

namespace lookout::apiserver::controllers {

/// Whether the watch has expired (410): a new one continues from the current state. Throws any other
/// error as api::StatusError, so that the task restarts after a delay: the next watch may fail with
/// the same error.
inline bool fell_behind(const storage::Event& event) {
  if (event.type != api::EventType::kError) return false;
  const auto status = api::Status::from(event.object);
  if (!status) throw api::StatusError::internal_error("a watch ended with an unknown error");
  constexpr int kGone = 410;
  if (status->code != kGone) throw api::StatusError(*status);
  return true;
}

}  // namespace lookout::apiserver::controllers
