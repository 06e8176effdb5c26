/**
 * Explores every crash of the extension while three updaters work on a Machine. The Machine must never be reported as
 * done before every updater is done.
 */

import { describe, expect, test } from 'vitest';
import { fitting } from '../../../../../sandbox/cluster/hook-schema.ts';
import { OWN_PLANS } from '../../../../../test/support/builders/machine-updates.ts';
import { MemoryApi } from '../../../../../test/support/builders/memory-api.ts';
import {
  buildUpdater,
  buildUpdaterSet,
} from '../../../../../test/support/builders/updater-sets.ts';
import { buildNodeCluster } from '../../../../../test/support/capi/node-cluster.ts';
import { FakeClock } from '../../../../../test/support/clock/fake-clock.ts';
import { T0 } from '../../../../../test/support/clock/times.ts';
import type { UpdateMachineRequest, UpdateMachineResponse } from '../../../../api/capi/hooks.ts';
import { type Machine, machines } from '../../../../api/capi/machine.ts';
import { type Updater, updaterSets } from '../../../../api/refit/updater-set.ts';
import { silentLogger } from '../../../../util/log.ts';
import { STEPS_ANNOTATION } from './step-record.ts';
import { type StepParts, updateInSteps } from './update-steps.ts';
import type { UpdaterAnswer } from './updater-client.ts';

const NAMES = ['first', 'second', 'third'];
const WORKING = { status: 'Success', message: 'at work', retryAfterSeconds: 7 } as const;
const DONE = { status: 'Success', retryAfterSeconds: 0 } as const;
const FAILED = { status: 'Failure', message: 'the disk is full' } as const;

class Crash extends Error {}

/**
 * The point at which the process crashes: `at` is the number of the call or write; the crash is before or after its
 * effect.
 */
interface CrashPoint {
  readonly at: number;
  readonly when: 'before' | 'after';
}

class Scene {
  readonly api = new MemoryApi();
  /** The events in order, such as `call first` and `done first`. */
  readonly events: string[] = [];
  /** The next answers of each updater. After the last of these answers, the updater answers that it is done. */
  readonly answers: Record<string, (UpdaterAnswer | Error)[]>;
  effects = 0;
  #crashes: readonly CrashPoint[];

  constructor(answers: Scene['answers'] = {}, crashes: readonly CrashPoint[] = []) {
    this.answers = answers;
    this.#crashes = crashes;
    this.api.put(
      updaterSets,
      buildUpdaterSet(
        'all',
        NAMES.map((name) => buildUpdater(name)),
      ),
    );
    this.api.put(machines, {
      kind: 'Machine',
      metadata: { name: 'm1', namespace: 'default', uid: 'u1', labels: {} },
      spec: { version: 'v1.35.1' },
    });
  }

  readonly told: string[] = [];
  settings: Readonly<Record<string, string>> = {};
  /** The version in the request of the call. */
  version: string | undefined = 'v1.35.1';
  /** False if the client did not prove its identity, so that any client could be the caller. */
  isProven = true;

  get machine(): Machine {
    return this.api.read(machines, 'm1');
  }

  async ask(files: string = 'two'): Promise<UpdateMachineResponse> {
    const object = (kind: string, spec: object) => ({
      kind,
      metadata: { name: 'm1', namespace: 'default' },
      spec,
    });
    const desired: UpdateMachineRequest['desired'] = {
      machine: object('Machine', this.version === undefined ? {} : { version: this.version }),
      infrastructureMachine: object('DevMachine', {}),
      bootstrapConfig: object('KubeadmConfig', { files }),
    };
    const { settings } = this;
    const answer = await updateInSteps(this.#parts(), { desired, settings });
    return fitting('UpdateMachineResponse', answer);
  }

  /** Repeats the call, as Cluster API does, until the answer is final. Continues after a crash. */
  async drive(): Promise<UpdateMachineResponse> {
    for (let calls = 0; calls < 40; calls++) {
      const answer = await this.ask().catch((error: unknown) => {
        if (error instanceof Crash) return undefined;
        throw error;
      });
      if (answer?.status === 'Success' && answer.retryAfterSeconds === 0) return answer;
    }
    throw new Error(`no end: ${this.events.join(', ')}`);
  }

  #parts(): StepParts {
    const { client } = this.api;
    const patch = async (...args: Parameters<typeof client.patch>) =>
      await this.#effect(async () => await client.patch(...args));
    return {
      abort: new AbortController().signal,
      management: { ...client, patch } as StepParts['management'],
      clusterOf: () => buildNodeCluster(client),
      source: { url: '' },
      readText: async () => await Promise.reject(new Error('not used')),
      callUpdater: this.isProven
        ? async ({ name }: Updater) => await this.#effect(async () => await this.#answer(name))
        : undefined,
      replaceStuck: async () => await Promise.resolve(''),
      owners: OWN_PLANS,
      tell: async (_machine, { reason, message }) =>
        await Promise.resolve(void this.told.push(`${reason}: ${message}`)),
      rulesOf: async () => await Promise.resolve({ drainSeconds: 0 }),
      clock: new FakeClock(T0),
      log: silentLogger,
    };
  }

