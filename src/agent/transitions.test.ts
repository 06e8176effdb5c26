/**
 * Tests the transitions of the journal, and the steps of one whole update and one whole failure that result from them.
 */
import { expect, test } from 'vitest';
import type { SignalData } from '../signal/annotations.ts';
import {
  IDLE,
  type Journal,
  type StagedJournal,
  type UpdateJournal,
  type UpdatePhase,
} from './journal.ts';
import { nextStep } from './next-step.ts';
import type { ProcessId, ServiceFacts } from './service/host.ts';
import type { StepInput } from './step-input.ts';
import type { Step } from './steps/step.ts';
import {
  afterReboot,
  journalAfter,
  journalBefore,
  resumed,
  withObservedStatus,
} from './transitions.ts';

const id = (pid: number): ProcessId => ({ pid, started: `boot/${pid}`, parent: 1 });
const key: SignalData = {
  planId: 'p',
  created: 'c',
  command: { id: 0, kind: 'k0supdate', url: 'http://d/k0s', version: 'v2' },
};

/**
 * The minimal model of a host and its signal object. A file is only a version; a process is the version of the file
 * from which it was started, and a PID.
 */
interface World {
  signal: SignalData;
  journal: Journal;
  target: string;
  previous: string | undefined;
  process: { version: string; pid: number } | undefined;
  now: number;
}

interface Fate {
  readonly fails?: Step['kind'];
  /** Returns true if the supervisor can start this version; without it, every version starts. */
  readonly starts?: (version: string) => boolean;
}

const factsOf = ({ process, target }: World): ServiceFacts => ({
  binary: '/k0s',
  ...(process && {
    running: {
      version: process.version,
      process: id(process.pid),
      current: process.version === target,
    },
    service: id(process.pid),
  }),
});

const start = (): World => ({
  signal: key,
  journal: IDLE,
  target: 'v1',
  previous: undefined,
  process: { version: 'v1', pid: 1 },
  now: 0,
});

/** In this test, the agent drains its own node. It is unknown whether the node is Ready. */
const inputOf = (world: World): StepInput => ({
  signal: world.signal,
  policy: {},
  journal: world.journal,
  host: factsOf(world),
  node: { cordoner: 'self' },
  now: world.now,
  times: { restartTimeoutMs: 100, soakMs: 30, readyTimeoutMs: 100 },
  accepts: ['k0supdate', 'airgapupdate'],
});

/**
 * Performs steps until nothing is left to do, and returns them. While a step is performed, the journal has the content
 * that it would have after a crash at that moment.
 */
function play(world: World, { fails, starts = () => true }: Fate = {}): string[] {
  const told: string[] = [];
  for (let turn = 0; turn < 50; turn++) {
    const { now } = world;
    const step = nextStep(inputOf(world));
    if (step.kind === 'nothing') return told;
    told.push(step.kind === 'report' ? step.status : step.kind);
    world.journal = journalBefore(step, world.journal, now);
    world.now += 10;
    const outcome =
      step.kind === fails ? { ok: false as const, reason: 'no luck' } : { ok: true as const };
    if (outcome.ok) affect(world, step, starts);
    world.journal = journalAfter(step, world.journal, outcome, world.now);
  }
  throw new Error(`no end: ${told.join(' ')}`);
}

function affect(world: World, step: Step, starts: (version: string) => boolean): void {
  if (step.kind === 'report') {
    world.signal = { ...world.signal, status: { status: step.status, timestamp: 't' } };
  } else if (step.kind === 'keep-previous') world.previous = world.target;
  else if (step.kind === 'swap') world.target = 'v2';
  else if (step.kind === 'roll-back') world.target = world.previous ?? 'none';
  else if (step.kind === 'restart') {
    world.process = starts(world.target)
      ? { version: world.target, pid: (world.process?.pid ?? 1) + 1 }
      : undefined;
  }
}

