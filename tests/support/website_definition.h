// The CustomResourceDefinition of tests.
#pragma once

#include <string>

#include "lookout/api/object.h"

namespace lookout::test {

/// websites.example.com, with `versions` as spec.versions.
inline api::Object website_definition(const std::string& versions) {
  return api::Object::parse(R"({
      "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
      "metadata": {"name": "websites.example.com"},
      "spec": {
        "group": "example.com", "scope": "Namespaced",
        "names": {"kind": "Website", "listKind": "WebsiteList",
                  "plural": "websites", "singular": "website"},
        "versions": )" + versions +
                            "}}");
}

}  // namespace lookout::test