  async #answer(name: string): Promise<UpdaterAnswer> {
    this.events.push(`call ${name}`);
    const answer = this.answers[name]?.shift() ?? DONE;
    if (answer instanceof Error) return await Promise.reject(answer);
    if (answer.status === 'Success' && answer.retryAfterSeconds === 0)
      this.events.push(`done ${name}`);
    return answer;
  }

  async #effect<T>(work: () => Promise<T>): Promise<T> {
    this.effects += 1;
    const { effects } = this;
    const dies = (when: CrashPoint['when']) =>
      this.#crashes.some((crash) => crash.at === effects && crash.when === when);
    if (dies('before')) throw new Crash();
    const result = await work();
    if (dies('after')) throw new Crash();
    return result;
  }
}

/** Returns the faults in the events of a Machine. The Machine is reported as done. */
function faultsIn(events: readonly string[]): string[] {
  return NAMES.flatMap((name, index) => {
    const called = events.indexOf(`call ${name}`);
    const before = events.indexOf(`done ${NAMES[index - 1]}`);
    return [
      ...(events.includes(`done ${name}`) ? [] : [`${name} was never done`]),
      ...(index > 0 && called >= 0 && (before < 0 || before > called)
        ? [`${name} was called too early`]
        : []),
    ];
  });
}

const hard = (): Scene['answers'] => ({
  first: [WORKING, new Error('no answer from first')],
  second: [FAILED, WORKING],
  third: [WORKING],
});

test('three updaters run one after the other, and the answers show the message of each', async () => {
  const scene = new Scene(hard());
  const words: string[] = [];
  for (let calls = 0; calls < 8; calls++) words.push((await scene.ask()).message ?? 'done');
  expect(words).toEqual([
    'updater first: at work',
    'waiting for updater first: no answer from first',
    'updater first is done, second is next',
    'updater second: the disk is full',
    'updater second: at work',
    'updater second is done, third is next',
    'updater third: at work',
    'done',
  ]);
  expect(scene.told).toEqual([
    'UpdaterDone: updater first is done, second is next',
    'UpdaterDone: updater second is done, third is next',
  ]);
  expect(faultsIn(scene.events)).toEqual([]);
  expect(scene.machine.metadata.annotations).toEqual({});
});

test('after any two crashes of the extension, all updaters still run in order until each is done', async () => {
  const quiet = new Scene(hard());
  await quiet.drive();
  const points = Array.from({ length: quiet.effects + 4 }, (_, index) => index + 1).flatMap((at) =>
    (['before', 'after'] as const).map((when): CrashPoint => ({ at, when })),
  );
  let explored = 0;
  for (const [index, one] of points.entries())
    for (const two of points.slice(index)) {
      const scene = new Scene(hard(), [one, two]);
      await scene.drive();
      const story = `crashes ${JSON.stringify([one, two])}: ${scene.events.join(', ')}`;
      expect(faultsIn(scene.events), story).toEqual([]);
      explored += 1;
    }
  expect(explored).toBeGreaterThan(400);
});

test('the exploration finds an updater that is left out', async () => {
  const scene = new Scene(hard());
  await scene.ask();
  setRecord(scene, { done: 1 });
  await scene.drive();
  expect(faultsIn(scene.events)).toEqual(['first was never done', 'second was called too early']);
});

function setRecord(scene: Scene, more: object): void {
  scene.api.change(machines, 'm1', (machine) => {
    const record: unknown = JSON.parse(machine.metadata.annotations?.[STEPS_ANNOTATION] ?? '');
    const annotations = { [STEPS_ANNOTATION]: JSON.stringify({ ...(record as object), ...more }) };
    return { ...machine, metadata: { ...machine.metadata, annotations } };
  });
}

