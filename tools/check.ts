/** Runs `npm run check`: runs each `check:*` script of package.json, also if an earlier script has failed. */
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { countLine } from './count-reporter.ts';

const manifest = new URL('../package.json', import.meta.url);
const { scripts } = JSON.parse(readFileSync(manifest, 'utf8')) as {
  scripts: Record<string, string>;
};
const checks = Object.keys(scripts).filter((name) => name.startsWith('check:'));

const failed = checks.filter((name) => {
  const { status } = spawnSync('npm', ['run', name], { stdio: ['ignore', 'inherit', 'inherit'] });
  console.log(status === 0 ? `${name}: passed` : `${name}: failed`);
  return status !== 0;
});

console.log(
  countLine({ passed: checks.length - failed.length, failed: failed.length, skipped: 0 }),
);
process.exitCode = failed.length > 0 ? 1 : 0;
