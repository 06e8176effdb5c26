/**
 * Tests autopilot's part of the k0s test kubeletcertrotate: a worker is updated although its certificate was replaced.
 */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { KubeClient } from '../../../src/kube/client.ts';
import { loadClusterConfig } from '../../../src/kube/config/kubeconfig.ts';
import { leases, nodes } from '../../../src/kube/resources.ts';
import { isUnauthorized } from '../../../src/kube/status-error.ts';
import { createClient } from '../../../src/kube/transport/http-client.ts';
import { CENTRAL_CORDONING_LABEL } from '../../../src/signal/names.ts';
import { listed } from '../../support/builders/plans.ts';
import { kubeconfigFor } from '../control-plane.ts';
import { RotatingCertificate } from './rotating-certificate.ts';
import { targetsIn, useScene } from './scene.ts';

const WORKER = 'worker1';
/**
 * The lifetimes of the two certificates, in milliseconds. The first certificate is valid long enough for an agent's
 * start on a busy machine. The second is valid until after the end of the test.
 */
const FIRST_MS = 12_000;
const SECOND_MS = 3_600_000;

const directory = await mkdtemp(join(tmpdir(), 'refit-rotation-'));
afterAll(async () => await rm(directory, { recursive: true }));

// The test runs only with our own agent, because a double of k0s would use the same client as Refit.
describe('kubeletcertrotate: our leader, our agents', () => {
  const certificate = new RotatingCertificate(directory, { node: WORKER });
  let first: KubeClient;
  beforeAll(async () => {
    first = createClient(await loadClusterConfig({ path: await certificate.rotate(FIRST_MS) }));
  });
  afterAll(() => first.close());
  const scene = useScene(
    { leader: 'refit', agents: 'refit' },
    {
      controllers: 1,
      workers: 1,
      kubeconfig: async (user) =>
        typeof user === 'object' && !('controlNode' in user)
          ? certificate.kubeconfig
          : await kubeconfigFor(user),
    },
  );

  test('the plan ends well long after the certificate that the agent began with has expired', async () => {
    const at = scene();
    await at.until(async () => {
      const { metadata } = await at.client.get(leases, WORKER, { namespace: 'kube-node-lease' });
      expect(metadata.labels).toHaveProperty([CENTRAL_CORDONING_LABEL]);
    });
    await certificate.rotate(SECOND_MS);
    await at.until(
      async () => await expect(first.get(nodes, WORKER)).rejects.toSatisfy(isUnauthorized),
    );
    await at.create(
      'rotation',
      at.forced({ controllers: listed('controller1'), workers: listed(WORKER) }),
    );
    const plan = await at.ends('Completed');
    expect(targetsIn(plan)).toEqual(['controller1 SignalCompleted', `${WORKER} SignalCompleted`]);
    expect(at.host(WORKER).starts).toBe(2);
  });
});
