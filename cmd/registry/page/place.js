// The address: the open service, the search and the order, so that a link shows the same view to
// others.

/** "#/web?q=zone-b&show=not-ready&sort=-version&order=unready&view=changes" as an object. */
function placeOf(hash) {
  const out = {service: null, query: '', words: [], unready: false, sort: 'pod', down: false, order: 'name', view: 'instances'};
  if (!hash.startsWith('#/')) return out;
  const [path, ...rest] = hash.slice(2).split('?');
  try {
    out.service = decodeURIComponent(path) || null;
  } catch {
    return out;
  }
  const parameters = new URLSearchParams(rest.join('?'));
  const sort = parameters.get('sort') || '';
  const column = sort.replace(/^-/, '');
  out.query = parameters.get('q') || '';
  out.words = out.query.toLowerCase().split(/\s+/).filter(Boolean);
  out.unready = parameters.get('show') === 'not-ready';
  if (column === 'pod' || Object.hasOwn(SORTS, column)) out.sort = column;
  out.down = sort.startsWith('-');
  if (Object.hasOwn(ORDERS, parameters.get('order') || '')) out.order = parameters.get('order');
  if (parameters.get('view') === 'changes') out.view = 'changes';
  return out;
}

function hashOf(to) {
  const parameters = new URLSearchParams();
  if (to.query !== '') parameters.set('q', to.query);
  if (to.unready) parameters.set('show', 'not-ready');
  if (to.sort !== 'pod' || to.down) parameters.set('sort', (to.down ? '-' : '') + to.sort);
  if (to.order !== 'name') parameters.set('order', to.order);
  if (to.view !== 'instances' && to.service !== null) parameters.set('view', to.view);
  const text = parameters.toString();
  return '#/' + (to.service === null ? '' : encodeURIComponent(to.service)) + (text ? '?' + text : '');
}

let place = placeOf(location.hash);

const linkTo = (change) => hashOf({...place, ...change});

/** Changes the address, and shows the new view. `step`: adds an entry to the browser's history. */
function go(change, step = true) {
  const hash = linkTo(change);
  if (hash !== location.hash && !(hash === '#/' && location.hash === '')) {
    history[step ? 'pushState' : 'replaceState'](null, '', hash);
  }
  arrive();
}

/** Shows the view that the address describes. */
function arrive() {
  const before = place;
  place = placeOf(location.hash);
  if (place.service !== before.service) leaveService(before.service);
  if (place.query !== before.query || place.unready !== before.unready) announceFound();
  dirty.all = dirty.changes = true;
  schedule();
}
