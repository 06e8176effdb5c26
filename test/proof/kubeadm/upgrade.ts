/** Tests exactly the upgrade that docs/guides/kubeadm.md describes. */
import { dirname } from 'node:path';
import { lastLines } from '../../../tools/controlplane/run.ts';
import type { Checks } from '../checks.ts';
import { CONTAINERD, RUNTIME } from '../machines/containerd.ts';
import type { Cluster } from './cluster.ts';
import {
  changed,
  lastingContainers,
  runtimes,
  servingCertificates,
  startLasting,
} from './containers.ts';
import type { Operator } from './operator.ts';
import { rolledOut, settled, verify } from './verify.ts';

export interface Scene {
  readonly cluster: Cluster;
  readonly operator: Operator;
  readonly checks: Checks;
  readonly log: (line: string) => void;
  readonly from: string;
  /** The versions between `from` and `to`, from low to high. */
  readonly hops: readonly string[];
  readonly to: string;
}

/** What the guide calls optional. */
const MORE = {
  approveServingCertificates: true,
  containerd: {
    version: CONTAINERD.to,
    binaries: Object.fromEntries(
      RUNTIME.map((name) => [name, { path: `/opt/parts/containerd/${CONTAINERD.to}/${name}` }]),
    ) as object,
  },
};

export async function upgrade(scene: Scene): Promise<void> {
  const { cluster, operator, checks, from, to } = scene;
  await operator.prepare(MORE);
  await settled(cluster, operator);
  await startLasting(operator, dirname(operator.manifest));
  await checks.check(`a cluster of ${from} is there`, async () => await rolledOut(operator, from));
  await checks.check('plan: names each host, and changes nothing', async () => {
    const { ok, stdout, stderr } = await operator.kubeadm('plan');
    const missing = cluster.machines.filter(
      ({ name }) => !new RegExp(`^${name} .*${from} → ${to}`, 'm').test(stdout),
    );
    return [
      ...(ok ? [] : [lastLines(stdout + stderr)]),
      ...missing.map(({ name }) => `${name} is not in the plan`),
    ];
  });
  const before = await lastingContainers(operator);
  await checks.check(
    'apply: ends with exit code 0',
    async () => await operator.succeeds('apply', '--yes'),
  );
  await verify('after apply', checks, cluster, operator, to);
  await checks.check(
    `every Node runs containerd ${CONTAINERD.to}`,
    async () => await runtimes(cluster, operator),
  );
  await checks.check('no container was restarted by that', async () =>
    changed(before, await lastingContainers(operator)),
  );
  await checks.check(
    'kubelets have the certificates that they asked for',
    async () => await servingCertificates(cluster),
  );
  await checks.check('apply once more: nothing is to be done', async () => {
    const { ok, stdout, stderr } = await operator.kubeadm('apply', '--yes');
    return ok && /nothing/i.test(stdout) ? [] : [lastLines(stdout + stderr)];
  });
}
