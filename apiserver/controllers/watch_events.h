// Errors of the watches that controllers follow.
#pragma once

#include "lookout/api/status.h"
#include "lookout/apiserver/storage/event.h"

namespace lookout::apiserver::controllers {

/// Whether the watch has fallen behind the history (410): another one goes on from the present
/// state. Throws any other error of a watch as api::StatusError, because the next watch may get the
/// same one at once: the task begins again after a pause.
inline bool fell_behind(const storage::Event& event) {
  if (event.type != api::EventType::kError) return false;
  const auto status = api::Status::from(event.object);
  if (!status) throw api::StatusError::internal_error("a watch ended with an unknown error");
  constexpr int kGone = 410;
  if (status->code != kGone) throw api::StatusError(*status);
  return true;
}

}  // namespace lookout::apiserver::controllers
