// PEM, the text format of certificates and certificate requests.
#pragma once

#include <string>
#include <vector>

namespace lookout::apiserver {

struct PemBlock {
  std::string name;     // "CERTIFICATE"
  std::string headers;  // usually empty
  std::string data;     // decoded
};

/// The blocks of a text, up to a malformed one. Text between them is ignored.
std::vector<PemBlock> read_pem(const std::string& text);

}  // namespace lookout::apiserver
