/**
 * The command behind `npm run mutate`: changes the code in thousands of places, and shows which changes no test notices.
 * `npm run mutate -- act record.ts` does that for one file of the part `act`.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { globSync, readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { parseArgs } from 'node:util';
import { EXIT, RefitError } from '../src/util/errors.ts';
import { runMain } from './main.ts';

interface Part {
  /**
   * The percentage of changes that tests must notice. It is a little below the present percentage, and it is never
   * lowered.
   */
  readonly least: number;
  readonly code: readonly string[];
  /** The tests of the part itself, which start no process. For each change, the tests that reach the change run. */
  readonly tests: readonly string[];
}

const ENGINE_TESTS = [
  'src/engine/{assess,explain,gates,model,policy,reasons,schedule,snapshot,turn}/*.test.ts',
  // The other tests of the writes crash at each call of a run, which takes too long for each change.
  'src/engine/execute/{execute,left-on-nodes}.test.ts',
  'src/engine/*.test.ts',
  'test/toy/toy-{gate,order}.test.ts',
];

/** The files of `src/engine/explain` that decide nothing. What people see of a plan is tested there. */
const READINGS = [
  'src/engine/explain/*-reading.ts',
  'src/engine/explain/{drain-warnings,kept-cordons,remarkable-waits,roll-back,situations,stops-ahead,way-back,work-on}.ts',
  'src/engine/explain/{inspect,next-targets,progress,run-snapshots,run-times,run-versions,shown-waits}.ts',
];

