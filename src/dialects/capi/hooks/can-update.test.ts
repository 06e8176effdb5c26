/** Proves that Refit claims a change of the version and nothing else, with exact patches. */
import { describe, expect, test } from 'vitest';
import { captured } from '../../../../test/support/capi/captured.ts';
import { buildTriple, type Specs } from '../../../../test/support/capi/triples.ts';
import type { Json } from '../../../util/json.ts';
import {
  answerCan,
  changesBetween,
  MACHINE_SHAPE,
  nameOf,
  SET_SHAPE,
  type Shape,
} from './can-update.ts';
import { applyPatches } from './updaters/hook-patch.ts';

const VERSION_PATCH = {
  patchType: 'JSONMergePatch',
  patch: 'eyJzcGVjIjp7InZlcnNpb24iOiJ2MS4zNS4xIn19',
};
const SET_PATCH = {
  patchType: 'JSONMergePatch',
  patch: Buffer.from('{"spec":{"template":{"spec":{"version":"v1.35.1"}}}}').toString('base64'),
};
const REST =
  'infraMachine.spec.backend.inMemory.vm.provisioning.startupDuration, bootstrap.spec.files';

describe.each<[string, string, Shape, object]>([
  ['canupdatemachine-1', 'CanUpdateMachine', MACHINE_SHAPE, { machinePatch: VERSION_PATCH }],
  ['canupdatemachine-2', 'CanUpdateMachine', MACHINE_SHAPE, { machinePatch: VERSION_PATCH }],
  ['canupdatemachineset', 'CanUpdateMachineSet', SET_SHAPE, { machineSetPatch: SET_PATCH }],
])('the captured request %s', (name, hook, shape, patches) => {
  const { request, exampleResponse } = captured(name);
  const head = {
    apiVersion: 'hooks.runtime.cluster.x-k8s.io/v1alpha1',
    kind: `${hook}Response`,
    status: 'Success',
  };

  test('the answer of Refit covers the version and names the changes that it does not cover', () => {
    const message = `covers machine.spec.version; not covered: ${REST}`;
    const answer = answerCan(hook, shape, request);
    expect(answer).toEqual({ ...head, message, ...patches });
    const patched = applyPatches(shape, request.current, answer);
    expect(changesBetween(shape, patched, request.desired).map(nameOf).join(', ')).toBe(REST);
  });

  test('with partial=deny nothing is claimed unless all of it can be', () => {
    const answer = answerCan(hook, shape, { ...request, settings: { partial: 'deny' } });
    expect(Object.keys(answer)).toEqual(['apiVersion', 'kind', 'status', 'message']);
  });

  test('switched off by a setting', () => {
    const answer = answerCan(hook, shape, {
      ...request,
      settings: { disableInPlaceUpdates: 'true' },
    });
    expect(answer).toEqual({
      ...head,
      message: 'in-place updates are disabled by the setting disableInPlaceUpdates',
    });
  });

  test('Refit finds no change left after the patches of the reference extension are applied', () => {
    const patched = applyPatches(shape, request.current, exampleResponse);
    expect(changesBetween(shape, patched, request.desired)).toEqual([]);
  });
});

const V = (version: string, more: object = {}): Specs => ({ machine: { version, ...more } });

test.each<[string, Specs, Specs, string[], boolean]>([
  ['nothing to do', V('v1.35.0'), V('v1.35.0'), [], false],
  ['a version', V('v1.35.0'), V('v1.35.1'), ['machine.spec.version'], true],
  ['no version at all', V('v1.35.0'), { machine: {} }, ['machine.spec.version'], false],
  ['what is not a version', V('v1.35.0'), V('latest'), ['machine.spec.version'], false],
  [
    'the failure domain',
    V('v1.35.0'),
    V('v1.35.0', { failureDomain: 'b' }),
    ['machine.spec.failureDomain'],
    false,
  ],
  [
    'fields that callers ignore, and empty ones',
    V('v1.35.0', {
      minReadySeconds: 1,
      taints: [{}],
      deletion: { nodeDrainTimeoutSeconds: 1 },
      failureDomain: '',
    }),
    V('v1.35.0', { providerID: 'x', clusterName: 'y' }),
    [],
    false,
  ],
  ['a companion only', { infra: { a: 1 } }, { infra: { a: 2 } }, ['infraMachine.spec.a'], false],
  [
    'absent and empty differ in companions',
    {},
    { bootstrap: { files: [] } },
    ['bootstrap.spec.files'],
    false,
  ],
])('%s', (_name, from, to, changes, isClaimed) => {
  const current = buildTriple(from);
  const desired = buildTriple(to);
  expect(changesBetween(MACHINE_SHAPE, current, desired).map(nameOf)).toEqual(changes);
  const answer = answerCan('CanUpdateMachine', MACHINE_SHAPE, { current, desired });
  expect('machinePatch' in answer).toBe(isClaimed);
  const left = changesBetween(
    MACHINE_SHAPE,
    applyPatches(MACHINE_SHAPE, current, answer),
    desired,
  ).map(nameOf);
  expect(left).toEqual(changes.slice(isClaimed ? 1 : 0));
});

