'use strict';
// The data: `services`, `pods`, `problems` and `traffic` hold the server's state; `dirty` holds the
// parts that the next frame draws, after any number of updates.

/** name -> {name, instances: key -> instance, keys (in order; null: to be sorted), and counts} */
const services = new Map();
/** pod -> {leaving, why}, for pods that are leaving or not ready */
const pods = new Map();
/** pod -> the names of the services that it is an instance of */
const owners = new Map();
let problems = [];
let problemsInAll = 0;
/** null: unknown. Otherwise {asked, answered, services: name -> {all: rates, instances: pod -> rates}} */
let traffic = null;
/** The server's description of its state, and the state of the connection. */
const server = {revision: 0, synced: false, live: false, since: 0, error: '', connected: false, lost: 0, source: ''};

const dirty = {services: new Set(), instances: new Set(), members: true, all: true, status: true, problems: true, changes: true};
let scheduled = false;

function schedule() {
  if (scheduled) return;
  scheduled = true;
  requestAnimationFrame(() => {
    scheduled = false;
    draw();
  });
}

const keyOf = (instance) => instance.pod || instance.id;
const inOrder = (a, b) => a < b ? -1 : a > b ? 1 : 0;

// ------------------------------------------------------------------------------------------ updates

function take(update) {
  if (update.reset) forgetAll();
  for (const name of update.gone) removeService(name);
  for (const change of update.services) changeService(change);
  if (update.pods) takePods(update.pods);
  if (update.problems) takeProblems(update);
  if (update.traffic !== undefined) takeTraffic(update.traffic);
  for (const field of ['revision', 'synced', 'live', 'since', 'error']) server[field] = update[field];
  dirty.status = true;
  schedule();
}

function forgetAll() {
  for (const map of [services, pods, owners]) map.clear();
  problems = [];
  problemsInAll = 0;
  traffic = null;
  dirty.all = dirty.problems = dirty.changes = true;
}

function removeService(name) {
  const service = services.get(name);
  if (!service) return;
  for (const key of service.instances.keys()) disown(key, name);
  services.delete(name);
  dirty.members = true;
  if (name === place.service) dirty.changes = true;
}

function changeService(change) {
  let service = services.get(change.name);
  if (!service) {
    service = {name: change.name, instances: new Map(), keys: []};
    services.set(change.name, service);
    dirty.members = true;
  }
  for (const key of change.drop) {
    service.instances.delete(key);
    service.keys = null;
    disown(key, change.name);
    touch(change.name, key);
  }
  for (const instance of change.put) {
    const key = keyOf(instance);
    if (!service.instances.has(key)) {
      service.keys = null;
      own(key, change.name);
    }
    service.instances.set(key, instance);
    touch(change.name, key);
  }
  dirty.services.add(change.name);
  if (change.name === place.service) dirty.changes = true;
}

function own(key, name) {
  const names = owners.get(key);
  if (names) names.add(name);
  else owners.set(key, new Set([name]));
}

function disown(key, name) {
  const names = owners.get(key);
  if (!names) return;
  names.delete(name);
  if (names.size === 0) owners.delete(key);
}

/** Marks the instance to be drawn again, if it is visible. */
function touch(name, key) {
  dirty.services.add(name);
  if (name === place.service) dirty.instances.add(key);
}

function takePods(changes) {
  for (const [key, fact] of Object.entries(changes)) {
    if (fact) pods.set(key, fact);
    else pods.delete(key);
    for (const name of owners.get(key) || []) {
      touch(name, key);
      if (name === place.service) dirty.changes = true;
    }
  }
}

function takeProblems(update) {
  problems = update.problems;
  problemsInAll = update.problemsInAll;
  dirty.problems = true;
  dirty.members = true;
  for (const name of services.keys()) dirty.services.add(name);
}

function takeTraffic(told) {
  traffic = told && {asked: told.asked, answered: told.answered, services: new Map()};
  for (const [name, of] of Object.entries(told ? told.services : {})) {
    traffic.services.set(name, {all: of.all, instances: new Map(Object.entries(of.instances))});
  }
  dirty.all = dirty.problems = true;
}

