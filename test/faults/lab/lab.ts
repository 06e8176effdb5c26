/**
 * Implements `npm run lab`: runs every single fault at every place, then random mixtures for the given number of
 * minutes, and writes the tables of docs/reference/lab.md and docs/internals/lab.md. `--minutes` is 0 by default;
 * `--seed` is the seed of the first mixture.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { counted } from '../../../src/util/phrases.ts';
import { withTable } from '../../model/safety-page.ts';
import { bytesOf, NEW } from '../disk/disk-works.ts';
import {
  fileTrials,
  isFineOnDisk,
  NAMES_OF_FAULTS,
  nameOfTrial,
  tryFile,
  WORKS,
} from '../disk/file-sweep.ts';
import { servePayload } from '../disk/payload-server.ts';
import { fewestJobMishaps, JOB_SWEEPS, throwJobDice, tryJobs } from '../job-lab/job-sweeps.ts';
import { shortest, throwDice } from './dice.ts';
import { describe, isFine, play } from './mishaps.ts';
import { MIXTURES, Outcomes } from './outcomes.ts';
import { SWEEPS, tryOut } from './sweeps.ts';

const SWEEPS_PAGE = new URL('../../../docs/reference/lab.md', import.meta.url);
const DICE_PAGE = new URL('../../../docs/internals/lab.md', import.meta.url);
const SEED = 1;

function writeTable(page: URL, name: string, lines: string[]): void {
  writeFileSync(page, withTable(readFileSync(page, 'utf8'), name, lines));
}

async function sweepCalls(outcomes: Outcomes): Promise<void> {
  for (const sweep of SWEEPS) {
    for (const trial of await sweep.trials(SEED)) {
      const { end, wrong } = await tryOut(trial, SEED);
      outcomes.count(trial.where, trial.what, end, wrong);
    }
  }
}

async function sweepJobs(outcomes: Outcomes): Promise<void> {
  for (const sweep of JOB_SWEEPS) {
    for (const trial of await sweep.trials(SEED)) {
      const { end, wrong } = await tryJobs(trial, SEED);
      outcomes.count(trial.where, trial.what, end, wrong);
    }
  }
}

async function sweepFiles(outcomes: Outcomes): Promise<void> {
  await using server = await servePayload(bytesOf(NEW));
  for (const work of WORKS) {
    const where = `${work.name}: file operations of the agent`;
    for (const trial of await fileTrials(work, server)) {
      const verdict = await tryFile(trial, server);
      const { end, reason, violations } = verdict;
      const wrong = isFineOnDisk(verdict)
        ? ''
        : `${nameOfTrial(trial)}: ${end} ${reason} ${violations.join('; ')}`;
      outcomes.count(where, NAMES_OF_FAULTS[trial.fault], end, wrong);
    }
  }
}

/** Runs mixtures with seeds that count up from `first`. Returns the last seed. */
async function playDice(outcomes: Outcomes, first: number, minutes: number): Promise<number> {
  const end = performance.now() + minutes * 60_000;
  let seed = first;
  for (; performance.now() < end; seed++) {
    const thrown = await throwDice(seed);
    const { verdict } = await play(thrown.scene, seed, thrown.mishaps);
    const what = `runs with ${counted(thrown.mishaps.length, 'fault')}`;
    if (isFine(verdict)) {
      outcomes.count(MIXTURES, what, verdict.end, '');
      continue;
    }
    const few = await shortest(thrown, seed);
    const { verdict: last } = await play(thrown.scene, seed, few);
    const trail = [
      ...few.map(describe),
      `${last.end} ${last.reason} ${last.violations.join('; ')}`,
    ];
    outcomes.count(MIXTURES, what, verdict.end, `seed ${seed}: ${trail.join(' → ')}`);
    console.error(outcomes.wrong.at(-1));
  }
  return seed - 1;
}

/** Does the same as `playDice` for runs with Jobs. */
async function playJobDice(outcomes: Outcomes, first: number, minutes: number): Promise<number> {
  const end = performance.now() + minutes * 60_000;
  let seed = first;
  for (; performance.now() < end; seed++) {
    const thrown = await throwJobDice(seed);
    const { end: told, wrong } = await tryJobs(thrown, seed);
    const what = `runs with Jobs and ${counted(thrown.mishaps.length, 'fault')}`;
    if (wrong === '') {
      outcomes.count(MIXTURES, what, told, '');
      continue;
    }
    const mishaps = await fewestJobMishaps(thrown, seed);
    const { wrong: trail } = await tryJobs({ ...thrown, mishaps }, seed);
    outcomes.count(MIXTURES, what, told, `seed ${seed} with Jobs: ${trail}`);
    console.error(outcomes.wrong.at(-1));
  }
  return seed - 1;
}

const { values } = parseArgs({
  options: { minutes: { type: 'string', default: '0' }, seed: { type: 'string', default: '1' } },
});
const sweeps = new Outcomes();
const dice = new Outcomes();
await sweepCalls(sweeps);
await sweepJobs(sweeps);
await sweepFiles(sweeps);
console.log(sweeps.table().join('\n'));
const first = Number(values.seed);
const minutes = Number(values.minutes);
const last = await playDice(dice, first, minutes / 2);
const lastWithJobs = await playJobDice(dice, first, minutes / 2);
writeTable(SWEEPS_PAGE, 'sweeps', [
  ...sweeps.table(),
  '',
  `The table contains ${sweeps.runs} runs.`,
]);
if (dice.runs > 0) {
  const seeds = `seeds ${first} to ${last} without Jobs, and seeds ${first} to ${lastWithJobs} with Jobs`;
  const told = `The table contains ${dice.runs} runs in ${minutes} minutes: ${seeds}.`;
  console.log([...dice.table(), told].join('\n'));
  writeTable(DICE_PAGE, 'dice', [...dice.table(), '', told]);
}
const wrong = [...sweeps.wrong, ...dice.wrong];
for (const each of wrong) console.error(each);
process.exitCode = wrong.length === 0 ? 0 : 1;