describe('success is never answered without calls', () => {
  test('asked again after the end: every updater is called again', async () => {
    const scene = new Scene();
    await scene.drive();
    scene.events.length = 0;
    await scene.drive();
    expect(scene.events.filter((event) => event.startsWith('call'))).toEqual(
      NAMES.map((name) => `call ${name}`),
    );
  });

  test('a record that says that all is done does not count', async () => {
    const scene = new Scene();
    await scene.ask();
    setRecord(scene, { done: 3 });
    scene.events.length = 0;
    await scene.drive();
    expect(faultsIn(scene.events)).toEqual([]);
  });

  test('a record of other desired objects does not count', async () => {
    const scene = new Scene();
    await scene.ask('one');
    await scene.ask('one');
    scene.events.length = 0;
    await scene.drive();
    expect(faultsIn(scene.events)).toEqual([]);
  });

  test('an updater that is taken out of the set while it works: a failure that says what to do', async () => {
    const scene = new Scene({ first: [WORKING] });
    await scene.ask();
    scene.api.put(updaterSets, buildUpdaterSet('all', [buildUpdater('second')]));
    const answer = await scene.ask();
    expect(answer).toMatchObject({
      status: 'Failure',
      message: expect.stringContaining(
        'add the updater to the UpdaterSet again, or remove the annotation',
      ) as string,
    });
    scene.api.change(machines, 'm1', (machine) => ({
      ...machine,
      metadata: { ...machine.metadata, annotations: {} },
    }));
    expect(await scene.drive()).toMatchObject({ status: 'Success', retryAfterSeconds: 0 });
  });

  test('a label that no longer matches takes no step away', async () => {
    const scene = new Scene({ first: [WORKING] });
    await scene.ask();
    const selector = { matchLabels: { pool: 'gpu' } };
    scene.api.put(
      updaterSets,
      buildUpdaterSet(
        'all',
        NAMES.map((name) => buildUpdater(name, { selector })),
        { selector },
      ),
    );
    await scene.drive();
    expect(faultsIn(scene.events)).toEqual([]);
  });

  test('no updater for the labels of the Machine: a failure', async () => {
    const scene = new Scene();
    const selector = { matchLabels: { pool: 'gpu' } };
    scene.api.put(updaterSets, buildUpdaterSet('all', [buildUpdater('first', { selector })]));
    expect(await scene.ask()).toMatchObject({ status: 'Failure' });
  });
});

test('somebody else writes the Machine between the call and the record: the step is called again', async () => {
  const scene = new Scene();
  scene.api.before('patch machines/m1', () => undefined);
  await scene.ask();
  scene.api.before('patch machines/m1', () =>
    scene.api.change(machines, 'm1', (machine) => machine),
  );
  expect(await scene.ask()).toMatchObject({
    status: 'Success',
    message: 'the Machine changed meanwhile',
  });
  await scene.drive();
  expect(scene.events.filter((event) => event === 'call second')).toHaveLength(2);
});

test('somebody else writes the Machine at the last step: it is done once its record is removed, and not before', async () => {
  const scene = new Scene();
  while (!scene.events.includes('done second')) await scene.ask();
  scene.api.before('patch machines/m1', () =>
    scene.api.change(machines, 'm1', (machine) => machine),
  );
  expect(await scene.ask()).toMatchObject({ message: 'the Machine changed meanwhile' });
  expect(scene.events.at(-1)).toBe('done third');
  expect(scene.machine.metadata.annotations).toHaveProperty([STEPS_ANNOTATION]);
  expect(await scene.ask()).toMatchObject(DONE);
  expect(scene.machine.metadata.annotations).toEqual({});
});

