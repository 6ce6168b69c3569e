// Errors in decoding external data.
#pragma once

#include "lookout/base/error.h"

namespace lookout::api {

/// Data from outside that is not valid: malformed JSON, an invalid timestamp.
class DecodeError : public Error {
 public:
  using Error::Error;
};

}  // namespace lookout::api
