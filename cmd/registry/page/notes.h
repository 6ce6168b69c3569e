// Notes: the page's data beside the services: problems, pod states and traffic.
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

/// A problem to show on the page.
struct Problem {
  /// "namespace": the namespace cannot be watched. "malformed": a pod's announcement is malformed.
  /// "pods": the state of the pods is unknown. "metrics": metrics cannot be scraped.
  std::string kind = {};
  std::string where = {};    ///< the namespace (empty: all) or the pod, "shop/web-1"
  std::string reason = {};   ///< human-readable
  std::string service = {};  ///< the affected service, if known
  int code = 0;              ///< the HTTP status of the server's response (403), or 0
  /// Since when; the epoch if that is not known.
  std::chrono::system_clock::time_point at = {};

  friend bool operator==(const Problem&, const Problem&) = default;
};

/// The state of a pod that is terminating or not ready.
struct PodFact {
  bool leaving = false;  ///< it is being deleted
  std::string why = {};  ///< why it is not ready, according to its Ready condition

  friend bool operator==(const PodFact&, const PodFact&) = default;
};
/// By pod ("shop/web-1"); ready pods have no entry.
using PodFacts = std::map<std::string, PodFact, std::less<>>;
using PodFactsPtr = std::shared_ptr<const PodFacts>;

/// The calls to an instance or a service, as counted by the callers.
struct Rates {
  double picks = 0;   ///< per second
  double errors = 0;  ///< per second
  unsigned ejected =
      0;  ///< of an instance: callers that have ejected it; of a service: ejected instances
  unsigned callers = 0;  ///< programs that know it
};
struct ServiceTraffic {
  Rates all;
  std::map<std::string, Rates> instances;  ///< by pod; instances without calls are omitted
};
struct Traffic {
  std::size_t asked = 0;     ///< scrape targets
  std::size_t answered = 0;  ///< targets that responded in the last round
  std::map<std::string, ServiceTraffic> services = {};
};
using TrafficPtr = std::shared_ptr<const Traffic>;

/// The sources of notes. Called on the catalog's thread; must not block. May be empty.
struct NoteSources {
  std::function<std::vector<Problem>()> problems = {};
  std::function<PodFactsPtr()> pods = {};
  /// Returns null before the first result.
  std::function<TrafficPtr()> traffic = {};
};

/// The maximum number of problems that a page shows.
inline constexpr std::size_t kMostProblems = 200;

/// Immutable. Unchanged parts are shared with the previous notes.
struct Notes {
  std::shared_ptr<const std::vector<Problem>> problems;  ///< never null
  std::size_t problems_in_all = 0;                       ///< including those beyond kMostProblems
  PodFactsPtr pods;                                      ///< never null
  TrafficPtr traffic;                                    ///< null if there is none
};

/// Creates the notes and records the history of the services.
class NoteTaker {
 public:
  explicit NoteTaker(NoteSources sources) : sources_(std::move(sources)) {}

  /// Same as TakeNotes.
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

/// The notes of a state; empty notes if it has none.
const Notes& notes_of(const CatalogState& state);

/// Calls a function for each service that differs between two states, with its old and new instance
/// set; null if the service is not in that state.
using OnSet = std::function<void(const registry::InstanceSetPtr& before,
                                 const registry::InstanceSetPtr& after)>;
void for_each_difference(const CatalogState& before, const CatalogState& after,
                         const OnSet& on_set);

}  // namespace lookout::cmd::registry_cmd
