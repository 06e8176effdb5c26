/**
 * Tests health checks that run Jobs on a real API server, with the real Job controller. The test itself acts as the
 * kubelet.
 */
import { beforeAll, expect, onTestFinished, test, vi } from 'vitest';
import { upgradePolicies } from '../../src/api/kinds.ts';
import type { KubeClient } from '../../src/kube/client.ts';
import { loadClusterConfig } from '../../src/kube/config/kubeconfig.ts';
import { type Job, jobs, namespaces, type Pod, pods } from '../../src/kube/resources.ts';
import { createClient } from '../../src/kube/transport/http-client.ts';
import { buildUpgradePolicy } from '../support/builders/policies.ts';
import { installKinds, kubeconfigFor, kubectlAs } from './control-plane.ts';
import { PATIENCE, Puppets } from './puppets.ts';
import { RefitProcess, runRefit } from './refit-process.ts';

const NAMESPACE = 'refit-smoke';
/** The rights as the guide documents them. */
const RIGHTS = `
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: { name: refit-health-jobs, namespace: ${NAMESPACE} }
rules:
  - { apiGroups: [batch], resources: [jobs], verbs: [get, create, delete] }
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: { name: refit-health-jobs, namespace: ${NAMESPACE} }
roleRef: { apiGroup: rbac.authorization.k8s.io, kind: Role, name: refit-health-jobs }
subjects: [{ apiGroup: rbac.authorization.k8s.io, kind: User, name: refit-controller }]
`;
/** Refit runs a check every 15 s, and this test waits for several Jobs. */
const PATIENT = { timeout: 420_000 };

let admin: KubeClient;

beforeAll(async () => {
  await installKinds();
});

async function jobsThere(): Promise<readonly Job[]> {
  return (await admin.list(jobs, { namespace: NAMESPACE })).items;
}

async function why(node: string): Promise<string> {
  const viewer = await kubeconfigFor('viewer');
  return (await runRefit('why', node, '--kubeconfig', viewer)).stdout.join('\n');
}

async function untilTold(node: string, sentence: string): Promise<void> {
  await vi.waitFor(async () => expect(await why(node)).toContain(sentence), PATIENCE);
}

/** Waits until a node gets the signal to upgrade. */
async function untilStarted(puppets: Puppets, name: string): Promise<void> {
  try {
    await vi.waitFor(async () => expect(await puppets.signal(name)).toBeDefined(), PATIENCE);
  } catch (cause) {
    const seen = JSON.stringify(await jobsThere());
    throw new Error(`${name} was not told to upgrade: ${await why(name)}\n${seen}`, { cause });
  }
}

/** Waits for the pod of a new Job, and ends the pod as a kubelet would. */
async function endNextJob(seen: Set<string>, phase: 'Succeeded' | 'Failed'): Promise<void> {
  const pod = await vi.waitFor(async (): Promise<Pod> => {
    const { items } = await admin.list(pods, { namespace: NAMESPACE });
    const found = items.find(({ metadata }) => !seen.has(metadata.uid ?? ''));
    if (found === undefined) throw new Error('no new pod of a Job');
    return found;
  }, PATIENCE);
  seen.add(pod.metadata.uid ?? '');
  const options = { type: 'merge', subresource: 'status', namespace: NAMESPACE } as const;
  await admin.patch(pods, pod.metadata.name, { status: { phase } }, options);
}

test('a node waits for a Job that succeeds before it and after it', PATIENT, async () => {
  admin = createClient(await loadClusterConfig({ path: await kubeconfigFor('admin') }));
  onTestFinished(() => admin.close());
  await admin.create(namespaces, { metadata: { name: NAMESPACE } });
  // The deletion of the namespace also deletes the Jobs, which Refit keeps for an hour.
  onTestFinished(async () => {
    await kubectlAs('admin', ['delete', 'namespace', NAMESPACE, '--wait=true']);
  });
  const containers = [{ name: 'smoke', image: 'example.com/none' }];
  const check = {
    name: 'smoke',
    namespace: NAMESPACE,
    spec: { template: { spec: { containers } } },
  };
  const health = { jobs: [{ ...check, every: '1h', timeout: '5m' }] };
  await admin.create(upgradePolicies, buildUpgradePolicy('smoke', { health }));
  onTestFinished(async () => await admin.delete(upgradePolicies, 'smoke'));
  await using puppets = await Puppets.create(admin, 'smoke-w1', 'smoke-w2');
  const config = await kubeconfigFor('controller');
  await using leader = new RefitProcess(
    'controller',
    '--kubeconfig',
    config,
    `--job-namespaces=${NAMESPACE}`,
  );
  await puppets.plan(1);
  await untilTold('smoke-w1', 'Refit lacks the right to get, create and delete Jobs');
  expect(await jobsThere()).toEqual([]);
  await kubectlAs('admin', ['apply', '-f', '-'], RIGHTS);

  const seen = new Set<string>();
  await endNextJob(seen, 'Failed');
  await untilTold(
    'smoke-w1',
    'the health check smoke of UpgradePolicy smoke fails: Job refit-smoke/',
  );
  expect(await puppets.signal('smoke-w1')).toBeUndefined();
  // The next Job starts a minute after the failure.
  await endNextJob(seen, 'Succeeded');
  await untilStarted(puppets, 'smoke-w1');
  expect(await jobsThere()).toHaveLength(1);

  await puppets.says('smoke-w1', 'Completed');
  await vi.waitFor(
    async () =>
      expect(
        (await admin.list(pods, { namespace: NAMESPACE })).items.some(
          ({ metadata }) => !seen.has(metadata.uid ?? ''),
        ),
      ).toBe(true),
    PATIENCE,
  );
  expect(await puppets.signal('smoke-w2')).toBeUndefined();
  await endNextJob(seen, 'Succeeded');
  await untilStarted(puppets, 'smoke-w2');
  await puppets.says('smoke-w2', 'Completed');
  await endNextJob(seen, 'Succeeded');
  expect((await puppets.end()).state).toBe('Completed');
  expect(await leader.stop('SIGTERM')).toBe(0);
});
