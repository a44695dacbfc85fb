/**
 * The clock by which trust is counted: milliseconds that only rise, and that count the time in
 * which the machine slept.
 *
 * JavaScript has no such clock. `performance.now()` stands still while the machine sleeps;
 * `Date.now()` counts on, but steps when it is set. So both are read. While their difference stays
 * what it was, no time was slept. When it has changed, `os.uptime()` says which of the two it was:
 * on Linux it reads `/proc/uptime`, which counts sleep and is never set. That reading is coarse and
 * slow, so it is taken only then.
 *
 * What must stay true: the clock never runs slow. What is unclear is counted as time that has
 * passed: trust may end too early by that, never too late. Sleep of less than `SLACK` in all is not
 * noticed; the trust of an answer is shorter by it.
 */

import { uptime } from 'node:os';

/** What two readings of one moment may differ by, in milliseconds. */
export const SLACK = 5;
/** How coarse `os.uptime()` is. */
const COARSE = 10;

/** What the clock is made of; tests have others. */
export interface Sources {
  /** Stands still while the machine sleeps. */
  mono(): number;
  /** Counts on, and may be set. */
  wall(): number;
  /** Counts on, is never set, and is coarse. May throw where it cannot be read. */
  boot(): number;
}

export const SOURCES: Sources = {
  mono: () => performance.now(),
  wall: () => Date.now(),
  boot: () => uptime() * 1000,
};

/** Makes a clock. */
export function clock(from: Sources = SOURCES): () => number {
  const { mono, wall } = from;
  let apart = wall() - mono();
  let slept = 0;
  const asleep = (): number => {
    // Where the system does not say how long it is up, the wall clock is believed: forwards alone.
    try {
      return from.boot() - mono();
    } catch {
      return wall() - mono();
    }
  };
  const awake = asleep();
  return () => {
    const at = mono();
    const now = wall() - at;
    if (now - apart > SLACK || apart - now > SLACK) {
      apart = now;
      slept = Math.max(slept, asleep() - awake + COARSE);
    }
    return at + slept;
  };
}

/** This process's clock. */
export const now: () => number = clock();