const LOCAL = 'ControlPlaneKubeletLocalMode';
const WHOLE = 'bootstrap.spec.clusterConfiguration';
const OWN = `${WHOLE}.featureGates.${LOCAL}`;

/** A control-plane Machine of this version, with these gates of kubeadm and another setting. */
const withGates = (version: string, gates?: object, more: object = {}): Specs => ({
  machine: { version },
  bootstrap: {
    files: [],
    clusterConfiguration: {
      certificatesDir: '/etc/kubernetes/pki',
      ...(gates === undefined ? {} : { featureGates: { ...gates } }),
      ...more,
    },
  },
});
const bare = (version: string, clusterConfiguration?: Json): Specs => ({
  machine: { version },
  bootstrap: clusterConfiguration === undefined ? {} : { clusterConfiguration },
});

test.each<[string, Specs, Specs, string[]]>([
  [
    'v1.36 drops the gate that v1.35 had',
    withGates('v1.35.4', { [LOCAL]: true, Other: true }),
    withGates('v1.36.0', { Other: true }),
    [],
  ],
  [
    'v1.36 drops the only gate, and with it the list',
    withGates('v1.35.4', { [LOCAL]: true }),
    withGates('v1.36.0'),
    [],
  ],
  [
    'v1.36 drops the only setting of kubeadm',
    bare('v1.35.4', { featureGates: { [LOCAL]: true } }),
    bare('v1.36.0'),
    [],
  ],
  [
    'v1.31 adds the gate',
    bare('v1.30.9'),
    bare('v1.31.0', { featureGates: { [LOCAL]: true } }),
    [],
  ],
  [
    'a pre-release of v1.36 counts as v1.36',
    withGates('v1.35.4', { [LOCAL]: true }),
    withGates('v1.36.0-rc.1'),
    [],
  ],
  [
    'a roll-back to v1.35 adds the gate again',
    withGates('v1.36.0'),
    withGates('v1.35.4', { [LOCAL]: true }),
    [],
  ],
  [
    'the gate changes without a version',
    withGates('v1.36.0', { [LOCAL]: true }),
    withGates('v1.36.0'),
    [`${WHOLE}.featureGates`],
  ],
  [
    'the gate of v1.34 is added without a version, because Cluster API was upgraded',
    withGates('v1.34.2'),
    withGates('v1.34.2', { [LOCAL]: true }),
    [OWN],
  ],
  [
    'the gate of v1.34 is added without a version beside a gate of the user',
    withGates('v1.34.2', { Other: true }),
    withGates('v1.34.2', { Other: true, [LOCAL]: true }),
    [OWN],
  ],
  [
    'the user adds another gate without a version',
    withGates('v1.34.2'),
    withGates('v1.34.2', { Other: true }),
    [`${WHOLE}.featureGates.Other`],
  ],
  [
    'a gate is added without a version that Cluster API does not set for it',
    withGates('v1.36.0'),
    withGates('v1.36.0', { [LOCAL]: true }),
    [OWN],
  ],
  [
    'the gate changes although both versions have it',
    withGates('v1.35.4', { [LOCAL]: true }),
    withGates('v1.35.5'),
    [`${WHOLE}.featureGates`],
  ],
  [
    'the user turns the gate off',
    withGates('v1.34.9', { [LOCAL]: true }),
    withGates('v1.35.4', { [LOCAL]: false }),
    [OWN],
  ],
  [
    'another gate goes with it',
    withGates('v1.35.4', { [LOCAL]: true, Other: true }),
    withGates('v1.36.0'),
    [`${WHOLE}.featureGates`],
  ],
  [
    'another gate is dropped beside it',
    withGates('v1.35.4', { [LOCAL]: true, Other: true, More: true }),
    withGates('v1.36.0', { More: true }),
    [`${WHOLE}.featureGates.Other`],
  ],
  [
    'another setting goes with it',
    bare('v1.35.4', { certificatesDir: '/a', featureGates: { [LOCAL]: true } }),
    bare('v1.36.0'),
    [WHOLE],
  ],
])('what Cluster API changes by itself with a version is covered: %s', (_name, from, to, left) => {
  const current = buildTriple(from);
  const desired = buildTriple(to);
  const answer = answerCan('CanUpdateMachine', MACHINE_SHAPE, { current, desired });
  const patched = applyPatches(MACHINE_SHAPE, current, answer);
  expect(changesBetween(MACHINE_SHAPE, patched, desired).map(nameOf)).toEqual(left);
  expect(answer.message).toContain(`not covered: ${left.join(', ') || 'nothing'}`);
});

