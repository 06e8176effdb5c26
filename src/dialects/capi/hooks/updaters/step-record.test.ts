/**
 * Proves when the record of an update is valid, for which Machine it is valid, and which accepted changes are kept on a
 * MachineDeployment.
 */
import { describe, expect, test } from 'vitest';
import { MemoryApi, refusal } from '../../../../../test/support/builders/memory-api.ts';
import {
  buildUpdater,
  buildUpdaterSet,
} from '../../../../../test/support/builders/updater-sets.ts';
import { FakeClock } from '../../../../../test/support/clock/fake-clock.ts';
import { T0 } from '../../../../../test/support/clock/times.ts';
import type { UpdateMachineRequest } from '../../../../api/capi/hooks.ts';
import {
  type Machine,
  machineDeployments,
  machines,
  SET_LABELS,
} from '../../../../api/capi/machine.ts';
import type { Json } from '../../../../util/json.ts';
import {
  acceptedOf,
  idOf,
  recordAccepted,
  recordOn,
  STEPS_ANNOTATION,
  type StepRecord,
  saved,
} from './step-record.ts';

const RECORD: StepRecord = { set: 'all', steps: ['one', 'two'], id: 'i', done: 1 };
const SET = buildUpdaterSet(
  'all',
  ['one', 'two', 'three'].map((name) => buildUpdater(name)),
);
const [ONE, TWO, THREE] = ['one', 'two', 'three'].map((name) => buildUpdater(name));
const ALL = [ONE, TWO, THREE].flatMap((updater) => updater ?? []);

const partsOf = ({ client }: MemoryApi) => ({
  management: client,
  clock: new FakeClock(T0),
  abort: new AbortController().signal,
});

const noted = (note: unknown): Record<string, string> => ({
  [STEPS_ANNOTATION]: typeof note === 'string' ? note : JSON.stringify(note),
});

const machineWith = (note: unknown): Machine => ({
  metadata: { name: 'm1', namespace: 'default', annotations: noted(note) },
});

describe('a record on a Machine', () => {
  test('counts for its own update', () => {
    expect(recordOn(machineWith(RECORD), 'i')).toEqual(RECORD);
    const { set: _none, ...alone } = RECORD;
    expect(recordOn(machineWith(alone), 'i')).toEqual(alone);
  });

  test.each<[string, unknown]>([
    ['of another update', { ...RECORD, id: 'other' }],
    ['that says that all is done', { ...RECORD, done: 2 }],
    ['that says that more is done than there is', { ...RECORD, done: 3 }],
    ['with less than nothing done', { ...RECORD, done: -1 }],
    ['with half a step done', { ...RECORD, done: 0.5 }],
    ['without steps', { ...RECORD, steps: [], done: -1 }],
    ['without a count', { ...RECORD, done: undefined }],
    ['that is no JSON', '{'],
    ['that is empty', ''],
  ])('%s does not count', (_what, note) => {
    expect(recordOn(machineWith(note), 'i')).toBeUndefined();
  });

  test('is not there where there is no annotation', () => {
    expect(recordOn({ metadata: { name: 'm1' } }, 'i')).toBeUndefined();
  });
});

describe('the id of an update', () => {
  const machine = (uid: string): Machine => ({ metadata: { name: 'm1', uid } });
  const object = (spec: Json) => ({ kind: 'X', metadata: { name: 'm1' }, spec });
  const desired = (version: string, bootstrap: Json = {}): UpdateMachineRequest['desired'] => ({
    machine: object({ version }),
    infrastructureMachine: object({}),
    bootstrapConfig: object(bootstrap),
  });
  const join = (more: object): Json => ({ joinConfiguration: more as Json });
  const node = { nodeRegistration: { name: 'n1' } };
  const own = idOf(machine('u1'), desired('v1.35.1', join(node)));

  test('is the same for the same Machine and objects, whatever the token of a joined worker is', () => {
    const token = { discovery: { bootstrapToken: { token: 'secret' } } };
    const other = { discovery: { bootstrapToken: { token: 'another' } } };
    const ids = [{}, token, other].map((more) =>
      idOf(machine('u1'), desired('v1.35.1', join({ ...node, ...more }))),
    );
    expect(ids).toEqual([own, own, own]);
    expect(own).toMatch(/^[0-9a-f]{16}$/);
  });

  test.each<[string, string]>([
    ['another Machine of that name', idOf(machine('u2'), desired('v1.35.1', join(node)))],
    ['another version', idOf(machine('u1'), desired('v1.35.2', join(node)))],
    ['another way to join', idOf(machine('u1'), desired('v1.35.1', join({})))],
    [
      'other files',
      idOf(machine('u1'), desired('v1.35.1', { ...(join(node) as object), files: [] })),
    ],
    ['no bootstrap config', idOf(machine('u1'), desired('v1.35.1'))],
  ])('is another one for %s', (_what, id) => {
    expect(id).not.toBe(own);
  });
});