test('an update goes through six reports, each change of the host between its own two', () => {
  const world = start();
  expect(play(world)).toEqual(
    (
      'begin Downloading download trial-run Cordoning cordon-and-drain ApplyingUpdate keep-previous swap Restart restart ' +
      'soak await-service await-service UnCordoning uncordon Completed clean-up'
    ).split(' '),
  );
  expect(world).toMatchObject({
    journal: IDLE,
    target: 'v2',
    previous: 'v1',
    process: { version: 'v2' },
  });
});

test('a new version that does not start is replaced by the previous one', () => {
  const world = start();
  const told = play(world, { starts: (version) => version === 'v1' });
  expect(told.slice(told.indexOf('Restart')).filter((step) => step !== 'await-service')).toEqual(
    'Restart restart roll-back restart uncordon Failed clean-up'.split(' '),
  );
  expect(world).toMatchObject({ journal: IDLE, target: 'v1', process: { version: 'v1' } });
});

test.each([
  ['download', 'FailedDownload', 'v1'],
  ['trial-run', 'Failed', 'v1'],
  ['cordon-and-drain', 'Failed', 'v1'],
  ['keep-previous', 'Failed', 'v1'],
  ['swap', 'Failed', 'v1'],
  ['restart', 'Failed', 'v1'],
] as const)('where %s fails the status is %s and %s runs', (fails, status, version) => {
  const world = start();
  expect(play(world, { fails })).toContain(status);
  expect(world).toMatchObject({ journal: IDLE, target: version, process: { version } });
});

test('a drain that took too long is told as that, once the cordon is gone', () => {
  const work = { signal: key, binary: '/k0s', from: 'v1', original: id(1) };
  const journal: Journal = { phase: 'ready', work, spent: {}, drain: 'started' };
  const after = journalAfter(
    { kind: 'cordon-and-drain' },
    journal,
    { ok: false, reason: 'too long', late: 'drain' },
    0,
  );
  expect(after).toMatchObject({
    phase: 'failed',
    failure: { status: 'Failed', reason: 'too long', late: 'drain' },
  });
});

test('a roll-back that fails says both reasons', () => {
  const journal: Journal = {
    phase: 'swapped',
    work: { signal: key, binary: '/k0s', from: 'v1', original: id(1) },
    spent: {},
  };
  const swappingBack = journalBefore({ kind: 'roll-back', reason: 'first' }, journal, 0);
  const after = journalAfter(
    { kind: 'roll-back', reason: 'first' },
    swappingBack,
    { ok: false, reason: 'second' },
    0,
  );
  expect(after).toMatchObject({
    phase: 'failed',
    failure: { status: 'Failed', reason: expect.stringMatching(/first.*second/) },
  });
});

test('the report has the time of each status that is over', () => {
  const world = start();
  let spent = {};
  while (world.signal.status?.status !== 'Completed') {
    const { journal, now } = world;
    const step = nextStep(inputOf(world));
    world.now += step.kind === 'download' ? 1000 : 1;
    world.journal = journalAfter(step, journalBefore(step, journal, now), { ok: true }, world.now);
    affect(world, step, () => true);
    if (world.journal.phase !== 'idle') spent = world.journal.spent;
  }
  expect(spent).toEqual({
    Downloading: 1002,
    Cordoning: 2,
    ApplyingUpdate: 3,
    Restart: 32,
    UnCordoning: 2,
  });
});

test('a restarted agent gives the service its whole time again', () => {
  const journal: Journal = {
    phase: 'restarted',
    work: { signal: key, binary: '/k0s', from: 'v1', original: id(1) },
    since: 5,
    restartedAt: 5,
    spent: {},
  };
  expect(resumed(journal, 1_000)).toEqual({ ...journal, since: 1_000 });
  expect(resumed(IDLE, 1_000)).toBe(IDLE);
});

