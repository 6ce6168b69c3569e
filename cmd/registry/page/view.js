// Draws once per frame, and only changed, visible parts. Text is never interpreted as markup.

const $ = (id) => document.getElementById(id);
/** With more changes at a time, rows do not flash. */
const MOST_FLASHES = 30;
const calm = matchMedia('(prefers-reduced-motion: reduce)');

const STATE_NAMES = {ejected: 'Ejected', unready: 'Not ready', leaving: 'Leaving', ready: 'Ready'};

function make(tag, className, text) {
  const element = document.createElement(tag);
  if (className) element.className = className;
  if (text !== undefined) element.textContent = text;
  return element;
}

function say(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

const smallNumbers = new Intl.NumberFormat('en', {maximumFractionDigits: 1});
const largeNumbers = new Intl.NumberFormat('en', {maximumFractionDigits: 0});
const number = (n) => (n < 10 ? smallNumbers : largeNumbers).format(n);
const plural = (n, one, many = one + 's') => number(n) + ' ' + (n === 1 ? one : many);
const names = (map) => [...map.keys()].sort(inOrder).join(', ');
const tallies = (map) => [...map].sort((a, b) => inOrder(a[0], b[0])).map(([value, n]) => value + '\u00a0×\u00a0' + number(n)).join(', ');

const clockTime = new Intl.DateTimeFormat(undefined, {hour: '2-digit', minute: '2-digit', second: '2-digit', hour12: false});
const dayAndTime = new Intl.DateTimeFormat(undefined, {dateStyle: 'medium', timeStyle: 'medium', hour12: false});
function moment(ms) {
  const date = new Date(ms);
  return (date.toDateString() === new Date().toDateString() ? clockTime : dayAndTime).format(date);
}

// ------------------------------------------------------------------------------------ the services

function makeService(name) {
  const row = {root: make('li'), handle: make('a'), count: make('span', 'count'), malformed: make('span', 'bad'), facts: make('span')};
  const about = make('span', 'about');
  about.append(row.malformed, row.facts);
  row.handle.append(make('span', 'name', name), row.count, about);
  row.root.append(row.handle);
  return row;
}

function countText(service) {
  if (service.total === 0) return 'none';
  if (isFiltered() && service.matching < service.total) return number(service.matching) + ' of ' + number(service.total);
  const ready = service.states.ready;
  return ready < service.total ? number(ready) + '/' + number(service.total) + ' ready' : number(service.total) + ' ready';
}

/** "12 picks/s", or nothing. */
const picksText = (rates) => rates && rates[3] > 0 ? number(rates[0]) + ' picks/s' : '';

function updateService(row, name) {
  const service = services.get(name);
  if (!service) return;  // removed since the last frame; the next one removes the row
  row.handle.href = linkTo({service: name});
  say(row.count, countText(service));
  row.count.classList.toggle('short', service.states.ready < service.total || service.total === 0);
  const malformed = malformedOf(name).length;
  const of = traffic && traffic.services.get(name);
  say(row.malformed, malformed > 0 ? malformed + ' malformed · ' : '');
  say(row.facts, [names(service.versions), names(service.zones), picksText(of && of.all)].filter(Boolean).join(' · '));
  if (name === place.service) row.handle.setAttribute('aria-current', 'true');
  else row.handle.removeAttribute('aria-current');
}

// ----------------------------------------------------------------------------------- the instances

function makeInstance(key) {
  const row = {root: make('li'), handle: make('summary'), details: make('details'), body: null, instance: null, shown: ''};
  const cells = make('div', 'cells');
  for (const cell of ['ready', 'pod', 'version', 'zone', 'picks', 'endpoints', 'pairs']) {
    row[cell] = make('span', ['pod', 'endpoints', 'pairs'].includes(cell) ? cell + ' mono' : cell);
    cells.append(row[cell]);
  }
  row.handle.append(cells);
  row.details.append(row.handle);
  row.details.open = instanceList.open.has(key);
  row.details.addEventListener('toggle', () => {
    if (instanceList.rows.get(key) === row) instanceList.setOpen(key, row.details.open);
  });
  row.root.append(row.details);
  return row;
}

/** Why an instance is not used; empty if it is. */
function whyNot(service, instance) {
  const key = keyOf(instance);
  const fact = pods.get(key);
  const rates = ratesOf(service.name, key);
  const reasons = [fact && fact.why && !instance.ready ? fact.why : ''];
  if (rates && rates[2] > 0) reasons.push('ejected by ' + rates[2] + ' of ' + plural(rates[3], 'caller'));
  if (instance.endpoints.length === 0) reasons.push('declares no port: never picked');
  return reasons.filter(Boolean).join('; ');
}

function updateInstance(row, key) {
  const service = services.get(place.service);
  const instance = service && service.instances.get(key);
  if (!instance) return;  // removed since the last frame; the next one removes the row
  const state = stateOf(service, instance);
  const why = whyNot(service, instance);
  const changed = row.instance !== null && (row.instance !== instance || row.state !== state);
  Object.assign(row, {instance, state, why});
  say(row.ready, STATE_NAMES[state]);
  row.ready.className = 'ready ' + state;
  say(row.pod, key);
  say(row.version, instance.version);
  say(row.zone, instance.zone);
  const rates = ratesOf(service.name, key);
  say(row.picks, rates ? number(rates[0]) + (rates[1] > 0 ? ', ' + number(rates[1]) + ' fail' : '') : '');
  row.picks.classList.toggle('bad', Boolean(rates && rates[1] > 0));
  const [first = '', ...others] = instance.endpoints;
  say(row.endpoints, [first, ...others.length > 1 ? ['and ' + others.length + ' more'] : others].join('\n'));
  const pairs = Object.entries(instance.metadata).map(([name, value]) => name + '=' + value).join('  ');
  say(row.pairs, why || pairs);
  row.pairs.classList.toggle('bad', why !== '');
  drawBody(row);
  if (changed && !calm.matches && dirty.instances.size <= MOST_FLASHES) {
    row.root.animate({backgroundColor: ['var(--flash)', 'var(--panel)']}, 900);
  }
}

/** The details of an instance, for open rows. */
function drawBody(row) {
  if (row.body) row.body.remove();
  row.body = null;
  if (!row.details.open) return;
  const instance = row.instance;
  row.body = make('dl');
  const add = (name, value, mono) => {
    if (value) row.body.append(make('dt', '', name), make('dd', mono ? 'mono' : '', value));
  };
  add('Id', instance.id, true);
  add('Pod', instance.pod, true);
  add('Version', instance.version);
  add('Zone', instance.zone);
  add('State', STATE_NAMES[row.state].toLowerCase() + (row.why ? ': ' + row.why : ''));
  const rates = ratesOf(place.service, row.key);
  if (rates) add('Calls', number(rates[0]) + ' picks/s, ' + number(rates[1]) + ' errors/s, as ' + plural(rates[3], 'caller counts', 'callers count'));
  instance.endpoints.forEach((endpoint, i) => add(i === 0 ? 'Endpoints' : '\u00a0', endpoint, true));
  const pairs = Object.entries(instance.metadata);
  if (pairs.length > 0) row.body.append(make('dt', 'part', 'Metadata'));
  for (const [name, value] of pairs) add(name, value || '""', true);
  row.details.append(row.body);
}

const serviceList = new List({root: $('services'), scroller: $('list'), head: null, makeRow: makeService, updateRow: updateService});
const instanceList = new List({root: $('instances'), scroller: $('detail'), head: $('head'), makeRow: makeInstance, updateRow: updateInstance});

// ---------------------------------------------------------------------------------------- the page

let scrollToOpened = true;
/** The number of results, which is announced to screen readers when typing has stopped. */
let found = '';

function draw() {
  drawServices();
  drawDetail();
  if (dirty.problems) drawProblems();
  if (dirty.status) drawStatus();
  if (dirty.all) drawControls();
  dirty.services.clear();
  dirty.instances.clear();
  dirty.members = dirty.all = dirty.status = dirty.problems = dirty.changes = false;
  document.documentElement.dataset.revision = server.revision;
}

function drawServices() {
  if (!dirty.all && !dirty.members && dirty.services.size === 0) return;
  for (const name of dirty.all ? services.keys() : dirty.services) {
    const service = services.get(name);
    if (service) count(service);
  }
  const shown = shownServices();
  serviceList.sync(shown, dirty.all ? null : dirty.services);
  drawTotals(shown);
  if (scrollToOpened && serviceList.indexes.has(place.service)) {
    serviceList.reach(place.service);
    serviceList.scrollTo(place.service);
    scrollToOpened = false;
  }
}

function drawTotals(shown) {
  const sum = {total: 0, matching: 0, ejected: 0, unready: 0, leaving: 0};
  for (const service of services.values()) {
    sum.total += service.total;
    sum.matching += service.matching;
    for (const state of ['ejected', 'unready', 'leaving']) sum[state] += service.states[state];
  }
  const parts = [plural(services.size, 'service'), plural(sum.total, 'instance'), ...statesText(sum)];
  say($('totals'), server.synced ? parts.join(', ') : '');
  const nothing = $('no-services');
  nothing.hidden = shown.length > 0 || !server.synced;
  say(nothing, services.size === 0 ? 'No service has announced itself here yet.'
    : place.words.length > 0 ? 'Nothing matches this search.' : 'All instances are ready.');
  found = isFiltered() ? plural(shown.length, 'service') + ', ' + plural(sum.matching, 'instance') + ' found' : '';
}

/** ["3 not ready", "1 leaving"]: the numbers of instances in states other than ready. */
function statesText(states) {
  return ['unready', 'leaving', 'ejected'].filter((state) => states[state] > 0)
    .map((state) => number(states[state]) + ' ' + STATE_NAMES[state].toLowerCase());
}

function drawDetail() {
  const name = place.service;
  const service = name === null ? null : services.get(name);
  document.querySelector('main').classList.toggle('open', name !== null);
  $('keys').hidden = name !== null;
  $('views').hidden = name === null;
  const changes = name !== null && place.view === 'changes';
  $('columns').hidden = changes || !service || service.total === 0;
  $('instances').hidden = changes;
  $('changes').hidden = $('changes-note').hidden = !changes;
  if (!service) drawNoService(name);
  else if (dirty.all || dirty.services.has(name)) drawService(service);
  if (changes && dirty.changes) loadChanges();
}

function drawNoService(name) {
  instanceList.clear();
  say($('title'), name === null ? 'No service chosen' : name);
  say($('summary'), name === null ? 'Choose one to see its instances.'
    : server.synced ? 'This service does not exist (any more).' : '');
  $('trouble').hidden = true;
}

function drawService(service) {
  const keys = shownKeys(service);
  say($('title'), service.name);
  const parts = [[plural(service.total, 'instance'), ...statesText(service.states)].join(', ')];
  if (isFiltered()) parts[0] += ', ' + number(keys.length) + ' shown';
  if (service.versions.size > 0) parts.push(tallies(service.versions));
  if (service.zones.size > 0) parts.push(tallies(service.zones));
  const of = traffic && traffic.services.get(service.name);
  if (of && of.all[3] > 0) parts.push(picksText(of.all) + ', ' + number(of.all[1]) + ' errors/s');
  say($('summary'), service.total === 0 ? 'It is announced, but no pod of it is running.' : parts.join(' · '));
  drawTrouble(service);
  if (place.view === 'instances') instanceList.sync(keys, dirty.all ? null : dirty.instances);
}

/** The problems of the open service. */
function drawTrouble(service) {
  const lines = malformedOf(service.name).map((problem) => problem.where + ': ' + problem.reason);
  if (service.unreachable > 0) lines.push(plural(service.unreachable, 'instance declares', 'instances declare') + ' no port: never picked');
  const most = 5;
  if (lines.length > most) lines.splice(most, Infinity, 'and ' + (lines.length - most) + ' more');
  $('trouble').hidden = lines.length === 0;
  $('trouble').replaceChildren(...lines.map((line) => make('li', '', line)));
}

const PROBLEM_NAMES = {namespace: 'Not followed', malformed: 'Malformed', pods: 'Pods', metrics: 'Metrics'};

function problemText(problem) {
  const where = problem.kind === 'namespace' ? (problem.where ? 'namespace ' + problem.where : 'all namespaces') : problem.where;
  const at = problem.at > 0 ? ' (' + moment(problem.at) + ')' : '';
  return (where ? where + ': ' : '') + (problem.code ? problem.code + ', ' : '') + problem.reason + at;
}

function drawProblems() {
  $('problems').hidden = problems.length === 0;
  if (problems.length === 0) return;
  const kinds = new Map();
  for (const problem of problems) kinds.set(problem.kind, (kinds.get(problem.kind) || 0) + 1);
  const of = [...kinds].map(([kind, n]) => number(n) + ' ' + PROBLEM_NAMES[kind].toLowerCase()).join(', ');
  say($('problems-summary'), problemsInAll === 1 ? PROBLEM_NAMES[problems[0].kind] + ': ' + problemText(problems[0])
    : plural(problemsInAll, 'problem') + ': ' + of);
  const lines = problems.map((problem) => {
    const line = make('li');
    line.append(make('b', '', PROBLEM_NAMES[problem.kind]), ' ', make('span', '', problemText(problem)));
    return line;
  });
  if (problemsInAll > problems.length) lines.push(make('li', '', 'and ' + number(problemsInAll - problems.length) + ' more'));
  $('problems-list').replaceChildren(...lines);
}

function stateOfPage() {
  if (!server.connected) return server.lost ? 'disconnected' : 'connecting';
  if (!server.synced) return 'waiting';
  return server.live ? 'live' : 'stale';
}

function drawStatus() {
  const state = stateOfPage();
  const since = state === 'disconnected' ? server.lost : server.since;
  const why = server.error ? ' (' + server.error + ')' : '';
  const texts = {
    connecting: ['Connecting', ''],
    waiting: ['Waiting for data', 'The API server has not answered yet' + why + '.'],
    live: ['Live', ''],
    stale: ['Stale since ' + moment(since), 'The API server cannot be reached' + why + ': showing the state of ' + moment(since) + '.'],
    disconnected: ['Disconnected since ' + moment(since), 'lookout registry serve cannot be reached: showing the state of ' + moment(since) + '.'],
  }[state];
  document.documentElement.dataset.state = state;
  document.title = (state === 'live' ? '' : '(' + state + ') ') + (place.service ? place.service + ' – ' : '') + 'Services';
  say($('state'), texts[0]);
  say($('banner'), texts[1]);
  $('banner').hidden = texts[1] === '';
  const asked = traffic ? ', metrics of ' + traffic.answered + ' of ' + plural(traffic.asked, 'program') : '';
  say($('source'), server.source + asked);
}

/** Sets the controls to the state in the address. */
function drawControls() {
  if (document.activeElement !== $('query') || placeOf('#/?' + new URLSearchParams({q: $('query').value})).query !== place.query) {
    $('query').value = place.query;
  }
  $('unready').checked = place.unready;
  $('order').value = place.order;
  document.documentElement.classList.toggle('traffic', traffic !== null);
  for (const button of document.querySelectorAll('#columns button')) {
    const chosen = button.dataset.sort === place.sort;
    button.dataset.direction = chosen ? (place.down ? '↓' : '↑') : '';
    button.setAttribute('aria-pressed', String(chosen));
  }
  for (const link of document.querySelectorAll('#views a')) {
    link.href = linkTo({view: link.dataset.view});
    if (link.dataset.view === place.view) link.setAttribute('aria-current', 'true');
    else link.removeAttribute('aria-current');
  }
  $('back').href = linkTo({service: null});
}
