/** Tests that versions which could not be checked are reported when the plan starts. */

import { expect, test } from 'vitest';
import { type SnapshotChanges, withParts } from '../../../test/support/builders/parts.ts';
import { buildPolicy } from '../../../test/support/builders/rollout-policies.ts';
import { buildRollout } from '../../../test/support/builders/rollouts.ts';
import { buildSnapshot } from '../../../test/support/builders/snapshots.ts';
import { buildStage } from '../../../test/support/builders/stages.ts';
import { uncheckedReason, versionVerdict } from '../assess/advance.ts';
import { because } from '../model/reasons.ts';
import type { Role } from '../model/rollout.ts';

const stage = buildStage('worker', ['w1', 'w2'], { version: 'v1.36.3' });
const apiServers = [{ name: 'c1', version: 'v1.36.3' }];

test.each<[string, SnapshotChanges, readonly (string | undefined)[], string | undefined]>([
  ['every version is known', { cluster: { apiServers } }, ['v1.35.1', 'v1.35.1'], undefined],
  [
    'one version is not known',
    { cluster: { apiServers } },
    ['v1.35.1', undefined],
    'starts without a check of the version rules: w2: its version is unknown',
  ],
  [
    'two versions are not known, for the same reason',
    { cluster: { apiServers } },
    [undefined, undefined],
    'starts without a check of the version rules: w1, w2: its version is unknown',
  ],
  [
    'two versions are not known, for different reasons',
    { cluster: { apiServers } },
    ['soon', undefined],
    'starts without a check of the version rules: w1: its version soon is unreadable; w2: its version is unknown',
  ],
  ['nobody judges versions', {}, [undefined, undefined], undefined],
  [
    'bundles keep the version',
    { cluster: { apiServers }, rollout: buildRollout([{ ...stage, keepsVersion: true }]) },
    [],
    undefined,
  ],
])('what the version rules report about a plan: %s', (_name, more, [first, second], message) => {
  const facts = { w1: { version: first }, w2: { version: second } };
  const snapshot = withParts(buildSnapshot(more.rollout ?? buildRollout([stage]), facts), more);
  const reason = message === undefined ? undefined : because('VersionUnchecked', message);
  expect(uncheckedReason(snapshot, buildPolicy())).toEqual(reason);
});

test.each<[string, Role, boolean, string[]]>([
  ['a worker', 'worker', false, ['KubeletAhead']],
  ['a controller with a kubelet', 'controller', true, ['KubeletAhead']],
  ['a controller without one', 'controller', false, []],
])(
  'no kubelet may get ahead of an API server that the plan leaves out: %s',
  (_name, role, hasNode, codes) => {
    const rollout = buildRollout([buildStage(role, ['n1'], { version: 'v1.36.3' })]);
    const node = hasNode
      ? { name: 'n1', unschedulable: false, cordonOwner: undefined, taintOwner: undefined }
      : undefined;
    const facts = { n1: { version: 'v1.35.1', node } };
    const snapshot = withParts(buildSnapshot(rollout, facts), {
      cluster: { apiServers: [{ name: 'c9', version: 'v1.35.1' }] },
    });
    expect(versionVerdict(snapshot, buildPolicy()).problems.map(({ code }) => code)).toEqual(codes);
  },
);

test('a virtual Node breaks no rule and is named; a policy lets it count as a host', () => {
  const facts = {
    w1: { version: 'v1.35.1' },
    w2: { version: 'v1.19.10-vk-azure', virtual: 'kubelet version v1.19.10-vk-azure' },
  };
  const snapshot = withParts(buildSnapshot(buildRollout([stage]), facts), {
    cluster: { apiServers },
  });
  expect(versionVerdict(snapshot, buildPolicy())).toEqual({
    problems: [],
    unchecked: ['w2: a virtual Node, because it has the kubelet version v1.19.10-vk-azure'],
  });
  const counting = buildPolicy({ countsVirtual: true });
  expect(versionVerdict(snapshot, counting).problems.map(({ code }) => code)).toEqual([
    'SkippedMinor',
  ]);
});
