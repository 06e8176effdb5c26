/**
 * Proves that the updaters that accepted a change carry it out, even if the UpdaterSet changes before UpdateMachine is
 * called.
 */

import { describe, expect, test } from 'vitest';
import { fitting } from '../../../../../sandbox/cluster/hook-schema.ts';
import { identityOf } from '../../../../../sandbox/cluster/machines.ts';
import { OWN_PLANS } from '../../../../../test/support/builders/machine-updates.ts';
import { MemoryApi } from '../../../../../test/support/builders/memory-api.ts';
import { buildNode } from '../../../../../test/support/builders/nodes.ts';
import {
  buildUpdater,
  buildUpdaterSet,
} from '../../../../../test/support/builders/updater-sets.ts';
import { captured } from '../../../../../test/support/capi/captured.ts';
import { buildNodeCluster } from '../../../../../test/support/capi/node-cluster.ts';
import { FakeClock } from '../../../../../test/support/clock/fake-clock.ts';
import { later, T0 } from '../../../../../test/support/clock/times.ts';
import type {
  HookObject,
  UpdateMachineRequest,
  UpdateMachineResponse,
} from '../../../../api/capi/hooks.ts';
import { type Machine, machineDeployments, machines } from '../../../../api/capi/machine.ts';
import { type Updater, updaterSets } from '../../../../api/refit/updater-set.ts';
import { nodes } from '../../../../kube/resources.ts';
import { encodePresence } from '../../../../signal/agent-presence.ts';
import { AGENT_ANNOTATION } from '../../../../signal/names.ts';
import { silentLogger } from '../../../../util/log.ts';
import type { CanRequest } from '../can-update.ts';
import { type CanHook, canUpdate } from './answer-can.ts';
import { STEPS_ANNOTATION } from './step-record.ts';
import { type StepParts, updateInSteps } from './update-steps.ts';

const ABORT = new AbortController().signal;
const REFIT: Updater = { name: 'refit', refit: {} };
const FILER = buildUpdater('filer');
const OWN: Updater = { name: 'configuration', nodeConfiguration: {} };
const SET = buildUpdaterSet('in-place', [FILER, REFIT]);

/** Returns a request in which the version of the Machine does not change. */
function filesOnly(version: string, request: CanRequest): CanRequest {
  return JSON.parse(
    JSON.stringify(request).replaceAll(/"version":"[^"]*"/g, `"version":"${version}"`),
  ) as CanRequest;
}

/**
 * Replays the recorded request of a manager, and then the update of one Machine. Only files change, because the node
 * already runs the version.
 */
class Scene {
  readonly api = new MemoryApi();
  readonly called: string[] = [];
  readonly request: CanRequest;
  readonly #hook: CanHook;
  readonly #name: string;
  readonly #version: string;

  constructor(hook: CanHook, version = 'v1.35.1', kubeletVersion = version) {
    this.#hook = hook;
    this.#version = version;
    const isSet = hook === 'CanUpdateMachineSet';
    const { current, desired } = captured(
      isSet ? 'canupdatemachineset' : 'canupdatemachine-1',
    ).request;
    this.request = { current, desired };
    const of = isSet
      ? captured('updatemachine-worker-joined').request.desired['machine']
      : current['machine'];
    const { name, labels = {} } = (of as HookObject).metadata;
    this.#name = name;
    this.api.put(updaterSets, SET);
    this.api.put(machineDeployments, { metadata: { name: 'md', namespace: 'default' } });
    const identity = identityOf({ name, node: 'n1' });
    this.api.put<Machine>(machines, {
      metadata: { name, namespace: 'default', uid: 'u1', labels },
      spec: { clusterName: 'stand-in', version, ...identity.spec },
      status: { nodeRef: { name: 'n1' } },
    });
    const status = { nodeInfo: { kubeletVersion } };
    const presence = encodePresence({
      version: '1.0.0',
      since: later(0),
      configurable: ['/etc/demo'],
    });
    const annotations = { ...identity.metadata.annotations, [AGENT_ANNOTATION]: presence };
    this.api.put(nodes, { ...buildNode('n1', { annotations }), spec: identity.spec, status });
  }

