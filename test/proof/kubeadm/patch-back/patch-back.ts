/**
 * Tests that a whole cluster can return to the previous patch version, with the commands of docs/guides/kubeadm.md, and
 * that no object is lost.
 */
import { dirname } from 'node:path';
import { lastLines } from '../../../../tools/controlplane/run.ts';
import { startLasting } from '../containers.ts';
import type { Operator } from '../operator.ts';
import type { Scene } from '../upgrade.ts';
import { settled, staticPods, verify } from '../verify.ts';
import { type Seen, watched, wrongOrder } from './order.ts';
import { NAMES, offer, withdraw, wrongPackages } from './packaged.ts';

/** The number of keys in each large object. */
const KEYS = 600;
/** Kinds whose objects are never deleted during the test. A missing object of these kinds is a lost object. */
const KINDS = [
  'configmaps',
  'secrets',
  'services',
  'serviceaccounts',
  'deployments.apps',
  'daemonsets.apps',
  'namespaces',
  'nodes',
  'roles.rbac.authorization.k8s.io',
  'rolebindings.rbac.authorization.k8s.io',
  'clusterroles.rbac.authorization.k8s.io',
  'clusterrolebindings.rbac.authorization.k8s.io',
];

/** The place from which the hosts get the programs. */
interface Source {
  readonly binaries: (version: string) => object;
  /** Checks what else must be right after all hosts have the version. */
  readonly verifyMore: (title: string, version: string) => Promise<void>;
  /** Checks what else must be right before the cluster returns to the version. */
  readonly beforeWayBack: (version: string) => Promise<void>;
}

/** Tests the return to the previous patch version with programs from files on the hosts. */
export async function goBack(scene: Scene): Promise<void> {
  const nothing = async (): Promise<void> => await Promise.resolve();
  await goThereAndBack(scene, {
    binaries: (version) => scene.operator.binaries(version),
    verifyMore: nothing,
    beforeWayBack: nothing,
  });
}

/** Tests the return to the previous patch version with programs from packages. No file that the manifest names exists. */
export async function goBackByPackages(scene: Scene): Promise<void> {
  const { cluster, operator, checks } = scene;
  await goThereAndBack(scene, {
    binaries: () => Object.fromEntries(NAMES.map((name) => [name, { path: `/none/${name}` }])),
    async verifyMore(title, version) {
      await checks.check(
        `${title}: dpkg has complete and unchanged packages of ${version}, and holds the kubelet`,
        async () => await wrongPackages(cluster, version),
      );
    },
    async beforeWayBack(version) {
      const [worker] = cluster.workers;
      if (worker === undefined) throw new Error('this proof needs a worker');
      await withdraw(worker);
      await checks.check('plan --back without the old packages: is refused', async () => {
        const { ok, stdout, stderr } = await operator.kubeadm('plan', '--back');
        const said = stdout + stderr;
        const isRefused = said.includes(`apt-get knows no kubelet ${version.slice(1)}`);
        return !ok && isRefused ? [] : [lastLines(said)];
      });
      await offer(worker);
      await checks.check('plan --back: says that apt-get replaces the kubelet', async () => {
        const { ok, stdout, stderr } = await operator.kubeadm('plan', '--back');
        const said = stdout + stderr;
        return ok && said.includes('apt-get replaces it') ? [] : [lastLines(said)];
      });
    },
  });
}

async function goThereAndBack(scene: Scene, source: Source): Promise<void> {
  const { cluster, operator, checks, hops, to: from } = scene;
  const [to] = hops;
  if (to === undefined) throw new Error('this proof needs a version to come back from');
  await operator.prepare({ version: to, binaries: source.binaries(to) });
  await settled(cluster, operator);
  await startLasting(operator, dirname(operator.manifest));
  await checks.check(
    `apply to ${to}: ends with exit code 0`,
    async () => await operator.succeeds('apply', '--yes'),
  );
  await verify(`at ${to}`, checks, cluster, operator, to);
  await source.verifyMore(`at ${to}`, to);
  await makeObjects(operator);
  const before = await objects(operator);
  await operator.prepare({ version: from, binaries: source.binaries(from) });
  await checks.check('plan without --back: is refused', async () => {
    const { ok, stdout, stderr } = await operator.kubeadm('plan');
    const said = stdout + stderr;
    return !ok && said.includes('only with --back') ? [] : [lastLines(said)];
  });
  await checks.check('plan --back: workers come first', async () => {
    const { ok, stdout, stderr } = await operator.kubeadm('plan', '--back');
    const rows = [...cluster.workers, ...cluster.controlPlanes].map(
      ({ name }) => `^${name} .*${to} → ${from}[^]*`,
    );
    const isInOrder = new RegExp(rows.join(''), 'm').test(stdout);
    return ok && isInOrder ? [] : [lastLines(stdout + stderr)];
  });
  await source.beforeWayBack(from);
  const seen = await applyBack(scene);
  await checks.check('workers went first, then the control planes one at a time', () =>
    wrongOrder(cluster, seen),
  );
  await checks.check('never were two API servers or two members of etcd away at once', () => [
    ...new Set(seen.outages),
  ]);
  await verify(`back at ${from}`, checks, cluster, operator, from);
  await source.verifyMore(`back at ${from}`, from);
  await checks.check('no object is lost', async () => {
    const after = new Set(await objects(operator));
    if (before.length < KEYS / 10) return [`only ${before.length} objects were there before`];
    return before.filter((each) => !after.has(each)).map((each) => `${each} is gone`);
  });
  await checks.check('apply --back once more: nothing is to be done', async () => {
    // On a busy machine a static pod may have restarted since the last check. In this case the command must fail, which
    // is correct.
    const wrong = await staticPods(cluster, operator, from);
    if (wrong.length > 0) return wrong;
    const { ok, stdout, stderr } = await operator.kubeadm('apply', '--back', '--yes');
    return ok && /nothing/i.test(stdout) ? [] : [lastLines(stdout + stderr)];
  });
}

async function applyBack({ cluster, operator, checks, log }: Scene): Promise<Seen> {
  const seen = await watched(cluster, async () => {
    await checks.check(
      'apply --back: ends with exit code 0',
      async () => await operator.succeeds('apply', '--back', '--yes'),
    );
  });
  log(seen.events.map(({ name, what }) => `${name} ${what}`).join(', '));
  return seen;
}

/** Creates objects. The newer API server stores them. */
async function makeObjects(operator: Operator): Promise<void> {
  const words = Array.from({ length: KEYS }, (_, index) => `--from-literal=key${index}=${index}`);
  await operator.administer('create', 'namespace', 'kept');
  for (const kind of [['configmap'], ['secret', 'generic']])
    await operator.administer('-n', 'kept', 'create', ...kind, 'words', ...words);
  for (let index = 0; index < 20; index++)
    await operator.administer('-n', 'kept', 'create', 'configmap', `own-${index}`);
}

/** Returns the objects with their uids. An object that was deleted and created again counts as another object. */
async function objects(operator: Operator): Promise<string[]> {
  const text = await operator.administer(
    'get',
    KINDS.join(),
    '--all-namespaces',
    '-o',
    'jsonpath={range .items[*]}{.kind} {.metadata.namespace}/{.metadata.name} {.metadata.uid}{"\\n"}{end}',
  );
  return text.split('\n').filter((line) => line !== '');
}