test('a restart in the future was written before the clock was set back: its time is forgotten', () => {
  const journal = at('soaking', { since: 9_500, restartedAt: 9_000 });
  expect(resumed(journal, 1_000)).toEqual(at('soaking', { since: 1_000 }));
});

test('a host that reboots in the soak waits for the new version again: nothing crashed', () => {
  const soaking = at('soaking', { fresh: id(7), since: 5 });
  expect(afterReboot(soaking, 'boot')).toBe(soaking);
  expect(afterReboot(soaking, 'other')).toEqual(at('restarted', { since: 5 }));
  expect(afterReboot(at('proven', { fresh: id(7) }), 'other')).toEqual(
    at('proven', { fresh: id(7) }),
  );
  expect(afterReboot(IDLE, 'other')).toBe(IDLE);
});

test('after a reboot nobody has the PIDs of before, and PID 1 is the same', () => {
  const { work } = at('restarting', {});
  const under = (parent: number) => ({ work: { ...work, original: { ...id(1), parent } } });
  const restarting = (parent: number, more: Partial<UpdateJournal>) =>
    at('restarting', { ...under(parent), ...more });
  expect(afterReboot(restarting(70, { process: id(7) }), 'boot')).toEqual(
    restarting(70, { process: id(7) }),
  );
  expect(afterReboot(restarting(70, { process: id(7) }), 'other')).toEqual(restarting(0, {}));
  expect(afterReboot(restarting(1, {}), 'other')).toEqual(restarting(1, {}));
  const since = { process: { ...id(7), started: 'other/7' } };
  expect(afterReboot(restarting(70, since), 'other')).toEqual(restarting(0, since));
});

test('a restart is dated before it is carried out, and anew where it is carried out again', () => {
  const swapped: Journal = {
    phase: 'swapped',
    work: { signal: key, binary: '/k0s', from: 'v1', original: id(1) },
    spent: {},
  };
  const first = journalBefore({ kind: 'restart', process: id(1) }, swapped, 5);
  expect(first).toMatchObject({ phase: 'restarting', restartedAt: 5 });
  expect(journalBefore({ kind: 'restart', process: id(1) }, first, 9)).toMatchObject({
    restartedAt: 9,
  });
  const watched = journalBefore({ kind: 'soak', process: id(2) }, first, 20);
  expect(watched).toMatchObject({ phase: 'soaking', since: 20, restartedAt: 5 });
});

test('a roll-back that is given up for what runs leaves no failure behind', () => {
  const watched = journalBefore(
    { kind: 'soak', process: id(2) },
    at('swappingBack', failed('why')),
    20,
  );
  expect(watched).toMatchObject({ phase: 'soaking', since: 20 });
  expect(JSON.stringify(watched)).not.toContain('why');
});

test('a step that changes nothing in the journal gives the same object, so that nothing need be written', () => {
  const journal: Journal = {
    phase: 'ready',
    work: { signal: key, binary: '/k0s', from: 'v1', original: id(1) },
    spent: {},
  };
  expect(journalBefore({ kind: 'report', status: 'Cordoning' }, journal, 0)).toBe(journal);
  expect(journalBefore({ kind: 'keep-previous' }, journal, 0)).toBe(journal);
});

const WORK = { signal: key, binary: '/k0s', from: 'v1', original: id(1) };
const at = (phase: UpdatePhase, more: Partial<UpdateJournal> = {}): UpdateJournal => ({
  phase,
  work: WORK,
  spent: {},
  ...more,
});
const failed = (reason: string): Pick<UpdateJournal, 'failure'> => ({
  failure: { status: 'Failed', reason },
});
const BUNDLE: StagedJournal = { phase: 'wanted', work: { signal: key }, spent: {} };

