/** Proves which Events an update writes to its Machine, and that repeated calls write no further Events. */
import { expect, test } from 'vitest';
import { MemoryApi } from '../../../../test/support/builders/memory-api.ts';
import { HOOK_GROUP, type UpdateMachineResponse } from '../../../api/capi/hooks.ts';
import { machineDeployments, machines, SET_LABELS } from '../../../api/capi/machine.ts';
import type { EventNote } from '../../../kube/event-series.ts';
import type { KubeObject } from '../../../kube/resources.ts';
import { silentLogger } from '../../../util/log.ts';
import { canNote, machineEvents, updateNote } from './machine-events.ts';

const MACHINE = { kind: 'Machine', metadata: { name: 'm1', namespace: 'default' } };
const STARTED = note('UpdateRequested', 'to v1.35.1');
const FAILED = note('UpdateFailed', 'its agent said no');

function note(reason: string, message: string): EventNote {
  return { type: 'Normal', reason, message };
}

function replica(api: MemoryApi) {
  const recorded: { object: KubeObject; note: EventNote }[] = [];
  const events = {
    record: (object: KubeObject, told: EventNote) => void recorded.push({ object, note: told }),
  };
  return { tell: machineEvents(api.client, events, silentLogger), recorded };
}

function withMachine(): MemoryApi {
  const api = new MemoryApi();
  api.put(machines, { ...MACHINE, metadata: { ...MACHINE.metadata, uid: 'u1' } });
  return api;
}

test('each change is told once, on the Machine in the API, and a poll that changes nothing asks nothing', async () => {
  const api = withMachine();
  const { tell, recorded } = replica(api);
  for (const each of [STARTED, STARTED, FAILED, FAILED, STARTED]) await tell(MACHINE, each);
  expect(recorded.map(({ note: { reason } }) => reason)).toEqual([
    'UpdateRequested',
    'UpdateFailed',
    'UpdateRequested',
  ]);
  expect(recorded.map(({ object }) => object.metadata.uid)).toEqual(['u1', 'u1', 'u1']);
  expect(api.calls).toHaveLength(3);
});

test('two replicas give the same words one name, and other words another one', async () => {
  const api = withMachine();
  const one = replica(api);
  const other = replica(api);
  for (const { tell } of [one, other]) await tell(MACHINE, STARTED);
  await other.tell(MACHINE, FAILED);
  const [name] = one.recorded.map(({ note: { once } }) => once);
  expect(name).toMatch(/^[0-9a-f]{16}$/);
  expect(other.recorded.map(({ note: { once } }) => once === name)).toEqual([true, false]);
});

test('of a MachineSet it is told on its MachineDeployment', async () => {
  const api = new MemoryApi();
  api.put(machineDeployments, {
    kind: 'MachineDeployment',
    metadata: { name: 'md', namespace: 'default' },
  });
  const { tell, recorded } = replica(api);
  const metadata = { name: 'md-x7k2', namespace: 'default' };
  await tell(
    { kind: 'MachineSet', metadata: { ...metadata, labels: { [SET_LABELS.deployment]: 'md' } } },
    STARTED,
  );
  await tell({ kind: 'MachineSet', metadata }, STARTED);
  expect(recorded.map(({ object }) => object.kind)).toEqual(['MachineDeployment']);
});

test('nothing is told of what is not there, and it is told as soon as the API server answers', async () => {
  const api = new MemoryApi();
  const { tell, recorded } = replica(api);
  await tell(MACHINE, STARTED);
  expect(recorded).toEqual([]);
  api.put(machines, MACHINE);
  await tell(MACHINE, STARTED);
  expect(recorded).toHaveLength(1);
});

test.each([
  ['UpdateClaimed', { status: 'Success', machinePatch: {} }],
  ['UpdateNotClaimed', { status: 'Success' }],
  ['UpdateRefused', { status: 'Failure' }],
] as const)('an answer to CanUpdateMachine is told as %s', (reason, answer) => {
  const head = {
    apiVersion: HOOK_GROUP,
    kind: 'CanUpdateMachineResponse',
    message: 'why',
  } as const;
  expect(canNote({ ...head, ...answer })).toMatchObject({ reason, message: 'why' });
});

test.each([
  [
    'UpdateRequested',
    'Update in place to v1.35.1 requested',
    { status: 'Success', retryAfterSeconds: 2 },
  ],
  ['UpdateDone', 'Update in place to v1.35.1 is done', { status: 'Success', retryAfterSeconds: 0 }],
  ['UpdateFailed', 'why', { status: 'Failure', retryAfterSeconds: 0 }],
] as const)('an answer to UpdateMachine is told as %s', (reason, message, answer) => {
  const machine = { ...MACHINE, spec: { version: 'v1.35.1' } };
  const request = { desired: { machine, infrastructureMachine: MACHINE } };
  const answered = { ...answer, message: 'why' } as UpdateMachineResponse;
  expect(updateNote(request, answered)).toMatchObject({ reason, message });
});

test('labels that are null in the body of a caller end nothing', async () => {
  const { tell, recorded } = replica(new MemoryApi());
  const asked = {
    kind: 'MachineSet',
    metadata: { name: 'm1', labels: null },
  } as unknown as typeof MACHINE;
  await tell(asked, STARTED);
  expect(recorded).toEqual([]);
});
