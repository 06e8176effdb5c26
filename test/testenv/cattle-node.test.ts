/** Tests Plans on machines whose kubelet runs the pods as processes: with the real Job controller, scheduler and kubectl. */
import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest';
import { createNode } from '../../sandbox/cluster/objects.ts';
import { Kubelet } from '../../sandbox/kubelet/kubelet.ts';
import type { CattlePlan } from '../../src/api/cattle/plan.ts';
import { cattlePlans } from '../../src/api/kinds.ts';
import { DEFAULT_JOB_SETTINGS } from '../../src/dialects/cattle/plan/config.ts';
import type { KubeClient } from '../../src/kube/client.ts';
import { jobs, nodes, type Pod, pods } from '../../src/kube/resources.ts';
import { writeAccountKubeconfig } from './account.ts';
import { conditionOf, installKinds, NAMESPACE, planOf, startController } from './cattle-rig.ts';
import { apply, controlPlane, kubectlAs } from './control-plane.ts';
import { clientOf } from './drain-stage.ts';

const PATIENCE = { timeout: 150_000, interval: 200 };
const OLD = 'v1.36.2-k3s1';
const NEW = 'v1.36.3-k3s1';
const DRAIN_RIGHTS = 'deploy/rbac-cattle-drain.yaml';
const NAMES = ['machine-a', 'machine-b'];
/** Waits once for a reboot, and then replaces the file. */
const UPGRADE = `
set -e
mkdir -p host/var host/run
if [ ! -f host/var/rebooted ]; then
  touch host/var/rebooted host/run/reboot
  sleep 3600
fi
echo "$SYSTEM_UPGRADE_PLAN_LATEST_VERSION on $SYSTEM_UPGRADE_NODE_NAME" > host/usr/k3s.new
mv host/usr/k3s.new host/usr/k3s
grep -q upgrade.cattle.io/plan run/system-upgrade/pod/labels
`;

let directory = '';
let admin: KubeClient;
const kubelets: Kubelet[] = [];

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'refit-machines-'));
  for (const folder of ['logs', 'pids']) await mkdir(join(directory, folder));
  admin = await clientOf('admin');
  await installKinds();
  await apply(await readFile(DRAIN_RIGHTS, 'utf8'));
  const script = join(directory, 'upgrade.sh');
  await writeFile(script, UPGRADE);
  const kubeconfig = join(directory, 'account');
  await writeAccountKubeconfig(kubeconfig, NAMESPACE, 'system-upgrade');
  const images = {
    [DEFAULT_JOB_SETTINGS.kubectlImage]: [controlPlane().kubectl, '--kubeconfig', kubeconfig],
    [`example.com/k3s:${NEW}`]: ['sh', script],
    'example.com/web': ['sleep', '3600'],
  };
  for (const name of NAMES) {
    await createNode(admin, name, { pool: 'machines' });
    const client = await clientOf({ node: name });
    kubelets.push(
      await Kubelet.start({ client, name, directory: join(directory, name), version: OLD, images }),
    );
  }
});

afterAll(async () => {
  for (const kind of ['plans.upgrade.cattle.io', 'deployments', 'poddisruptionbudgets'])
    await kubectlAs('admin', ['delete', kind, '--all', '-n', NAMESPACE]);
  await vi.waitFor(async () => {
    expect((await admin.list(jobs, { namespace: NAMESPACE })).items).toEqual([]);
    expect((await admin.list(pods, { namespace: NAMESPACE })).items).toEqual([]);
  }, PATIENCE);
  await kubectlAs('admin', ['delete', '-f', DRAIN_RIGHTS]);
  for (const kubelet of kubelets) await kubelet.stop();
  for (const name of NAMES) await admin.delete(nodes, name);
  admin.close();
  await rm(directory, { recursive: true });
});

async function until(
  name: string,
  type: string,
  status: string,
  reason: string,
): Promise<CattlePlan> {
  return await vi.waitFor(async () => {
    const plan = await admin.get(cattlePlans, name, { namespace: NAMESPACE });
    expect(conditionOf(plan, type)).toMatchObject({ status, reason });
    return plan;
  }, PATIENCE);
}

