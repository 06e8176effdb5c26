/** Owns `npm run check`: types, lint, format and dead exports, each run to its end, whatever the others say. */
import { spawnSync } from 'node:child_process';
import { countLine } from './count-reporter.ts';

const CHECKS = [
  ['types', 'tsc'],
  ['lint', 'oxlint --type-aware'],
  ['format', 'biome ci'],
  ['dead exports', 'knip'],
  ['dead exports of the product', 'knip --production'],
] as const;

const failed = CHECKS.filter(([name, command]) => {
  console.log(`\n${name}: ${command}`);
  const [program = '', ...args] = command.split(' ');
  // npm puts the programs of node_modules into PATH.
  const { status, error } = spawnSync(program, args, { stdio: ['ignore', 'inherit', 'inherit'] });
  if (error !== undefined) console.error(error.message);
  return status !== 0;
});

console.log(countLine({ passed: CHECKS.length - failed.length, failed: failed.length, skipped: 0 }));
process.exitCode = failed.length > 0 ? 1 : 0;