/** The code that decides whether a node is changed, and with which bytes. */
const PARTS: Readonly<Record<string, Part>> = {
  decide: {
    least: 90,
    code: [
      'src/engine/assess',
      'src/engine/explain',
      ...READINGS.map((path) => `!${path}`),
      'src/engine/turn',
    ],
    tests: ENGINE_TESTS,
  },
  /** What people are told about a plan. The tests of the commands check it, too. */
  readings: {
    least: 95,
    code: READINGS,
    tests: [
      ...ENGINE_TESTS,
      'src/engine/report/*.test.ts',
      'src/cli/{status,why,history,report,preview,advice}/*.test.ts',
    ],
  },
  report: {
    least: 95,
    code: ['src/engine/report'],
    tests: ['src/engine/report/*.test.ts', 'src/engine/loop*.test.ts'],
  },
  gates: { least: 93, code: ['src/engine/gates'], tests: ENGINE_TESTS },
  schedule: { least: 93, code: ['src/engine/schedule'], tests: ENGINE_TESTS },
  act: {
    least: 96,
    code: ['src/engine/execute', 'src/engine/model/status-shards.ts'],
    tests: [
      'src/engine/execute/*.test.ts',
      'src/engine/model/status-shards.test.ts',
      'src/engine/loop*.test.ts',
      'src/dialects/capi/plan/capi-orphaned-work.test.ts',
    ],
  },
  updaters: {
    least: 92,
    code: ['src/dialects/capi/hooks/updaters'],
    tests: ['src/dialects/capi/plan/*.test.ts', 'src/dialects/capi/hooks/updaters/*.test.ts'],
  },
  steps: {
    least: 96,
    code: ['src/agent/steps', 'src/agent/transitions.ts', 'src/agent/next-step.ts'],
    tests: ['src/agent/*.test.ts', 'src/agent/steps/*.test.ts'],
  },
  download: {
    least: 90,
    // The prefetcher only starts steps of an update, and its tests start processes. So it is left out.
    code: ['src/agent/download', '!src/agent/download/prefetcher.ts', 'src/http'],
    tests: ['src/agent/download/*.test.ts', 'src/http/*.test.ts'],
  },
  cattle: {
    least: 92,
    code: ['src/dialects/cattle/plan'],
    tests: ['src/dialects/cattle/plan/*.test.ts'],
  },
  kubeadm: {
    least: 91,
    // The code that starts programs is left out. The tests of the agent and of SSH, which start processes, check this
    // code.
    code: ['src/dialects/kubeadm/host', '!src/util/run-program.ts'],
    tests: ['src/dialects/kubeadm/host/*.test.ts'],
  },
  election: { least: 95, code: ['src/kube/election'], tests: ['src/kube/election/*.test.ts'] },
  health: { least: 95, code: ['src/health'], tests: ['src/health/*.test.ts'] },
  hooks: { least: 93, code: ['src/hooks'], tests: ['src/hooks/*.test.ts'] },
  notify: { least: 92, code: ['src/notify'], tests: ['src/notify/*.test.ts'] },
  silences: { least: 91, code: ['src/silences'], tests: ['src/silences/*.test.ts'] },
  coordination: { least: 96, code: ['src/coordination'], tests: ['src/coordination/*.test.ts'] },
  drain: { least: 91, code: ['src/drain'], tests: ['src/drain/*.test.ts'] },
  'served-dashboard': {
    least: 90,
    code: ['src/cli/served-dashboard'],
    tests: ['src/cli/served-dashboard/*.test.ts'],
  },
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
/** Outside of node_modules, which an install replaces. */
const RESULTS = join(ROOT, '.mutate');

async function main(args: string[], abort: AbortSignal): Promise<number> {
  const { positionals, values } = parseArgs({
    args,
    allowPositionals: true,
    options: { concurrency: { type: 'string', default: '2' } },
  });
  const names = positionals.filter((name) => !name.endsWith('.ts'));
  const only = positionals.filter((name) => name.endsWith('.ts'));
  if (only.length > 0 && names.length !== 1) {
    throw new RefitError('REFIT_USAGE', `name the one part that contains ${only.join(', ')}`);
  }
  const unknown = names.find((name) => PARTS[name] === undefined);
  if (unknown !== undefined) {
    throw new RefitError(
      'REFIT_USAGE',
      `there is no part "${unknown}": name some of ${Object.keys(PARTS).join(', ')}`,
    );
  }
  const low: string[] = [];
  for (const [name, part] of Object.entries(PARTS)) {
    if (names.length > 0 && !names.includes(name)) continue;
    const files = filesOf(part).filter(
      (path) => only.length === 0 || only.includes(basename(path)),
    );
    if (files.length === 0) {
      throw new RefitError('REFIT_USAGE', `the part "${name}" has no file ${only.join(', ')}`);
    }
    const report = await mutate(name, part, { files, concurrency: values.concurrency }, abort);
    const { score, lines } = resultOf(name, report, files);
    for (const line of lines) process.stdout.write(`${line}\n`);
    // The minimum applies to the whole part, so it is not checked for single files.
    if (only.length === 0 && score < part.least)
      low.push(
        `${name}: tests notice ${score.toFixed(1)} % of the changes; they must notice at least ${part.least} %`,
      );
  }
  for (const line of low) process.stderr.write(`${line}\n`);
  return low.length === 0 ? EXIT.ok : EXIT.failed;
}

function filesOf({ code }: Part): string[] {
  const glob = (path: string): string => (path.endsWith('.ts') ? path : `${path}/**/*.ts`);
  const isLeftOut = (path: string): boolean => path.startsWith('!');
  const leftOut = code.filter(isLeftOut).map((path) => glob(path.slice(1)));
  return globSync(code.filter((path) => !isLeftOut(path)).map(glob), {
    cwd: ROOT,
    exclude: ['**/*.test.ts', ...leftOut],
  }).toSorted();
}

/**
 * Stryker keeps the results of each part, also when a signal ends it. So the next run tries only what changed and what no test
 * noticed, and results of files that a run leaves out stay.
 */
async function mutate(
  name: string,
  { tests }: Part,
  { files, concurrency }: { readonly files: readonly string[]; readonly concurrency: string },
  abort: AbortSignal,
): Promise<Report> {
  const results = join(RESULTS, `${name}.json`);
  const options = ['--mutate', files.join(','), '--incrementalFile', results];
  const child = spawn(STRYKER, ['run', ...options, '--concurrency', concurrency], {
    cwd: ROOT,
    env: { ...process.env, MUTATE_TESTS: tests.join(' ') },
    stdio: ['ignore', 'inherit', 'inherit'],
    signal: abort,
  });
  const [status] = (await once(child, 'exit')) as [number | null];
  if (status !== 0) throw new Error(`stryker ended with exit code ${status}`);
  return JSON.parse(readFileSync(results, 'utf8')) as Report;
}

/**
 * Returns the percentage of changes that a test noticed, and the lines to print: a summary, and one line for each
 * change that no test noticed.
 */
function resultOf(
  name: string,
  report: Report,
  files: readonly string[],
): { readonly score: number; readonly lines: readonly string[] } {
  const mutants = files.flatMap((path) =>
    (report.files[path]?.mutants ?? []).map((mutant) => ({ path, ...mutant })),
  );
  const withStatus = (status: string): typeof mutants =>
    mutants.filter((mutant) => mutant.status === status);
  const killed = withStatus('Killed');
  const timedOut = withStatus('Timeout');
  const survived = withStatus('Survived');
  const uncovered = withStatus('NoCoverage');
  const untried = withStatus('Ignored');
  const missed = [...survived, ...uncovered];
  const noticed = killed.length + timedOut.length;
  const score = (100 * noticed) / Math.max(1, noticed + missed.length);
  const counts = [
    `${killed.length} killed`,
    `${timedOut.length} timed out`,
    `${survived.length} survived`,
    `${uncovered.length} not covered`,
    `${untried.length} not tried`,
  ];
  const survivors = missed.map(
    ({ path, status, mutatorName, replacement, location: { start } }) => {
      const change = replacement?.replaceAll(/\s+/g, ' ').slice(0, 80) ?? '';
      return `  ${path}:${start.line}:${start.column} ${status} ${mutatorName} → ${change}`;
    },
  );
  return { score, lines: [`${name}: ${score.toFixed(1)} % (${counts.join(', ')})`, ...survivors] };
}

await runMain(main);