test.each<[Step, UpdateJournal, Partial<UpdateJournal>]>([
  [{ kind: 'cordon-and-drain' }, at('ready'), { phase: 'ready', drain: 'started' }],
  [{ kind: 'swap' }, at('kept'), { phase: 'swapping' }],
  [{ kind: 'restart', process: id(1) }, at('swapped'), { phase: 'restarting', process: id(1) }],
  [
    { kind: 'restart', process: id(2) },
    at('swappedBack'),
    { phase: 'restartingBack', process: id(2) },
  ],
  [
    { kind: 'restart', process: id(2) },
    at('restartedBack'),
    { phase: 'restartingBack', process: id(2) },
  ],
  [{ kind: 'give-up', reason: 'why' }, at('ready'), { phase: 'failed', ...failed('why') }],
  [
    { kind: 'give-up', reason: 'why', refused: true },
    at('ready'),
    { phase: 'failed', failure: { status: 'Failed', reason: 'why', refused: true } },
  ],
  [
    { kind: 'roll-back', reason: 'why' },
    at('restarted'),
    { phase: 'swappingBack', ...failed('why') },
  ],
  [{ kind: 'roll-back', reason: 'later' }, at('swappingBack', failed('why')), failed('why')],
  [{ kind: 'report', status: 'UnCordoning' }, at('soaking'), { phase: 'proven' }],
])(
  'what a crash in the middle of a step must know is written before it: %j',
  (step, journal, written) => {
    expect(journalBefore(step, journal, 5)).toMatchObject(written);
  },
);

test('the process that an earlier restart ended is forgotten where a restart finds none', () => {
  const journal = at('restarting', { process: id(1), fresh: id(2) });
  expect(journalBefore({ kind: 'restart' }, journal, 5)).toEqual(
    at('restarting', { since: 5, restartedAt: 5 }),
  );
});

test.each<[string, Step, Journal]>([
  ['a drain that goes on', { kind: 'cordon-and-drain' }, at('ready', { drain: 'started' })],
  ['a report', { kind: 'report', status: 'Restart' }, at('swapped')],
  ['a step that is no report', { kind: 'await-leader' }, at('ready')],
  ['a report without work', { kind: 'report', status: 'UnCordoning' }, IDLE],
  ['a step of a bundle', { kind: 'fetch-bundle' }, BUNDLE],
])('nothing need be written before %s', (_name, step, journal) => {
  expect(journalBefore(step, journal, 5)).toBe(journal);
});

const WELL = { ok: true } as const;
const BADLY = { ok: false, reason: 'no luck' } as const;

test.each<
  [string, Step['kind'], UpdateJournal, typeof WELL | typeof BADLY, Partial<UpdateJournal>]
>([
  ['a restart', 'restart', at('restarting'), WELL, { phase: 'restarted' }],
  [
    'a restart after a roll-back',
    'restart',
    at('restartingBack'),
    WELL,
    { phase: 'restartedBack' },
  ],
  [
    'a restart that failed',
    'restart',
    at('restarting'),
    BADLY,
    { phase: 'swappingBack', ...failed('no luck') },
  ],
  [
    'a restart after a roll-back that failed',
    'restart',
    at('restartingBack', failed('why')),
    BADLY,
    { phase: 'restartedBack', ...failed('why') },
  ],
  [
    'a cordon removed',
    'uncordon',
    at('proven', { drain: 'done' }),
    WELL,
    { phase: 'proven', drain: 'undone' },
  ],
  [
    'a cordon stuck, after a failure',
    'uncordon',
    at('failed', { ...failed('why'), drain: 'done' }),
    BADLY,
    { phase: 'failed', ...failed('why'), drain: 'stuck' },
  ],
])('the journal after %s says so', (_name, kind, journal, outcome, expected) => {
  expect(journalAfter({ kind } as Step, journal, outcome, 5)).toEqual({ ...journal, ...expected });
});

