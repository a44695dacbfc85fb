// The scripts that all languages share, on what `LeaderElection` decides by.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { Trust } from '../dist/esm/trust.js';

const { scripts } = JSON.parse(
  readFileSync(new URL('../../scripts/trust.json', import.meta.url), 'utf8'),
);

for (const { name, ttl, after, steps } of scripts) {
  test(name, () => {
    const trust = new Trust(ttl, after);
    steps.forEach((step, n) => {
      const where = `step ${n + 1}: ${JSON.stringify(step)}`;
      if (step.refused) assert.throws(() => trust.heed(step.sent, step.at, step.told), where);
      else if (step.told) {
        assert.equal(trust.heed(step.sent, step.at, step.told), step.event, where);
      }
      if (step.give_up) assert.equal(trust.end(), 'lost', where);
      if ('timer' in step) assert.equal(trust.expire(step.at), step.timer, where);
      if ('leads' in step) assert.equal(step.at < trust.until, step.leads, where);
      if ('token' in step) assert.equal(trust.term, step.token, where);
      if ('over' in step) assert.equal(trust.over, step.over, where);
      if ('until' in step) assert.equal(trust.until, step.until, where);
    });
  });
}
