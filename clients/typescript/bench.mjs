// What isLeader() costs beside reading the clock: `cargo xtask bench clients`.
import { LeaderElection } from './dist/esm/index.js';

const CALLS = 2_000_000;
const BAR = 3;

/** Nanoseconds of a call, the median of some slices; the two take turns. */
function measure(...works) {
  const taken = works.map(() => []);
  for (let slice = 0; slice < 15; slice++) {
    works.forEach((work, n) => {
      const from = process.hrtime.bigint();
      work();
      taken[n].push(Number(process.hrtime.bigint() - from) / CALLS);
    });
  }
  return taken.map((all) => all.sort((a, b) => a - b)[all.length >> 1]);
}

const row = { leads: true, term: '1', remaining: 3_600_000, asked: false };
const election = new LeaderElection({ election: 'bench', ttlSeconds: 3600, query: async () => [row] });
await election.start();
let counted = 0;
const [clock, asked] = measure(
  () => { for (let n = 0; n < CALLS; n++) if (performance.now() > 0) counted++; },
  () => { for (let n = 0; n < CALLS; n++) if (election.isLeader()) counted++; },
);
const ratio = asked / clock;
if (counted !== 2 * 15 * CALLS) throw new Error('it did not lead all the time');
console.log(`Node ${process.version}: isLeader() ${asked.toFixed(0)} ns, performance.now() ${clock.toFixed(0)} ns: ${ratio.toFixed(2)} x (bar ${BAR})`);
await election.stop();
process.exit(ratio <= BAR ? 0 : 1);
