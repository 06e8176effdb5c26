/** The command behind `npm start`: starts a cluster on this machine, upgrades it, and removes it again. */
import { mkdir, mkdtemp } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { systemClock } from '../src/util/clock.ts';
import { formatDuration } from '../src/util/duration.ts';
import { EXIT, RefitError, usageError } from '../src/util/errors.ts';
import { guardDirectory } from '../tools/controlplane/guard.ts';
import { runMain } from '../tools/main.ts';
import type { Demonstration, Flags } from './start/demonstration.ts';
import { keepRunning } from './start/keep.ts';
import { DEMONSTRATIONS } from './start/registry.ts';

const COMMON = {
  help: { type: 'boolean', short: 'h' },
  dialect: { type: 'string' },
  keep: { type: 'boolean' },
} as const;

function choose(args: string[]): Demonstration {
  const { dialect } = parseArgs({ args, options: COMMON, strict: false }).values;
  if (dialect === undefined) return DEMONSTRATIONS[0];
  const chosen = DEMONSTRATIONS.find((each) => each.dialect === dialect);
  if (chosen) return chosen;
  const known = DEMONSTRATIONS.map((each) => each.dialect).join(', ');
  throw new RefitError('REFIT_USAGE', `--dialect ${dialect}: unknown; use one of ${known}`);
}

function parse(args: string[], { flags }: Demonstration): Flags {
  try {
    return parseArgs({ args, options: { ...flags, ...COMMON } }).values;
  } catch (error) {
    throw usageError(error);
  }
}

function helpOf({ dialect, about, help }: Demonstration): string {
  const others = DEMONSTRATIONS.map((each) => each.dialect).join(', ');
  const flags = {
    '--dialect <name>': `one of ${others}; this is the help of ${dialect}`,
    ...help,
    '--keep':
      'leave the cluster running at the end, for kubectl and refit; Ctrl-C stops and removes it',
    '--help': 'show this text',
  };
  const width = Math.max(...Object.keys(flags).map(({ length }) => length));
  const lines = Object.entries(flags).map(([flag, text]) => `  ${flag.padEnd(width)}  ${text}`);
  return ['Usage: npm start [-- options]', '', ...about, '', ...lines, ''].join('\n');
}

/** Resolves with the exit code when everything is removed again. */
async function start(
  demonstration: Demonstration,
  flags: Flags,
  abort: AbortSignal,
): Promise<number> {
  const began = systemClock.monotonic();
  await using started = new AsyncDisposableStack();
  const directory = await mkdtemp(join(tmpdir(), 'refit-start-'));
  await mkdir(join(directory, 'pids'));
  const guard = guardDirectory(directory);
  started.defer(async () => await guard.release());
  const keeps = flags['keep'] === true;
  const keep = async (kubeconfig: string, more?: readonly string[]): Promise<void> =>
    await keepRunning(kubeconfig, { directory, abort, say }, more);
  const code = await demonstration.run(flags, {
    directory,
    started,
    abort,
    say,
    keep: keeps ? keep : undefined,
  });
  if (code !== EXIT.interrupted && !keeps)
    say(`\nTotal time: ${formatDuration(systemClock.monotonic() - began)}.`);
  return code;
}

function say(line: string): void {
  process.stdout.write(`${line}\n`);
}

async function main(args: string[], abort: AbortSignal): Promise<number> {
  const demonstration = choose(args);
  const flags = parse(args, demonstration);
  if (flags['help'] !== true) return await start(demonstration, flags, abort);
  process.stdout.write(helpOf(demonstration));
  return EXIT.ok;
}

await runMain(main);
