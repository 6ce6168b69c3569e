// Names that most of the controllers of the simulated cluster use. The headers of the kinds (lookout/k8s/...) define
// them.
#pragma once

#include "lookout/api/declared.h"
#include "lookout/controller/context.h"
#include "lookout/controller/request.h"
#include "lookout/controller/result.h"
#include "lookout/controller/source.h"

namespace lookout::cmd::cluster {

using controller::Context;
using controller::Enqueue;
using controller::Request;
using controller::Result;
using k8s::apps::v1::DaemonSet;
using k8s::apps::v1::Deployment;
using k8s::apps::v1::ReplicaSet;
using k8s::apps::v1::StatefulSet;
using k8s::batch::v1::Job;
using k8s::core::v1::Endpoints;
using k8s::core::v1::Node;
using k8s::core::v1::Pod;
using k8s::core::v1::Service;
using k8s::core::v1::ServiceAccount;
using k8s::discovery::v1::EndpointSlice;

}  // namespace lookout::cmd::cluster
