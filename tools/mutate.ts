/** The command behind `npm run mutate`: changes the code in thousands of places, and shows which changes no test notices. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { RefitError } from '../src/util/errors.ts';
import { runMain } from './main.ts';

interface Part {
  readonly code: readonly string[];
  /** Only tests that start no process: each mutant runs those that reach it. */
  readonly tests: readonly string[];
}

const ENGINE_TESTS = ['src/engine/**/*.test.ts', 'test/toy/**/*.test.ts'];
const AGENT_TESTS = ['src/agent/**/*.test.ts', 'test/parity/**/*.test.ts'];

/** What decides whether a node is touched, and with which bytes. */
const PARTS: Readonly<Record<string, Part>> = {
  decide: { code: ['src/engine/decide'], tests: ENGINE_TESTS },
  gates: { code: ['src/engine/gates'], tests: ENGINE_TESTS },
  schedule: { code: ['src/engine/schedule'], tests: ENGINE_TESTS },
  steps: { code: ['src/agent/steps', 'src/agent/transitions.ts', 'src/agent/next-step.ts'], tests: AGENT_TESTS },
  download: { code: ['src/agent/download'], tests: AGENT_TESTS },
  election: { code: ['src/kube/election'], tests: ['src/kube/**/*.test.ts', 'test/faults/election.test.ts'] },
};

interface Mutant {
  readonly status: string;
  readonly mutatorName: string;
  readonly replacement?: string;
  readonly location: { readonly start: { readonly line: number; readonly column: number } };
}

interface Report {
  readonly files: Readonly<Record<string, { readonly mutants: readonly Mutant[] }>>;
}

const ROOT = join(import.meta.dirname, '..');
const STRYKER = join(ROOT, 'node_modules', '.bin', 'stryker');
const REPORT = join(ROOT, 'node_modules', '.cache', 'stryker', 'report.json');
const DETECTED = new Set(['Killed', 'Timeout']);
const MISSED = new Set(['Survived', 'NoCoverage']);

async function main(names: string[], abort: AbortSignal): Promise<number> {
  const unknown = names.find((name) => PARTS[name] === undefined);
  if (unknown !== undefined) {
    throw new RefitError('REFIT_USAGE', `there is no part "${unknown}": name some of ${Object.keys(PARTS).join(', ')}`);
  }
  for (const [name, part] of Object.entries(PARTS)) {
    if (names.length > 0 && !names.includes(name)) continue;
    await mutate(part, abort);
    for (const line of linesOf(name, JSON.parse(readFileSync(REPORT, 'utf8')) as Report))
      process.stdout.write(`${line}\n`);
  }
  return 0;
}

async function mutate({ code, tests }: Part, abort: AbortSignal): Promise<void> {
  const globs = code.map((path) => (path.endsWith('.ts') ? path : `${path}/**/*.ts`));
  const child = spawn(STRYKER, ['run', '--mutate', [...globs, '!**/*.test.ts'].join(',')], {
    cwd: ROOT,
    env: { ...process.env, MUTATE_TESTS: tests.join(',') },
    stdio: ['ignore', 'inherit', 'inherit'],
    signal: abort,
  });
  const [status] = (await once(child, 'exit')) as [number | null];
  if (status !== 0) throw new Error(`stryker ended with exit code ${status}`);
}

/** The share of changes that a test noticed, then each one that none did. */
function linesOf(name: string, { files }: Report): string[] {
  const mutants = Object.values(files).flatMap((file) => file.mutants);
  const detected = mutants.filter(({ status }) => DETECTED.has(status)).length;
  const missed = mutants.filter(({ status }) => MISSED.has(status)).length;
  const score = (100 * detected) / Math.max(1, detected + missed);
  const survivors = Object.entries(files).flatMap(([path, file]) =>
    file.mutants
      .filter(({ status }) => MISSED.has(status))
      .map(({ status, mutatorName, replacement, location: { start } }) => {
        const change = replacement?.replaceAll(/\s+/g, ' ').slice(0, 80) ?? '';
        return `  ${path}:${start.line}:${start.column} ${status} ${mutatorName} → ${change}`;
      }),
  );
  return [`${name}: ${score.toFixed(1)} % of ${detected + missed} changes noticed`, ...survivors];
}

await runMain(main);
