// Errors of reading what came from outside.
#pragma once

#include "lookout/base/error.h"

namespace lookout::api {

/// Bytes from outside that are not what they should be: malformed JSON, a timestamp that is none.
class DecodeError : public Error {
 public:
  using Error::Error;
};

}  // namespace lookout::api