describe('a record is saved', () => {
  function rig() {
    const api = new MemoryApi();
    return { api, machine: api.put(machines, machineWith({ ...RECORD, done: 0 })) };
  }

  test('on the Machine as it was seen, and removed without one', async () => {
    const { api, machine } = rig();
    const next = await saved(partsOf(api), machine, RECORD);
    expect(next && recordOn(next, 'i')).toEqual(RECORD);
    await saved(partsOf(api), next ?? machine);
    expect(api.read(machines, 'm1').metadata.annotations).toEqual({});
  });

  test('not where somebody else wrote the Machine, nor where the API server refuses', async () => {
    const { api, machine } = rig();
    const newer = api.put(machines, machine);
    expect(await saved(partsOf(api), machine, RECORD)).toBeUndefined();
    api.before('patch', () => {
      throw refusal(403, 'Forbidden');
    });
    await expect(saved(partsOf(api), newer, RECORD)).rejects.toThrow('Forbidden');
    expect(recordOn(api.read(machines, 'm1'), 'i')).toMatchObject({ done: 0 });
  });
});

describe('what was accepted for the Machines of a MachineSet', () => {
  const LABELS = { [SET_LABELS.deployment]: 'md', [SET_LABELS.hash]: 'h1' };

  function rig(note: unknown = {}) {
    const api = new MemoryApi();
    api.put(machineDeployments, {
      metadata: { name: 'md', namespace: 'default', annotations: noted(note) },
    });
    const accept = async (updaters: readonly string[], labels: object = LABELS): Promise<void> => {
      const metadata = { name: 'ms', labels: labels as Record<string, string> };
      const machineSet = { kind: 'MachineSet', metadata };
      await recordAccepted(
        partsOf(api),
        { current: {}, desired: { machineSet } },
        SET,
        ALL.filter(({ name }) => updaters.includes(name)),
      );
    };
    const kept = (): Record<string, unknown> =>
      JSON.parse(
        api.read(machineDeployments, 'md').metadata.annotations?.[STEPS_ANNOTATION] ?? '{}',
      ) as Record<string, unknown>;
    return { api, accept, kept };
  }

  test('stands on its MachineDeployment, by the hash of the MachineSet', async () => {
    const { accept, kept, api } = rig();
    await accept(['two']);
    expect(kept()).toEqual({ h1: { set: 'all', steps: ['two'] } });
    expect(api.calls).toEqual(['get machinedeployments/md', 'patch machinedeployments/md']);
  });

  test('grows by what other Machines of it need, in the order of the set', async () => {
    const { accept, kept } = rig();
    await accept(['three']);
    await accept(['one']);
    await accept(['three']);
    expect(kept()).toEqual({ h1: { set: 'all', steps: ['one', 'three'] } });
  });

  test('has first what the set no longer has, since that fails', async () => {
    const { accept, kept } = rig({ h1: { set: 'all', steps: ['two', 'gone'] } });
    await accept(['one']);
    expect(kept()).toEqual({ h1: { set: 'all', steps: ['gone', 'one', 'two'] } });
  });

  test('takes the place of what another set accepted, and leaves other MachineSets alone', async () => {
    const h0 = { set: 'other', steps: ['x'] };
    const { accept, kept } = rig({ h0, h1: { set: 'other', steps: ['x'] } });
    await accept(['one']);
    expect(kept()).toEqual({ h0, h1: { set: 'all', steps: ['one'] } });
  });

  test('is kept for the last ten MachineSets', async () => {
    const accepted = { set: 'all', steps: ['one'] };
    const earlier = Array.from({ length: 12 }, (_, index) => [`before-${index}`, accepted]);
    const { accept, kept } = rig(Object.fromEntries(earlier));
    await accept(['one']);
    expect(Object.keys(kept())).toEqual([
      ...Array.from({ length: 9 }, (_, index) => `before-${index + 3}`),
      'h1',
    ]);
  });

  test('begins anew where the annotation says nothing', async () => {
    const { accept, kept } = rig('no JSON');
    await accept(['one']);
    expect(kept()).toEqual({ h1: { set: 'all', steps: ['one'] } });
  });

  test.each([
    ['the MachineDeployment', { [SET_LABELS.hash]: 'h1' }],
    ['the hash', { [SET_LABELS.deployment]: 'md' }],
  ])('is an error without the label of %s', async (_what, labels) => {
    const { api, accept } = rig();
    await expect(accept(['one'], labels)).rejects.toThrow(
      'MachineSet ms lacks a label of a MachineDeployment',
    );
    expect(api.calls).toEqual([]);
  });

  test('is not written over what another replica wrote meanwhile', async () => {
    const { api, accept, kept } = rig();
    api.before('patch', () => api.change(machineDeployments, 'md', (owner) => owner));
    await expect(accept(['one'])).rejects.toThrow('Conflict');
    expect(kept()).toEqual({});
  });

  test('is found by the labels of a Machine, unless the Machine has its own', async () => {
    const { api, accept } = rig();
    await accept(['one']);
    const find = async (labels: Record<string, string>, annotations = {}) =>
      await acceptedOf(partsOf(api), {
        metadata: { name: 'm1', namespace: 'default', labels, annotations },
      });
    const found = { set: 'all', steps: ['one'] };
    expect(await find(LABELS)).toEqual(found);
    expect(await find({ ...LABELS, [SET_LABELS.hash]: 'h2' })).toBeUndefined();
    expect(await find({ [SET_LABELS.deployment]: 'md' })).toBeUndefined();
    api.calls.length = 0;
    expect(await find({ [SET_LABELS.hash]: 'h1' })).toBeUndefined();
    const own = { ...RECORD, id: '', done: 0 };
    expect(await find(LABELS, noted(own))).toEqual(own);
    expect(api.calls).toEqual([]);
  });
});
