/** Tests the NodeRollout of a k0s Plan on a real API server, with the rights of the documented roles. */
import { beforeAll, expect, onTestFinished, test } from 'vitest';
import { plans } from '../../src/api/autopilot/plan.ts';
import { nodeRollouts } from '../../src/api/kinds.ts';
import { loadClusterConfig } from '../../src/kube/config/kubeconfig.ts';
import { ifFound } from '../../src/kube/status-error.ts';
import { createClient } from '../../src/kube/transport/http-client.ts';
import { installKinds, kubeconfigFor, kubectlAs } from './control-plane.ts';
import { Puppets } from './puppets.ts';
import { RefitProcess } from './refit-process.ts';

const NAMESPACE = 'k0s-autopilot';
const NAME = 'autopilot-autopilot';

beforeAll(async () => {
  await installKinds();
});

test('kubectl waits for a Plan, and its history survives the leader and the Plan', async () => {
  const admin = createClient(await loadClusterConfig({ path: await kubeconfigFor('admin') }));
  onTestFinished(() => admin.close());
  await using puppets = await Puppets.create(admin, 'rollout-w1', 'rollout-w2');
  const old = {
    apiVersion: 'upgrade.refit.dev/v1alpha1',
    kind: 'NodeRollout',
    metadata: {
      name: 'autopilot-old',
      namespace: NAMESPACE,
      labels: { 'upgrade.refit.dev/dialect': 'autopilot' },
    },
    spec: { plan: { apiVersion: 'autopilot.k0sproject.io/v1beta2', kind: 'Plan', name: 'old' } },
  };
  // Plans of earlier test files had the same name, and their NodeRollouts still exist.
  for (const name of [NAME, old.metadata.name])
    await ifFound(admin.delete(nodeRollouts, name, { namespace: NAMESPACE }));
  await puppets.until(
    async () => void (await admin.create(nodeRollouts, old, { namespace: NAMESPACE })),
  );
  const inPlace = { namespace: NAMESPACE };
  const gone = { status: { planDeleted: '2020-01-01T00:00:00Z' } };
  const toStatus = { ...inPlace, type: 'merge', subresource: 'status' } as const;
  await admin.patch(nodeRollouts, old.metadata.name, gone, toStatus);
  onTestFinished(
    async () => await admin.delete(nodeRollouts, NAME, inPlace).catch(() => undefined),
  );
  const statusNow = async () => (await admin.get(nodeRollouts, NAME, inPlace)).status;
  const kubeconfig = ['--kubeconfig', await kubeconfigFor('controller')];

  const first = new RefitProcess('controller', ...kubeconfig);
  await puppets.plan(1);
  await puppets.until(async () => expect((await statusNow())?.progress).toBe('0/2'));
  await puppets.until(async () => {
    // Other test files may have left NodeRollouts of Plans that were deleted a short time ago.
    const { items } = await admin.list(nodeRollouts, inPlace);
    expect(items.map(({ metadata }) => metadata.name)).not.toContain(old.metadata.name);
  });
  expect(await first.stop('SIGKILL')).not.toBe(0);
  await using leader = new RefitProcess('controller', ...kubeconfig);
  const wait = kubectlAs('viewer', [
    'wait',
    `noderollout/${NAME}`,
    `--namespace=${NAMESPACE}`,
    '--for=condition=Completed',
    '--timeout=120s',
  ]);
  await puppets.says('rollout-w1', 'Completed');
  await puppets.says('rollout-w2', 'Completed');
  expect((await wait).stdout).toContain('condition met');
  const table = (await kubectlAs('viewer', ['get', 'noderollouts', '-A'])).stdout;
  expect(table).toMatch(
    /NAMESPACE +NAME +KIND +PLAN +VERSION +DONE +PHASE +WAITING +ETA +ESTIMATED +AGE/,
  );
  expect(table).toMatch(/k0s-autopilot +autopilot-autopilot +Plan +autopilot +\S+ +2\/2 +done /);

  await admin.delete(plans, 'autopilot');
  await puppets.until(async () => expect((await statusNow())?.planDeleted).toBeDefined());
  expect((await statusNow())?.history).toMatchObject([{ phase: 'done', counts: { done: 2 } }]);

  // Another Plan with the same name uses the same NodeRollout, but without the decisions about the earlier Plan.
  await puppets.plan(1);
  await puppets.until(async () => {
    const { spec, status } = await admin.get(nodeRollouts, NAME, inPlace);
    expect(spec.plan.uid).toBe((await admin.get(plans, 'autopilot')).metadata.uid);
    expect(status?.planDeleted).toBeUndefined();
    expect(status?.history).toHaveLength(2);
  });

  // As the guide says, the first wait ends however the plan ends, and the second one says how.
  const waitFor = async (condition: string, timeout: string) =>
    await kubectlAs('viewer', [
      'wait',
      `noderollout/${NAME}`,
      `--namespace=${NAMESPACE}`,
      `--for=condition=${condition}`,
      `--timeout=${timeout}`,
    ]);
  const ended = waitFor('Progressing=false', '120s');
  await puppets.says('rollout-w1', 'Failed');
  expect((await ended).stdout).toContain('condition met');
  expect((await waitFor('Completed', '1s')).ok).toBe(false);
  expect(await leader.stop('SIGTERM')).toBe(0);
});