const OLD = 'v1.35.2+k0s.0';
const NEW = 'v1.35.3+k0s.0';

test.each<[string, string, Json, Json, string[]]>([
  ['repeats the version', 'K0sWorkerConfig', { version: OLD }, { version: NEW }, []],
  ['begins to repeat it', 'K0sControllerConfig', {}, { version: NEW }, []],
  ['stops to repeat it', 'K0sWorkerConfig', { version: OLD }, {}, []],
  [
    'names yet another version',
    'K0sWorkerConfig',
    { version: OLD },
    { version: 'v1.35.9+k0s.0' },
    ['bootstrap.spec.version'],
  ],
  [
    'repeats it in its URL',
    'K0sWorkerConfig',
    { downloadURL: 'https://d/v1.35.2%2Bk0s.0/k0s-v1.35.2+k0s.0-amd64' },
    { downloadURL: 'https://d/v1.35.3%2Bk0s.0/k0s-v1.35.3+k0s.0-amd64' },
    [],
  ],
  [
    'moves to another server',
    'K0sWorkerConfig',
    { downloadURL: 'https://d/v1.35.2+k0s.0' },
    { downloadURL: 'https://e/v1.35.3+k0s.0' },
    ['bootstrap.spec.downloadURL'],
  ],
  [
    'has another URL, too',
    'K0sWorkerConfig',
    { version: OLD },
    { version: NEW, downloadURL: 'https://d' },
    ['bootstrap.spec.downloadURL'],
  ],
  [
    'is of another provider',
    'KThreesConfig',
    { version: OLD },
    { version: NEW },
    ['bootstrap.spec.version'],
  ],
])(
  'a bootstrap config that %s is covered only if nothing else changes for a k0s Machine',
  (_name, kind, before, after, left) => {
    const tripleOf = (version: string, bootstrap: Json) => {
      const { bootstrapConfig, ...others } = buildTriple({ machine: { version }, bootstrap });
      return { ...others, bootstrapConfig: bootstrapConfig && { ...bootstrapConfig, kind } };
    };
    const current = tripleOf(OLD, before);
    const desired = tripleOf(NEW, after);
    const answer = answerCan('CanUpdateMachine', MACHINE_SHAPE, { current, desired });
    const patched = applyPatches(MACHINE_SHAPE, current, answer);
    expect(changesBetween(MACHINE_SHAPE, patched, desired).map(nameOf)).toEqual(left);
  },
);

test('a config of k0s that changes its version without the Machine is told to change both', () => {
  const current = buildTriple({ machine: { version: OLD }, bootstrap: { version: OLD } });
  const desired = buildTriple({ machine: { version: OLD }, bootstrap: { version: NEW } });
  const answer = answerCan('CanUpdateMachine', MACHINE_SHAPE, { current, desired });
  expect(answer.message).toBe(
    'covers nothing; not covered: bootstrap.spec.version (give spec.version of the Machine the same version, and Refit covers both, if it was the same before)',
  );
  expect(answer).not.toHaveProperty('bootstrapConfigPatch');
});

const PULL = { nodeRegistration: { imagePullPolicy: 'IfNotPresent' } };

test.each<[string, Json, Json, string[]]>([
  ['the format', {}, { format: 'cloud-config' }, []],
  ['no format any more', { format: 'cloud-config' }, {}, []],
  [
    'the policy for pulls',
    { joinConfiguration: { nodeRegistration: {} } },
    { joinConfiguration: PULL },
    [],
  ],
  ['another format', {}, { format: 'ignition' }, ['bootstrap.spec.format']],
  [
    'another format than before',
    { format: 'ignition' },
    { format: 'cloud-config' },
    ['bootstrap.spec.format'],
  ],
])(
  'a default that Cluster API writes into a config of kubeadm is covered together with a new version: %s',
  (_name, before, after, left) => {
    const leftWith = (version: string): string[] => {
      const current = buildTriple({ machine: { version: 'v1.35.2' }, bootstrap: before });
      const desired = buildTriple({ machine: { version }, bootstrap: after });
      const answer = answerCan('CanUpdateMachine', MACHINE_SHAPE, { current, desired });
      const patched = applyPatches(MACHINE_SHAPE, current, answer);
      return changesBetween(MACHINE_SHAPE, patched, desired).map(nameOf);
    };
    expect(leftWith('v1.35.3')).toEqual(left);
    expect(leftWith('v1.35.2')).not.toEqual([]);
  },
);
