/**
 * Tests a flag in kubeadm-config that the scheduler does not know. kubeadm only waits until the pod runs, so the
 * upgrade by kubeadm succeeds. Refit restores the static pods, and upgrades them after the flag is removed.
 */
import { readFile, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { parse, stringify } from 'yaml';
import type { Node } from '../../../../src/kube/resources.ts';
import { lastLines } from '../../../../tools/controlplane/run.ts';
import { differing } from '../../checks.ts';
import type { Machine } from '../../machines/machine.ts';
import { until } from '../../wait.ts';
import { lastingContainers, startLasting } from '../containers.ts';
import type { Operator } from '../operator.ts';
import type { Scene } from '../upgrade.ts';
import { settled, staticPods, verify } from '../verify.ts';

const NAMES = ['etcd', 'kube-apiserver', 'kube-controller-manager', 'kube-scheduler'];
const COPIES = '/var/lib/refit/static-pods';

interface ClusterConfiguration {
  scheduler?: { extraArgs?: readonly object[] };
}

export async function rollBackStaticPods(scene: Scene): Promise<void> {
  const { cluster, operator, checks, from, to } = scene;
  const [first] = cluster.controlPlanes;
  if (first === undefined) throw new Error('this proof needs a control plane');
  await operator.prepare();
  await settled(cluster, operator);
  await startLasting(operator, dirname(operator.manifest));
  const before = await manifestsOf(first);
  await configureScheduler(operator, [{ name: 'feature-gates', value: 'NoSuchGate=true' }]);
  await checks.check(
    `apply: fails on ${first.name}, and says that its static pods were rolled back`,
    async () => {
      const { ok, stdout, stderr } = await operator.kubeadm('apply', '--yes');
      const said = stdout + stderr;
      const expected = [
        'kube-scheduler',
        'static pods rolled back',
        `kube-scheduler ${from}`,
        'they are ready',
      ];
      const missing = expected.filter((each) => !said.includes(each));
      return !ok && missing.length === 0 ? [] : [`missing: ${missing.join(', ')}`, lastLines(said)];
    },
  );
  await checks.check(`${first.name}: all manifests are as before`, async () =>
    differing(await manifestsOf(first, before), 'as before'),
  );
  await checks.check(`${first.name}: only root can read the copies`, async () => {
    const modes = await first.must(`stat -c '%U %a' ${COPIES}`);
    return differing({ [COPIES]: modes.trim() }, 'root 700');
  });
  await checks.check(
    `${first.name}: static pods run ${from} and are ready`,
    async () => await staticPods(cluster, operator, from),
  );
  await checks.check('every Node is Ready', async () => {
    await settled(cluster, operator);
    const { items } = await operator.get<{ items: Node[] }>('nodes');
    return differing({ Nodes: items.length }, cluster.machines.length);
  });
  await checks.check('the cluster works: new pods are made, scheduled and run', async () => {
    await newPods(operator);
    return [];
  });
  await configureScheduler(operator, []);
  await checks.check(
    'apply without the flag: ends with exit code 0',
    async () => await operator.succeeds('apply', '--yes'),
  );
  await verify('after the roll-back', checks, cluster, operator, to);
  await checks.check(`${first.name}: the manifest of the scheduler has no such flag`, async () => {
    const text = await readFile(manifest(first, 'kube-scheduler'), 'utf8');
    return text.includes('NoSuchGate') ? ['it still has NoSuchGate'] : [];
  });
  await checks.check('the cluster works after that, too', async () => {
    await newPods(operator);
    return [];
  });
}

const manifest = ({ root }: Machine, name: string): string =>
  join(root, 'etc/kubernetes/manifests', `${name}.yaml`);

/** Returns the text of each manifest by its name, or `as before` if the text is the same as in `before`. */
async function manifestsOf(
  machine: Machine,
  before: Readonly<Record<string, string>> = {},
): Promise<Record<string, string>> {
  const entries = NAMES.map(async (name): Promise<[string, string]> => {
    const text = await readFile(manifest(machine, name), 'utf8');
    return [name, text === before[name] ? 'as before' : text];
  });
  return Object.fromEntries(await Promise.all(entries));
}

/** Changes the ConfigMap as an administrator does with `kubectl -n kube-system edit configmap kubeadm-config`. */
async function configureScheduler(operator: Operator, extraArgs: readonly object[]): Promise<void> {
  const { data } = await operator.get<{ data: { ClusterConfiguration: string } }>(
    'configmap',
    'kubeadm-config',
  );
  const configuration = parse(data.ClusterConfiguration) as ClusterConfiguration;
  configuration.scheduler = { ...configuration.scheduler, extraArgs };
  const file = join(dirname(operator.manifest), 'kubeadm-config.json');
  await writeFile(
    file,
    JSON.stringify({ data: { ClusterConfiguration: stringify(configuration) } }),
  );
  await operator.administer(
    '-n',
    'kube-system',
    'patch',
    'configmap',
    'kubeadm-config',
    '--patch-file',
    file,
  );
}

/**
 * Deletes the pods, and waits for new pods. The controller manager must replace the pods, the scheduler must bind the
 * new pods, and the kubelets must start them.
 */
async function newPods(operator: Operator): Promise<void> {
  const before = await lastingContainers(operator);
  await operator.administer('-n', 'kube-system', 'delete', 'pods', '-l', 'app=lasting');
  await until('new pods to run', 300, async () => {
    const now = Object.entries(await lastingContainers(operator));
    const isNew = ([name, container]: [string, string]): boolean =>
      !(name in before) && container.includes('since');
    return now.length === Object.keys(before).length && now.every(isNew);
  });
}
