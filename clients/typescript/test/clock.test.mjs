// A clock that counts sleep, made of three that do not, or that may be set.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { clock, now } from '../dist/esm/clock.js';

/** The three clocks of a machine, and what may happen to it. */
function machine() {
  const at = { mono: 1000, wall: 1_700_000_000_000, boot: 50_000, boots: true };
  return {
    runs: (millis) => ((at.mono += millis), (at.wall += millis), (at.boot += millis)),
    sleeps: (millis) => ((at.wall += millis), (at.boot += millis)),
    isSet: (by) => (at.wall += by),
    hasNoUptime: () => (at.boots = false),
    sources: {
      mono: () => at.mono,
      wall: () => Math.floor(at.wall),
      boot() {
        if (!at.boots) throw new Error('it cannot be read');
        return Math.floor(at.boot / 10) * 10;
      },
    },
  };
}

function passes(clock, what, least, most) {
  const before = clock();
  what();
  const passed = clock() - before;
  assert.ok(passed >= least && passed <= most, `${passed} is not ${least} to ${most}`);
}

test('it counts what passes while the machine runs', () => {
  const m = machine();
  passes(clock(m.sources), () => m.runs(1234.5), 1234.5, 1234.5);
});

test('it counts sleep, to the coarseness of the uptime, and never less', () => {
  for (const slept of [20, 333, 60_000, 86_400_000]) {
    const m = machine();
    const now = clock(m.sources);
    passes(now, () => m.sleeps(slept), slept, slept + 20);
    passes(now, () => m.runs(100), 100, 100);
    passes(now, () => (m.sleeps(slept), m.runs(7)), slept - 20 + 7, slept + 27);
    const m2 = machine();
    passes(clock(m2.sources), () => (m2.sleeps(slept), m2.sleeps(slept)), 2 * slept, 2 * slept + 20);
  }
});

test('setting the wall clock changes nothing, in either direction', () => {
  for (const by of [-3_600_000, -50, 50, 3_600_000]) {
    const m = machine();
    const now = clock(m.sources);
    passes(now, () => (m.isSet(by), m.runs(100)), 100, 120);
    passes(now, () => (m.isSet(-by), m.runs(100)), 100, 100);
  }
});

test('it counts a sleep during which the wall clock was set', () => {
  const m = machine();
  passes(clock(m.sources), () => (m.sleeps(5000), m.isSet(-3000)), 5000, 5020);
});

test('sleep too short to be noticed is less than the slack, in all', () => {
  const m = machine();
  const now = clock(m.sources);
  passes(now, () => { for (let n = 0; n < 1000; n++) (m.sleeps(1), now()); }, 995, 1020);
});

test('where the uptime cannot be read, it is never slow', () => {
  const m = machine();
  m.hasNoUptime();
  const now = clock(m.sources);
  passes(now, () => m.sleeps(5000), 5000, 5020);
  passes(now, () => m.isSet(-3000), 0, 10);
  passes(now, () => m.runs(10), 10, 10);
});

test('the real one goes on', () => {
  const before = now();
  const until = performance.now() + 20;
  while (performance.now() < until);
  assert.ok(now() - before >= 20);
});
