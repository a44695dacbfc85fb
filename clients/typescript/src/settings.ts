/** What an election is told, checked before anything begins. */

import type { Leadership } from './election.js';
import type { Query } from './postgres.js';

/** The names of Tenure; those of the recipe that this package takes the place of stand behind. */
export interface LeaderElectionConfig {
  /** The election. */
  election?: string;
  /** The same, as the recipe calls it. */
  serviceName?: string;
  /** Who stands: shown to operators. Default: host name and process id. */
  id?: string;
  candidateId?: string;
  /** After how long without a sign of life another member leads. Default: 10. */
  ttlSeconds?: number;
  heartbeatTimeoutSeconds?: number;
  /** How far apart the signs of life are, at most a third of the ttl. Default: a quarter of it. */
  heartbeatIntervalMs?: number;
  /** How long the work may take to end when this process is to stop leading. Default: the ttl. */
  drainSeconds?: number;

  /** Where `tenure serve` listens: `http://127.0.0.1:7117`, `https://…`, `unix:/path`. */
  server?: string;
  /** The bearer token that the server asks for; a function is asked before each request. */
  accessToken?: string | (() => string);
  /** Instead of `globalThis.fetch`, for a proxy or certificates of one's own. */
  fetch?: typeof fetch;
  priority?: number;
  endpoints?: string[];
  metadata?: string;

  /** Runs a statement on PostgreSQL: then no server is needed. See `postgres.ts`. */
  query?: Query;
  namespace?: string;
  schema?: string;

  /** A term has begun. What it returns is work that a hand-over waits for. */
  onBecomeLeader?: (leadership: Leadership) => unknown;
  /** The work is to end; the term goes on until it has, or until the drain is over. */
  onStopping?: (leadership: Leadership, reason: string) => unknown;
  /** The term is over. Called by a timer when trust ends: it waits for no request. */
  onLoseLeadership?: (leadership: Leadership, reason: string) => unknown;
  /** What went wrong; it is tried again in any case. Default: the first of a row to the console. */
  onError?: (error: Error) => void;
}

export interface Settings extends LeaderElectionConfig {
  election: string;
  id: string;
  /** All in milliseconds. */
  ttl: number;
  beat: number;
  drain: number;
}

function refuse(what: string): never {
  throw new RangeError(`${what}; the election was not started`);
}

function name(what: string, text: unknown): string {
  const bytes = typeof text === 'string' ? new TextEncoder().encode(text).length : 0;
  if (bytes < 1 || bytes > 180) refuse(`${what} must be a text of 1 to 180 bytes`);
  return text as string;
}

/** Checks what was asked for, and fills in the rest. */
export function settings(config: LeaderElectionConfig, id: string): Settings {
  const ttl = (config.ttlSeconds ?? config.heartbeatTimeoutSeconds ?? 10) * 1000;
  if (!(ttl >= 100 && ttl <= 86_400_000)) refuse('the ttl must be 0.1 to 86400 seconds');
  const beat = config.heartbeatIntervalMs ?? ttl / 4;
  if (!(beat >= 10 && beat <= ttl / 3)) {
    refuse(
      `heartbeatIntervalMs is ${beat}, and must be 10 to ${Math.floor(ttl / 3)}, a third of the ` +
        'ttl: one request may fail, and the next must come before trust has ended',
    );
  }
  const drain = (config.drainSeconds ?? Math.min(ttl / 1000, 600)) * 1000;
  if (!(drain >= 0 && drain <= 600_000)) refuse('drainSeconds must be 0 to 600');
  return {
    ...config,
    election: name('election (or serviceName)', config.election ?? config.serviceName),
    id: name('id (or candidateId)', config.id ?? config.candidateId ?? id),
    ttl,
    beat,
    drain,
  };
}
