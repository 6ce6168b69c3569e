// The last changes of the open service. The server keeps them; the page requests them when they are
// shown, and again when the service has changed.

const changes = {fetching: false, again: false};
const EVENT_NAMES = {came: 'Came', left: 'Left', ready: 'Ready', 'not ready': 'Not ready', leaving: 'Leaving', changed: 'Changed'};

async function loadChanges() {
  if (changes.fetching) {
    changes.again = true;
    return;
  }
  const name = place.service;
  changes.fetching = true;
  try {
    const answer = await fetch('/api/history/' + encodeURIComponent(name));
    if (!answer.ok) throw new Error(String(answer.status));
    const told = await answer.json();
    if (name === place.service) drawChanges(told.changes);
  } catch {
    say($('changes-note'), 'The changes are not available at the moment.');
  } finally {
    changes.fetching = false;
  }
  if (changes.again || name !== place.service) {
    changes.again = false;
    if (place.view === 'changes' && place.service !== null) loadChanges();
  }
}

function drawChanges(list) {
  say($('changes-note'), list.length === 0 ? 'Nothing has changed since lookout registry serve was started.' : '');
  $('changes').replaceChildren(...list.map((change) => {
    const line = make('li', 'change');
    const time = make('time', '', moment(change.at));
    time.dateTime = new Date(change.at).toISOString();
    line.append(time, make('span', 'event ' + change.event.replace(' ', '-'), EVENT_NAMES[change.event] || change.event),
      make('span', 'pod mono', change.pod), make('span', 'detail', change.detail));
    return line;
  }));
}
