/** Proves that a run is saved before every call, continues after any crash, and checks every answer. */
import { expect, test } from 'vitest';
import type { Triple, UpdateMachineAnswer } from '../../src/api/capi/hooks.ts';
import { T0 } from '../../test/builders/times.ts';
import { buildTriple } from '../../test/capi/triples.ts';
import { FakeClock } from '../../test/faults/fake-clock.ts';
import { after, type Run } from './run.ts';
import { runUpdate, type Subject, type Updater } from './runner.ts';

const [current, desired] = [
  buildTriple({ machine: { version: 'v1.35.0' }, infra: { size: 1 } }),
  buildTriple({ machine: { version: 'v1.35.1' }, infra: { size: 2 } }),
];
const patchOf = (document: object) =>
  ({ patchType: 'JSONMergePatch', patch: Buffer.from(JSON.stringify(document)).toString('base64') }) as const;

/** Everything that happened to one Machine, in order. */
class Scene implements Subject {
  readonly story: string[] = [];
  kept: Run | undefined;
  /** Number of the entry after which everything ends, as in a crash. */
  crashAfter = Number.POSITIVE_INFINITY;

  async load(): Promise<Run | undefined> {
    return await Promise.resolve(this.kept);
  }

  async save(run: Run): Promise<void> {
    this.kept = JSON.parse(JSON.stringify(run)) as Run;
    await this.tell(`keep ${run.state} ${run.at}`);
  }

  async write(wanted: Triple): Promise<void> {
    await this.tell(`write ${specsOf(wanted)}`);
  }

  async tell(entry: string): Promise<void> {
    this.story.push(entry);
    await Promise.resolve();
    if (this.story.length >= this.crashAfter) throw new Error('crash');
  }

  updaters(answers: readonly Partial<UpdateMachineAnswer>[] = []): Updater[] {
    const rest = [...answers];
    const update = (name: string) => async (wanted: Triple) => {
      await this.tell(`${name} ${specsOf(wanted)}`);
      return { status: 'Success', retryAfterSeconds: 0, ...rest.shift() } as UpdateMachineAnswer;
    };
    const canUpdate = (name: string, patches: object) => async () => {
      await this.tell(`ask ${name}`);
      return { status: 'Success' as const, ...patches };
    };
    return [
      {
        name: 'a',
        canUpdate: canUpdate('a', { machinePatch: patchOf({ spec: { version: 'v1.35.1' } }) }),
        update: update('a'),
      },
      {
        name: 'b',
        canUpdate: canUpdate('b', { infrastructureMachinePatch: patchOf({ spec: { size: 2 } }) }),
        update: update('b'),
      },
    ];
  }
}

function specsOf(triple: Triple): string {
  return ['machine', 'infrastructureMachine'].map((key) => JSON.stringify(triple[key]?.spec)).join(' ');
}

const HALF = '{"version":"v1.35.1"} {"size":1}';
const WHOLE = '{"version":"v1.35.1"} {"size":2}';
const STORY = [
  'ask a',
  'ask b',
  'keep running 0',
  `write ${HALF}`,
  `a ${HALF}`,
  'keep running 1',
  `write ${WHOLE}`,
  `b ${WHOLE}`,
  'keep done 2',
];

async function run(scene: Scene, updaters: readonly Updater[]): Promise<Run> {
  const clock = new FakeClock(T0);
  return await clock.runUntil(runUpdate({ subject: scene, updaters, clock }, current, desired));
}

test('two updaters, one after the other: kept, written, asked, kept', async () => {
  const scene = new Scene();
  expect(await run(scene, scene.updaters())).toMatchObject({ state: 'done', at: 2 });
  expect(scene.story).toEqual(STORY);
});

test('a change that no updater covers: it is named, and nothing is written', async () => {
  const scene = new Scene();
  const { state, message } = await run(scene, scene.updaters().slice(0, 1));
  expect({ state, message }).toEqual({
    state: 'failed',
    message: 'InsufficientCoverage: no updater covers infraMachine.spec.size',
  });
  expect(scene.story).toEqual(['ask a']);
});

test('an updater that is at work is asked again when it said, and the run is the same', async () => {
  const scene = new Scene();
  const answers = [{ retryAfterSeconds: 5, message: 'half' }, {}, {}];
  expect((await run(scene, scene.updaters(answers))).state).toBe('done');
  expect(scene.story.filter((entry) => entry.startsWith('a '))).toHaveLength(2);
});

test.each(STORY.map((entry, index) => [entry, index + 1] as const))(
  'a crash after "%s": it goes on, and ends once',
  async (_entry, count) => {
    const scene = new Scene();
    scene.crashAfter = count;
    await run(scene, scene.updaters()).catch(() => undefined);
    const [before, kept] = [scene.story.length, scene.kept];
    scene.crashAfter = Number.POSITIVE_INFINITY;
    expect((await run(scene, scene.updaters())).state).toBe('done');
    // What is kept as done is never asked for again; what was asked for and not kept is asked once more.
    const again = scene.story.slice(before).filter((entry) => /^[ab] /.test(entry));
    expect(again).toEqual([`a ${HALF}`, `b ${WHOLE}`].slice(kept?.at ?? 0));
  },
);

const RUNNING: Run = {
  id: 'x',
  state: 'running',
  steps: [{ updater: 'a', claimed: ['v'] }],
  at: 0,
  due: T0,
  failures: 0,
};
const answer = (status: 'Success' | 'Failure', retryAfterSeconds: number, message?: string): UpdateMachineAnswer => ({
  status,
  retryAfterSeconds,
  ...(message === undefined ? {} : { message }),
});

test.each<[string, Partial<Run>, UpdateMachineAnswer | Error, Partial<Run>]>([
  ['under way', {}, answer('Success', 5, 'half'), { state: 'running', at: 0, due: T0 + 5000, message: 'half' }],
  ['done', { failures: 3 }, answer('Success', 0), { state: 'done', at: 1, failures: 0 }],
  ['a negative number', {}, answer('Success', -1), { state: 'failed', at: 0 }],
  ['a fraction', {}, answer('Success', 1.5), { state: 'failed', at: 0 }],
  ['a failure', {}, answer('Failure', 0, 'no'), { state: 'running', failures: 1, due: T0 + 1010, message: 'no' }],
  ['no answer', { failures: 9 }, new Error('cut'), { state: 'running', failures: 10, due: T0 + 6120, message: 'cut' }],
  ['a pause is never longer than a minute', { failures: 18 }, new Error('cut'), { due: T0 + 60_000 }],
  ['one failure too many', { failures: 20 }, answer('Failure', 0, 'no'), { state: 'failed', message: 'no' }],
])('%s', (_name, before, given, wanted) => {
  expect(after({ ...RUNNING, ...before }, given, T0)).toMatchObject(wanted);
});
