// Pods like those of a real cluster.
#pragma once

#include <cstddef>
#include <string>

namespace lookout::test {

/// A pod as a client creates it: two containers with environment, probes, resources and mounts,
/// volumes, tolerations, labels and annotations. About 3.5 KB of JSON; with what the server, the
/// scheduler and the kubelet add (status, defaults, managedFields) about 6 KB.
std::string realistic_pod(std::size_t number, const std::string& ns = "default");

/// A kubelet's status update (JSON merge patch) once such a pod runs.
std::string realistic_pod_status(std::size_t number);

}  // namespace lookout::test