describe('no updater is called, and nothing is recorded or done', () => {
  const setVersion = (scene: Scene, version?: string): void =>
    scene.api.change(machines, 'm1', ({ spec: _before, ...machine }) => ({
      ...machine,
      spec: version === undefined ? {} : { version },
    }));

  test.each<[string, (scene: Scene) => void, string]>([
    [
      'where in-place updates are disabled',
      (scene) => {
        scene.settings = { disableInPlaceUpdates: 'true' };
      },
      'in-place updates are disabled by the setting disableInPlaceUpdates',
    ],
    [
      'where a setting has a value that it cannot have',
      (scene) => {
        scene.settings = { disableInPlaceUpdates: 'True' };
      },
      'the setting disableInPlaceUpdates is "True", expected true or false',
    ],
    [
      'for a Machine that is gone',
      ({ api }) => api.remove(machines, 'm1'),
      'Machine default/m1 does not exist',
    ],
    [
      'where the call asks for another version than the Machine',
      (scene) => {
        scene.version = 'v1.36.0';
      },
      'Machine default/m1 has spec.version v1.35.1, but the call asks for v1.36.0',
    ],
    [
      'where the call asks for no version',
      (scene) => {
        scene.version = undefined;
      },
      'Machine default/m1 has spec.version v1.35.1, but the call asks for none',
    ],
    [
      'where the Machine has no version',
      (scene) => setVersion(scene),
      'Machine default/m1 has spec.version no version, but the call asks for v1.35.1',
    ],
    [
      'where the set has no updater for the labels of the Machine',
      ({ api }) => {
        const selector = { matchLabels: { pool: 'gpu' } };
        api.put(updaterSets, buildUpdaterSet('all', [buildUpdater('first', { selector })]));
      },
      'UpdaterSet all has no updater for the labels of this Machine',
    ],
  ])('%s: a failure that says so', async (_what, happen, message) => {
    const scene = new Scene();
    happen(scene);
    expect(await scene.ask()).toMatchObject({ status: 'Failure', message });
    expect(scene.events).toEqual([]);
    expect(scene.api.calls.filter((call) => call.startsWith('patch'))).toEqual([]);
  });

  test('where anybody may call: it waits, and the record names the first as the next one', async () => {
    const scene = new Scene();
    scene.isProven = false;
    for (let calls = 0; calls < 3; calls++)
      expect(await scene.ask()).toMatchObject({
        status: 'Success',
        retryAfterSeconds: 2,
        message: 'waiting for updater first: updaters other than refit need --client-ca',
      });
    expect(scene.events).toEqual([]);
    expect(recordOf(scene)).toMatchObject({ set: 'all', steps: NAMES, done: 0 });
    scene.isProven = true;
    expect(await scene.ask()).toMatchObject({
      message: 'updater first is done, second is next',
      retryAfterSeconds: 2,
    });
    expect(recordOf(scene)).toMatchObject({ set: 'all', steps: NAMES, done: 1 });
  });

  test('by a failure without a message, which leaves the record as it is', async () => {
    const scene = new Scene({ first: [{ status: 'Failure' }] });
    expect(await scene.ask()).toMatchObject({
      status: 'Failure',
      message: 'updater first: without a message',
    });
    expect(recordOf(scene)).toMatchObject({ done: 0 });
  });

  test('somebody else writes the Machine before its first record', async () => {
    const scene = new Scene();
    scene.api.before('patch machines/m1', () =>
      scene.api.change(machines, 'm1', (machine) => machine),
    );
    expect(await scene.ask()).toMatchObject({
      message: 'the Machine changed meanwhile',
      retryAfterSeconds: 2,
    });
    expect(scene.events).toEqual([]);
    expect(scene.machine.metadata.annotations).toBeUndefined();
  });
});

test('without an answer about the time left, an updater is done: zero seconds', async () => {
  const scene = new Scene({ first: [{ status: 'Success' }] });
  expect(await scene.ask()).toMatchObject({ message: 'updater first is done, second is next' });
});

test('an updater that the set has no more is named with its set, and what to remove', async () => {
  const scene = new Scene({ first: [WORKING] });
  await scene.ask();
  scene.api.remove(updaterSets, 'all');
  scene.events.length = 0;
  expect(await scene.ask()).toMatchObject({
    status: 'Failure',
    message: `updater first is to update this Machine, but UpdaterSet all no longer has it: add the updater to the UpdaterSet again, or remove the annotation ${STEPS_ANNOTATION} of the Machine, and of its MachineDeployment, to continue without the updater`,
  });
  // The UpdaterSet with the other name did not accept the change, even though it has the same updater.
  scene.api.put(updaterSets, buildUpdaterSet('other', [buildUpdater('first')]));
  expect(await scene.ask()).toMatchObject({ status: 'Failure' });
  expect(scene.events).toEqual([]);
});

function recordOf({ machine }: Scene): unknown {
  return JSON.parse(machine.metadata.annotations?.[STEPS_ANNOTATION] ?? '{}');
}

test('an updater cannot put a Machine off for years', async () => {
  const scene = new Scene({ first: [{ ...WORKING, retryAfterSeconds: 2_147_483_647 }] });
  expect((await scene.ask()).retryAfterSeconds).toBe(300);
});
