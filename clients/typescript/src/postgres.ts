/**
 * PostgreSQL's functions `tenure.try_lead` and `tenure.step_down`, through a client of the user's.
 *
 * Each call is a transaction of its own, at READ COMMITTED: do not hand in a client that is inside
 * of another transaction. The id has a random end, so that two processes, or two starts of one, are
 * never taken for each other.
 */

import type { Campaign } from './election.js';
import { TenureError } from './errors.js';
import type { Settings } from './settings.js';
import type { Told } from './trust.js';

export type Row = Record<string, unknown>;
/** Runs a statement with `$1`, `$2` … and gives its rows. `call` is the same as a function's name
 * and its arguments by name, for what runs no statements. */
export type Query = (
  text: string,
  values: (string | number)[],
  call: { name: string; args: Record<string, string> },
) => PromiseLike<readonly Row[] | { readonly rows: readonly Row[] }>;

/** By how much any clock may run fast or slow; and the part of the ttl in which the work stops. */
const DRIFT = 0.001;
const MARGIN = 0.1;

interface Pg {
  query: (text: string, values: unknown[]) => PromiseLike<{ rows: Row[] }>;
}
interface Postgres {
  unsafe: (text: string, values: unknown[]) => PromiseLike<Row[]>;
}
interface Supabase {
  schema: (name: string) => Supabase;
  rpc: (name: string, args: object) => PromiseLike<{ data: unknown; error: unknown }>;
}

/** A query function of what the user has: `pg`, `postgres`, Supabase, or such a function itself. */
export function queryOf(client: unknown, schema = 'tenure'): Query {
  const has = (name: string) => typeof (client as Row | undefined)?.[name] === 'function';
  if (has('unsafe')) return (text, values) => (client as Postgres).unsafe(text, values);
  if (has('rpc') && has('schema')) {
    return async (_text, _values, { name, args }) => {
      const { data, error } = await (client as Supabase).schema(schema).rpc(name, args);
      if (error) throw new TenureError((error as Error).message, 'failed', { cause: error });
      return [typeof data === 'object' && data !== null ? (data as Row) : { given: data }];
    };
  }
  if (has('query')) return (text, values) => (client as Pg).query(text, values);
  if (typeof client === 'function') return client as Query;
  throw new TypeError(
    'the first argument must be a client of pg, postgres or Supabase, or a function that runs a ' +
      'statement',
  );
}

/** Milliseconds, of a number or of an interval as PostgreSQL writes it: `00:00:09.98`. */
export function millis(value: unknown): number {
  const text = String(value);
  const parts = /^(?:(\d+) days? )?(\d+):(\d\d):(\d\d(?:\.\d+)?)$/.exec(text);
  if (parts === null) return typeof value === 'string' && value.trim() === '' ? NaN : Number(value);
  const [days, hours, minutes, seconds] = parts.slice(1).map((part) => Number(part ?? 0));
  return (((days ?? 0) * 24 + (hours ?? 0)) * 60 + (minutes ?? 0)) * 60_000 + (seconds ?? 0) * 1000;
}

export function postgres(settings: Settings, id: string): () => Campaign {
  const { election, ttl, beat, namespace = 'default', schema = 'tenure' } = settings;
  const query = settings.query as Query;
  const prefix = `"${schema.replaceAll('"', '""')}".`;
  const named = { p_ns: namespace, p_election: election, p_id: id };
  const lead =
    'SELECT leads, term, (extract(epoch FROM remaining) * 1000)::float8 AS remaining, asked ' +
    `FROM ${prefix}try_lead($1, $2, $3, make_interval(secs => $4))`;
  const give = `SELECT ${prefix}step_down($1, $2, $3) AS given`;

  async function run(text: string, values: (string | number)[], name: string, args: object) {
    const call = { name, args: { ...named, ...args } };
    const answer = await query(text, [namespace, election, id, ...values], call);
    const row = ('rows' in answer ? answer.rows : answer)[0];
    if (row === undefined) throw new TenureError(`${name} answered no row`, 'failed');
    return row;
  }

  async function tried(): Promise<Told> {
    const args = { p_ttl: `${ttl / 1000} seconds` };
    const row = await run(lead, [ttl / 1000], 'try_lead', args);
    const left = row.remaining == null ? NaN : millis(row.remaining);
    if (row.leads !== true) {
      // Again when the leader's ttl may have run out; not all who wait at once.
      const soon = left + (Math.random() * beat) / 4;
      return { state: 'waiting', next: soon < beat ? Math.max(soon, 10) : beat };
    }
    return {
      state: row.asked === true ? 'stopping' : 'leading',
      term: Number(row.term),
      remaining: Math.max(0, Math.min(left, ttl) * (1 - DRIFT) - ttl * MARGIN),
      reason: row.asked === true ? 'an operator asked for a step-down' : null,
      next: beat,
    };
  }

  return () => {
    const pending = new Set<Promise<unknown>>();
    return {
      beat() {
        const trying = tried();
        const gone = () => void pending.delete(trying);
        pending.add(trying);
        trying.then(gone, gone);
        return trying;
      },
      async resign(signal) {
        // A call that was given up may still be carried out: it would stand again.
        const late = new Promise((resolve) => signal.addEventListener('abort', resolve));
        await Promise.race([Promise.allSettled(pending), late]);
        await Promise.race([run(give, [], 'step_down', {}), late]);
      },
    };
  };
}
