// Compiles src/ to dist/esm and dist/cjs. The compiler and the types of Node are found as any
// package is, also by NODE_PATH.
import { execFileSync } from 'node:child_process';
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const here = dirname(fileURLToPath(import.meta.url));
const require = createRequire(import.meta.url);
const tsc = require.resolve('typescript/bin/tsc');
const types = dirname(dirname(require.resolve('@types/node/package.json')));
const dist = join(here, 'dist');

rmSync(dist, { recursive: true, force: true });
for (const [folder, type, module, resolution] of [
  ['esm', 'module', 'NodeNext', 'NodeNext'],
  ['cjs', 'commonjs', 'CommonJS', 'Node10'],
]) {
  const out = join(dist, folder);
  mkdirSync(out, { recursive: true });
  writeFileSync(join(out, 'package.json'), `{ "type": "${type}" }\n`);
  const options = ['--project', here, '--outDir', out, '--typeRoots', types];
  options.push('--module', module, '--moduleResolution', resolution);
  execFileSync(process.execPath, [tsc, ...options], { stdio: 'inherit' });
}