test.each<[string, Step['kind'], UpdateJournal]>([
  ['a cordon that stays, after a success', 'uncordon', at('proven', { drain: 'done' })],
  [
    'a cordon that is stuck already',
    'uncordon',
    at('failed', { ...failed('why'), drain: 'stuck' }),
  ],
  ['a report that was not written', 'report', at('ready')],
])('a step that fails is taken again: %s', (_name, kind, journal) => {
  expect(journalAfter({ kind } as Step, journal, BADLY, 5)).toBe(journal);
});

test.each<[string, Step['kind'], object]>([
  [
    'leaving the signal to another agent ends the work, also where files are left',
    'stand-aside',
    BADLY,
  ],
  ['cleaning up ends the work, also where files are left', 'clean-up', BADLY],
])('%s', (_name, kind, outcome) => {
  expect(journalAfter({ kind } as Step, at('ready'), outcome as typeof BADLY, 5)).toBe(IDLE);
});

test('a report without work leaves nothing in the journal', () => {
  expect(journalAfter({ kind: 'report', status: 'Completed' }, IDLE, WELL, 5)).toBe(IDLE);
});

test('a procedure has staged the upgrade, has upgraded the host, or has missed it', () => {
  const staged = journalAfter({ kind: 'stage-upgrade' }, BUNDLE, WELL, 5);
  expect(staged).toEqual({ ...BUNDLE, phase: 'placed' });
  expect(journalAfter({ kind: 'upgrade-host' }, staged, WELL, 5)).toEqual({
    ...BUNDLE,
    phase: 'upgraded',
  });
  const missed = { ...BUNDLE, phase: 'missed' };
  expect(journalAfter({ kind: 'stage-upgrade' }, BUNDLE, BADLY, 5)).toEqual({
    ...missed,
    failure: { status: 'FailedDownload', reason: 'no luck' },
  });
  expect(journalAfter({ kind: 'upgrade-host' }, staged, BADLY, 5)).toEqual({
    ...missed,
    failure: { status: 'Failed', reason: 'no luck' },
  });
});

test('a bundle is placed or missed, and its reports are tried again', () => {
  expect(journalAfter({ kind: 'fetch-bundle' }, BUNDLE, WELL, 5)).toEqual({
    ...BUNDLE,
    phase: 'placed',
  });
  expect(journalAfter({ kind: 'fetch-bundle' }, BUNDLE, BADLY, 5)).toEqual({
    ...BUNDLE,
    phase: 'missed',
    failure: { status: 'FailedDownload', reason: 'no luck' },
  });
  expect(journalAfter({ kind: 'report', status: 'Downloading' }, BUNDLE, BADLY, 5)).toBe(BUNDLE);
});

test.each<[string, Journal]>([
  ['a bundle, which restarts nothing', BUNDLE],
  ['an update that restarted nothing yet', at('ready')],
])('a restarted agent changes no times of %s', (_name, journal) => {
  expect(resumed(journal, 1_000)).toBe(journal);
});

test('a status that another writer set counts from when it was observed, and once', () => {
  const downloading = { ...key, status: { status: 'Downloading', timestamp: 't' } };
  const first = withObservedStatus(at('started'), downloading, 10);
  expect(first).toEqual(at('started', { entered: { status: 'Downloading', at: 10 } }));
  expect(withObservedStatus(first, downloading, 50)).toBe(first);
  const cordoning = { ...key, status: { status: 'Cordoning', timestamp: 't' } };
  expect(withObservedStatus(first, cordoning, 70)).toMatchObject({ spent: { Downloading: 60 } });
});

test.each<[string, Journal, SignalData | undefined]>([
  ['no signal', at('ready'), undefined],
  ['a signal without status', at('ready'), key],
  [
    'the status of another signal',
    at('ready'),
    { ...key, created: 'x', status: { status: 'Cordoning', timestamp: 't' } },
  ],
  ['no work', IDLE, { ...key, status: { status: 'Cordoning', timestamp: 't' } }],
])('the journal takes over no status: %s', (_name, journal, signal) => {
  expect(withObservedStatus(journal, signal, 10)).toBe(journal);
});
