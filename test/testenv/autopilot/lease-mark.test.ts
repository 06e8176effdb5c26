/**
 * Tests nodes that are not allowed to mark their Leases, in clusters whose leader cordons nodes. The agents, the rights
 * of their kubelets, and the admission policy are real.
 */
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { upgradePolicies } from '../../../src/api/kinds.ts';
import { leases, nodes } from '../../../src/kube/resources.ts';
import { CENTRAL_CORDONING_LABEL } from '../../../src/signal/names.ts';
import { listed } from '../../support/builders/plans.ts';
import { apply, kubectlAs } from '../control-plane.ts';
import { PATIENCE } from '../drain-stage.ts';
import { DrainBlocker } from './drain-blocker.ts';
import { PAIRS, type Scene, targetsIn, uniquePrefix, useScene } from './scene.ts';

const PREFIX = 'unmarked-';
const NODE_LEASES = { namespace: 'kube-node-lease' };
const KIND = 'ValidatingAdmissionPolicy';
const METADATA = { name: 'no-marks' };
const POLICY = {
  apiVersion: 'admissionregistration.k8s.io/v1',
  kind: KIND,
  metadata: METADATA,
  spec: {
    matchConstraints: {
      resourceRules: [
        {
          apiGroups: ['coordination.k8s.io'],
          apiVersions: ['v1'],
          operations: ['CREATE', 'UPDATE'],
          resources: ['leases'],
        },
      ],
    },
    matchConditions: [{ name: 'ours', expression: `object.metadata.name.startsWith('${PREFIX}')` }],
    validations: [
      {
        expression: `!('${CENTRAL_CORDONING_LABEL}' in object.metadata.?labels.orValue({}))`,
        message: 'no marks here',
      },
    ],
  },
};
const BINDING = {
  apiVersion: 'admissionregistration.k8s.io/v1',
  kind: `${KIND}Binding`,
  metadata: METADATA,
  spec: { policyName: METADATA.name, validationActions: ['Deny'] },
};

/** Reports whether the API server would refuse a mark now. Policies take effect some time after they were written. */
async function isMarkRefused(): Promise<boolean> {
  const metadata = {
    name: `${PREFIX}probe`,
    ...NODE_LEASES,
    labels: { [CENTRAL_CORDONING_LABEL]: '' },
  };
  const lease = { apiVersion: 'coordination.k8s.io/v1', kind: 'Lease', metadata };
  const { ok } = await kubectlAs(
    'admin',
    ['create', '--dry-run=server', '-f', '-'],
    JSON.stringify(lease),
  );
  return !ok;
}

const lift = async (): Promise<void> => {
  for (const kind of [BINDING.kind, POLICY.kind])
    await kubectlAs('admin', ['delete', kind, METADATA.name, '--ignore-not-found']);
};

/** Returns every request that may have removed a pod, for the message of a failed test. */
async function deletionsOf(at: Scene): Promise<string> {
  const events = (await at.audited('/pods')).filter(
    ({ verb, requestURI }) => requestURI.includes('/pods') && /create|delete/.test(verb),
  );
  return events
    .map((each) => `${each.responseStatus?.code} ${each.user.username} ${each.requestURI}`)
    .join('\n');
}

const CORDONING = PAIRS.filter(
  ([, { leader, agents }]) => agents === 'refit' && leader !== '<=1.34',
);

describe.each(CORDONING)('%s', (_name, combination) => {
  beforeAll(async () => {
    await apply(JSON.stringify({ apiVersion: 'v1', kind: 'List', items: [POLICY, BINDING] }));
    await vi.waitFor(async () => expect(await isMarkRefused()).toBe(true), PATIENCE);
  });
  afterAll(lift);
  const prefix = `${PREFIX}${uniquePrefix()}`;
  const name = `${prefix}worker1`;
  const scene = useScene(combination, { controllers: 1, workers: 1, played: true, prefix });

  const markOf = async (): Promise<string | undefined> =>
    (await scene().client.get(leases, name, NODE_LEASES)).metadata.labels?.[
      CENTRAL_CORDONING_LABEL
    ];
  const drainers = async (): Promise<string[]> => {
    const evictions = (await scene().audited('/eviction')).filter(({ requestURI }) =>
      requestURI.includes('/eviction'),
    );
    // The status 504 also counts: the eviction was done, although the client did not wait for the answer.
    return evictions
      .filter(({ responseStatus }) => [201, 504].includes(responseStatus?.code ?? 0))
      .map(({ user }) => user.username);
  };

  // A policy applies only if Refit leads, because a leader of k0s ignores policies.
  if (combination.leader === 'refit') {
    test('a node whose lease may not be marked drains itself only as its policy says', async () => {
      const at = scene();
      await using pod = await DrainBlocker.start(at.client, [name]);
      await pod.liftBudget();
      const before = await pod.uids();
      await using things = new AsyncDisposableStack();
      const metadata = { name: 'no-drains' };
      const apiVersion = 'upgrade.refit.dev/v1alpha1';
      const spec = { drain: { enabled: false } };
      await at.client.create(upgradePolicies, {
        apiVersion,
        kind: 'UpgradePolicy',
        metadata,
        spec,
      });
      things.defer(async () => await at.client.delete(upgradePolicies, metadata.name));
      await at.until(async () => {
        const { status } = await at.client.get(upgradePolicies, metadata.name);
        expect(status?.conditions?.find(({ type }) => type === 'Accepted')?.status).toBe('True');
      });
      await at.create('undrained', at.forced({ workers: listed(name) }));
      expect(targetsIn(await at.ends('Completed'))).toEqual([`${name} SignalCompleted`]);
      expect(await pod.uids()).toEqual(before);
      expect(await drainers()).toEqual([]);
      expect((await at.client.get(nodes, name)).spec?.unschedulable).toBeUndefined();
    });
  }

  test('a node whose lease may not be marked drains itself, and delegates to the leader once it is marked', async () => {
    const at = scene();
    await using pod = await DrainBlocker.start(at.client, [name]);
    await pod.liftBudget();
    await at.create('unmarked', at.forced({ workers: listed(name) }));
    expect(targetsIn(await at.ends('Completed'))).toEqual([`${name} SignalCompleted`]);
    expect(await markOf()).toBeUndefined();
    expect((await at.client.get(nodes, name)).spec?.unschedulable).toBeUndefined();
    const first = await drainers();
    expect(new Set(first), await deletionsOf(at)).toEqual(new Set([`system:node:${name}`]));

    await pod.untilEverywhere();
    await at.deletePlan();
    await lift();
    await at.until(async () => {
      // Each change of the node causes a retry.
      const annotations = { 'example.com/now': String(performance.now()) };
      await at.client.patch(nodes, name, { metadata: { annotations } }, { type: 'merge' });
      expect(await markOf()).toBe('');
    });
    await at.create('marked', at.forced({ workers: listed(name) }));
    expect(targetsIn(await at.ends('Completed'))).toEqual([`${name} SignalCompleted`]);
    const later = (await drainers()).slice(first.length);
    expect(later.length).toBeGreaterThan(0);
    expect(later).not.toContain(`system:node:${name}`);
  });
});
