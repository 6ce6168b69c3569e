// Selection, search, keyboard, and the connection to the server.

/** The server sends an event at least every 15 s. */
const SILENCE_MS = 40000;
let announcing = 0;

function leaveService(name) {
  if (name !== null) dirty.services.add(name);
  instanceList.clear();
  dirty.instances.clear();
  $('changes').replaceChildren();
  say($('changes-note'), '');
  $('detail').scrollTop = 0;
  scrollToOpened = true;
  dirty.status = true;
}

/** Goes back to the list, and focuses the service that was open. */
function goBack() {
  const name = place.service;
  const wide = getComputedStyle($('back')).display === 'none';
  if (!wide) {
    go({service: null});
    draw();
  }
  if (!serviceList.focus(name)) serviceList.focus();
}

function announceFound() {
  clearTimeout(announcing);
  announcing = setTimeout(() => say($('found'), found), 700);
}

const search = () => go({query: $('query').value, unready: $('unready').checked}, false);

function sortBy(column) {
  // Picks are sorted from the largest.
  const down = column === place.sort ? !place.down : column === 'picks';
  go({sort: column, down}, false);
}

function keyInSearch(key) {
  if (key === 'Escape' && $('query').value !== '') {
    $('query').value = '';
    search();
    return true;
  }
  if (key === 'Escape') return serviceList.focus();
  if (key !== 'ArrowDown' && key !== 'Enter') return false;
  // Draws first, so that the last keystrokes apply.
  draw();
  if (serviceList.keys.length > 0) serviceList.focus(serviceList.keys[0]);
  return true;
}

function keyInServices(key) {
  if (key === 'Escape') {
    $('query').focus();
    return true;
  }
  if (key !== 'Enter' && key !== 'ArrowRight') return serviceList.move(key);
  go({service: serviceList.focusedKey()});
  draw();
  if (place.view !== 'instances' || !instanceList.focus()) $('title').focus();
  return true;
}

function keyInDetail(event) {
  if (event.key === 'Escape' || event.key === 'ArrowLeft') {
    goBack();
    return true;
  }
  if ($('head').contains(event.target) && event.target !== $('title')) return false;
  return place.view === 'instances' && instanceList.move(event.key);
}

function onKey(event) {
  if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
  const target = event.target;
  let handled = false;
  if (target === $('query')) {
    handled = keyInSearch(event.key);
  } else if (event.key === '/') {
    $('query').focus();
    $('query').select();
    handled = true;
  } else if ($('services').contains(target)) {
    handled = keyInServices(event.key);
  } else if ($('detail').contains(target)) {
    handled = keyInDetail(event);
  }
  if (handled) event.preventDefault();
}

/** A link to a place on the page does not load the page. */
function onClick(event) {
  const link = event.target.closest('a[href^="#/"]');
  if (!link || event.ctrlKey || event.metaKey || event.shiftKey || event.button !== 0) return;
  event.preventDefault();
  history.pushState(null, '', link.hash);
  arrive();
}

// ------------------------------------------------------------------------------------ the colours

const THEMES = ['auto', 'light', 'dark'];
const THEME_NAMES = {auto: 'Colours: system', light: 'Colours: light', dark: 'Colours: dark'};

/** null if there is no stored theme, or if the browser stores nothing. */
function keptTheme() {
  try {
    return localStorage.getItem('theme');
  } catch {
    return null;
  }
}

function showTheme(theme) {
  document.documentElement.dataset.theme = theme;
  $('theme').setAttribute('aria-label', THEME_NAMES[theme]);
  $('theme').title = THEME_NAMES[theme];
  say($('theme'), {auto: '◐', light: '☀', dark: '☾'}[theme]);
}

function nextTheme() {
  const theme = THEMES[(THEMES.indexOf(document.documentElement.dataset.theme) + 1) % THEMES.length];
  try {
    localStorage.setItem('theme', theme);
  } catch {
    // The theme applies until the page is closed.
  }
  showTheme(theme);
}

// --------------------------------------------------------------------------------- the connection

let events = null;
let silence = 0;

function lose() {
  if (server.connected || !server.lost) server.lost = Date.now();
  server.connected = false;
  dirty.status = true;
  schedule();
}

function heard() {
  clearTimeout(silence);
  silence = setTimeout(() => {
    lose();
    connect();
  }, SILENCE_MS);
  if (!server.connected) {
    server.connected = true;
    server.lost = 0;
    dirty.status = true;
    schedule();
  }
}

function connect() {
  if (events) events.close();
  events = new EventSource('/api/events');
  events.addEventListener('about', (event) => {
    heard();
    server.source = JSON.parse(event.data).source;
  });
  events.addEventListener('alive', heard);
  events.addEventListener('update', (event) => {
    heard();
    take(JSON.parse(event.data));
  });
  events.onerror = () => {
    lose();
    // In most cases the browser reconnects itself.
    if (events.readyState === EventSource.CLOSED) setTimeout(connect, 2000);
  };
}

showTheme(THEMES.includes(keptTheme()) ? keptTheme() : 'auto');
document.addEventListener('keydown', onKey);
document.addEventListener('click', onClick);
$('theme').addEventListener('click', nextTheme);
$('query').addEventListener('input', search);
$('unready').addEventListener('change', search);
$('order').addEventListener('change', () => go({order: $('order').value}, false));
for (const button of document.querySelectorAll('#columns button')) button.addEventListener('click', () => sortBy(button.dataset.sort));
addEventListener('hashchange', arrive);
addEventListener('popstate', arrive);
arrive();
connect();
