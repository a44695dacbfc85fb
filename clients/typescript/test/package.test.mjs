// The package as it is published: by `import`, by `require`, with its types, and nothing else.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import * as esm from 'tenure-client';

const require = createRequire(import.meta.url);
const root = fileURLToPath(new URL('..', import.meta.url));

test('import and require give the same, each in its own kind of module', () => {
  const cjs = require('tenure-client');
  assert.deepEqual(Object.keys(cjs).sort(), Object.keys(esm).sort());
  for (const of of [esm, cjs]) {
    assert.equal(new of.LeaderElection({ election: 'jobs' }).isLeader(), false);
  }
  assert.match(require.resolve('tenure-client'), /dist.cjs/);
});

test('nothing is needed at run time but Node', () => {
  const { dependencies, files, exports } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
  assert.equal(dependencies, undefined);
  assert.deepEqual(files, ['dist', 'README.md']);
  for (const kind of Object.values(exports['.'])) {
    for (const file of Object.values(kind)) assert.ok(existsSync(join(root, file)), file);
  }
});

test('the types are found and right, both ways', () => {
  const dir = mkdtempSync(join(root, 'dist', 'typed-'));
  const use = `
    const election = new LeaderElection({ election: 'jobs', ttlSeconds: 3, onBecomeLeader: async ({ token }) => { const n: number = token; void n; } });
    const leads: boolean = election.isLeader();
    const done: Promise<string | null> = election.runIfLeader(async () => 'done');
    // @ts-expect-error: a name that there is not
    new LeaderElection({ elections: 'jobs' });
    void [leads, done, runIfLeader];`;
  try {
    writeFileSync(join(dir, 'a.mts'), `import { LeaderElection, runIfLeader } from 'tenure-client';${use}`);
    writeFileSync(join(dir, 'b.cts'), `import { LeaderElection, runIfLeader } from 'tenure-client';${use}`);
    const types = dirname(dirname(require.resolve('@types/node/package.json')));
    const line = ['--strict', '--noEmit', '--target', 'ES2022', '--module', 'NodeNext', '--types', 'node', '--typeRoots', types];
    execFileSync(process.execPath, [require.resolve('typescript/bin/tsc'), ...line, join(dir, 'a.mts'), join(dir, 'b.cts')], { encoding: 'utf8' });
  } catch (error) {
    assert.fail(error.stdout || error);
  } finally {
    rmSync(dir, { recursive: true, force: true });
  }
});
