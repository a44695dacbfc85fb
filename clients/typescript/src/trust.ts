/**
 * Until when a term may be trusted. Pure: every moment is an argument.
 *
 * - An answer is counted from before its request was sent, and for no longer than the ttl (W1).
 * - Nothing else extends trust (W2).
 * - Trust that has ended does not come back: the term is lost, also when an answer that would have
 *   extended it is found afterwards by a process that was stopped. One such object has one term.
 * - A term that was led here before is never led again: it is given back, and the next has a higher number.
 * - Answers are ordered by when their requests were sent; an older one changes nothing.
 *
 * `clients/scripts/trust.json` has what must hold, and is run by the tests of each language.
 */

/** What an answer says. Spans are in milliseconds. */
export interface Told {
  state: 'waiting' | 'leading' | 'stopping' | 'lost';
  /** The number of the term: its fencing token. */
  term?: number | null;
  /** For how much longer it may be trusted, from before the request was sent. */
  remaining?: number;
  /** For how long this process may be silent. */
  ttl?: number;
  /** While stopping: how long the work may take to end. */
  drain?: number | null;
  /** Why it is to stop, why the term is over, or what keeps it waiting. */
  reason?: string | null;
  /** How long after this answer the next request is due. */
  next?: number;
}

export type Event = 'elected' | 'stopping' | 'lost';

export class Trust {
  /** Until when; 0 while nothing may be trusted. */
  until = 0;
  /** The term; 0 before the first. */
  term = 0;
  over = false;
  #newest = -Infinity;
  #stopping = false;

  /** `after`: the highest term that was led here before. */
  constructor(
    readonly ttl: number,
    readonly after = 0,
  ) {}

  /** The answer to the request that was sent at `sent` is here at `now`. */
  heed(sent: number, now: number, told: Told): Event | undefined {
    if (this.expire(now)) return 'lost';
    if (this.over || sent < this.#newest) return undefined;
    const leads = told.state === 'leading' || told.state === 'stopping';
    const { term = 0, remaining = NaN } = told;
    if (!leads) {
      this.#newest = now;
      return told.state === 'lost' || this.term > 0 ? this.end() : undefined;
    }
    const known = typeof term === 'number' && Number.isSafeInteger(term) && term >= 1;
    if (!known || typeof remaining !== 'number' || !(remaining >= 0)) {
      throw new TypeError('the answer has no term, or does not say how long it may be trusted');
    }
    // An older term is an older answer; a newer one is another reign than the one we serve.
    if (this.term > 0 && term !== this.term) return term < this.term ? undefined : this.end();
    if (term <= this.after) return this.end();
    this.#newest = sent;
    const until = sent + Math.min(remaining, told.ttl ?? this.ttl, this.ttl);
    if (!(until > now)) return undefined;
    const elected = this.term === 0;
    this.term = term;
    this.until = Math.max(this.until, until);
    if (elected) return 'elected';
    if (told.state === 'leading' || this.#stopping) return undefined;
    this.#stopping = true;
    return 'stopping';
  }

  /** Whether trust has ended by itself, and this is the first to notice. */
  expire(now: number): boolean {
    if (this.over || this.term === 0 || now < this.until) return false;
    this.end();
    return true;
  }

  /** The term is over: told so, given up, or expired. */
  end(): 'lost' | undefined {
    const led = this.term > 0 && !this.over;
    this.over = true;
    this.until = 0;
    return led ? 'lost' : undefined;
  }
}
