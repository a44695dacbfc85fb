/** Leader election for TypeScript and JavaScript, over `tenure serve` or PostgreSQL. */

import type { LeaderElection, Leadership } from './election.js';

export { LeaderElection, type Leadership } from './election.js';
export { TenureError } from './errors.js';
export type { LeaderElectionConfig } from './settings.js';
export { queryOf, type Query, type Row } from './postgres.js';

/** Runs `work` if this process leads; otherwise answers null. */
export function runIfLeader<T>(
  election: LeaderElection,
  work: (leadership: Leadership) => T | Promise<T>,
): Promise<T | null> {
  return election.runIfLeader(work);
}