// ------------------------------------------------------------------------------------- derived values

/** [picks per second, errors per second, callers that have ejected it, callers]; undefined: unknown. */
function ratesOf(name, key) {
  const of = traffic && traffic.services.get(name);
  return of && of.instances.get(key);
}

/** The states of instances, in the order in which they are sorted. */
const STATES = ['ejected', 'unready', 'leaving', 'ready'];
function stateOf(service, instance) {
  const key = keyOf(instance);
  const fact = pods.get(key);
  if (fact && fact.leaving) return 'leaving';
  if (!instance.ready) return 'unready';
  const rates = ratesOf(service.name, key);
  return rates && rates[2] > 0 ? 'ejected' : 'ready';
}

/** The searchable text of an instance, in lower case. */
function textOf(instance) {
  if (instance.text === undefined) {
    const pairs = Object.entries(instance.metadata).map(([key, value]) => key + '=' + value);
    instance.text = [instance.name, instance.pod, instance.id, instance.version, instance.zone,
      ...instance.endpoints, ...pairs].join('\n').toLowerCase();
  }
  return instance.text;
}

const nameMatches = (service, word) => service.name.toLowerCase().includes(word);

function matches(service, instance) {
  if (place.unready && stateOf(service, instance) === 'ready') return false;
  return place.words.every((word) => textOf(instance).includes(word) || nameMatches(service, word));
}

const isFiltered = () => place.words.length > 0 || place.unready;

function isShown(service) {
  if (!isFiltered() || service.matching > 0) return true;
  return !place.unready && service.total === 0 && place.words.every((word) => nameMatches(service, word));
}

const malformedOf = (name) => problems.filter((problem) => problem.service === name && problem.kind === 'malformed');

/** Computes the figures of a service that the list shows. */
function count(service) {
  service.total = service.instances.size;
  service.states = {ejected: 0, unready: 0, leaving: 0, ready: 0};
  service.unreachable = 0;
  service.matching = 0;
  service.versions = new Map();
  service.zones = new Map();
  const tally = (map, value) => { if (value) map.set(value, (map.get(value) || 0) + 1); };
  for (const instance of service.instances.values()) {
    service.states[stateOf(service, instance)]++;
    if (instance.endpoints.length === 0) service.unreachable++;
    if (isFiltered() && matches(service, instance)) service.matching++;
    tally(service.versions, instance.version);
    tally(service.zones, instance.zone);
  }
}

function sortedKeys(service) {
  if (!service.keys) service.keys = [...service.instances.keys()].sort(inOrder);
  return service.keys;
}

/** The value to sort by, for each column. Without one, instances stay sorted by pod. */
const SORTS = {
  state: (service, instance) => STATES.indexOf(stateOf(service, instance)),
  version: (service, instance) => instance.version,
  zone: (service, instance) => instance.zone,
  picks: (service, instance) => (ratesOf(service.name, keyOf(instance)) || [0])[0],
};

/** The visible instances, in the chosen order. */
function shownKeys(service) {
  let keys = sortedKeys(service);
  if (isFiltered()) keys = keys.filter((key) => matches(service, service.instances.get(key)));
  const value = SORTS[place.sort];
  if (value) {
    const values = new Map(keys.map((key) => [key, value(service, service.instances.get(key))]));
    keys = [...keys].sort((a, b) => inOrder(values.get(a), values.get(b)));
  }
  return place.down ? [...keys].reverse() : keys;
}

const ORDERS = {
  unready: (service) => service.states.ready - service.total,
  size: (service) => -service.total,
};

/** The visible services, in the chosen order. */
function shownServices() {
  const shown = [...services.values()].filter(isShown).sort((a, b) => inOrder(a.name, b.name));
  const value = ORDERS[place.order];
  if (value) shown.sort((a, b) => value(a) - value(b));
  return shown.map((service) => service.name);
}
