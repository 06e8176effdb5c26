/** Proves what the version rules answer for a plan that never ends: its targets wait, and the plan is not refused. */
import { expect, test } from 'vitest';
import { judged, said } from '../../../test/support/builders/gate-inputs.ts';
import { buildNode } from '../../../test/support/builders/nodes.ts';
import { type PartChanges, withParts } from '../../../test/support/builders/parts.ts';
import { buildPolicy } from '../../../test/support/builders/rollout-policies.ts';
import type { Node } from '../../kube/resources.ts';
import type { Snapshot } from '../model/snapshot.ts';
import { apiServersFirst } from './api-servers-first.ts';
import type { GateInput } from './types.ts';
import { versionsFollow } from './versions-follow.ts';

/** Returns the input for a target of a plan whose targets wait; `kubernetesVersion` is the version that counts. */
function waiting(
  has: string,
  kubernetesVersion?: string,
  more: PartChanges<GateInput> = {},
): GateInput {
  const given = judged(has);
  const stage =
    kubernetesVersion === undefined ? given.stage : { ...given.stage, kubernetesVersion };
  return withParts(given, { stage, abilities: { waitsForVersions: true } }, more);
}

function nodeAt(name: string, version: string): Node {
  const node = buildNode(name);
  return { ...node, status: { ...node.status, nodeInfo: { kubeletVersion: version } } };
}

const OWN = [{ name: 'n1', version: 'v1.36.3', isOfKubelet: true }];

test('a target that breaks a version rule waits until the plan or a policy changes', () => {
  expect(versionsFollow.evaluate(waiting('v1.34.1'))).toMatchObject({
    kind: 'wait',
    reason: { code: 'SkippedMinor' },
    ends: 'the plan names another version, or a policy allows it',
  });
  const policy = buildPolicy({ allow: new Set(['SkippedMinor']) });
  expect(said(versionsFollow.evaluate(waiting('v1.34.1', undefined, { policy })))).toBe('pass');
});

test('a plan whose targets wait for the version rules is never refused as a whole', () => {
  const {
    cluster: { apiServers = [] },
  } = judged('v1.36.3');
  const asked = (waitsForVersions?: boolean): boolean | undefined =>
    versionsFollow.mayRefusePlan?.({
      cluster: { apiServers },
      abilities: { waitsForVersions },
    } as Snapshot);
  expect([asked(), asked(true)]).toEqual([true, false]);
});

test('the Kubernetes version of the stage counts before its own version', () => {
  expect(said(versionsFollow.evaluate(waiting('v1.36.3', 'v1.26.3')))).toMatch(
    /^wait Downgrade: n1 would go from v1\.36\.3 down to v1\.26\.3 /,
  );
  expect(said(apiServersFirst.evaluate(waiting('v1.36.3', 'v1.37.0')))).toMatch(
    /^wait KubeletAhead: n1 would have a kubelet of v1\.37\.0, newer than the API server of c1/,
  );
});

test('an API server that no Node shows is asked again after a minute', () => {
  expect(apiServersFirst.evaluate(waiting('v1.35.9'))).toMatchObject({ recheckMs: 60_000 });
  const apiServers = [{ name: 'c1', version: 'v1.35.9', isOfKubelet: true }];
  const shown = apiServersFirst.evaluate(
    waiting('v1.35.9', undefined, { cluster: { apiServers } }),
  );
  expect(shown).toMatchObject({ kind: 'wait' });
  expect(shown).not.toHaveProperty('recheckMs');
});

test('a server moves its API server together with its kubelet, so it does not wait for itself', () => {
  const fleet = [nodeAt('n1', 'v1.36.3'), nodeAt('a1', 'v1.36.3')];
  const more = { cluster: { apiServers: OWN, fleet } };
  expect(said(apiServersFirst.evaluate(waiting('v1.36.3', 'v1.37.0', more)))).toBe('pass');
});

test('a server does not go to an older minor version than the kubelet of another Node', () => {
  const fleet = [nodeAt('n1', 'v1.36.3'), nodeAt('a1', 'v1.36.3'), nodeAt('a2', 'v1.35.1')];
  const back = apiServersFirst.evaluate(
    waiting('v1.36.3', 'v1.35.9', { cluster: { apiServers: OWN, fleet } }),
  );
  expect(said(back)).toBe(
    'wait KubeletAhead: a1 would still have a kubelet of v1.36.3 when the API server of n1 has v1.35.9: kubelets must go back first (rule KubeletAhead; versions.allow: [KubeletAhead] of an UpgradePolicy allows it)',
  );
  expect(back).toMatchObject({ ends: 'those kubelets are older, or a policy allows it' });
  const virtual = {
    ...nodeAt('v1', 'v1.36.3'),
    metadata: { name: 'v1', labels: { type: 'virtual-kubelet' } },
  };
  const beside = waiting('v1.36.3', 'v1.35.9', { cluster: { apiServers: OWN, fleet: [virtual] } });
  expect(said(apiServersFirst.evaluate(beside))).toBe('pass');
  const patch = waiting('v1.36.3', 'v1.36.1', { cluster: { apiServers: OWN, fleet } });
  expect(said(apiServersFirst.evaluate(patch))).toBe('pass');
  const policy = buildPolicy({ allow: new Set(['KubeletAhead']) });
  const allowed = waiting('v1.36.3', 'v1.35.9', { cluster: { apiServers: OWN, fleet }, policy });
  expect(said(apiServersFirst.evaluate(allowed))).toBe('pass');
});
