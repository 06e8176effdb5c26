/**
 * Runs the parts of a proof on machines, and leaves nothing behind: no files except the logs of a failed proof, no
 * cgroups, no processes.
 */
import { existsSync } from 'node:fs';
import { cp, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { systemClock } from '../../../src/util/clock.ts';
import { RefitError } from '../../../src/util/errors.ts';
import type { Outcome } from '../checks.ts';
import { conclude } from '../command.ts';
import { cgroupsOf, removeCgroups } from './host.ts';
import { runApart } from './namespaces.ts';
import { demandHost } from './requirements.ts';

/** What the process inside the namespaces must know about its own part. */
export interface PartPlace {
  readonly part: string;
  /** The folder of the part. */
  readonly directory: string;
  /** The cgroup of the part's machines. */
  readonly group: string;
}

/** The place of a part below the folder of the proof. */
export const placeOf = <Part extends string>(directory: string, part: Part) => ({
  part,
  directory: join(directory, part),
  group: `${basename(directory)}-${part}`,
});

/** The folder of the proof's logs. They are kept if a check fails. */
export const logsOf = (directory: string): string => join(directory, 'logs');

/** File for the outcome of a part. */
export const resultOf = ({ directory }: Pick<PartPlace, 'directory'>): string =>
  join(directory, 'result.json');

/** Runs `prove` in a folder of its own. Prints the outcome, and returns the exit code. */
export async function proveOnMachines(
  parts: readonly string[],
  prove: (directory: string) => Promise<Outcome>,
): Promise<number> {
  await demandHost();
  const started = systemClock.monotonic();
  const directory = await mkdtemp(join(tmpdir(), 'refit-proof-'));
  const groups = parts.map((part) => placeOf(directory, part).group);
  let outcome: Outcome;
  try {
    await mkdir(logsOf(directory));
    outcome = await prove(directory);
    if (outcome.failed.length > 0) await keepLogs(directory);
  } finally {
    for (const group of groups) await removeCgroups(group);
    await rm(directory, { recursive: true });
  }
  const left = groups.flatMap(cgroupsOf);
  const failed = [
    ...outcome.failed,
    ...(left.length > 0 ? [`cgroups are left: ${left.join(', ')}`] : []),
  ];
  const passed = outcome.passed + (left.length > 0 ? 0 : 1);
  return conclude({ passed, failed }, started);
}

async function keepLogs(directory: string): Promise<void> {
  const kept = `${directory}-logs`;
  await cp(logsOf(directory), kept, { recursive: true });
  process.stdout.write(`what each command said: ${kept}\n`);
}

/**
 * Runs `script` with the options of a part in namespaces of its own. When the first process of the namespaces ends, all
 * machines end, and their mounts and networks are removed.
 */
export async function enterPart(
  script: string,
  options: PartPlace,
  abort: AbortSignal,
): Promise<Outcome> {
  await mkdir(options.directory);
  const file = join(options.directory, 'inside.json');
  await writeFile(file, JSON.stringify(options));
  await runApart(script, [file], abort);
  const result = resultOf(options);
  if (!existsSync(result))
    throw new RefitError('REFIT_TESTENV', `${options.part} ended early: see above`);
  return JSON.parse(await readFile(result, 'utf8')) as Outcome;
}

/** The outcome of several parts together. */
export const together = (outcomes: readonly Outcome[]): Outcome => ({
  passed: outcomes.reduce((sum, { passed }) => sum + passed, 0),
  failed: outcomes.flatMap(({ failed }) => failed),
});

/** Makes the log of a part, whose lines begin with the minutes and seconds since now. */
export function timedLog(part: string): (line: string) => void {
  const started = systemClock.monotonic();
  return (line) => {
    const seconds = Math.round((systemClock.monotonic() - started) / 1000);
    const time = [Math.floor(seconds / 60), seconds % 60].map((each) =>
      String(each).padStart(2, '0'),
    );
    process.stdout.write(`${time.join(':')} ${part}: ${line}\n`);
  };
}
