/** Runs in the operator's namespaces. Makes the cluster, upgrades it, and checks it. */
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { messageOf } from '../../../src/util/errors.ts';
import { Checks } from '../checks.ts';
import { makeSwitch, OPERATOR } from '../machines/namespaces.ts';
import { resultOf, timedLog } from '../machines/whole-proof.ts';
import { upgradeByPods } from './agents/by-pods.ts';
import { upgradeByAgents } from './agents/upgrade.ts';
import { upgradeAnotherWay } from './another-way/upgrade.ts';
import { anotherWay } from './another-way/way.ts';
import { renewCertificates } from './certificates/renew.ts';
import { BALANCER, USUAL, type Way, withCluster } from './cluster.ts';
import { upgradeWithFaults } from './faults/faults.ts';
import { replaceHost } from './faults/replace-host.ts';
import { restoreEtcd } from './faults/restore-etcd.ts';
import { rollBackKubelet } from './faults/roll-back.ts';
import { rollBackStaticPods } from './faults/static-pods-back.ts';
import { skipMinors, upgradeByHops } from './hops/hops.ts';
import { upgradeByMinor } from './hops/minor.ts';
import { upgradeByManagers } from './managers/upgrade.ts';
import { Operator } from './operator.ts';
import type { InsideOptions, Part } from './options.ts';
import { packagedWay } from './patch-back/packaged.ts';
import { goBack, goBackByPackages } from './patch-back/patch-back.ts';
import { recordKubeadm } from './recordings.ts';
import { type Scene, upgrade } from './upgrade.ts';

/** Makes a cluster for `work`, and removes it when `work` ends. */
async function withScene(
  name: string,
  options: InsideOptions,
  work: (scene: Scene) => Promise<void>,
  way: Way = USUAL,
): Promise<void> {
  const directory = join(options.directory, name);
  const { refit, parts, from, offers } = options;
  const [to = from] = offers.slice(-1);
  const kubectl = join(parts, to, 'kubectl');
  const logs = join(options.logs, name);
  await withCluster({ ...options, directory, log, way }, async (cluster) => {
    const operator = new Operator(cluster, { directory, refit, kubectl, version: to, logs });
    await work({ cluster, operator, checks, log, from, hops: offers.slice(0, -1), to });
  });
}

/** A way that only starts the machines. kubeadm has not run on them. */
const madeByOthers: Way = { ...USUAL, make: async () => await Promise.resolve() };

async function upgradeAndRestore(scene: Scene): Promise<void> {
  await upgrade(scene);
  await restoreEtcd(scene);
}

const file = process.argv[2] ?? '';
const options = JSON.parse(await readFile(file, 'utf8')) as InsideOptions;
const log = timedLog(options.part);
const checks = new Checks(log);

const PARTS: Readonly<Record<Part, () => Promise<void>>> = {
  upgrade: async () => await withScene('quiet', options, upgradeAndRestore),
  faults: async () => await withScene('disturbed', options, upgradeWithFaults),
  'another-way': async () => await withScene('another', options, upgradeAnotherWay, anotherWay),
  agents: async () => await withScene('agents', options, upgradeByAgents),
  daemonset: async () => await withScene('daemonset', options, upgradeByPods),
  managers: async () => {
    const work = async (scene: Scene): Promise<void> =>
      await upgradeByManagers(scene, options.managers);
    await withScene('managed', options, work, madeByOthers);
  },
  recordings: async () => await withScene('recorded', options, recordKubeadm),
  'roll-back': async () => await withScene('rolled-back', options, rollBackKubelet),
  'static-pods-back': async () => await withScene('restored', options, rollBackStaticPods),
  'patch-back': async () => await withScene('back', options, goBack),
  'packages-back': async () => await withScene('packaged', options, goBackByPackages, packagedWay),
  'replace-host': async () => await withScene('replaced', options, replaceHost),
  certificates: async () => await withScene('renewed', options, renewCertificates),
  minor: async () => {
    const work = async (scene: Scene): Promise<void> => await upgradeByMinor(scene, options.etcd);
    await withScene('minor', options, work);
  },
  hops: async () => await withScene('hopped', options, upgradeByHops),
  'skipped-minors': async () => await withScene('skipped', options, skipMinors),
};
await makeSwitch([OPERATOR, BALANCER]);
try {
  await PARTS[options.part]();
} catch (error) {
  await checks.check('the proof comes to its end', () => [messageOf(error)]);
}
await writeFile(resultOf(options), JSON.stringify(checks.outcome));
// The machines end when this process ends.
process.exit(0);
