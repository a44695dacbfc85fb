// Makes the pages live. Everything can be read without it.
//
// What must stay true:
// - A leader is shown as such only until its ttl is over, counted from before it was asked for.
//   Nothing but an answer of the server extends that.
// - Events come from the place after the last one that was taken in: none is missed, whatever
//   happened to the server or to this page meanwhile.
// - Text of strangers is text: it is written by textContent and setAttribute alone.
"use strict";

(() => {
  const body = document.body;
  const here = body.dataset.page;
  const $ = (id) => document.getElementById(id);
  const all = (selector, root = document) => [...root.querySelectorAll(selector)];

  // ---- time

  // Milliseconds since before this page was asked for. The browser's own counter may stand still
  // while the machine is suspended: whichever clock went further counts.
  const now = (() => {
    let sum = performance.now();
    let counter = sum;
    let wall = Date.now();
    return () => {
      const counter_now = performance.now();
      const wall_now = Date.now();
      sum += Math.max(counter_now - counter, wall_now - wall, 0);
      counter = counter_now;
      wall = wall_now;
      return sum;
    };
  })();

  // The server's wall clock, for "since"; for people alone.
  const ahead = Number(body.dataset.now || Date.now()) - Date.now();

  const whole = (millis) => {
    const secs = Math.max(0, Math.floor(millis / 1000));
    const two = (large, unit, small, less) => (small ? `${large}${unit}${small}${less}` : `${large}${unit}`);
    if (secs < 60) return `${secs}s`;
    if (secs < 3600) return two(Math.floor(secs / 60), "m", secs % 60, "s");
    if (secs < 86400) return two(Math.floor(secs / 3600), "h", Math.floor((secs % 3600) / 60), "m");
    return two(Math.floor(secs / 86400), "d", Math.floor((secs % 86400) / 3600), "h");
  };

  const put = (element, text) => {
    if (element.textContent !== text) element.textContent = text;
  };

  // Letters that turn, hide or break text, written out as the server does.
  const HIDDEN =
    /[\p{Cc}\u00ad\u034f\u0600-\u0605\u061c\u06dd\u070f\u0890\u0891\u08e2\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\u{110bd}\u{110cd}\u{13430}-\u{1343f}\u{1bca0}-\u{1bca3}\u{1d173}-\u{1d17a}\u{e0000}-\u{e0fff}]/gu;
  const shown = (text) =>
    text.replace(HIDDEN, (letter) => `\\u{${letter.codePointAt(0).toString(16)}}`);

  const show_left = (element, deadline, at) => {
    const left = Math.max(0, deadline - at);
    const part = Math.min(1, left / Math.max(1, Number(element.dataset.ttl)));
    put(element.querySelector(".secs"), whole(left));
    const fill = element.querySelector(".fill");
    const width = `${(part * 100).toFixed(1)}%`;
    if (fill.getAttribute("width") !== width) fill.setAttribute("width", width);
    element.toggleAttribute("data-low", part < 0.4);
  };

  // ---- asking

  const log_in = () => {
    location.assign(`/login?next=${encodeURIComponent(location.pathname + location.search)}`);
  };

  const ask = async (path, accept) => {
    const sent = now();
    const headers = { accept: accept || "application/json" };
    const answer = await fetch(path, { headers, cache: "no-store", signal: AbortSignal.timeout(5000) });
    if (answer.status === 401 || (answer.redirected && new URL(answer.url).pathname === "/login")) {
      log_in();
      throw new Error("a token is needed");
    }
    if (!answer.ok && !(accept && answer.status === 404)) {
      const problem = await answer.json().catch(() => ({}));
      throw Object.assign(new Error(problem.detail || `the answer is ${answer.status}`), problem);
    }
    return { sent, answer };
  };

  const ask_json = async (path) => {
    const { sent, answer } = await ask(path);
    return { sent, said: await answer.json() };
  };

  const ask_page = async (path) => {
    const { sent, answer } = await ask(path, "text/html");
    return { sent, page: new DOMParser().parseFromString(await answer.text(), "text/html") };
  };

  // ---- whether the server and the store are there

  const health = { feed: "opening", server: null, store: null, interrupted: false, since: null };

  const tell_health = () => {
    const live = $("live");
    const away = $("away");
    const because =
      health.server !== null || health.feed === "away" ? "The server does not answer"
      : health.store !== null || health.interrupted ? "The store does not answer"
      : null;
    if (because === null) {
      health.since = null;
      away.hidden = true;
      const state = health.feed === "open" ? "live" : "still";
      live.dataset.state = state;
      live.querySelector("use").setAttribute("href", `#i-${state}`);
      put(live.querySelector("span"), state === "live" ? "live" : "connecting");
      return;
    }
    if (health.since === null) health.since = now();
    const text = `${because} since ${whole(now() - health.since)}. Leaders are shown until their ttl ends.`;
    if (away.hidden) put(away, text);
    away.hidden = false;
    live.dataset.state = "away";
    live.querySelector("use").setAttribute("href", "#i-silent");
    put(live.querySelector("span"), `away for ${whole(now() - health.since)}`);
  };

  const heard = () => {
    health.server = null;
    health.store = null;
    tell_health();
  };

  const not_heard = (error) => {
    if (error.code === "stale" || error.code === "store_away") health.store = error.message;
    else health.server = error.message;
    tell_health();
  };

  // ---- events

  let seq = Number(body.dataset.seq || 0);
  let source = null;

  // What the page at hand does: `entry` with each entry, `settle` after some, `everything` when
  // entries may be missing, `pulse` now and then, `tick` often.
  // A pulse that fails throws; the others tell by themselves.
  const page = { entry() {}, settle() {}, everything() {}, async pulse() {}, tick() {}, pause: () => 2000 };

  let settling = 0;
  const settle_soon = () => {
    if (!settling) {
      settling = setTimeout(() => {
        settling = 0;
        page.settle();
      }, 15);
    }
  };

  // A journal that stays before the place that was taken in is another one: the store was
  // emptied, or an older copy was put back. An answer may be a second old, and so a few may be
  // behind without that.
  let behind = 0;
  const reached = (there) => {
    behind = there < seq ? behind + 1 : 0;
    if (behind >= 4) location.reload();
  };

  const follow = () => {
    if (source) source.close();
    source = new EventSource(`/v1/events?after=${seq}`);
    const from = source;
    let was_away = health.feed === "away";
    source.onopen = () => {
      if (source !== from) return;
      health.feed = "open";
      // If the store is still away, the server says so again.
      health.interrupted = false;
      heard();
      if (was_away) page.everything();
      was_away = false;
    };
    source.onmessage = (event) => {
      if (source !== from) return;
      const entry = JSON.parse(event.data);
      if (entry.seq <= seq) return;
      seq = entry.seq;
      page.entry(entry);
      settle_soon();
    };
    const reread = (event) => {
      if (source !== from) return;
      const said = JSON.parse(event.data || "{}");
      if (typeof said.seq === "number") seq = Math.max(seq, said.seq);
      health.interrupted = false;
      heard();
      page.everything();
    };
    for (const name of ["snapshot", "skipped", "restored"]) source.addEventListener(name, reread);
    source.addEventListener("interrupted", () => {
      health.interrupted = true;
      tell_health();
    });
    source.onerror = () => {
      if (source !== from) return;
      was_away = true;
      health.feed = "away";
      tell_health();
      // The browser's own attempts are seconds apart, and end at an answer that is no stream.
      from.close();
      setTimeout(() => {
        if (source === from && !document.hidden) follow();
      }, 400 + Math.random() * 600);
    };
  };

  // A browser has six connections for a server: pages that are out of sight keep none.
  document.addEventListener("visibilitychange", () => {
    if (!here) return;
    if (document.hidden) {
      if (source) source.close();
      source = null;
      health.feed = "opening";
    } else {
      follow();
      page.everything();
    }
  });
  addEventListener("pageshow", (event) => {
    if (event.persisted) location.reload();
  });

  // ---- the list of elections

  const elections = () => {
    const table = $("elections");
    const rows = table.tBodies[0];
    const template = $("row").content.firstElementChild;
    const ttl_template = $("ttl").content.firstElementChild;
    const search = $("q");
    const counts = all("#counts a");
    const items = new Map();
    const lives = new Map();
    let order = [];
    let fit = [];
    let which = new URLSearchParams(location.search).get("show") || "all";
    let stale_order = false;

    const RANK = { vacant: 0, "held-up": 0, silent: 0, kept: 1, stopping: 2, led: 3 };
    const WORD = { vacant: "vacant", "held-up": "held up", silent: "silent", kept: "kept", stopping: "stepping down", led: "led" };
    const by = (reason, who) => (who && reason ? `by ${who}: ${reason}` : who ? `by ${who}` : reason || "no reason given");

    const state_of = (item, at) => {
      if (item.leader) {
        if (at >= item.deadline) return "silent";
        return item.step_down ? "stopping" : "led";
      }
      return item.held_up ? "held-up" : item.reserved ? "kept" : "vacant";
    };

    const rank = (item) => {
      const rank = RANK[item.state];
      return rank === 3 && (item.paused || item.flaps) ? 2 : rank;
    };

    const is = {
      all: () => true,
      vacant: (item) => item.state !== "led" && item.state !== "stopping",
      paused: (item) => item.paused !== null,
      flapping: (item) => item.flaps,
      led: (item) => item.state === "led" || item.state === "stopping",
    };

    const note = (item) => {
      if (!item.leader && item.held_up) return item.held_up.because;
      if (!item.leader && item.reserved) return `kept for ${item.reserved.for}`;
      if (item.leader && item.step_down) return by(item.step_down.reason, item.step_down.by);
      return item.paused ? by(item.paused.reason, item.paused.by) : "";
    };

    // An election as the server tells it.
    const take = (said, sent) => {
      const old = items.get(said.election);
      const item = old || { name: said.election, key: said.election.toLowerCase(), starts: [], flaps: false };
      item.leader = said.leader ? said.leader.id : null;
      item.life = said.leader ? said.leader.incarnation : null;
      item.term = said.term;
      item.since = said.elected_at ? Date.parse(said.elected_at) : null;
      item.paused = said.paused;
      item.step_down = said.step_down;
      item.reserved = said.reserved;
      item.held_up = said.held_up;
      item.candidates = said.candidates.length;
      item.deadline = said.leader ? sent + said.expires_in_ms : 0;
      const life = item.life && lives.get(item.life);
      item.ttl = life ? life.ttl : Math.max(1, said.expires_in_ms || 1);
      items.set(item.name, item);
      return item;
    };

    // ---- rows in sight

    const pool = new Map();
    const pads = [0, 1].map(() => {
      const pad = document.createElement("tr");
      pad.className = "pad";
      pad.setAttribute("aria-hidden", "true");
      pad.append(document.createElement("td"));
      pad.firstChild.colSpan = 7;
      return pad;
    });

    const fill = (row, item, index) => {
      row.item = item;
      const wanted = `${item.name}|${item.state}|${item.term}|${item.leader}|${item.flaps}|${item.candidates}|${note(item)}|${!!item.paused}`;
      if (row.getAttribute("aria-rowindex") !== String(index + 2)) row.setAttribute("aria-rowindex", index + 2);
      if (row.wanted === wanted) return;
      row.wanted = wanted;
      row.dataset.state = item.state;
      row.querySelector(".state use").setAttribute("href", `#i-${item.state}`);
      put(row.querySelector(".word span"), WORD[item.state]);
      const link = row.querySelector(".name a");
      link.href = `/election?name=${encodeURIComponent(item.name)}`;
      put(link.firstElementChild, shown(item.name));
      row.querySelector(".name").title = shown(item.name);
      row.querySelector(".paused").hidden = !item.paused;
      row.querySelector(".flaps").hidden = !item.flaps;
      const who = row.querySelector(".who");
      const name = document.createElement("bdi");
      name.textContent = item.leader ? shown(item.leader) : "no leader";
      who.replaceChildren(...(item.state === "silent" ? ["was ", name] : [name]));
      put(row.querySelector(".note"), shown(note(item)));
      put(row.querySelector(".term"), String(item.term));
      put(row.querySelector(".cands"), String(item.candidates));
      const led = is.led(item);
      const since = row.querySelector(".since");
      if (!led) since.replaceChildren();
      else if (!since.firstChild) since.append(document.createElement("time"));
      const ttl = row.querySelector(".ttl");
      if (!led) ttl.replaceChildren();
      else if (!ttl.firstChild) ttl.append(ttl_template.cloneNode(true));
    };

    const count_down = (row, at) => {
      const item = row.item;
      if (!is.led(item)) return;
      if (item.since) put(row.querySelector(".since time"), whole(Date.now() + ahead - item.since));
      const left = row.querySelector(".left");
      if (left.dataset.ttl !== String(item.ttl)) left.dataset.ttl = item.ttl;
      show_left(left, item.deadline, at);
    };

    let height = 0;
    const draw = () => {
      if (!height) {
        const first = [...rows.children].find((row) => !row.classList.contains("pad"));
        height = (first && first.getBoundingClientRect().height) || 40;
      }
      const top = rows.getBoundingClientRect().top;
      const first = Math.max(0, Math.floor(-top / height) - 12);
      const last = Math.min(fit.length, Math.ceil((innerHeight - top) / height) + 12);
      const from = Math.min(first, Math.max(0, fit.length - 1));
      const at = now();
      const wanted = new Set();
      pads[0].firstChild.style.height = `${from * height}px`;
      pads[1].firstChild.style.height = `${Math.max(0, fit.length - Math.max(last, from)) * height}px`;
      if (rows.firstChild !== pads[0]) rows.replaceChildren(pads[0], pads[1]);
      for (let index = from; index < last; index++) wanted.add(fit[index].name);
      const spare = [];
      for (const [name, row] of pool) {
        if (wanted.has(name)) continue;
        pool.delete(name);
        spare.push(row);
      }
      const focused = document.activeElement;
      let cursor = pads[0].nextSibling;
      for (let index = from; index < last; index++) {
        const item = fit[index];
        let row = pool.get(item.name);
        if (!row) {
          row = spare.pop() || template.cloneNode(true);
          pool.set(item.name, row);
        }
        fill(row, item, index);
        count_down(row, at);
        if (row !== cursor) rows.insertBefore(row, cursor);
        else cursor = cursor.nextSibling;
      }
      for (const row of spare) row.remove();
      // A row that was moved has lost the focus.
      if (focused !== document.activeElement && focused.isConnected) focused.focus({ preventScroll: true });
    };

    let drawing = 0;
    const draw_soon = () => {
      if (!drawing) {
        drawing = requestAnimationFrame(() => {
          drawing = 0;
          draw();
        });
      }
    };

    // ---- which rows

    const arrange = () => {
      const at = now();
      const recent = Date.now() + ahead - 600000;
      for (const item of items.values()) {
        item.state = state_of(item, at);
        if (item.starts.length) {
          item.starts = item.starts.filter((start) => start >= recent);
          item.flaps = item.starts.length >= 5;
        }
      }
      if (stale_order) {
        const names = new Intl.Collator("en", { numeric: false });
        order = [...items.values()].sort((a, b) => names.compare(a.name, b.name));
        stale_order = false;
      }
      const ranks = [[], [], [], []];
      for (const item of order) ranks[rank(item)].push(item);
      order_by_rank = ranks.flat();
      select();
    };

    let order_by_rank = [];
    const select = () => {
      const text = search.value.trim().toLowerCase();
      const wanted = is[which] || is.all;
      const tally = { all: 0, vacant: 0, paused: 0, flapping: 0, led: 0 };
      fit = [];
      for (const item of order_by_rank) {
        for (const kind in tally) if (is[kind](item)) tally[kind]++;
        if (!wanted(item)) continue;
        if (text && !item.key.includes(text) && !(item.leader && item.leader.toLowerCase().includes(text))) continue;
        fit.push(item);
      }
      for (const link of counts) {
        const kind = link.dataset.show;
        put(link.querySelector("b"), String(tally[kind]));
        link.toggleAttribute("data-some", tally[kind] > 0);
        if (kind === which) link.setAttribute("aria-current", "true");
        else link.removeAttribute("aria-current");
      }
      table.hidden = items.size === 0;
      table.setAttribute("aria-rowcount", fit.length + 1);
      $("empty").hidden = items.size !== 0;
      $("none").hidden = items.size === 0 || fit.length !== 0;
      draw();
    };

    const remember = () => {
      const query = new URLSearchParams();
      if (which !== "all") query.set("show", which);
      if (search.value) query.set("q", search.value);
      history.replaceState(null, "", query.size ? `/?${query}` : "/");
    };

    search.addEventListener("input", () => {
      scrollTo(0, 0);
      select();
      remember();
    });
    search.form.addEventListener("submit", (event) => event.preventDefault());
    for (const link of counts) {
      link.addEventListener("click", (event) => {
        if (event.ctrlKey || event.metaKey || event.shiftKey) return;
        event.preventDefault();
        which = link.dataset.show;
        select();
        remember();
      });
    }
    addEventListener("scroll", draw_soon, { passive: true });
    addEventListener("resize", () => {
      height = 0;
      draw_soon();
    });

    // Arrows go from row to row, also to those that are not drawn yet.
    const go = (index) => {
      if (index < 0 || index >= fit.length) return;
      const top = rows.getBoundingClientRect().top + scrollY + index * height;
      if (top < scrollY + 140) scrollTo(0, top - 140);
      if (top + height > scrollY + innerHeight) scrollTo(0, top + height - innerHeight + 20);
      draw();
      const row = pool.get(fit[index].name);
      if (row) row.querySelector("a").focus({ preventScroll: true });
    };
    document.addEventListener("keydown", (event) => {
      const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
      if (!step || event.altKey || event.ctrlKey || event.metaKey) return;
      const row = document.activeElement.closest ? document.activeElement.closest("tr") : null;
      const from = row && row.item ? fit.indexOf(row.item) : null;
      if (from === null && document.activeElement !== search && document.activeElement !== body) return;
      event.preventDefault();
      if (from === 0 && step < 0) search.focus();
      else go(from === null ? 0 : from + step);
    });

    // ---- what happens

    const dirty = new Set();

    const read_all = async () => {
      const { sent, said } = await ask_json("/v1/elections");
      if (said.seq < seq) {
        // It was read before the last event: once more, of now.
        const again = await ask_json("/v1/elections?fresh=1");
        return take_all(again.said, again.sent);
      }
      take_all(said, sent);
    };

    const take_all = (said, sent) => {
      const there = new Set();
      for (const one of said.elections) {
        take(one, sent);
        there.add(one.election);
      }
      for (const name of items.keys()) if (!there.has(name)) items.delete(name);
      seq = Math.max(seq, said.seq);
      stale_order = true;
      arrange();
    };

    const guarded = async (reading) => {
      try {
        await reading();
        heard();
      } catch (error) {
        not_heard(error);
        page.tick();
      }
    };

    page.everything = () => guarded(read_all);

    // What an entry says is shown at once; then the election is read for the rest.
    page.entry = (entry) => {
      if (!entry.election) {
        if (entry.event === "left" || entry.event === "ended") {
          for (const item of items.values()) {
            if (item.leader === entry.member) {
              item.leader = null;
              dirty.add(item.name);
            }
          }
        }
        return;
      }
      dirty.add(entry.election);
      const item = items.get(entry.election);
      if (!item) return;
      if (entry.event === "elected") {
        item.leader = entry.member;
        item.life = entry.incarnation;
        item.term = entry.term;
        item.since = Date.parse(entry.at);
        item.step_down = item.reserved = item.held_up = null;
        item.starts.push(item.since);
        const life = lives.get(item.life);
        // Until it is read: no longer than its life is known to last.
        item.deadline = life ? life.deadline : now() + 1000;
        item.ttl = life ? life.ttl : 1000;
      } else if (entry.event === "released" && item.term === entry.term) {
        item.leader = null;
        item.reserved = entry.heir ? { for: entry.heir } : null;
      } else if (entry.event === "paused") {
        item.paused = { reason: entry.reason, by: entry.by };
      } else if (entry.event === "resumed") {
        item.paused = null;
      } else if (entry.event === "step_down_asked") {
        item.step_down = { reason: entry.reason, by: entry.by, to: entry.to };
      }
    };

    page.settle = () => {
      arrange();
      const names = [...dirty];
      dirty.clear();
      if (names.length === 0) return;
      if (names.length > 6) return void guarded(read_all);
      guarded(async () => {
        const fresh = names.map((name) => ask_json(`/v1/elections/${encodeURIComponent(name)}?fresh=1`));
        for (const { sent, said } of await Promise.all(fresh)) {
          // What was read before an event that came meanwhile is older than that.
          if (said.seq < seq) dirty.add(said.election);
          else {
            if (!items.has(said.election)) stale_order = true;
            take(said, sent);
          }
        }
        if (dirty.size) settle_soon();
        arrange();
      });
    };

    let pulses = 0;
    let shortest = 8000;
    page.pause = () => Math.min(5000, Math.max(400, shortest / 4));
    page.pulse = async () => {
      // Renewals are not in the journal. One heartbeat is for all that a member holds.
      const { sent, said } = await ask_json(shortest < 4000 ? "/v1/members?fresh=1" : "/v1/members");
      reached(said.seq);
      lives.clear();
      shortest = 60000;
      for (const member of said.members) {
        lives.set(member.incarnation, { deadline: sent + member.expires_in_ms, ttl: member.ttl_ms });
        shortest = Math.min(shortest, member.ttl_ms);
      }
      for (const item of items.values()) {
        const life = item.life && lives.get(item.life);
        if (!life) continue;
        item.ttl = life.ttl;
        item.deadline = Math.max(item.deadline, life.deadline);
      }
      // Now and then all of it, whatever events there were.
      if (++pulses % 12 === 0) await read_all();
    };

    page.tick = () => {
      const at = now();
      let changed = false;
      for (const item of items.values()) {
        if (item.state !== state_of(item, at)) changed = true;
      }
      if (changed) arrange();
      for (const row of pool.values()) count_down(row, at);
    };

    guarded(async () => {
      await page.pulse();
      pulses = 0;
      await read_all();
      const pages = $("pages");
      if (pages) pages.remove();
      const { said } = await ask_json("/v1/journal?limit=1000").catch(() => ({ said: { entries: [] } }));
      for (const entry of said.entries) {
        const item = entry.event === "elected" && items.get(entry.election);
        if (item) item.starts.push(Date.parse(entry.at));
      }
      arrange();
    });
  };

  // ---- pages that the server writes anew

  const deadlines = new WeakMap();
  const count_from = (root, sent) => {
    for (const element of all("[data-left]", root)) deadlines.set(element, sent + Number(element.dataset.left));
  };

  // Takes over the parts of a new copy of this page that differ.
  const take_over = (fresh, sent) => {
    for (const part of all("[data-live]")) {
      const other = fresh.getElementById(part.id);
      if (!other || part.querySelector("dialog[open]")) continue;
      if (part.outerHTML !== other.outerHTML) {
        const focused = part.contains(document.activeElement) ? document.activeElement : null;
        const which = focused && all("a, button, [tabindex]", part).indexOf(focused);
        const scrolled = all(".scroll", part).map((box) => box.scrollTop);
        const next = document.importNode(other, true);
        part.replaceWith(next);
        all(".scroll", next).forEach((box, n) => (box.scrollTop = scrolled[n] || 0));
        if (focused) {
          const same = all("a, button, [tabindex]", next)[which];
          if (same) same.focus({ preventScroll: true });
        }
      }
    }
    count_from(document, sent);
  };

  const tick_times = () => {
    const at = now();
    for (const element of all("main [data-left]")) show_left(element, deadlines.get(element) || 0, at);
    for (const element of all("main [data-since]")) {
      put(element, whole(Date.now() + ahead - Number(element.dataset.since)));
    }
  };

  const written = (wants) => {
    let running = null;
    let again = false;
    const once = async () => {
      do {
        again = false;
        const url = new URL(location.href);
        url.searchParams.set("seq", seq);
        const { sent, page: fresh } = await ask_page(url);
        take_over(fresh, sent);
        const there = Number(fresh.body.dataset.seq || 0);
        reached(there);
        seq = Math.max(seq, there);
      } while (again);
    };
    const read = () => {
      if (running) {
        again = true;
        return running;
      }
      running = once().finally(() => {
        running = null;
        page.tick();
      });
      return running;
    };
    const look = () => read().then(heard, not_heard);
    let wanted = false;
    page.entry = (entry) => {
      if (wants(entry)) wanted = true;
    };
    page.settle = () => {
      if (wanted) look();
      wanted = false;
    };
    page.everything = look;
    page.pulse = read;
    page.tick = tick_times;
    count_from(document, 0);
  };

  const election = () => {
    const name = $("head").dataset.name;
    written((entry) => !entry.election || entry.election === name);
    const ttl = () => {
      const left = document.querySelector("#leader .left");
      return left ? Number(left.dataset.ttl) : 8000;
    };
    page.pause = () => Math.min(5000, Math.max(400, ttl() / 4));
    page.tick = () => {
      tick_times();
      // Nothing was heard for the leader's ttl: it is no longer shown as the leader.
      const left = document.querySelector("#leader .left");
      if (!left) return;
      const silent = now() >= (deadlines.get(left) || 0);
      const state = silent ? "silent" : $("head").dataset.state;
      const word = document.querySelector("#head .word");
      $("leader").dataset.state = word.dataset.state = state;
      word.querySelector("use").setAttribute("href", `#i-${state}`);
      if (silent) put(word.querySelector("span"), "silent");
      document.querySelector("#leader .silent").hidden = !silent;
      document.querySelector("#leader .big").classList.toggle("was", silent);
      const leads = document.querySelector("#candidates .leads");
      if (leads) leads.hidden = silent;
      const stands = document.querySelector("#terms tr[data-stands] .end");
      if (stands && silent) put(stands, "silent");
    };
  };

  // ---- the journal

  const journal = () => {
    const box = $("journal");
    if (!box.hasAttribute("data-grows")) return;
    const of = box.dataset.election;
    const rows = box.querySelector("tbody");
    // It was written a moment after the place was read.
    const newest = rows.querySelector("[data-entry]");
    let last = Math.max(seq, newest ? Number(newest.dataset.entry) : 0);
    let reading = false;
    const read = async () => {
      if (reading) return;
      reading = true;
      try {
        while (last < seq || last === 0) {
          const query = new URLSearchParams({ after: last });
          if (of) query.set("election", of);
          const { page: fresh } = await ask_page(`/journal?${query}`);
          const news = all("tr[data-entry]", fresh).map((row) => document.importNode(row, true));
          for (const row of news) row.classList.add("new");
          rows.prepend(...news);
          const newest = news.length ? Number(news[0].dataset.entry) : last;
          // Entries of other elections are passed over.
          last = of && news.length < 1000 ? Math.max(newest, Number(fresh.body.dataset.seq)) : newest;
          seq = Math.max(seq, last);
          put(document.querySelector(".head b"), String(seq));
          if (!news.length) break;
        }
        // So that a page on a wall does not grow for ever.
        while (rows.children.length > 2000) rows.lastElementChild.remove();
      } finally {
        reading = false;
      }
    };
    page.settle = () => read().then(heard, not_heard);
    page.pulse = async () => {
      const { said } = await ask_json("/v1/journal?limit=1");
      reached(said.seq);
      seq = Math.max(seq, said.seq);
      await read();
    };
    page.everything = () => page.pulse().then(heard, not_heard);
  };

  const names = () => {
    written(() => false);
    page.pause = () => 5000;
  };

  const members = () => {
    written((entry) => !entry.election || entry.event === "elected" || entry.event === "released");
    page.pause = () => {
      const ttls = all("#members [data-ttl]").map((left) => Number(left.dataset.ttl));
      return Math.min(5000, Math.max(400, Math.min(...ttls, 20000) / 4));
    };
  };

  // ---- dialogs

  let opener = null;
  const say = (text) => {
    put($("said"), text);
    setTimeout(() => {
      if ($("said").textContent === text) put($("said"), "");
    }, 6000);
  };

  const fits = (form) => {
    const typed = form.querySelector(".confirm").value.trim();
    return typed === form.dataset.confirm || typed === form.dataset.shown;
  };

  document.addEventListener("click", (event) => {
    const open = event.target.closest("[data-open]");
    if (open) {
      const dialog = $(open.dataset.open);
      opener = open.dataset.open;
      dialog.showModal();
      dialog.addEventListener("close", () => {
        const button = document.querySelector(`[data-open="${CSS.escape(opener)}"]`);
        if (button) button.focus();
        page.everything();
      }, { once: true });
    }
    const close = event.target.closest("[data-close]");
    if (close) close.closest("dialog").close();
  });
  document.addEventListener("input", (event) => {
    const form = event.target.closest("form[data-post]");
    if (form) form.querySelector("[type=submit]").disabled = !fits(form);
  });

  const carry_out = async (form) => {
    const asked = {};
    for (const field of form.elements) {
      if (!field.name) continue;
      if (field.hasAttribute("data-flag")) asked[field.name] = field.checked;
      else if (field.hasAttribute("data-number")) asked[field.name] = Number(field.value);
      else asked[field.name] = field.value;
    }
    const key = [...crypto.getRandomValues(new Uint8Array(16))].map((n) => n.toString(16).padStart(2, "0"));
    const answer = await fetch(form.dataset.post, {
      method: "POST",
      headers: { "content-type": "application/json", "idempotency-key": key.join("") },
      body: JSON.stringify(asked),
      signal: AbortSignal.timeout(15000),
    });
    if (answer.status === 401) log_in();
    const said = await answer.json().catch(() => ({}));
    if (answer.ok) return;
    const maybe = said.may_have_applied ? " It may have been carried out." : "";
    throw new Error(`${said.detail || `the answer is ${answer.status}`}.${said.remedy ? ` ${said.remedy}.` : ""}${maybe}`);
  };

  document.addEventListener("submit", async (event) => {
    const form = event.target;
    if (form.className === "logout") {
      event.preventDefault();
      await fetch("/logout", { method: "POST", headers: { "content-type": "application/json" }, body: "{}" });
      location.assign("/login");
    }
    if (!form.dataset.post) return;
    event.preventDefault();
    if (!fits(form)) return;
    const button = form.querySelector("[type=submit]");
    const refused = form.querySelector(".refused");
    button.disabled = true;
    refused.hidden = true;
    try {
      await carry_out(form);
      form.closest("dialog").close();
      form.reset();
      say(`Asked for: ${form.querySelector("h2").textContent}`);
    } catch (error) {
      const lost = error.name === "TimeoutError" || error instanceof TypeError;
      put(refused, lost ? "The server did not answer. It may have been carried out: look before you ask again." : error.message);
      refused.hidden = false;
      button.disabled = false;
    }
  });

  // ---- the login

  const login = () => {
    const form = $("login");
    form.addEventListener("submit", async (event) => {
      event.preventDefault();
      const refused = $("refused");
      refused.hidden = true;
      try {
        const answer = await fetch("/login", {
          method: "POST",
          headers: { "content-type": "application/json" },
          body: JSON.stringify({ token: $("token").value }),
        });
        if (!answer.ok) {
          const said = await answer.json().catch(() => ({}));
          throw new Error(`${said.detail || "The server refused"}. ${said.remedy || ""}`);
        }
        // Another page of this server, and no other place.
        const next = new URL(new URLSearchParams(location.search).get("next") || "/", location.origin);
        location.replace(next.origin === location.origin ? next : "/");
      } catch (error) {
        put(refused, error instanceof TypeError ? "The server does not answer." : error.message);
        refused.hidden = false;
        $("token").select();
      }
    });
  };

  // ---- begin

  if ($("login")) login();
  if (!here) return;
  document.addEventListener("keydown", (event) => {
    const field = document.querySelector(".filter input[type=search]");
    if (event.key !== "/" || !field || event.ctrlKey || event.metaKey || event.altKey) return;
    if (/^(INPUT|SELECT|TEXTAREA)$/.test(document.activeElement.tagName)) return;
    event.preventDefault();
    field.focus();
    field.select();
  });

  ({ elections, election, members, names, journal })[here]();
  follow();

  const pulse = async () => {
    if (!document.hidden) {
      try {
        await page.pulse();
        heard();
      } catch (error) {
        not_heard(error);
      }
    }
    setTimeout(pulse, page.pause());
  };
  setTimeout(pulse, page.pause());
  setInterval(() => {
    page.tick();
    if (health.since !== null) tell_health();
  }, 250);
  page.tick();
  tell_health();
})();
