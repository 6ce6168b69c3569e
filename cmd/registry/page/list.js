// A list of any length; only the visible rows are in the document.

/** Rows beyond each edge of the view that exist already, so that scrolling shows them immediately. */
const OVERSCAN_PX = 400;

/** Rows of equal height (the style sheet's --row), except open ones, which are higher. One row
 *  can be reached with Tab, the others with arrows; that row and the one with the focus are always
 *  in the document. */
class List {
  /** `makeRow()` returns {root, handle, ...}; `updateRow(row, key)` writes it. `head` covers the top
   *  of what scrolls, or is null. */
  constructor({root, scroller, head, makeRow, updateRow}) {
    Object.assign(this, {root, scroller, head, makeRow, updateRow});
    this.rows = new Map();
    this.clear();
    root.addEventListener('focusin', (event) => {
      const row = this.rowOf(event.target);
      if (row) this.reach(row.key);
    });
    scroller.addEventListener('scroll', () => this.drawSoon(), {passive: true});
    const sizes = new ResizeObserver(() => this.drawSoon());
    for (const element of [scroller, root, head]) if (element) sizes.observe(element);
  }

  clear() {
    this.view = {row: 0, top: 0, height: 0};
    this.root.replaceChildren();
    this.root.style.height = '0';
    this.rows.clear();
    this.keys = [];
    this.indexes = new Map();
    this.open = new Map();  // key -> how much higher than the others
    this.current = null;
  }

  /** Shows these keys; updates the rows in `changed` (null: all). */
  sync(keys, changed) {
    const focused = this.focusedKey();
    const index = this.indexes.get(focused);
    if (keys !== this.keys) {
      this.keys = keys;
      this.indexes = new Map(keys.map((key, i) => [key, i]));
    }
    if (!this.indexes.has(this.current)) this.current = keys.length > 0 ? keys[Math.min(index || 0, keys.length - 1)] : null;
    const lost = focused !== null && !this.indexes.has(focused);
    this.draw(changed);
    if (lost && this.current !== null) this.focus();
  }

  /** Call it when something has moved or changed its size. */
  drawSoon() {
    if (this.waiting) return;
    this.waiting = true;
    requestAnimationFrame(() => {
      this.waiting = false;
      this.look();
      this.draw(new Set());
    });
  }

  /** Finds the part that is in view. Call it before a frame changes the document: afterwards
   *  the browser would have to lay it out for the answer. */
  look() {
    this.view = {
      row: parseFloat(getComputedStyle(this.root).getPropertyValue('--row')),
      top: this.scroller.scrollTop - this.root.offsetTop,
      height: this.scroller.clientHeight,
    };
  }

  draw(changed) {
    if (this.view.row === 0) this.look();
    this.openIndexes = [...this.open].map(([key, extra]) => [this.indexes.get(key), extra]).filter(([i]) => i !== undefined);
    this.root.style.height = this.topOf(this.keys.length) + 'px';
    const first = this.indexAt(this.view.top - OVERSCAN_PX);
    const last = this.indexAt(this.view.top + this.view.height + OVERSCAN_PX);
    const indexes = [];
    for (let i = first; i <= last && i < this.keys.length; i++) indexes.push(i);
    for (const key of [this.current, this.focusedKey()]) {
      const i = this.indexes.get(key);
      if (i !== undefined && !indexes.includes(i)) indexes.push(i);
    }
    indexes.sort((a, b) => a - b);
    this.keepRows(new Set(indexes.map((i) => this.keys[i])));
    this.placeRows(indexes, changed);
    if (this.measure()) this.draw(new Set());
  }

  keepRows(wanted) {
    for (const [key, row] of this.rows) {
      if (wanted.has(key)) continue;
      row.root.remove();
      this.rows.delete(key);
    }
  }

  placeRows(indexes, changed) {
    let at = this.root.firstElementChild;
    for (const i of indexes) {
      const key = this.keys[i];
      const known = this.rows.get(key);
      const row = known || this.addRow(key);
      if (!known || changed === null || changed.has(key)) this.updateRow(row, key);
      row.root.style.top = this.topOf(i) + 'px';
      row.root.ariaPosInSet = String(i + 1);
      row.root.ariaSetSize = String(this.keys.length);
      row.handle.tabIndex = key === this.current ? 0 : -1;
      if (row.root === at) at = at.nextElementSibling;
      else this.root.insertBefore(row.root, at);
    }
  }

  addRow(key) {
    const row = this.makeRow(key);
    row.key = key;
    row.root.row = row;
    row.handle.dataset.handle = '';
    this.rows.set(key, row);
    return row;
  }

  /** Measures the open rows in view; true if a height has changed. */
  measure() {
    let news = false;
    for (const key of this.open.keys()) {
      const row = this.rows.get(key);
      const extra = row ? Math.max(0, row.root.offsetHeight - this.view.row) : 0;
      if (!row || extra === this.open.get(key)) continue;
      this.open.set(key, extra);
      news = true;
    }
    return news;
  }

  setOpen(key, open) {
    if (open === this.open.has(key)) return;
    if (open) this.open.set(key, 0);
    else this.open.delete(key);
    this.draw(new Set([key]));
  }

  topOf(index) {
    let top = index * this.view.row;
    for (const [i, extra] of this.openIndexes) if (i < index) top += extra;
    return top;
  }

  /** The row at this height. */
  indexAt(top) {
    let low = 0;
    let high = this.keys.length;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (this.topOf(middle) <= top) low = middle;
      else high = middle - 1;
    }
    return low;
  }

  rowOf(element) {
    const root = element && element.closest('li');
    return root && root.parentElement === this.root ? root.row : null;
  }

  focusedKey() {
    const row = this.rowOf(document.activeElement);
    return row ? row.key : null;
  }

  reach(key) {
    if (this.current === key) return;
    const before = this.rows.get(this.current);
    if (before) before.handle.tabIndex = -1;
    this.current = key;
    const row = this.rows.get(key);
    if (row) row.handle.tabIndex = 0;
  }

  /** Scrolls until the row is visible. */
  scrollTo(key) {
    const i = this.indexes.get(key);
    if (i === undefined) return;
    const top = this.root.offsetTop + this.topOf(i);
    const bottom = this.root.offsetTop + this.topOf(i + 1);
    const covered = this.head && getComputedStyle(this.head).position === 'sticky' ? this.head.offsetHeight : 0;
    if (top < this.scroller.scrollTop + covered) this.scroller.scrollTop = top - covered;
    else if (bottom > this.scroller.scrollTop + this.scroller.clientHeight) this.scroller.scrollTop = bottom - this.scroller.clientHeight;
    this.look();
    this.draw(new Set());
  }

  /** Moves the focus if the key is for that; otherwise returns false. */
  move(key) {
    const here = this.indexes.get(this.focusedKey());
    if (here === undefined) return key === 'ArrowDown' && this.focus();
    const page = Math.max(1, Math.floor(this.scroller.clientHeight / this.view.row) - 2);
    const to = {ArrowDown: here + 1, ArrowUp: here - 1, PageDown: here + page, PageUp: here - page, Home: 0, End: this.keys.length - 1}[key];
    if (to === undefined) return false;
    this.focus(this.keys[Math.min(Math.max(to, 0), this.keys.length - 1)]);
    return true;
  }

  focus(key = this.current) {
    if (!this.indexes.has(key)) return false;
    this.reach(key);
    this.scrollTo(key);
    this.rows.get(key).handle.focus({preventScroll: true});
    return true;
  }
}