  async accept(request = this.request): Promise<void> {
    const parts = {
      ...this.#parts(),
      ownerWait: undefined,
      callUpdater: async () =>
        await Promise.resolve({ status: 'Success', ...this.#patches() } as const),
    };
    const answer = await canUpdate(parts, this.#hook, request, 60_000);
    expect(fitting(`${this.#hook}Response`, answer).message).toMatch(/not covered: nothing$/);
  }

  async update(): Promise<UpdateMachineResponse> {
    const object = (kind: string, spec: object) => ({
      kind,
      metadata: { name: this.#name, namespace: 'default' },
      spec,
    });
    const desired: UpdateMachineRequest['desired'] = {
      machine: object('Machine', { version: this.#version }),
      infrastructureMachine: object('DevMachine', {}),
      bootstrapConfig: object('KubeadmConfig', { files: [] }),
    };
    for (;;) {
      const answer = fitting(
        'UpdateMachineResponse',
        await updateInSteps(this.#parts(), { desired }),
      );
      if (answer.status === 'Failure' || answer.retryAfterSeconds === 0) return answer;
    }
  }

  label(labels: Record<string, string>): void {
    this.api.change(machines, this.#name, ({ metadata, ...rest }) => ({
      ...rest,
      metadata: { ...metadata, labels },
    }));
  }

  get annotation(): string | undefined {
    return this.api.read(machines, this.#name).metadata.annotations?.[STEPS_ANNOTATION];
  }

  #patches() {
    const fixture =
      this.#hook === 'CanUpdateMachineSet' ? 'canupdatemachineset' : 'canupdatemachine-1';
    const {
      machinePatch: _machine,
      machineSetPatch: _set,
      status: _status,
      ...patches
    } = captured(fixture).exampleResponse;
    return patches;
  }

  #parts(): StepParts {
    const { client } = this.api;
    return {
      abort: ABORT,
      management: client,
      clusterOf: () => buildNodeCluster(client),
      source: { url: '', checksumUrl: 'https://example.com' },
      readText: async () => await Promise.reject(new Error('the payload is asked for')),
      callUpdater: async ({ name }: Updater) => {
        this.called.push(name);
        return await Promise.resolve({ status: 'Success', retryAfterSeconds: 0 } as const);
      },
      replaceStuck: async () => await Promise.resolve(''),
      owners: OWN_PLANS,
      tell: async () => await Promise.resolve(),
      rulesOf: async () => await Promise.resolve({ drainSeconds: 0 }),
      clock: new FakeClock(T0),
      log: silentLogger,
    };
  }
}

const GONE =
  'updater filer is to update this Machine, but UpdaterSet in-place no longer has it: add the updater to the UpdaterSet again, or remove the annotation ' +
  'upgrade.refit.dev/updater-steps of the Machine, and of its MachineDeployment, to continue without the updater';

describe.each(['CanUpdateMachine', 'CanUpdateMachineSet'] as const)('%s', (hook) => {
  test('accepted by a set that is deleted before the first UpdateMachine: no success until it is back', async () => {
    const scene = new Scene(hook);
    await scene.accept();
    scene.api.remove(updaterSets, 'in-place');
    expect(await scene.update()).toMatchObject({ status: 'Failure', message: GONE });
    scene.api.put(updaterSets, SET);
    expect(await scene.update()).toMatchObject({ status: 'Success' });
    expect(scene.called).toEqual(['filer']);
    expect(scene.annotation).toBeUndefined();
  });

  test('accepted by a set that loses the updater', async () => {
    const scene = new Scene(hook);
    await scene.accept();
    scene.api.put(updaterSets, buildUpdaterSet('in-place', [REFIT]));
    expect(await scene.update()).toMatchObject({ status: 'Failure', message: GONE });
  });

  test('accepted by a set that is replaced by another one for the same Machines', async () => {
    const scene = new Scene(hook);
    await scene.accept();
    scene.api.remove(updaterSets, 'in-place');
    scene.api.put(updaterSets, buildUpdaterSet('another', [REFIT]));
    expect(await scene.update()).toMatchObject({ status: 'Failure', message: GONE });
  });

  test('no set accepted it: Refit alone makes it, also where a set was created meanwhile and its updater is done', async () => {
    const scene = new Scene(hook);
    expect(await scene.update()).toMatchObject({ status: 'Success' });
    scene.api.remove(updaterSets, 'in-place');
    scene.called.length = 0;
    expect(await scene.update()).toMatchObject({ status: 'Success' });
    expect(scene.called).toEqual([]);
  });
});

describe('only files change, and the kubelet says less than spec.version', () => {
  const release = 'v1.35.1+k0s.2';
  const kubelet = 'v1.35.1+k0s';

  test.each(['CanUpdateMachine', 'CanUpdateMachineSet'] as const)(
    '%s: the node is not upgraded',
    async (hook) => {
      const scene = new Scene(hook, release, kubelet);
      await scene.accept(filesOnly(release, scene.request));
      expect(await scene.update()).toMatchObject({ status: 'Success' });
      expect(scene.called).toEqual(['filer']);
      expect(scene.api.calls.filter((call) => call.startsWith('replace'))).toEqual([]);
    },
  );

  test('the version changes for the Machines of another MachineSet: the node is upgraded', async () => {
    const scene = new Scene('CanUpdateMachineSet', release, kubelet);
    await scene.accept();
    await scene.accept(filesOnly(release, scene.request));
    await expect(scene.update()).rejects.toThrow('the payload is asked for');
  });
});

describe('the Machines of one MachineSet change only their version, those of another only their files', () => {
  test.each([
    ['version first', ([version, files]: CanRequest[]) => [version, files]],
    ['files first', ([version, files]: CanRequest[]) => [files, version]],
  ])('%s: all updaters are called, in the order of the set', async (_name, ordered) => {
    const scene = new Scene('CanUpdateMachineSet', 'v1.35.1', 'v1.34.0');
    scene.api.put(updaterSets, buildUpdaterSet('in-place', [REFIT, OWN]));
    const { current, desired } = scene.request;
    const { infrastructureMachineTemplate } = desired;
    const before = { ...current, infrastructureMachineTemplate };
    const { bootstrapConfigTemplate } = current;
    const version = { current: before, desired: { ...desired, bootstrapConfigTemplate } };
    const files = filesOnly('v1.35.1', { current: before, desired });
    for (const request of ordered([version, files])) await scene.accept(request);
    await expect(scene.update()).rejects.toThrow('the payload is asked for');
    expect(scene.annotation).toContain('"steps":["refit","configuration"]');
  });
});

test('nobody used what a set accepted, and it is deleted: Refit alone accepts and makes the next change', async () => {
  const scene = new Scene('CanUpdateMachine');
  await scene.accept();
  scene.api.remove(updaterSets, 'in-place');
  const { machine, ...others } = scene.request.current;
  const annotations = { [STEPS_ANNOTATION]: scene.annotation ?? '' };
  const shown = {
    ...(machine as HookObject),
    metadata: { name: '', ...machine?.metadata, annotations },
  };
  await scene.accept({
    current: { machine: shown, ...others },
    desired: { ...scene.request.desired, ...others },
  });
  expect(await scene.update()).toMatchObject({ status: 'Success' });
  expect(scene.called).toEqual([]);
});

test('a Machine whose labels change before the first UpdateMachine keeps its updaters', async () => {
  const scene = new Scene('CanUpdateMachine');
  await scene.accept();
  const selector = { matchLabels: { pool: 'gpu' } };
  scene.api.put(updaterSets, buildUpdaterSet('in-place', [FILER, REFIT], { selector }));
  scene.label({});
  await scene.update();
  expect(scene.called).toEqual(['filer']);
});

test('a MachineDeployment that cannot be read: nobody is called, and nothing is done', async () => {
  const scene = new Scene('CanUpdateMachineSet');
  await scene.accept();
  scene.api.remove(machineDeployments, 'md');
  await expect(scene.update()).rejects.toThrow('NotFound');
  expect(scene.called).toEqual([]);
});

test('for a template hash that every object of JavaScript has as a member, nothing is recorded: the set of today decides', async () => {
  const scene = new Scene('CanUpdateMachineSet');
  await scene.accept();
  scene.label({
    'cluster.x-k8s.io/deployment-name': 'md',
    'machine-template-hash': 'constructor',
  });
  expect(await scene.update()).toMatchObject({ status: 'Success' });
  expect(scene.called).toEqual(['filer']);
});

test('Machines of an earlier MachineSet keep the updaters that accepted it', async () => {
  const scene = new Scene('CanUpdateMachineSet');
  await scene.accept();
  scene.api.change(machineDeployments, 'md', ({ metadata, ...rest }) => {
    const record = JSON.parse(metadata.annotations?.[STEPS_ANNOTATION] ?? '') as object;
    const [[hash, accepted] = []] = Object.entries(record);
    expect(hash).toBe('4125382532-bl4gp');
    const annotations = {
      [STEPS_ANNOTATION]: JSON.stringify({ [String(hash)]: accepted, later: { steps: ['refit'] } }),
    };
    return { ...rest, metadata: { ...metadata, annotations } };
  });
  await scene.update();
  expect(scene.called).toEqual(['filer']);
});