/** Pods of the workload that run on the machine. */
async function webOn(name: string): Promise<Pod[]> {
  const { items } = await admin.list(pods, { namespace: NAMESPACE, labelSelector: 'app=web' });
  return items.filter(({ spec, status }) => spec?.nodeName === name && status?.phase === 'Running');
}

/** Two pods, on the first machine. */
async function startWeb(): Promise<void> {
  const labels = { app: 'web' };
  const container = { name: 'web', image: 'example.com/web' };
  const terms = {
    terminationGracePeriodSeconds: 1,
    nodeSelector: { pool: 'machines' },
    containers: [container],
  };
  const web = {
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: { name: 'web', namespace: NAMESPACE },
    spec: {
      replicas: 2,
      selector: { matchLabels: labels },
      template: { metadata: { labels }, spec: terms },
    },
  };
  await kubectlAs('admin', ['cordon', 'machine-b']);
  await apply(JSON.stringify(web));
  await vi.waitFor(async () => expect(await webOn('machine-a')).toHaveLength(2), PATIENCE);
  await kubectlAs('admin', ['uncordon', 'machine-b']);
}

/** Empties the machines for the next test. */
async function reset(plan: string): Promise<void> {
  await kubectlAs('admin', ['delete', 'plans.upgrade.cattle.io', plan, '-n', NAMESPACE]);
  await kubectlAs('admin', ['delete', 'deployment', 'web', '-n', NAMESPACE]);
  await vi.waitFor(
    async () => expect((await admin.list(pods, { namespace: NAMESPACE })).items).toEqual([]),
    PATIENCE,
  );
}

describe.each([
  ['the kubectl of the Job', {}, ['drain']],
  ['Refit', { SYSTEM_UPGRADE_JOB_DRAIN_IN_JOB: 'false' }, []],
])('drained by %s', (_who, environment, init) => {
  // The names differ, because the label of an earlier Plan with the same name would still be on its node.
  const name = `with-${init.length}`;
  test('a Plan drains a node, replaces its binary across a reboot, and makes the node schedulable again', async () => {
    const [first] = kubelets as [Kubelet, Kubelet];
    for (const { root } of kubelets) {
      await rm(root, { recursive: true, force: true });
      await mkdir(join(root, 'usr'), { recursive: true });
      await writeFile(join(root, 'usr', 'k3s'), OLD);
    }
    const controller = await startController(directory, environment);
    onTestFinished(async () => await controller.stop());
    await startWeb();
    const spec = { version: NEW, drain: { force: false }, upgrade: { image: 'example.com/k3s' } };
    const selector = { nodeSelector: { matchLabels: { 'kubernetes.io/hostname': 'machine-a' } } };
    await apply(JSON.stringify(planOf(name, { ...spec, ...selector })));
    await vi.waitFor(
      () => expect(existsSync(join(first.root, 'run', 'reboot'))).toBe(true),
      PATIENCE,
    );
    expect((await admin.get(nodes, 'machine-a')).spec?.unschedulable).toBe(true);
    expect(await webOn('machine-a')).toEqual([]);
    const [job] = (await admin.list(jobs, { namespace: NAMESPACE })).items;
    const template = job?.spec?.['template'] as { spec: { initContainers?: { name: string }[] } };
    expect((template.spec.initContainers ?? []).map(({ name }) => name)).toEqual(init);
    expect(await readFile(join(first.root, 'usr', 'k3s'), 'utf8')).toBe(OLD);
    await first.reboot();
    await until(name, 'Complete', 'True', 'Complete');
    expect(await readFile(join(first.root, 'usr', 'k3s'), 'utf8')).toBe(`${NEW} on machine-a\n`);
    const { metadata, spec: after } = await admin.get(nodes, 'machine-a');
    expect(after?.unschedulable).toBeUndefined();
    expect(metadata.annotations?.['upgrade.refit.dev/cordoned-by']).toBeUndefined();
    expect(await webOn('machine-b')).toHaveLength(2);
    await reset(name);
  });
});
