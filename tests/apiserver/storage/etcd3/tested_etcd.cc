#include "tests/apiserver/storage/etcd3/tested_etcd.h"

#include <chrono>
#include <map>

#include "tests/apiserver/storage/etcd3/etcd_process.h"

namespace lookout::test {
namespace {

using apiserver::storage::EtcdOptions;
using std::chrono::milliseconds;

std::shared_ptr<sim::EtcdModel> make_model(const TestedEtcd& etcd, int members) {
  sim::EtcdModelOptions options;
  options.data.version = etcd.version;
  options.members = members;
  options.longest_latency = std::chrono::microseconds(300);
  // Same as in EtcdCluster.
  options.progress_interval = milliseconds(200);
  return sim::EtcdModel::make(std::move(options));
}

EtcdOptions reach(const std::shared_ptr<sim::EtcdModel>& model) {
  EtcdOptions out;
  out.endpoints = model->endpoints();
  out.network = model;
  return out;
}

}  // namespace

std::string TestedEtcd::missing() const {
  return !is_real() || etcd_is_there() ? "" : "*** no etcd here ***";
}

void PrintTo(const TestedEtcd& etcd, std::ostream* out) { *out << etcd.name; }

EtcdOptions reach_shared(const TestedEtcd& etcd) {
  if (!etcd.is_real()) {
    static std::map<std::string, std::shared_ptr<sim::EtcdModel>> models;
    auto& model = models[etcd.version];
    if (model == nullptr) model = make_model(etcd, 1);
    return reach(model);
  }
  EtcdOptions out;
  out.endpoints = shared_etcd().endpoints();
  return out;
}

OwnEtcd::OwnEtcd(const TestedEtcd& etcd, int members) : size_(static_cast<std::size_t>(members)) {
  if (etcd.is_real()) {
    real_ = std::make_unique<EtcdCluster>(EtcdCluster::Options{.members = members});
  } else {
    model_ = make_model(etcd, members);
  }
}

OwnEtcd::~OwnEtcd() = default;

EtcdOptions OwnEtcd::reach() const {
  if (model_ != nullptr) return test::reach(model_);
  EtcdOptions out;
  out.endpoints = real_->endpoints();
  return out;
}

void OwnEtcd::kill(std::size_t member) {
  if (real_ != nullptr) return real_->kill(member);
  model_->restart(static_cast<int>(member), std::chrono::hours(24));
  // Two of three elect another leader.
  model_->lose_leader(milliseconds(400));
}

void OwnEtcd::restart(std::size_t member) {
  if (real_ != nullptr) return real_->restart(member);
  model_->restart(static_cast<int>(member), milliseconds(0));
}

void OwnEtcd::wait_until_ready() const {
  if (real_ != nullptr) real_->wait_until_ready();
}

std::size_t OwnEtcd::leader() const { return real_ == nullptr ? 0 : real_->leader(); }

void OwnEtcd::defragment() const {
  if (real_ != nullptr) real_->etcdctl({"defrag"});
}

}  // namespace lookout::test
