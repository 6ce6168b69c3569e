// The facts that the page shows beside the services: problems, the state of pods, traffic.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "cmd/registry/catalog.h"
#include "cmd/registry/page/history.h"

namespace lookout::cmd::registry_cmd {

/// Something is wrong, and people should know.
struct Problem {
  /// "namespace": it cannot be followed. "malformed": the announcement of a pod cannot be read.
  /// "pods": their state is unknown. "metrics": programs do not tell them.
  std::string kind = {};
  std::string where = {};    ///< the namespace (empty: all) or the pod, "shop/web-1"
  std::string reason = {};   ///< for people
  std::string service = {};  ///< if it is known whose problem it is
  int code = 0;              ///< of the server's answer (403); 0 if there was none
  /// When it was reported; the epoch if it holds now.
  std::chrono::system_clock::time_point at = {};

  friend bool operator==(const Problem&, const Problem&) = default;
};

/// The state of a pod that is not simply ready.
struct PodFact {
  bool leaving = false;  ///< it is being deleted
  std::string why = {};  ///< why it is not ready, as far as Kubernetes knows

  friend bool operator==(const PodFact&, const PodFact&) = default;
};
/// By pod ("shop/web-1"); of pods that are not there, there is nothing to say.
using PodFacts = std::map<std::string, PodFact, std::less<>>;
using PodFactsPtr = std::shared_ptr<const PodFacts>;

/// The calls on an instance or on a service, as the programs that call it count them.
struct Rates {
  double picks = 0;      ///< a second
  double errors = 0;     ///< a second
  unsigned ejected = 0;  ///< an instance: callers that have ejected it; a service: the instances
  unsigned callers = 0;  ///< that know it
};
struct ServiceTraffic {
  Rates all;
  std::map<std::string, Rates> instances;  ///< by pod; those without any are left out
};
struct Traffic {
  std::size_t asked = 0;     ///< programs that export metrics
  std::size_t answered = 0;  ///< those that did the last time
  std::map<std::string, ServiceTraffic> services = {};
};
using TrafficPtr = std::shared_ptr<const Traffic>;

/// Where notes come from. Called on the catalog's thread; must not block. May be empty.
struct NoteSources {
  std::function<std::vector<Problem>()> problems = {};
  std::function<PodFactsPtr()> pods = {};
  /// Null before there is any.
  std::function<TrafficPtr()> traffic = {};
  /// The instance of this pod has come or changed.
  std::function<void(const std::string& pod)> seen = {};
};

/// A page tells no more of them.
inline constexpr std::size_t kMostProblems = 200;

/// Immutable. Parts that have not changed are the same as in the notes before.
struct Notes {
  std::shared_ptr<const std::vector<Problem>> problems;  ///< never null
  std::size_t problems_in_all = 0;                       ///< with those beyond kMostProblems
  PodFactsPtr pods;                                      ///< never null
  TrafficPtr traffic;                                    ///< null if there is none
};

/// Takes notes, and writes the history of the services.
class NoteTaker {
 public:
  explicit NoteTaker(NoteSources sources) : sources_(std::move(sources)) {}

  /// As TakeNotes.
  std::shared_ptr<const Notes> take(const CatalogState& before, const CatalogState& next);
  const History& history() const { return history_; }

 private:
  std::shared_ptr<const Notes> look(const Notes& before) const;
  void record(const CatalogState& before, const CatalogState& next, const Notes& notes);
  void record_set(const registry::InstanceSetPtr& before, const registry::InstanceSet& after,
                  const PodFacts& pods);
  void record_departures(const CatalogState& next, const PodFacts& before, const PodFacts& after);
  void add(const std::string& service, const std::string& pod, const char* event,
           std::string detail = {});

  const NoteSources sources_;
  History history_;
};

/// The notes of a state, empty ones if it has none.
const Notes& notes_of(const CatalogState& state);

/// Calls a function for each service that differs between two states, with its sets before and
/// after; either is null if the service is not in that state.
using OnSet = std::function<void(const registry::InstanceSetPtr& before,
                                 const registry::InstanceSetPtr& after)>;
void for_each_difference(const CatalogState& before, const CatalogState& after,
                         const OnSet& on_set);

}  // namespace lookout::cmd::registry_cmd
