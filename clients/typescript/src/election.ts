/**
 * Standing for an election, leading, stopping.
 *
 * One loop sends one request after the other; `trust.ts` says what its answer means. What must
 * stay true:
 *
 * - `isLeader()` compares the clock with a moment, and is right when the event loop was starved or
 *   the process was stopped: nothing has to run for it to become false.
 * - One term, one reign: `onBecomeLeader` and `onLoseLeadership` are called once for each token.
 *   After a reign has ended no answer revives it; the next one has a higher token, and begins when
 *   the work of the one before has ended.
 * - The term is given back last: after the work has ended or its time is over, and after trust was
 *   given up. Until then it is renewed.
 * - What runs in `runIfLeader`, and what callbacks return, is work.
 */

import { hostname } from 'node:os';
import { now } from './clock.js';
import { TenureError, told as errorOf } from './errors.js';
import { postgres, queryOf } from './postgres.js';
import { server } from './server.js';
import { settings, type LeaderElectionConfig, type Settings } from './settings.js';
import { Trust, type Told } from './trust.js';

/** What a transport does for one session, or one row of attempts. */
export interface Campaign {
  /** A sign of life, answered with where the election stands. `quick`: it does not wait for news. */
  beat(signal: AbortSignal, quick: boolean): Promise<Told>;
  /** The work has stopped, and nothing is trusted any more. */
  resign(signal: AbortSignal): Promise<void>;
}
export type Transport = (settings: Settings, id: string) => () => Campaign;

/** One reign, as callbacks and work see it. */
export interface Leadership {
  /** The number of the term: give it to whatever can refuse an older one. */
  readonly token: number;
  /** Aborted when the term is over. */
  readonly signal: AbortSignal;
  /** Aborted when the work is to end. */
  readonly stopping: AbortSignal;
  isCurrent(): boolean;
  /** For how many milliseconds it may be trusted without another answer. */
  remaining(): number;
}

class Reign implements Leadership {
  readonly lost = new AbortController();
  readonly asked = new AbortController();
  readonly signal = this.lost.signal;
  readonly stopping = this.asked.signal;
  readonly work = new Set<Promise<unknown>>();
  /** It is renewed although it is given up: the work is stopping. */
  draining = false;
  began: Promise<unknown> = Promise.resolve();
  timer: ReturnType<typeof setTimeout> | undefined;

  constructor(
    readonly token: number,
    readonly trust: Trust,
  ) {}

  isCurrent(): boolean {
    return now() < this.trust.until;
  }

  remaining(): number {
    return Math.max(0, this.trust.until - now());
  }

  /** Returns when all work has ended, also such as begins meanwhile. */
  async settled(): Promise<void> {
    while (this.work.size > 0) await Promise.allSettled(this.work);
  }

  /** The same, or after a while, or when the signal is aborted. */
  async idle(millis: number, signal?: AbortSignal): Promise<void> {
    const over = new AbortController();
    const end = () => over.abort();
    if (signal?.aborted) end();
    signal?.addEventListener('abort', end);
    await Promise.race([this.settled(), pause(millis, over.signal)]);
    signal?.removeEventListener('abort', end);
    end();
  }
}

const NONE = new Trust(0);
const OVER = AbortSignal.abort();

/** Resolves after a while, or when the signal is aborted. */
function pause(millis: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal?.aborted) return resolve();
    const done = () => {
      clearTimeout(timer);
      signal?.removeEventListener('abort', done);
      resolve();
    };
    const timer = setTimeout(done, millis);
    signal?.addEventListener('abort', done);
  });
}

export class LeaderElection {
  readonly #settings: Settings;
  readonly #transport: Transport;
  #trust = NONE;
  #reign: Reign | undefined;
  #running: Promise<void> | undefined;
  /** Aborted by `stop()`. */
  #stop = new AbortController();
  #stopped: Promise<void> = Promise.resolve();
  /** Aborted when the present campaign is to be given back. */
  #done = new AbortController();
  #failures = 0;
  #cooldown = 0;
  /** The highest term that was led here. */
  #last = 0;

  /** `client`: a PostgreSQL client or pool (`pg`, `postgres`), or that of Supabase. */
  constructor(config: LeaderElectionConfig);
  constructor(client: unknown, config: LeaderElectionConfig);
  constructor(first: unknown, second?: LeaderElectionConfig) {
    const config = { ...(second ?? (first as LeaderElectionConfig)) };
    if (second !== undefined) config.query = queryOf(first, config.schema);
    this.#settings = settings(config, `${hostname()}-${process.pid}`);
    this.#transport = config.query === undefined ? server : postgres;
    // Whatever is wrong with an address is said now.
    this.#transport(this.#settings, '');
  }

  /** Whether this process leads at this instant: a comparison, never a request. */
  isLeader(): boolean {
    return now() < this.#trust.until;
  }

  isCurrentLeader(): boolean {
    return now() < this.#trust.until;
  }

