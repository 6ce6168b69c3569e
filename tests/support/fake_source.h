// A source of pods.
#pragma once

#include <string_view>

#include "lookout/testing/fake_controller_source.h"
#include "tests/support/objects.h"

namespace lookout::test {

/// A FakeControllerSource with short functions to create pods.
class FakeSource : public FakeControllerSource {
 public:
  using FakeControllerSource::put;
  api::Object put(std::string_view key, const PodSpec& spec = {}) {
    return put(pod(key, "", spec));
  }
};

}  // namespace lookout::test