  /** The fencing token of the term that is led now. */
  get token(): number | undefined {
    return this.isLeader() ? this.#trust.term : undefined;
  }

  /** For how many milliseconds the present term may be trusted without another answer. */
  remaining(): number {
    return Math.max(0, this.#trust.until - now());
  }

  /** Aborted when the present term is over; aborted already while none is led. */
  get signal(): AbortSignal {
    return (this.isLeader() && this.#reign?.signal) || OVER;
  }

  /** Stands for the election. Returns when it is known whether this process leads, or after a
   * second. Errors are no reason to end: they are told to `onError`, and it is tried again. */
  async start(): Promise<void> {
    if (this.#running === undefined) {
      const { signal } = (this.#stop = new AbortController());
      this.#stopped = new Promise((resolve) => {
        signal.addEventListener('abort', () => resolve());
      });
      this.#running = this.#stand();
    }
    const known = () => this.#reign !== undefined || this.#failures > 0;
    for (let left = 50; left > 0 && !known() && !this.#stop.signal.aborted; left--) await pause(20);
  }

  /** Asks the work to end, waits for it (no longer than the drain), ends trust, calls
   * `onLoseLeadership`, and gives the term back. */
  async stop(): Promise<void> {
    if (this.#running === undefined) return;
    const running = this.#running;
    this.#stop.abort();
    if (this.#reign === undefined) this.#done.abort();
    else this.#ask(this.#reign, 'this process stops', this.#settings.drain);
    await running;
    if (this.#running === running) this.#running = undefined;
  }

  /** Runs `work` if this process leads and is not asked to stop; otherwise answers null. The term
   * is not given back while it runs, or until the drain is over: look at `signal`. */
  async runIfLeader<T>(work: (leadership: Leadership) => T | Promise<T>): Promise<T | null> {
    const reign = this.#reign;
    if (reign === undefined || reign.stopping.aborted || !reign.isCurrent()) return null;
    const running = (async () => work(reign))();
    this.#track(reign, running);
    return running;
  }

  async #stand(): Promise<void> {
    while (!this.#stop.signal.aborted) {
      // Every attempt is another life: a process that was started anew, or forked, is never taken
      // for the one before it, and a resignation that arrives late ends no later term.
      const life = Array.from(crypto.getRandomValues(new Uint8Array(4)), (byte) =>
        byte.toString(16).padStart(2, '0'),
      ).join('');
      const campaigns = this.#transport(this.#settings, `${this.#settings.id}#${life}`);
      this.#done = new AbortController();
      await this.#campaign(campaigns(), new Trust(this.#settings.ttl, this.#last));
      await pause(this.#cooldown, this.#stop.signal);
      this.#cooldown = 0;
    }
  }

  /** One session: from the first request to the resignation. */
  async #campaign(campaign: Campaign, trust: Trust): Promise<void> {
    const done = this.#done.signal;
    this.#trust = trust;
    while (!done.aborted && (!trust.over || this.#reign?.draining === true)) {
      const sent = now();
      try {
        const told = await this.#within(campaign, this.#failures > 0);
        if (done.aborted) break;
        this.#heed(trust, sent, told);
        this.#failures = 0;
        if (!trust.over || this.#reign?.draining === true) await pause(told.next ?? 0, done);
      } catch (error) {
        if (done.aborted) break;
        this.#expire(trust);
        await pause(this.#failed(errorOf(error), trust), done);
      }
    }
    const reign = this.#reign;
    const { drain, ttl } = this.#settings;
    if (reign !== undefined) {
      this.#end(reign, 'this process stops');
      await reign.idle(drain, done);
    }
    this.#trust = NONE;
    const stopping = this.#stop.signal.aborted;
    await campaign.resign(AbortSignal.timeout(ttl)).catch((error) => {
      this.#report(errorOf(error));
    });
    // Work that goes on under a token that is over: no other term is led beside it.
    if (reign !== undefined && !stopping) {
      await Promise.race([reign.settled(), this.#stopped]);
      await reign.idle(drain);
    }
    this.#reign = undefined;
  }

  /** One request. It is given up when another could still be answered before trust ends. */
  async #within(campaign: Campaign, quick: boolean): Promise<Told> {
    const { ttl, beat } = this.#settings;
    const given = new AbortController();
    const giveUp = () => given.abort();
    const timer = setTimeout(giveUp, quick ? ttl / 4 : beat + ttl / 4);
    this.#done.signal.addEventListener('abort', giveUp);
    const late = new Promise<never>((_, reject) => {
      given.signal.addEventListener('abort', () => {
        reject(new TenureError('the request was given up: there was no answer in time', 'late'));
      });
    });
    try {
      return await Promise.race([campaign.beat(given.signal, quick), late]);
    } finally {
      clearTimeout(timer);
      this.#done.signal.removeEventListener('abort', giveUp);
    }
  }

  #heed(trust: Trust, sent: number, told: Told): void {
    this.#expire(trust);
    const event = trust.heed(sent, now(), told);
    if (event === 'elected') this.#begin(trust);
    const reign = this.#reign;
    if (reign === undefined) {
      // It is over before it led: not at once again.
      if (trust.over) this.#cooldown = this.#settings.beat;
      return;
    }
    if (trust.over && told.term !== trust.term) reign.draining = false;
    if (event === 'lost') this.#end(reign, told.reason ?? 'the term is over');
    else if (event !== undefined && told.state === 'stopping') {
      this.#cooldown = this.#settings.ttl;
      const drain = Math.min(told.drain ?? this.#settings.drain, this.#settings.drain);
      this.#ask(reign, told.reason ?? 'it was asked to step down', drain);
    }
    if (!trust.over) this.#watch(reign);
  }

  #begin(trust: Trust): void {
    const reign = new Reign(trust.term, trust);
    this.#reign = reign;
    this.#last = trust.term;
    const failed = (error: unknown) => {
      this.#report(errorOf(error));
      this.#cooldown = this.#settings.ttl;
      this.#ask(reign, 'onBecomeLeader failed', this.#settings.drain);
    };
    reign.began = this.#call(reign, () => this.#settings.onBecomeLeader?.(reign), failed);
  }

  /** The timer that ends the reign when its trust has ended. */
  #watch(reign: Reign): void {
    clearTimeout(reign.timer);
    const left = reign.remaining();
    if (reign.trust.over) return;
    // A timer may be early by a part of a millisecond, and does not count sleep: it looks again.
    reign.timer = setTimeout(
      () => {
        this.#expire(reign.trust);
        this.#watch(reign);
      },
      Math.min(left + 1, 1000),
    );
  }

  #expire(trust: Trust): void {
    const reign = this.#reign;
    if (!trust.expire(now()) || reign?.trust !== trust) return;
    reign.draining = false;
    this.#end(reign, 'trust has ended');
  }

  /** The work is to end; then the term is given back. */
  #ask(reign: Reign, reason: string, drain: number): void {
    if (reign.stopping.aborted || reign.signal.aborted) return;
    const done = this.#done;
    reign.draining = true;
    reign.asked.abort(reason);
    this.#after(reign, () => this.#settings.onStopping?.(reign, reason));
    const until = now() + drain;
    const left = () => Math.max(0, until - now());
    void reign
      .idle(left(), reign.signal)
      .then(() => this.#end(reign, reason))
      // Meanwhile the term is renewed: what the recipe stops in `onLoseLeadership` ends here.
      .then(() => reign.idle(left()))
      .then(() => done.abort());
  }

  /** Trust is over for good. */
  #end(reign: Reign, reason: string): void {
    if (reign.signal.aborted) return;
    clearTimeout(reign.timer);
    reign.trust.end();
    reign.asked.abort(reason);
    reign.lost.abort(reason);
    this.#after(reign, () => this.#settings.onLoseLeadership?.(reign, reason));
  }

  #call(reign: Reign, callback: () => unknown, failed = (e: unknown) => this.#report(errorOf(e))) {
    const running = (async () => callback())();
    running.catch(failed);
    this.#track(reign, running);
    return running;
  }

  /** Calls back when `onBecomeLeader` has ended, so that what it begins is stopped after it began;
   * one that goes on is waited for as long as work may take to stop. */
  #after(reign: Reign, callback: () => unknown): void {
    if (!reign.work.has(reign.began)) return void this.#call(reign, callback);
    const over = new AbortController();
    const end = () => over.abort();
    reign.began.then(end, end);
    void this.#call(reign, () => pause(this.#settings.ttl / 10, over.signal).then(callback));
  }

  #track(reign: Reign, running: Promise<unknown>): void {
    const gone = () => void reign.work.delete(running);
    reign.work.add(running);
    running.then(gone, gone);
  }

  /** How long to wait before the next request: jittered, and bounded by what is left of trust. */
  #failed(error: TenureError, trust: Trust): number {
    this.#failures += 1;
    if (this.#failures === 1 || this.#settings.onError !== undefined) this.#report(error);
    if (error.code === 'no_session') {
      trust.end();
      if (this.#reign !== undefined) {
        this.#reign.draining = false;
        this.#end(this.#reign, error.message);
      }
    }
    const { ttl } = this.#settings;
    const left = trust.until - now();
    const leads = left > 0;
    const most = leads ? Math.min(ttl / 8, left / 4) : Math.max(ttl / 2, error.retryAfter ?? 0);
    const grown = (ttl / 100) * 2 ** Math.min(this.#failures, 16);
    return Math.min(most, grown) * (0.5 + Math.random() / 2);
  }

  #report(error: Error): void {
    try {
      if (this.#settings.onError !== undefined) this.#settings.onError(error);
      else console.warn(`tenure: ${this.#settings.election}: ${error.message}`);
    } catch {
      // What tells of errors must not end the campaign.
    }
  }
}
